//! The exception of a read that failed half way.

use pyo3::prelude::*;

use crate::client::table::ReadFailure;
use crate::python::bridge::errors::raise;
use crate::python::client::bookmark::PyBookmark;
use crate::python::convert::table::PyTable;

/// The Python exception for a read that failed half way, with ``.bookmark`` and ``.partial``.
pub(crate) fn read_failure(py: Python<'_>, failure: ReadFailure) -> PyErr {
    let exception = raise(py, &failure.error);
    let value = exception.value(py);
    let fill = || -> PyResult<()> {
        if let Some(bookmark) = failure.bookmark {
            value.setattr("bookmark", Py::new(py, PyBookmark(bookmark))?)?;
        }
        if let Some(partial) = failure.partial {
            value.setattr("partial", Py::new(py, PyTable::new(partial))?)?;
        }
        Ok(())
    };
    match fill() {
        Ok(()) => exception,
        Err(failure) => failure,
    }
}
