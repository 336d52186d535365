//! Points as an Arrow IPC stream: bytes that need no Arrow library in Python.

use arrow_array::RecordBatchReader as _;
use arrow_buffer::Buffer;
use arrow_ipc::writer::StreamEncoder;

use crate::frame::broken;
use crate::frame::stored::BatchStream;
use crate::prelude::*;

/// Points of a batch: a few megabytes.
const ROWS: usize = 1 << 16;

/// An iterator of ``bytes``, which joined are one Arrow IPC stream: the schema and the first batch, each
/// further batch, the end of the stream. After an error it ends without that mark, so that what was
/// written is not taken for the whole.
#[pyclass(frozen, name = "_IpcStream")]
pub(crate) struct IpcStream(Mutex<Option<Open>>);

/// What is left to give.
struct Open {
    encoder: StreamEncoder,
    batches: BatchStream,
    /// The places of the columns.
    places: Vec<usize>,
}

impl IpcStream {
    /// Of these columns of batches, which are read while the stream is consumed.
    pub(crate) fn new(batches: BatchStream, columns: &[String]) -> Result<Self> {
        let all = batches.schema();
        let places: Vec<_> = columns.iter().filter_map(|name| all.index_of(name).ok()).collect();
        let schema = Arc::new(all.project(&places).map_err(|error| broken(&error))?);
        let encoder = StreamEncoder::try_new(&schema).map_err(|error| broken(&error))?;
        Ok(Self(Mutex::new(Some(Open { encoder, batches, places }))))
    }

    /// The buffers of the next part, `None` after the end. Called within a step of the core.
    fn next_part(&self) -> Result<Option<Vec<Buffer>>> {
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
        part.map(Some).map_err(|error| broken(&error))
    }
}

#[pymethods]
impl IpcStream {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// With the interpreter released while it reads; signals are handled between two batches.
    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        py.check_signals()?;
        let part = step(py, || self.next_part())?.or_raise()?;
        part.map(|buffers| guarded(|| joined(py, &buffers))).transpose()
    }
}

fn joined<'py>(py: Python<'py>, buffers: &[Buffer]) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, buffers.iter().map(Buffer::len).sum(), |mut target| {
        for buffer in buffers {
            let (place, rest) = target.split_at_mut(buffer.len());
            place.copy_from_slice(buffer);
            target = rest;
        }
        Ok(())
    })
}
