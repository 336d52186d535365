//! What notebooks show of points: their preview for `siteline._display.html`, which draws it.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::client::table::Provenance;
use crate::preview::{Line, Preview};
use crate::python::convert::values::datetime_from_microseconds;

/// The range that a read asked for, in microseconds since the Unix epoch.
pub(crate) fn asked(provenance: &Provenance) -> Option<(i64, i64)> {
    if !provenance.further.is_empty() {
        return None;
    }
    let query = &provenance.query;
    Some((query.start()?.as_microsecond(), query.end()?.as_microsecond()))
}

/// A dict of `start`, `end`, `more`, and `series`: tuples of ids, points, lowest and highest value,
/// and stretches of pixels.
pub(crate) fn dict<'py>(py: Python<'py>, preview: &Preview) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("start", datetime_from_microseconds(py, preview.range.0)?)?;
    dict.set_item("end", datetime_from_microseconds(py, preview.range.1)?)?;
    dict.set_item("more", preview.more)?;
    let series = preview.series.iter().map(|line| series(py, line));
    dict.set_item("series", PyList::new(py, series.collect::<PyResult<Vec<_>>>()?)?)?;
    Ok(dict)
}

fn series<'py>(py: Python<'py>, line: &Line) -> PyResult<Bound<'py, PyTuple>> {
    let stretches: Vec<Vec<(usize, f64, f64)>> = line
        .stretches
        .iter()
        .map(|stretch| stretch.iter().map(|pixel| (pixel.x, pixel.low, pixel.high)).collect())
        .collect();
    let ids = PyTuple::new(py, &line.ids)?;
    let (low, high) = line.values.unzip();
    (ids, line.points, low, high, stretches).into_pyobject(py)
}
