//! `siteline.types.Bookmark`: the position from which a read continues.

use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::bridge::errors::OrRaise as _;
use crate::bridge::process::guarded;
use crate::convert::values::many;
use siteline_core::data::Bookmark;

/// The position from which a read continues. Keep it secret: it contains the cursor.
///
/// It can be saved (``bytes(bookmark)``, :meth:`from_bytes`) and pickled. It is valid only for the
/// query, host and subject for which it was made: ``scan.resume(bookmark)`` raises
/// :class:`BookmarkError` for another, and for a bookmark that was changed. Its text and repr do
/// not contain the cursor.
///
/// >>> bookmark = next(scan.pages()).bookmark
/// >>> saved = bytes(bookmark)
/// >>> rest = scan.resume(siteline.types.Bookmark.from_bytes(saved))
/// >>> [len(page) for page in rest.pages()]
/// [30, 12]
#[pyclass(frozen, weakref, eq, hash, name = "Bookmark", module = "siteline.types")]
#[derive(PartialEq, Hash)]
pub(crate) struct PyBookmark(pub(crate) Bookmark);

#[pymethods]
impl PyBookmark {
    /// Read a bookmark that ``bytes(bookmark)`` wrote.
    #[classmethod]
    fn from_bytes(_cls: &Bound<'_, PyType>, data: &[u8]) -> PyResult<Self> {
        guarded(|| Ok(Self(Bookmark::from_bytes(data).or_raise()?)))
    }

    /// The bytes of the bookmark, with a checksum; keep them as secret as a password.
    fn to_bytes(&self) -> Vec<u8> {
        self.0.to_bytes()
    }

    fn __bytes__(&self) -> Vec<u8> {
        self.to_bytes()
    }

    /// The number of pages that were read before it.
    #[getter]
    fn pages(&self) -> u64 {
        self.0.pages()
    }

    fn __repr__(&self) -> String {
        format!("<Bookmark after {}>", many(self.0.pages(), "page"))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (Vec<u8>,))> {
        Ok((slf.get_type().getattr("from_bytes")?, (slf.get().to_bytes(),)))
    }
}
