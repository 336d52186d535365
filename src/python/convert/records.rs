//! Points as Python objects: plain dicts, or `siteline.Record` tuples.

use std::convert::Infallible;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::ArrayAccessor;
use pyo3::BoundObject as _;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};

use crate::data::{COLUMN_NAMES, Identity, PointColumns};
use crate::python::convert::frames::frames;
use crate::python::convert::values::{datetime_from_microseconds, timedelta};

/// Most times that are kept.
const TIMES: usize = 1 << 12;
/// A year in microseconds. A time that is further from the last one is made without it.
const LONGEST_STEP: i64 = 365 * 86_400 * 1_000_000;

/// A page's points, and what they share as Python objects.
pub(crate) struct Rows {
    pub(crate) points: Arc<PointColumns>,
    shared: PyOnceLock<Shared>,
}

/// Made when the first row is asked for.
struct Shared {
    /// The columns that follow the ids.
    names: Vec<Py<PyString>>,
    /// For each series its ids, or the dict to copy for each of its points.
    series: Vec<PyOnceLock<Py<PyAny>>>,
}

impl Rows {
    /// `None` for a page without points.
    pub(crate) fn new(points: Arc<PointColumns>) -> Option<Arc<Self>> {
        (points.rows() > 0).then(|| Arc::new(Self { points, shared: PyOnceLock::new() }))
    }

    /// The points of these rows, the first of which lies in this envelope or after it.
    pub(crate) fn objects(
        &self,
        py: Python<'_>,
        mut envelope: usize,
        rows: Range<usize>,
        times: &mut Times,
        named: bool,
    ) -> Vec<PyResult<Py<PyAny>>> {
        let envelopes = &self.points.envelopes;
        rows.map(|row| {
            while envelopes[envelope].rows.end <= row {
                envelope += 1;
            }
            self.object(py, envelope, row, times, named).map(Bound::unbind)
        })
        .collect()
    }

    fn object<'py>(
        &self,
        py: Python<'py>,
        envelope: usize,
        row: usize,
        times: &mut Times,
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
            set(value(py, numbers, row))?;
        }
        set(value(py, &points.sample_counts, row))?;
        for texts in &points.extras {
            set(value(py, texts, row))?;
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

    /// A dict with the ids and all other keys, so that a copy of it does not grow when they are set.
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
    // `Record(…)` is a Python function that calls this.
    let (new, class) = MAKE.get_or_try_init(py, || {
        let new = py.get_type::<PyTuple>().getattr("__new__")?.unbind();
        Ok::<_, PyErr>((new, frames(py, "Record")?.cast_into::<PyType>()?.into_any().unbind()))
    })?;
    let id = |place: usize| ids.get_item(place);
    let [mean, minimum, maximum] = points.numbers.each_ref().map(|numbers| value(py, numbers, row));
    let count = value(py, &points.sample_counts, row);
    let ten = [id(0)?, id(1)?, id(2)?, id(3)?, id(4)?, time, mean, minimum, maximum, count];
    new.bind(py).call1((class, PyTuple::new(py, ten)?))
}

/// The value in a row of a column, `None` for null.
fn value<'py, Column>(py: Python<'py>, column: Column, row: usize) -> Bound<'py, PyAny>
where
    Column: ArrayAccessor<Item: IntoPyObject<'py, Error = Infallible>> + Copy,
{
    if column.is_null(row) {
        return py.None().into_bound(py);
    }
    let Ok(value) = column.value(row).into_pyobject(py);
    value.into_any().into_bound()
}

/// The latest times as Python objects: series share their times, and most times follow the previous
/// one by the same step.
#[derive(Default)]
pub(crate) struct Times {
    known: Vec<Option<Time>>,
    /// The index of the last time.
    last: usize,
    /// The last step, a `timedelta`.
    step: Option<Time>,
}

/// Microseconds, and their Python object.
type Time = (i64, Py<PyAny>);

impl Times {
    fn time<'py>(&mut self, py: Python<'py>, at: i64) -> PyResult<Bound<'py, PyAny>> {
        if self.known.is_empty() {
            self.known.resize_with(TIMES, || None);
        }
        let place = place(at);
        if let Some((time, object)) = &self.known[place]
            && *time == at
        {
            self.last = place;
            return Ok(object.bind(py).clone());
        }
        let object = match self.after_last(py, at) {
            Some(object) => object?,
            None => datetime_from_microseconds(py, at)?,
        };
        self.known[place] = Some((at, object.clone().unbind()));
        self.last = place;
        Ok(object)
    }

    /// The last time plus a step: an addition is faster than making a new `datetime`.
    fn after_last<'py>(&mut self, py: Python<'py>, at: i64) -> Option<PyResult<Bound<'py, PyAny>>> {
        let (last, object) = self.known[self.last].as_ref()?;
        let length = at.checked_sub(*last).filter(|length| length.abs() < LONGEST_STEP)?;
        let step = match &self.step {
            Some((known, step)) if *known == length => step.bind(py).clone(),
            _ => {
                let step = timedelta(py, length).ok()?.into_any();
                self.step = Some((length, step.clone().unbind()));
                step
            }
        };
        Some(object.bind(py).add(step))
    }
}

/// The index at which a time is kept. The hash spreads times in equal steps.
fn place(at: i64) -> usize {
    let mixed = at.cast_unsigned().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    usize::try_from(mixed).unwrap_or_default() % TIMES
}
