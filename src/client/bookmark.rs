//! `siteline.types.Bookmark`: as an argument, and as a result.

use crate::prelude::*;
use siteline_core::data::Bookmark;

/// A bookmark, which Python has as bytes.
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
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        let class = py.import("siteline._records.bookmark")?.getattr("Bookmark")?;
        class.call1((self.0.to_bytes(), self.0.pages()))
    }
}

/// The number of pages before a bookmark.
#[pyfunction]
pub(crate) fn _bookmark_pages(data: &[u8]) -> PyResult<u64> {
    guarded(|| Ok(Bookmark::from_bytes(data).or_raise()?.pages()))
}
