//! `siteline.types.PageDiff`: a page beside the points that a store has.

use std::sync::Arc;

use arrow_array::RecordBatch;
use pyo3::prelude::*;

use crate::bridge::errors::OrRaise as _;
use crate::bridge::process::{detached, guarded};
use crate::client::page::PyPage;
use crate::convert::arrow_stream::BrokenStream;
use crate::convert::capsule::stream_reader;
use crate::convert::values::refuse;
use siteline_core::data::report::PageReport;
use siteline_core::data::{Comparison, Page, PointColumns};
use siteline_core::error::{Error, Kind};

/// The points of a page by what they are beside those that a store has: made by :meth:`Page.against`.
///
/// Each part is a :class:`Page` with the same ``sequence``, ``feed`` and ``query``. A point that the page
/// has twice is in one part, as its later row.
///
/// >>> page = next(scan.pages())
/// >>> difference = page.against(page)
/// >>> difference, len(difference.unchanged) == len(page)
/// (<PageDiff: 0 inserted, 0 changed, 30 unchanged, 0 missing>, True)
#[pyclass(frozen, weakref, name = "PageDiff", module = "siteline.types")]
pub(crate) struct PyDifference {
    inserted: Py<PyPage>,
    changed: Py<PyPage>,
    unchanged: Py<PyPage>,
    missing: Py<PyPage>,
}

impl PyDifference {
    fn new(page: &Bound<'_, PyPage>, stored: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (py, of) = (page.py(), page.get());
        let broken = |error: BrokenStream| {
            Error::new(Kind::QueryError, format!("the Arrow stream of stored= is broken: {error}"))
        };
        let Some(reader) = stream_reader(stored)? else {
            let message =
                "stored= is an Arrow stream: a pyarrow or polars table, a DuckDB relation.";
            return Err(refuse(py, Kind::QueryError, message));
        };
        let mut reader = reader.map_err(broken).or_raise()?;
        let difference = detached(py, || {
            let points = Arc::clone(&of.page.points);
            let mut comparison = Comparison::new(points, of.provenance.query.microseconds());
            // A column that is missing is one of an empty stream too.
            comparison.add(&RecordBatch::new_empty(reader.schema()))?;
            reader.try_for_each(|batch| comparison.add(&batch.map_err(broken)?))?;
            comparison.finish()
        })?
        .or_raise()?;
        let part = |points: PointColumns| {
            let report = PageReport {
                points: points.rows() as u64,
                series: points.series.len() as u64,
                ..PageReport::default()
            };
            let points = Arc::new(points);
            let page = Page { points, report, raw: None, bookmark: None, ..of.page };
            Py::new(
                py,
                PyPage { page, provenance: of.provenance.clone(), synced: of.synced.clone() },
            )
        };
        Ok(Self {
            inserted: part(difference.inserted)?,
            changed: part(difference.changed)?,
            unchanged: part(difference.unchanged)?,
            missing: part(difference.missing)?,
        })
    }
}

#[pymethods]
impl PyPage {
    /// Compare with the points that a store of yours has: :class:`PageDiff`.
    ///
    /// - ``stored``: the stored points of the page's range, or of more, as an Arrow stream (a pyarrow or
    ///   polars table, a DuckDB relation): the ten columns of :class:`Table` under their names, of any
    ///   order, batches of any size. Where it has a column ``flagged`` (booleans), a flagged point that
    ///   the page has counts as changed, and one that it does not have is not missing
    ///
    /// A point is its five ids and its timestamp, where null equals null; two values are the same if both
    /// are null, or equal (§4.5.3). Raises :class:`QueryError` for a column that is missing or of another
    /// type, and for a stream with wrong buffers.
    ///
    /// >>> import pyarrow as pa
    /// >>> page = next(scan.pages())
    /// >>> part = pa.table(page).slice(10)  # all but ten points
    /// >>> difference = page.against(part)
    /// >>> len(difference.inserted), len(difference.changed), len(difference.unchanged)
    /// (10, 0, 20)
    fn against(slf: &Bound<'_, Self>, stored: &Bound<'_, PyAny>) -> PyResult<PyDifference> {
        guarded(|| PyDifference::new(slf, stored))
    }
}

#[pymethods]
impl PyDifference {
    /// The points that are not stored.
    #[getter]
    fn inserted(&self, py: Python<'_>) -> Py<PyPage> {
        self.inserted.clone_ref(py)
    }

    /// The points that are stored with other values, or flagged.
    #[getter]
    fn changed(&self, py: Python<'_>) -> Py<PyPage> {
        self.changed.clone_ref(py)
    }

    /// The points that are stored with the same values.
    #[getter]
    fn unchanged(&self, py: Python<'_>) -> Py<PyPage> {
        self.unchanged.clone_ref(py)
    }

    /// The stored points in the range of ``page.query``, not flagged, that the page does not have. With
    /// ``page.is_whole`` the service no longer brings them; else other pages of the chain may have.
    #[getter]
    fn missing(&self, py: Python<'_>) -> Py<PyPage> {
        self.missing.clone_ref(py)
    }

    fn __repr__(&self) -> String {
        let [inserted, changed, unchanged, missing] =
            [&self.inserted, &self.changed, &self.unchanged, &self.missing]
                .map(|part| part.get().page.rows());
        format!(
            "<PageDiff: {inserted} inserted, {changed} changed, {unchanged} unchanged, {missing} missing>"
        )
    }
}
