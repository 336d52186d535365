//! The Arrow PyCapsule interface.

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{ArrayRef, RecordBatchReader};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, Schema, SchemaRef};
use pyo3::types::PyCapsule;

use crate::prelude::*;

pub(crate) fn reader_capsule(
    py: Python<'_>,
    reader: Box<dyn RecordBatchReader + Send>,
) -> PyResult<Bound<'_, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), c"arrow_array_stream")
}

pub(crate) fn schema_capsule<'py>(
    py: Python<'py>,
    schema: &SchemaRef,
) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(schema.as_ref()).map_err(|error| broken(&error));
    PyCapsule::new_with_value(py, schema.or_raise()?, c"arrow_schema")
}

pub(crate) fn broken(error: &ArrowError) -> Error {
    Error::new(Kind::InternalError, format!("Arrow refused its own data: {error}"))
}

pub(crate) fn fitted(
    schema: impl Into<Arc<Schema>>,
    columns: Vec<ArrayRef>,
) -> Result<RecordBatch> {
    RecordBatch::try_new(schema.into(), columns).map_err(|error| {
        Error::new(Kind::InternalError, format!("columns do not fit their schema: {error}"))
    })
}
