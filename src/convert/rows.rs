//! Rows as Python objects: a list for each column.

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, Int32Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array as _, ArrayRef, TimestampMicrosecondArray};
use jiff::SignedDuration;

use crate::prelude::*;

/// The names of some columns, and the values of each.
pub(crate) type Lists<'py> = (Vec<String>, Vec<Bound<'py, PyList>>);

/// The columns of a batch. Nulls are `None`, times are in UTC.
pub(crate) fn lists<'py>(py: Python<'py>, batch: &RecordBatch) -> PyResult<Lists<'py>> {
    let names = batch.schema_ref().fields().iter().map(|field| field.name().clone()).collect();
    let columns = batch.columns().iter().map(|column| list(py, column));
    Ok((names, columns.collect::<PyResult<_>>()?))
}

fn list<'py>(py: Python<'py>, column: &ArrayRef) -> PyResult<Bound<'py, PyList>> {
    if let Some(numbers) = column.as_primitive_opt::<Float64Type>() {
        PyList::new(py, numbers)
    } else if let Some(numbers) = column.as_primitive_opt::<Int64Type>() {
        PyList::new(py, numbers)
    } else if let Some(flags) = column.as_boolean_opt() {
        PyList::new(py, flags)
    } else if let Some(times) = column.as_primitive_opt::<TimestampMicrosecondType>() {
        PyList::new(py, datetimes(py, times)?)
    } else if let Some(codes) = column.as_dictionary_opt::<Int32Type>() {
        // Rows with the same text share one object.
        let texts = codes.values().as_string::<i32>();
        let mut known: Vec<Option<Bound<'py, PyString>>> = vec![None; texts.len()];
        let mut text = |row| {
            let code = codes.key(row).filter(|code| texts.is_valid(*code))?;
            let made = || PyString::new(py, texts.value(code));
            Some(known[code].get_or_insert_with(made).clone())
        };
        PyList::new(py, (0..codes.len()).map(&mut text).collect::<Vec<_>>())
    } else {
        PyList::new(py, column.as_string::<i32>())
    }
}

/// Times as aware `datetime`. Most follow the previous one by the same step, and an addition is faster than
/// a new `datetime`.
fn datetimes<'py>(
    py: Python<'py>,
    times: &TimestampMicrosecondArray,
) -> PyResult<Vec<Option<Bound<'py, PyAny>>>> {
    let delta = |by: i64| SignedDuration::from_micros(by).into_pyobject(py);
    let mut last = (0, Timestamp::UNIX_EPOCH.into_pyobject(py)?.into_any());
    let mut step = (0, delta(0)?);
    let mut made = |at: i64| -> PyResult<Bound<'py, PyAny>> {
        if at != last.0 {
            let by = at.saturating_sub(last.0);
            if by != step.0 {
                step = (by, delta(by)?);
            }
            last = (at, last.1.add(&step.1)?);
        }
        Ok(last.1.clone())
    };
    times.iter().map(|at| at.map(&mut made).transpose()).collect()
}
