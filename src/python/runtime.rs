//! Stand-in on this branch.
#![expect(clippy::disallowed_methods, clippy::unnecessary_wraps, reason = "the one crossing")]
use pyo3::prelude::*;

pub(crate) fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    Ok(py.detach(work))
}
