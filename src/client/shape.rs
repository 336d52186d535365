//! `siteline.shapes.Shape`: what the user knows about pages and the interface document does not specify.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::bridge::errors::OrRaise as _;
use crate::bridge::process::guarded;
use crate::convert::keywords::{keywords, record};
use crate::convert::state::dict;
use siteline_core::data::Shape;

/// The names and formats of a page that the interface document does not specify (§2.3).
///
/// The defaults follow the document. What it does not specify is detected on each page, and
/// ``page.report`` says what was found. Pass only what you know:
///
/// - ``array``: the name of the top-level array of series; by default the one member whose elements
///   have points
/// - ``timestamp``: ``"iso"``, ``"epoch_seconds"`` or ``"epoch_milliseconds"``; with ``"detect"``
///   text is ISO 8601, and a number is in the unit that brings it nearer to the query's range
/// - ``missing_cursor``: a page without ``nextCursor`` is an ``"error"``; with ``"end"`` it is the last
///   page, for a service that leaves the member out there
/// - ``error_member``: a top-level member that marks an error in a reply with status 200; with an ``s``
///   after its name it is a list of errors, which may be empty
/// - ``points``, ``next_cursor``, ``identity`` (five names), ``timestamp_member``, ``value``,
///   ``minimum``, ``maximum``, ``sample_count``: member names
///
/// >>> siteline.shapes.Shape(array="items", timestamp="epoch_milliseconds").array
/// 'items'
#[pyclass(frozen, weakref, eq, hash, name = "Shape", module = "siteline.shapes")]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct PyShape(pub(crate) Shape);

#[pymethods]
impl PyShape {
    #[new]
    #[pyo3(signature = (*, identity=None, **members), text_signature = "(*, array=None, \
        timestamp='detect', missing_cursor='error', error_member='error', points='points', \
        next_cursor='nextCursor', identity=None, timestamp_member='timestamp', value='value', \
        minimum='minimum', maximum='maximum', sample_count='sampleCount')")]
    fn new(
        py: Python<'_>,
        identity: Option<[String; 5]>,
        members: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let mut shape: Shape = record(py, &keywords(members)?)?;
        shape.identity = identity.unwrap_or(shape.identity);
        guarded(|| shape.check().or_raise())?;
        Ok(Self(shape))
    }

    /// The name of the top-level array; ``None``: it is detected.
    #[getter]
    fn array(&self) -> Option<&str> {
        self.0.array.as_deref()
    }

    /// The format of timestamps.
    #[getter]
    fn timestamp(&self) -> &'static str {
        self.0.timestamp.name()
    }

    fn __getnewargs_ex__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
        Ok((PyTuple::empty(py), dict(py, &self.0)?.cast_into()?))
    }

    fn __repr__(&self) -> String {
        let array = self.0.array.as_ref().map_or("None".to_owned(), |name| format!("{name:?}"));
        format!("Shape(array={array}, timestamp={:?}, …)", self.0.timestamp.name())
    }
}
