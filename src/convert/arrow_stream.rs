//! The Arrow streams of other libraries. The C data interface has no buffer lengths, so these are trusted; the
//! contents are checked. Before that, `siteline._arrow_check` lets pyarrow check its own objects.

use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_array::RecordBatchReader as _;
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::types::PyCapsule;

use crate::prelude::*;

pub(crate) struct ArrowStream {
    reader: RecordBatchStreamReader,
    /// Makes the error of a broken stream.
    broken: fn(&str) -> Error,
}

impl ArrowStream {
    pub(crate) fn open(given: &Object<'_>, broken: fn(&str) -> Error) -> PyResult<Option<Self>> {
        let py = given.py();
        if !given.hasattr(intern!(py, "__arrow_c_stream__"))? {
            return Ok(None);
        }
        let module = py.import("siteline._arrow_check")?;
        let checked = module.call_method1("checked", (given,)).map_err(|error| {
            let is_broken = error.is_instance_of::<PyValueError>(py);
            let why = is_broken.then(|| error.value(py).to_string());
            why.map_or(error, |why| broken(&reason(&why)).into_py_err())
        })?;
        let capsule = checked.call_method0("__arrow_c_stream__")?.cast_into::<PyCapsule>()?;
        let reader = RecordBatchStreamReader::try_new(moved(&capsule)?);
        let reader = reader.map_err(|error| broken(&shown(&error))).or_raise()?;
        Ok(Some(Self { reader, broken }))
    }

    pub(crate) fn schema(&self) -> SchemaRef {
        self.reader.schema()
    }

    fn read(&mut self) -> Option<Result<RecordBatch, ArrowError>> {
        self.reader.next().map(|batch| {
            let batch = batch?;
            for column in batch.columns() {
                column.to_data().validate_full()?;
            }
            Ok(batch)
        })
    }
}

impl Iterator for ArrowStream {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        // The arrow crates assert some rules of the format.
        let read = catch_unwind(AssertUnwindSafe(|| self.read()));
        let violated = || ArrowError::CDataInterface("it violates the format".to_owned());
        let batch = read.unwrap_or_else(|_| Some(Err(violated())))?;
        Some(batch.map_err(|error| (self.broken)(&shown(&error))))
    }
}

fn shown(error: &ArrowError) -> String {
    match error {
        ArrowError::InvalidArgumentError(why) | ArrowError::CDataInterface(why) => reason(why),
        other => reason(&other.to_string()),
    }
}

/// After "Detail:", pyarrow adds a position in its own code.
fn reason(why: &str) -> String {
    let why = why.split_once(". Detail: ").map_or(why, |(why, _)| why);
    excerpt(why.trim_end_matches('.'))
}

#[expect(unsafe_code, reason = "the Arrow boundary: the stream is moved out of its capsule")]
fn moved(capsule: &Bound<'_, PyCapsule>) -> PyResult<FFI_ArrowArrayStream> {
    let stream = capsule.pointer_checked(Some(c"arrow_array_stream"))?;
    // SAFETY: a capsule of this name contains a stream. `from_raw` leaves a released stream in it, so the
    // destructor of the capsule releases nothing twice.
    Ok(unsafe { FFI_ArrowArrayStream::from_raw(stream.cast::<FFI_ArrowArrayStream>().as_ptr()) })
}
