//! What was assumed, seen and counted in a whole read, as a Python dict.

use pyo3::prelude::*;
use serde::Serialize;

use crate::client::table::Table;
use crate::data::{MergeReport, PageReport, PointColumns};
use crate::python::convert::state::dict;

/// The sums of the pages' reports, and the counts of the merge. A count replaces a sum of the same name.
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

/// The report of a read, or of points that no read brought (the sandbox's truth): no pages, nothing
/// odd.
pub(crate) fn table_report<'py>(
    py: Python<'py>,
    read: Option<&Table>,
    points: &PointColumns,
) -> PyResult<Bound<'py, PyAny>> {
    let (rows, series) = (points.rows() as u64, points.series.len() as u64);
    let unread = MergeReport { points_read: rows, points: rows, series, ..MergeReport::default() };
    let merged = read.map_or(&unread, |table| &table.merged.report);
    let provenance = read.map(|table| &table.provenance);
    let report = TableReport {
        pages_summed: &merged.quality,
        pages: provenance.map_or(0, |provenance| provenance.pages),
        resumed_after_pages: provenance.map_or(0, |provenance| provenance.resumed_after_pages),
        points_read: merged.points_read,
        points: merged.points,
        series: merged.series,
        repeated: merged.repeated,
        revised: merged.revised,
    };
    dict(py, &report)
}
