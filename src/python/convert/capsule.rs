//! The Arrow PyCapsule interface: points and schemas as capsules, and the streams of others.

use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::{RecordBatchIterator, RecordBatchReader};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::data::PointColumns;
use crate::error::{Error, Kind};
use crate::python::bridge::process::detached;

/// The Arrow stream of points at hand.
pub(crate) fn points_capsule<'py>(
    py: Python<'py>,
    points: &PointColumns,
) -> PyResult<Bound<'py, PyCapsule>> {
    let batch = detached(py, || points.batch())??;
    let schema = batch.schema();
    reader_capsule(py, Box::new(RecordBatchIterator::new([Ok(batch)], schema)))
}

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
#[expect(unsafe_code, reason = "the Arrow boundary: the stream is moved out of its capsule")]
pub(crate) fn stream_reader(
    given: &Bound<'_, PyAny>,
) -> PyResult<Option<Result<RecordBatchStreamReader, ArrowError>>> {
    let py = given.py();
    if !given.hasattr(intern!(py, "__arrow_c_stream__"))? {
        return Ok(None);
    }
    let capsule = given.call_method0("__arrow_c_stream__")?.cast_into::<PyCapsule>()?;
    let stream = capsule.pointer_checked(Some(c"arrow_array_stream"))?;
    // SAFETY: a capsule of this name holds a valid stream (checked just now); `from_raw` leaves a
    // released one in its place, so that the capsule's destructor releases nothing twice.
    Ok(Some(unsafe {
        RecordBatchStreamReader::from_raw(stream.cast::<FFI_ArrowArrayStream>().as_ptr())
    }))
}

/// The Arrow schema alone, as the PyCapsule interface wants it.
pub(crate) fn schema_capsule<'py>(
    py: Python<'py>,
    schema: &SchemaRef,
) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(schema.as_ref()).map_err(|error| {
        Error::new(Kind::InternalError, format!("Arrow refused its own data: {error}"))
    })?;
    PyCapsule::new_with_value(py, schema, c"arrow_schema")
}
