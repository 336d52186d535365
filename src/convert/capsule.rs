//! The Arrow PyCapsule interface: points and schemas as capsules, and the streams of others.

use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchReader};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{Schema, SchemaRef};
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::bridge::errors::OrRaise as _;
use crate::convert::arrow_stream::{ArrowStream, BrokenStream};
use siteline_core::error::{Error, Kind, Result};

/// The Arrow stream of batches that are read when the consumer asks for them, as the PyCapsule
/// interface wants it. It is released once, by the consumer or with the capsule.
pub(crate) fn reader_capsule(
    py: Python<'_>,
    reader: Box<dyn RecordBatchReader + Send>,
) -> PyResult<Bound<'_, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), c"arrow_array_stream")
}

/// The batches of an object that has an Arrow stream; `None` for one that has none. The inner error is that
/// of a broken stream.
pub(crate) fn stream_reader(
    given: &Bound<'_, PyAny>,
) -> PyResult<Option<Result<ArrowStream, BrokenStream>>> {
    let py = given.py();
    if !given.hasattr(intern!(py, "__arrow_c_stream__"))? {
        return Ok(None);
    }
    let checked = match py.import("siteline._arrow_check")?.call_method1("checked", (given,)) {
        Ok(checked) => checked,
        Err(error) if error.is_instance_of::<PyValueError>(py) => {
            return Ok(Some(Err(BrokenStream::new(&error.value(py).to_string()))));
        }
        Err(error) => return Err(error),
    };
    let capsule = checked.call_method0("__arrow_c_stream__")?.cast_into::<PyCapsule>()?;
    Ok(Some(ArrowStream::new(moved(&capsule)?)))
}

#[expect(unsafe_code, reason = "the Arrow boundary: the stream is moved out of its capsule")]
fn moved(capsule: &Bound<'_, PyCapsule>) -> PyResult<FFI_ArrowArrayStream> {
    let stream = capsule.pointer_checked(Some(c"arrow_array_stream"))?;
    // SAFETY: relies on Python code that gives a capsule this name (checked just now) to put a stream
    // into it. `from_raw` leaves a released one in its place, so that the capsule's destructor releases
    // nothing twice.
    Ok(unsafe { FFI_ArrowArrayStream::from_raw(stream.cast::<FFI_ArrowArrayStream>().as_ptr()) })
}

/// The Arrow schema alone, as the PyCapsule interface wants it.
pub(crate) fn schema_capsule<'py>(
    py: Python<'py>,
    schema: &SchemaRef,
) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(schema.as_ref())
        .map_err(|error| {
            Error::new(Kind::InternalError, format!("Arrow refused its own data: {error}"))
        })
        .or_raise()?;
    PyCapsule::new_with_value(py, schema, c"arrow_schema")
}

/// A batch of these columns.
///
/// # Errors
/// `InternalError` where they do not fit the schema.
pub(crate) fn fitted(
    schema: impl Into<Arc<Schema>>,
    columns: Vec<ArrayRef>,
) -> Result<RecordBatch> {
    RecordBatch::try_new(schema.into(), columns).map_err(|error| {
        Error::new(Kind::InternalError, format!("columns do not fit their schema: {error}"))
    })
}
