//! The exception of a read that failed before its end.

use pyo3::prelude::*;

use crate::bridge::errors::raise;
use crate::client::bookmark::PyBookmark;
use crate::convert::table::PyTable;
use siteline_core::client::table::ReadFailure;

/// The Python exception of a read that failed before its end, with `.bookmark` and `.partial`.
pub(crate) fn read_failure(py: Python<'_>, failure: ReadFailure) -> PyErr {
    let exception = raise(py, &failure.error);
    let value = exception.value(py).clone();
    let fill = || -> PyResult<()> {
        failure.bookmark.map_or(Ok(()), |at| value.setattr("bookmark", PyBookmark(at)))?;
        failure.partial.map_or(Ok(()), |table| value.setattr("partial", PyTable::new(table)))
    };
    fill().err().unwrap_or(exception)
}
