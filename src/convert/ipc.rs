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
    places: Vec<usize>,
}

impl IpcStream {
    pub(crate) fn new(batches: BatchStream, columns: &[String]) -> Result<Self> {
        let all = batches.schema();
        let places: Vec<_> = columns.iter().filter_map(|name| all.index_of(name).ok()).collect();
        let schema = Arc::new(all.project(&places).map_err(|error| broken(&error))?);
        let encoder = StreamEncoder::try_new(&schema).map_err(|error| broken(&error))?;
        Ok(Self(Mutex::new(Some(Open { encoder, batches, places }))))
    }

    fn next_part(&self) -> Result<Option<Vec<u8>>> {
        let mut open = self.0.lock();
        let Some(mut state) = open.take() else { return Ok(None) };
        let part = match state.batches.next_batch(ROWS)? {
            Some(batch) => {
                let part = batch.project(&state.places).and_then(|one| state.encoder.encode(&one));
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
