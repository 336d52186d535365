use crate::prelude::*;
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
        class.call1((self.0.to_bytes(),))
    }
}

#[pyfunction]
pub(crate) fn _bookmark_pages(data: &[u8]) -> PyResult<u64> {
    guarded(|| Ok(Bookmark::from_bytes(data).or_raise()?.pages()))
}
