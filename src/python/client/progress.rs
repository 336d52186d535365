//! `progress=`: a callback that is called between two pages, by the thread that waits for them, with
//! nothing locked.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::client::progress::Progress;
use crate::data::Query;
use crate::http::Deadline;
use crate::python::bridge::logging::SharedLogBuffer;

/// The argument `progress=`: `True` or a callable. Each scan has a reference of its own, which it shows
/// to the garbage collector.
pub(crate) struct ProgressArg(pub(crate) Py<PyAny>);

/// A `collect()` that reports each page.
#[pyclass(frozen, name = "_Collecting", module = "siteline._siteline")]
pub(crate) struct PyCollecting {
    pub(crate) deadline: Deadline,
    pub(crate) buffer: SharedLogBuffer,
}

impl ProgressArg {
    /// `None` for an argument that asks for nothing.
    ///
    /// # Errors
    /// `QueryError` for what is neither a bool nor a plain callable.
    pub(crate) fn from_argument(argument: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Self>> {
        let Some(argument) = argument else { return Ok(None) };
        let argument = module(argument.py())?.getattr("checked")?.call1((argument,))?;
        Ok((!argument.is_none()).then(|| Self(argument.unbind())))
    }

    /// The callback of a read that begins now; `None` for a bar that nobody would see.
    pub(crate) fn callback(
        &self,
        py: Python<'_>,
        title: &str,
    ) -> PyResult<Option<ProgressCallback>> {
        let callback = module(py)?.getattr("reporter")?.call1((&self.0, title))?;
        Ok((!callback.is_none()).then(|| ProgressCallback(callback.unbind())))
    }
}

/// What a read of this query is called.
pub(crate) fn title(query: &Query) -> String {
    let ids = [&query.input().site, &query.input().line];
    let ids: Vec<&str> = ids.into_iter().flatten().map(String::as_str).collect();
    if ids.is_empty() { "siteline".to_owned() } else { ids.join(" ") }
}

/// The callback of one read.
pub(crate) struct ProgressCallback(pub(crate) Py<PyAny>);

/// What a callback is called with: a `siteline.Progress`.
pub(crate) fn event<'py>(py: Python<'py>, progress: &Progress) -> PyResult<Bound<'py, PyAny>> {
    module(py)?.getattr("Progress")?.call1((
        progress.pages,
        progress.points,
        progress.requests,
        progress.allowance_left,
        progress.newest,
        progress.fraction,
        progress.done,
    ))
}

impl ProgressCallback {
    pub(crate) fn report(&self, py: Python<'_>, progress: &Progress) -> PyResult<()> {
        self.0.call1(py, (event(py, progress)?,)).map(drop)
    }
}

/// The read is over, or has failed.
pub(crate) fn finish(py: Python<'_>, callback: Option<&ProgressCallback>) -> PyResult<()> {
    let Some(callback) = callback else { return Ok(()) };
    module(py)?.getattr("finish")?.call1((&callback.0,)).map(drop)
}

pub(crate) fn module(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module =
        MODULE.get_or_try_init(py, || py.import("siteline.progress").map(Bound::unbind))?;
    Ok(module.bind(py))
}
