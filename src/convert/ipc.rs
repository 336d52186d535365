//! Points as an Arrow IPC stream: bytes that need no Arrow library in Python.

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::writer::StreamEncoder;
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::types::PyBytes;

use crate::prelude::*;

/// Points of a batch: a few megabytes.
const ROWS: usize = 1 << 16;

/// Gives the next batch of at most so many rows, `None` after the last.
pub(crate) type NextBatch = Box<dyn FnMut(usize) -> Result<Option<RecordBatch>> + Send>;

/// An iterator of ``bytes``, which joined are one Arrow IPC stream: the schema and the first batch, each
/// further batch, the end of the stream. After an error it ends without that mark, so that what was
/// written is not taken for the whole.
#[pyclass(frozen, name = "_IpcStream")]
pub(crate) struct IpcStream(Mutex<Option<Open>>);

/// What is left to give.
struct Open {
    encoder: StreamEncoder,
    next_batch: NextBatch,
}

impl IpcStream {
    /// Of batches of this schema, which are read while the stream is consumed.
    ///
    /// # Errors
    /// `InternalError` for a schema that the format does not know.
    pub(crate) fn new(schema: &SchemaRef, next_batch: NextBatch) -> Result<Self> {
        let encoder = StreamEncoder::try_new(schema).map_err(broken)?;
        Ok(Self(Mutex::new(Some(Open { encoder, next_batch }))))
    }

    /// The buffers of the next part, `None` after the end. Called within a step of the core.
    fn next_part(&self) -> Result<Option<Vec<Buffer>>> {
        let mut open = self.0.lock();
        let Some(mut state) = open.take() else { return Ok(None) };
        let part = match (state.next_batch)(ROWS)? {
            Some(batch) => {
                let part = state.encoder.encode(&batch);
                *open = Some(state);
                part
            }
            None => state.encoder.finish(),
        };
        part.map(Some).map_err(broken)
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

#[expect(clippy::needless_pass_by_value, reason = "fits map_err")]
fn broken(error: ArrowError) -> Error {
    Error::new(Kind::InternalError, format!("Arrow refused its own data: {error}"))
}
