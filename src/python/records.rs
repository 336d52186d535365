//! Points as Python objects: plain dicts, or `siteline.Record` tuples.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{Array, ArrowPrimitiveType, PrimitiveArray};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyFloat, PyInt, PyString, PyTuple, PyType};

use crate::data::{COLUMN_NAMES, Identity, PointColumns};
use crate::python::conversions::datetime_from_microseconds;
use crate::python::errors::frames;

/// So many times are kept at most.
const TIMES: usize = 1 << 13;

/// A page's points, and what they share as Python objects.
pub(crate) struct Rows {
    pub(crate) points: Arc<PointColumns>,
    shared: PyOnceLock<Shared>,
}

/// Made when the first row is asked for.
struct Shared {
    /// The columns that follow the ids.
    names: Vec<Py<PyString>>,
    /// Of each series the ids, or the dict of a point with all but its ids still `None`.
    series: Vec<PyOnceLock<Py<PyAny>>>,
}

impl Rows {
    /// `None` for a page without points.
    pub(crate) fn new(points: Arc<PointColumns>) -> Option<Arc<Self>> {
        (points.rows() > 0).then(|| Arc::new(Self { points, shared: PyOnceLock::new() }))
    }

    /// The point of a row, which lies in this envelope.
    pub(crate) fn object<'py>(
        &self,
        py: Python<'py>,
        (envelope, row): (usize, usize),
        times: &Times,
        named: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let points = &*self.points;
        let shared = self.shared.get_or_init(py, || Shared::new(py, points));
        let series = points.envelopes[envelope].series;
        let known = shared.series[series].get_or_try_init(py, || {
            let identity = &points.series[series];
            if named { ids(py, identity) } else { shared.template(py, identity) }
        })?;
        let time = times.time(py, points.timestamps.value(row))?;
        if named {
            return record(py, known.bind(py).cast::<PyTuple>()?, time, points, row);
        }
        let dict = known.bind(py).cast::<PyDict>()?.copy()?;
        let mut keys = shared.names.iter().map(|name| name.bind(py));
        let mut set = |value: Bound<'py, PyAny>| match keys.next() {
            Some(key) => dict.set_item(key, value),
            None => Ok(()),
        };
        set(time)?;
        for numbers in &points.numbers {
            set(float(py, numbers, row))?;
        }
        set(count(py, &points.sample_counts, row))?;
        for texts in &points.extras {
            set(if texts.is_valid(row) {
                PyString::new(py, texts.value(row)).into_any()
            } else {
                py.None().into_bound(py)
            })?;
        }
        Ok(dict.into_any())
    }
}

impl Shared {
    fn new(py: Python<'_>, points: &PointColumns) -> Self {
        let extras = points.extra_columns().iter().map(String::as_str);
        let names = COLUMN_NAMES.into_iter().skip(5).chain(extras);
        Self {
            names: names.map(|name| PyString::intern(py, name).unbind()).collect(),
            series: points.series.iter().map(|_| PyOnceLock::new()).collect(),
        }
    }

    /// A dict to copy: what is set in the copy has its place already.
    fn template(&self, py: Python<'_>, identity: &Identity) -> PyResult<Py<PyAny>> {
        let dict = PyDict::new(py);
        for (name, id) in COLUMN_NAMES.into_iter().zip(&identity.0) {
            dict.set_item(PyString::intern(py, name), id.as_deref())?;
        }
        for name in &self.names {
            dict.set_item(name, py.None())?;
        }
        Ok(dict.into_any().unbind())
    }
}

fn ids(py: Python<'_>, identity: &Identity) -> PyResult<Py<PyAny>> {
    Ok(PyTuple::new(py, identity.0.iter().map(Option::as_deref))?.into_any().unbind())
}

/// Extra columns have no place in the tuple; the dicts carry them.
fn record<'py>(
    py: Python<'py>,
    ids: &Bound<'py, PyTuple>,
    time: Bound<'py, PyAny>,
    points: &PointColumns,
    row: usize,
) -> PyResult<Bound<'py, PyAny>> {
    static MAKE: PyOnceLock<(Py<PyAny>, Py<PyAny>)> = PyOnceLock::new();
    // What `Record(…)` would call, without its step through Python.
    let (new, class) = MAKE.get_or_try_init(py, || {
        let new = py.get_type::<PyTuple>().getattr("__new__")?.unbind();
        Ok::<_, PyErr>((new, frames(py, "Record")?.cast_into::<PyType>()?.into_any().unbind()))
    })?;
    let id = |place: usize| ids.get_item(place);
    let [value, minimum, maximum] = points.numbers.each_ref().map(|array| float(py, array, row));
    let count = count(py, &points.sample_counts, row);
    let ten = [id(0)?, id(1)?, id(2)?, id(3)?, id(4)?, time, value, minimum, maximum, count];
    new.bind(py).call1((class, PyTuple::new(py, ten)?))
}

fn float<'py, T: ArrowPrimitiveType<Native = f64>>(
    py: Python<'py>,
    array: &PrimitiveArray<T>,
    row: usize,
) -> Bound<'py, PyAny> {
    if array.is_null(row) {
        return py.None().into_bound(py);
    }
    PyFloat::new(py, array.value(row)).into_any()
}

fn count<'py, T: ArrowPrimitiveType<Native = i64>>(
    py: Python<'py>,
    array: &PrimitiveArray<T>,
    row: usize,
) -> Bound<'py, PyAny> {
    if array.is_null(row) {
        return py.None().into_bound(py);
    }
    PyInt::new(py, array.value(row)).into_any()
}

/// The times of the last points as Python objects: points of several series share theirs.
#[derive(Default)]
pub(crate) struct Times(Mutex<Vec<Option<(i64, Py<PyAny>)>>>);

impl Times {
    fn time<'py>(&self, py: Python<'py>, at: i64) -> PyResult<Bound<'py, PyAny>> {
        {
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if known.is_empty() {
                known.resize_with(TIMES, || None);
            }
            if let Some((time, object)) = &known[place(at)]
                && *time == at
            {
                return Ok(object.bind(py).clone());
            }
        }
        // Made, and another let go, outside of the lock: that may run whatever code.
        let object = datetime_from_microseconds(py, at)?;
        let new = Some((at, object.clone().unbind()));
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let old = std::mem::replace(&mut known[place(at)], new);
        drop(known);
        drop(old);
        Ok(object)
    }
}

/// Where a time is kept: times in equal steps go to places far from each other.
fn place(at: i64) -> usize {
    let mixed = at.cast_unsigned().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    usize::try_from(mixed).unwrap_or_default() % TIMES
}
