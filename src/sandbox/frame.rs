//! Frames for `Sandbox.load`: an Arrow stream by its capsule, a pandas frame by NumPy.

use std::iter;

use arrow_array::types::Int64Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Float64Array, LargeStringArray, TimestampMicrosecondArray,
};
use pyo3::buffer::{Element, PyBuffer};

use super::arguments::refused;
use crate::convert::arrow_stream::ArrowStream;
use crate::prelude::*;
use siteline_sandbox::{Frame, Identity, SandboxError};

/// `ids` replace id columns that the frame lacks.
pub(super) fn read(given: &Object<'_>, ids: Identity) -> PyResult<Frame> {
    let py = given.py();
    let (first, further) = if let Some(batch) = pandas_batch(given)? {
        (batch, None)
    } else {
        let reader = reader(given)?;
        (RecordBatch::new_empty(reader.schema()), Some(reader))
    };
    let mut frame = Frame::new(ids);
    detached(py, || {
        let mut batches = iter::once(Ok(first)).chain(further.into_iter().flatten());
        batches.try_for_each(|batch| frame.append(&batch?).map_err(refused))
    })?
    .or_raise()?;
    Ok(frame)
}

fn broken(why: &str) -> Error {
    let text = format!("The Arrow stream is broken: {why}. Nothing was loaded.");
    Error::new(Kind::ConfigError, text)
}

fn reader(frame: &Object<'_>) -> PyResult<ArrowStream> {
    if let Some(reader) = ArrowStream::open(frame, broken)? {
        return Ok(reader);
    }
    let kind = frame.get_type().name()?;
    let text = format!("A {kind} is neither a pandas frame nor an Arrow stream.");
    Err(Error::new(Kind::ConfigError, text)).or_raise()
}

/// `None` if it is no pandas frame.
fn pandas_batch(frame: &Object<'_>) -> PyResult<Option<RecordBatch>> {
    let py = frame.py();
    let module = py.import("siteline._pandas_load")?;
    let columns: Option<Vec<(String, String, Object<'_>)>> =
        module.call_method1("columns", (frame,))?.extract()?;
    let Some(columns) = columns else { return Ok(None) };
    let columns = columns.into_iter();
    let arrays = columns.map(|(name, kind, values)| Ok((name, array(&kind, &values)?)));
    let arrays = arrays.collect::<PyResult<Vec<_>>>()?;
    Ok(Some(RecordBatch::try_from_iter(arrays).map_err(SandboxError::from).or_raise()?))
}

fn array(kind: &str, values: &Object<'_>) -> PyResult<ArrayRef> {
    Ok(match kind {
        "double" => Arc::new(Float64Array::from(numpy::<f64>(values)?)),
        "time" => {
            let times = numpy::<i64>(values)?.into_iter();
            let times = times.map(|time| (time != i64::MIN).then_some(time));
            Arc::new(times.collect::<TimestampMicrosecondArray>().with_timezone("UTC"))
        }
        _ => {
            let (places, texts): (Object<'_>, Vec<String>) = values.extract()?;
            let places = numpy::<i64>(&places)?.into_iter();
            let places = places.map(|place| (place >= 0).then_some(place));
            let texts = Arc::new(LargeStringArray::from(texts));
            let array = DictionaryArray::<Int64Type>::try_new(places.collect(), texts);
            Arc::new(array.map_err(SandboxError::from).or_raise()?)
        }
    })
}

fn numpy<T: Element>(array: &Object<'_>) -> PyResult<Vec<T>> {
    PyBuffer::get(array)?.to_vec(array.py())
}
