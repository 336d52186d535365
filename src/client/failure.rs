//! The exception of a read that failed before its end.

use pyo3::prelude::*;

use crate::bridge::errors::raise;
use crate::client::bookmark::PyBookmark;
use crate::frame::Frame;
use siteline_core::client::table::ReadFailure;

/// The Python exception of a read that failed, with `.bookmark`, and with the frame of `.partial`.
pub(crate) fn read_failure(py: Python<'_>, failure: ReadFailure) -> PyErr {
    let exception = raise(py, &failure.error);
    let value = exception.value(py).clone();
    let fill = || -> PyResult<()> {
        failure.bookmark.map_or(Ok(()), |at| value.setattr("bookmark", PyBookmark(at)))?;
        failure.partial.map_or(Ok(()), |table| value.setattr("partial", Frame::of_table(table)))
    };
    fill().err().unwrap_or(exception)
}
