//! What was assumed, seen and counted in a whole read, as a Python dict.

use pyo3::prelude::*;
use serde::Serialize;

use crate::client::table::Table;
use crate::data::{PageReport, PointColumns};
use crate::python::convert::state::dict;

/// The sums of the pages' reports, and what merging counted: that stands in the place of a sum of the
/// same name.
#[derive(Serialize)]
struct TableReport<'a> {
    #[serde(flatten)]
    pages_summed: &'a PageReport,
    pages: u64,
    resumed_after_pages: u64,
    points_read: u64,
    points: u64,
    series: u64,
    repeated: u64,
    revised: u64,
}

pub(crate) fn table_report<'py>(py: Python<'py>, table: &Table) -> PyResult<Bound<'py, PyAny>> {
    let merged = &table.merged.report;
    let report = TableReport {
        pages_summed: &merged.quality,
        pages: table.provenance.pages,
        resumed_after_pages: table.provenance.resumed_after_pages,
        points_read: merged.points_read,
        points: merged.points,
        series: merged.series,
        repeated: merged.repeated,
        revised: merged.revised,
    };
    dict(py, &report)
}

/// The report of points that no read brought (the sandbox's truth): no pages, nothing odd.
pub(crate) fn unread_report<'py>(
    py: Python<'py>,
    points: &PointColumns,
) -> PyResult<Bound<'py, PyAny>> {
    let (rows, series) = (points.rows() as u64, points.series.len() as u64);
    let report = TableReport {
        pages_summed: &PageReport::default(),
        pages: 0,
        resumed_after_pages: 0,
        points_read: rows,
        points: rows,
        series,
        repeated: 0,
        revised: 0,
    };
    dict(py, &report)
}
