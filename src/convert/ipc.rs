//! An Arrow IPC stream as bytes, so that Python needs no Arrow library.

use arrow_array::RecordBatchReader as _;
use arrow_ipc::writer::StreamEncoder;

use crate::convert::capsule::broken;
use crate::frame::stored::BatchStream;
use crate::prelude::*;

const ROWS: usize = 1 << 16;

/// After an error the end mark is missing, so nobody takes the stream for complete.
#[pyclass(frozen, name = "_IpcStream")]
pub(crate) struct IpcStream(Mutex<Option<Open>>);

struct Open {
    encoder: StreamEncoder,
    batches: BatchStream,
}

impl IpcStream {
    pub(crate) fn new(batches: BatchStream) -> Result<Self> {
        let encoder = StreamEncoder::try_new(&batches.schema()).map_err(|error| broken(&error))?;
        Ok(Self(Mutex::new(Some(Open { encoder, batches }))))
    }

    fn next_part(&self) -> Result<Option<Vec<u8>>> {
        let mut open = self.0.lock();
        let Some(mut state) = open.take() else { return Ok(None) };
        let part = match state.batches.next_batch(ROWS)? {
            Some(batch) => {
                let part = state.encoder.encode(&batch);
                *open = Some(state);
                part
            }
            None => state.encoder.finish(),
        };
        let buffers = part.map_err(|error| broken(&error))?;
        Ok(Some(buffers.iter().map(|buffer| &**buffer).collect::<Vec<_>>().concat()))
    }
}

#[pymethods]
impl IpcStream {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// Reads with the interpreter released, and handles signals between two batches.
    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        py.check_signals()?;
        let part = step(py, || self.next_part())?.or_raise()?;
        Ok(part.map(|part| PyBytes::new(py, &part)))
    }
}
