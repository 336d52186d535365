//! `page.diff()`: compares a page with stored points.

use std::sync::Arc;

use arrow_array::RecordBatch;
use pyo3::prelude::*;

use crate::bridge::errors::OrRaise as _;
use crate::bridge::process::{detached, guarded};
use crate::convert::arrow_stream::BrokenStream;
use crate::convert::capsule::stream_reader;
use crate::convert::values::refuse;
use crate::frame::{Frame, PageSource};
use siteline_core::data::report::PageReport;
use siteline_core::data::{Comparison, Page, PointColumns};
use siteline_core::error::{Error, Kind};

#[pymethods]
impl Frame {
    /// The frames of the points of a page that are not stored, stored with other values, stored with the same
    /// values, and of stored points that it does not have.
    fn compared(&self, py: Python<'_>, stored: &Bound<'_, PyAny>) -> PyResult<[Self; 4]> {
        let of = self.known_page(py)?;
        let broken = |error: BrokenStream| {
            Error::new(Kind::QueryError, format!("the Arrow stream of stored= is broken: {error}"))
        };
        guarded(|| {
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
                let (provenance, synced) = (of.provenance.clone(), of.synced.clone());
                Self::of_page(PageSource { page, provenance, synced })
            };
            let parts =
                [difference.inserted, difference.changed, difference.unchanged, difference.missing];
            Ok(parts.map(part))
        })
    }
}
