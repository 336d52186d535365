//! The thread that waits for the pages calls `progress=` between two pages, without a lock.

use crate::convert::state::record;
use crate::prelude::*;
use siteline_core::client::progress::Progress;
use siteline_core::data::Bookmark;

pub(crate) struct PyBookmark(pub(crate) Bookmark);

impl FromPyObject<'_, '_> for PyBookmark {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        let bytes = given.call_method0("to_bytes")?;
        guarded(|| Ok(Self(Bookmark::from_bytes(bytes.extract()?).or_raise()?)))
    }
}

impl<'py> IntoPyObject<'py> for PyBookmark {
    type Target = PyAny;
    type Output = Object<'py>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        static BOOKMARK: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let class = BOOKMARK.import(py, "siteline._records.bookmark", "Bookmark")?;
        class.call1((self.0.to_bytes(), self.0.pages()))
    }
}

#[pyfunction]
pub(crate) fn _bookmark_pages(data: &[u8]) -> PyResult<u64> {
    guarded(|| Ok(Bookmark::from_bytes(data).or_raise()?.pages()))
}

pub(crate) struct ProgressCallback(pub(crate) Py<PyAny>);

pub(crate) fn event<'py>(py: Python<'py>, progress: &Progress) -> PyResult<Object<'py>> {
    static PROGRESS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    record(PROGRESS.import(py, "siteline._records.progress", "Progress")?, progress)
}

impl ProgressCallback {
    pub(crate) fn clone_ref(&self, py: Python<'_>) -> Self {
        Self(self.0.clone_ref(py))
    }

    pub(crate) fn report(&self, py: Python<'_>, progress: &Progress) -> PyResult<()> {
        self.0.call1(py, (event(py, progress)?,)).map(drop)
    }
}

/// Closes the bar of a read.
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
