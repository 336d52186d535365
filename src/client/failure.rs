//! The exception of a read that failed before its end.

use pyo3::prelude::*;

use crate::bridge::errors::raise;
use crate::client::bookmark::PyBookmark;
use crate::frame::{Frame, TableShown, table_object};
use siteline_core::client::table::ReadFailure;

/// The Python exception of a read that failed before its end, with `.bookmark` and `.partial`.
pub(crate) fn read_failure(py: Python<'_>, failure: ReadFailure, shown: &TableShown) -> PyErr {
    let exception = raise(py, &failure.error);
    let value = exception.value(py).clone();
    let fill = || -> PyResult<()> {
        failure.bookmark.map_or(Ok(()), |at| value.setattr("bookmark", PyBookmark(at)))?;
        let partial = failure.partial.map(|table| table_object(py, Frame::of_table(table), shown));
        partial.transpose()?.map_or(Ok(()), |table| value.setattr("partial", table))
    };
    fill().err().unwrap_or(exception)
}
