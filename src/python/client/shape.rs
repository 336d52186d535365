//! `siteline.Shape`: what the interface document leaves open about a page, stated by the user.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::data::{MissingCursor, Shape, TimestampForm};
use crate::python::bridge::errors::raise;
use crate::python::bridge::process::guarded;
use crate::python::convert::state::dict;

/// What the interface document does not show about a page (§2.3), where you know it.
///
/// Everything has a default: the document where it speaks, and otherwise "found by shape", which
/// ``page.report`` then names. Give what you know for certain:
///
/// - ``array``: name of the top-level array of series (found: the one member whose elements carry
///   points)
/// - ``timestamp``: ``"iso"``, ``"epoch_seconds"``, ``"epoch_milliseconds"`` (``"detect"``: text is
///   ISO 8601, a number is what lies nearer to the query's range)
/// - ``missing_cursor``: ``"error"``, or ``"end"`` for a service that leaves ``nextCursor`` out on
///   the last page
/// - ``error_member``: a top-level member that marks an error in a 200 reply
/// - ``points``, ``next_cursor``, ``identity`` (five names), ``timestamp_member``, ``value``,
///   ``minimum``, ``maximum``, ``sample_count``: member names
///
/// >>> siteline.Shape(array="items", timestamp="epoch_milliseconds").array
/// 'items'
#[pyclass(frozen, eq, hash, name = "Shape", module = "siteline")]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct PyShape(pub(crate) Shape);

#[pymethods]
impl PyShape {
    #[new]
    #[pyo3(
        signature = (*, array=None, timestamp="detect", missing_cursor="error", error_member="error",
            points="points", next_cursor="nextCursor", identity=None, timestamp_member="timestamp",
            value="value", minimum="minimum", maximum="maximum", sample_count="sampleCount")
    )]
    #[expect(clippy::too_many_arguments, reason = "each is a keyword of the Python class")]
    fn new(
        py: Python<'_>,
        array: Option<String>,
        timestamp: &str,
        missing_cursor: &str,
        error_member: &str,
        points: &str,
        next_cursor: &str,
        identity: Option<[String; 5]>,
        timestamp_member: &str,
        value: &str,
        minimum: &str,
        maximum: &str,
        sample_count: &str,
    ) -> PyResult<Self> {
        let build = || {
            let shape = Shape {
                array,
                timestamp: TimestampForm::parse(timestamp)?,
                missing_cursor: MissingCursor::parse(missing_cursor)?,
                error_member: error_member.to_owned(),
                points: points.to_owned(),
                next_cursor: next_cursor.to_owned(),
                identity: identity.unwrap_or_else(|| Shape::default().identity),
                timestamp_member: timestamp_member.to_owned(),
                value: value.to_owned(),
                minimum: minimum.to_owned(),
                maximum: maximum.to_owned(),
                sample_count: sample_count.to_owned(),
            };
            shape.check()?;
            Ok(Self(shape))
        };
        guarded(|| build().map_err(|error| raise(py, &error)))
    }

    /// Name of the top-level array, or ``None``: found by shape.
    #[getter]
    fn array(&self) -> Option<&str> {
        self.0.array.as_deref()
    }

    /// How timestamps are written.
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
