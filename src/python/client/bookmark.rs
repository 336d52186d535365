//! `siteline.Bookmark`: where a read goes on.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple, PyType};

use crate::data::Bookmark;
use crate::python::bridge::errors::raise;
use crate::python::bridge::process::guarded;
use crate::python::convert::values::many;

/// Where a read goes on: sealed, and a secret of its holder, for it contains the cursor.
///
/// It can be saved (``bytes(bookmark)``, :meth:`from_bytes`) and pickled. It fits only the query,
/// host and subject it was made for: ``scan.resume(bookmark)`` refuses it elsewhere, and refuses
/// one that was edited, with :class:`BookmarkError`. Its text and repr show no cursor.
///
/// >>> bookmark = next(scan.pages()).bookmark
/// >>> saved = bytes(bookmark)
/// >>> rest = scan.resume(siteline.Bookmark.from_bytes(saved))
/// >>> [len(page) for page in rest.pages()]
/// [30, 12]
#[pyclass(frozen, eq, hash, name = "Bookmark", module = "siteline")]
#[derive(PartialEq, Hash)]
pub(crate) struct PyBookmark(pub(crate) Bookmark);

#[pymethods]
impl PyBookmark {
    /// Read a bookmark that ``bytes(bookmark)`` wrote.
    #[classmethod]
    fn from_bytes(cls: &Bound<'_, PyType>, data: &[u8]) -> PyResult<Self> {
        let read = || Bookmark::from_bytes(data).map(Self);
        guarded(|| read().map_err(|error| raise(cls.py(), &error)))
    }

    /// The sealed bytes; keep them as you keep a password.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.to_bytes())
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        self.to_bytes(py)
    }

    /// Pages that had been read when it was made.
    #[getter]
    fn pages(&self) -> u64 {
        self.0.pages()
    }

    fn __repr__(&self) -> String {
        format!("<Bookmark after {}>", many(self.0.pages(), "page"))
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let py = slf.py();
        let make = slf.get_type().getattr("from_bytes")?;
        Ok((make, PyTuple::new(py, [slf.get().to_bytes(py)])?))
    }
}
