//! Points as Python objects: plain dicts, or `siteline.types.Record` tuples.

use std::convert::Infallible;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::ArrayAccessor;
use pyo3::BoundObject as _;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};

use crate::convert::values::{datetime_from_microseconds, timedelta};
use siteline_core::data::{COLUMN_NAMES, Identity, PointColumns};

/// Most times that are kept.
const TIMES: usize = 1 << 12;
/// A year in microseconds. A time that is further from the last one is made without it.
const LONGEST_STEP: i64 = 365 * 86_400 * 1_000_000;

/// A page's points.
pub(crate) struct Rows {
    pub(crate) points: Arc<PointColumns>,
    /// That of the page, for [`Known`].
    number: u64,
}

/// What the rows of one page and of the next share as Python objects.
#[derive(Default)]
pub(crate) struct Known {
    /// The number of the page, 0 before the first.
    page: u64,
    /// The series of that page ...
    identities: Vec<Identity>,
    /// ... and for each its ids, or the dict to copy for each of its points.
    series: Vec<Option<Py<PyAny>>>,
    /// The columns that follow the ids.
    names: Vec<Py<PyString>>,
    times: Times,
}

impl Rows {
    /// `None` for a page without points. The numbers of an iterator's pages begin with 1.
    pub(crate) fn new(points: Arc<PointColumns>, number: u64) -> Option<Arc<Self>> {
        (points.rows() > 0).then(|| Arc::new(Self { points, number }))
    }

    /// The points of these rows, the first of which lies in this envelope or after it.
    pub(crate) fn objects(
        &self,
        py: Python<'_>,
        mut envelope: usize,
        rows: Range<usize>,
        known: &mut Known,
        named: bool,
    ) -> Vec<PyResult<Py<PyAny>>> {
        let envelopes = &self.points.envelopes;
        if known.page != self.number {
            known.turn_to(py, self);
        }
        rows.map(|row| {
            while envelopes[envelope].rows.end <= row {
                envelope += 1;
            }
            self.object(py, envelope, row, known, named).map(Bound::unbind)
        })
        .collect()
    }

    fn object<'py>(
        &self,
        py: Python<'py>,
        envelope: usize,
        row: usize,
        known: &mut Known,
        named: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let points = &*self.points;
        let time = known.times.time(py, points.timestamps.value(row))?;
        let series = known.of_series(py, points, points.envelopes[envelope].series, named)?;
        if named {
            return record(py, series.cast::<PyTuple>()?, time, points, row);
        }
        let dict = series.cast::<PyDict>()?.copy()?;
        let mut keys = known.names.iter().map(|name| name.bind(py));
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

impl Known {
    /// Goes on to another page. The series of a chain's pages are mostly the same in the same order, from
    /// whichever the page begins with.
    fn turn_to(&mut self, py: Python<'_>, rows: &Rows) {
        let (points, before) = (&rows.points, std::mem::take(&mut self.identities));
        if self.names.is_empty() {
            let extras = points.extra_columns().iter().map(String::as_str);
            let names = COLUMN_NAMES.into_iter().skip(5).chain(extras);
            self.names = names.map(|name| PyString::intern(py, name).unbind()).collect();
        }
        let is_first = |known: &Identity| {
            points.series.first().is_some_and(|first| first.is_shared_with(known))
        };
        let mut known = before.iter().zip(std::mem::take(&mut self.series)).collect::<Vec<_>>();
        known.rotate_left(before.iter().position(is_first).unwrap_or_default());
        let mut known = known.into_iter();
        self.series = Vec::with_capacity(points.series.len());
        for identity in &points.series {
            let same = known.next().filter(|(known, _)| known.is_shared_with(identity));
            self.series.push(same.and_then(|(_, object)| object));
        }
        (self.page, self.identities) = (rows.number, points.series.clone());
    }

    /// The ids of a series, or the dict to copy.
    fn of_series<'py>(
        &mut self,
        py: Python<'py>,
        points: &PointColumns,
        series: usize,
        named: bool,
    ) -> PyResult<&Bound<'py, PyAny>> {
        let known = match self.series[series].take() {
            Some(known) => known,
            None if named => ids(py, &points.series[series])?,
            None => self.template(py, &points.series[series])?,
        };
        Ok(self.series[series].insert(known).bind(py))
    }

    /// A dict with the ids and all other keys, so that a copy of it does not grow when they are set.
    fn template(&self, py: Python<'_>, identity: &Identity) -> PyResult<Py<PyAny>> {
        let dict = PyDict::new(py);
        for (name, id) in COLUMN_NAMES.into_iter().zip(identity.0.iter()) {
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
        Ok::<_, PyErr>((
            new,
            py.import("siteline.frames")?
                .getattr("Record")?
                .cast_into::<PyType>()?
                .into_any()
                .unbind(),
        ))
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
