//! Rows as Python objects: a list for each column.

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, Int32Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array as _, ArrayRef, DictionaryArray, TimestampMicrosecondArray};
use jiff::SignedDuration;

use crate::prelude::*;

/// The names of some columns, and the values of each.
pub(crate) type Lists<'py> = (Vec<String>, Vec<Bound<'py, PyList>>);

/// The columns of a batch. Nulls are `None`, times are in UTC.
pub(crate) fn lists<'py>(
    py: Python<'py>,
    batch: &RecordBatch,
    times: &mut Times,
) -> PyResult<Lists<'py>> {
    let names = batch.schema_ref().fields().iter().map(|field| field.name().clone()).collect();
    let columns = batch.columns().iter().map(|column| list(py, column, times));
    Ok((names, columns.collect::<PyResult<_>>()?))
}

/// The number of rows at the start of a batch that have the same values in its dictionary columns, the ids.
pub(crate) fn first_run(batch: &RecordBatch) -> usize {
    let codes = batch.columns().iter().filter_map(|one| one.as_dictionary_opt::<Int32Type>());
    let run = |codes: &DictionaryArray<Int32Type>| {
        let rows = codes.len();
        (1..rows).find(|row| codes.key(*row) != codes.key(0)).unwrap_or(rows)
    };
    codes.map(run).min().unwrap_or_default()
}

fn list<'py>(
    py: Python<'py>,
    column: &ArrayRef,
    known: &mut Times,
) -> PyResult<Bound<'py, PyList>> {
    if let Some(numbers) = column.as_primitive_opt::<Float64Type>() {
        PyList::new(py, numbers)
    } else if let Some(numbers) = column.as_primitive_opt::<Int64Type>() {
        PyList::new(py, numbers)
    } else if let Some(flags) = column.as_boolean_opt() {
        PyList::new(py, flags)
    } else if let Some(times) = column.as_primitive_opt::<TimestampMicrosecondType>() {
        PyList::new(py, known.datetimes(py, times)?)
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

/// Aware `datetime` objects. Series share their times, and most times follow the previous one by the same
/// step: an addition is faster than a new `datetime`.
#[derive(Default)]
pub(crate) struct Times {
    known: Vec<Option<(i64, Py<PyAny>)>>,
    last: Option<(i64, Py<PyAny>)>,
    step: Option<(i64, Py<PyAny>)>,
}

impl Times {
    const KEPT: usize = 1 << 12;

    fn datetimes<'py>(
        &mut self,
        py: Python<'py>,
        times: &TimestampMicrosecondArray,
    ) -> PyResult<Vec<Option<Bound<'py, PyAny>>>> {
        self.known.resize_with(Self::KEPT, || None);
        times.iter().map(|at| at.map(|at| self.datetime(py, at)).transpose()).collect()
    }

    fn datetime<'py>(&mut self, py: Python<'py>, at: i64) -> PyResult<Bound<'py, PyAny>> {
        // The hash spreads times in equal steps.
        let mixed = at.cast_unsigned().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 52;
        let place = usize::try_from(mixed).unwrap_or_default() % Self::KEPT;
        if let Some((time, object)) = &self.known[place]
            && *time == at
        {
            return Ok(object.bind(py).clone());
        }
        let (before, object) = match self.last.take() {
            Some((before, object)) => (before, object.into_bound(py)),
            None => (0, Timestamp::UNIX_EPOCH.into_pyobject(py)?.into_any()),
        };
        let by = at.saturating_sub(before);
        let step = match self.step.take() {
            Some((known, step)) if known == by => step.into_bound(py),
            _ => SignedDuration::from_micros(by).into_pyobject(py)?.into_any(),
        };
        let made = object.add(&step)?;
        self.step = Some((by, step.unbind()));
        self.last = Some((at, made.clone().unbind()));
        self.known[place] = Some((at, made.clone().unbind()));
        Ok(made)
    }
}
