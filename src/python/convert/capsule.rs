//! The Arrow PyCapsule interface: points and schemas as capsules.

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatchIterator, RecordBatchReader};
use arrow_schema::SchemaRef;
use arrow_schema::ffi::FFI_ArrowSchema;
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
