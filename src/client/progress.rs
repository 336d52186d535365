//! `progress=`: a callback. The thread that waits for the pages calls it between two pages, without a
//! lock.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::bridge::events::SharedEvents;
use crate::convert::state::record;
use siteline_core::client::progress::Progress;
use siteline_core::http::Deadline;

/// The argument `progress=`: `True` or a callable. Each scan has its own reference, which its
/// `__traverse__` visits.
pub(crate) struct ProgressArg(pub(crate) Py<PyAny>);

/// A `collect()` that reports each page.
#[pyclass(frozen, name = "_Collecting", module = "siteline._core")]
pub(crate) struct PyCollecting {
    pub(crate) deadline: Deadline,
    pub(crate) buffer: SharedEvents,
}

impl ProgressArg {
    /// `None` if nothing is to be reported.
    ///
    /// # Errors
    /// `QueryError` for anything but a bool or a plain callable.
    pub(crate) fn from_argument(argument: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Self>> {
        let Some(argument) = argument else { return Ok(None) };
        let argument = module(argument.py())?.getattr("checked")?.call1((argument,))?;
        Ok((!argument.is_none()).then(|| Self(argument.unbind())))
    }

    /// The callback of a read that begins now; `None` for a bar without a terminal or notebook.
    pub(crate) fn callback(
        &self,
        py: Python<'_>,
        title: &str,
    ) -> PyResult<Option<ProgressCallback>> {
        let callback = module(py)?.getattr("reporter")?.call1((&self.0, title))?;
        Ok((!callback.is_none()).then(|| ProgressCallback(callback.unbind())))
    }
}

/// The callback of one read.
pub(crate) struct ProgressCallback(pub(crate) Py<PyAny>);

/// The `siteline.types.Progress` that a callback gets.
pub(crate) fn event<'py>(py: Python<'py>, progress: &Progress) -> PyResult<Bound<'py, PyAny>> {
    record(py, ("siteline._records.progress", "Progress"), progress, [])
}

impl ProgressCallback {
    pub(crate) fn report(&self, py: Python<'_>, progress: &Progress) -> PyResult<()> {
        self.0.call1(py, (event(py, progress)?,)).map(drop)
    }
}

/// Closes the bar of a read that has ended or failed.
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
