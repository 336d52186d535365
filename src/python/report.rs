//! What was assumed, seen and counted, as Python dicts.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::client::scan::Table;
use crate::data::{Entry, PageReport};

/// One page's report.
pub(crate) fn page_report<'py>(
    py: Python<'py>,
    report: &PageReport,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, entry) in report.entries() {
        match entry {
            Entry::Count(count) => dict.set_item(name, count)?,
            Entry::Names(names) => dict.set_item(name, PyList::new(py, names)?)?,
        }
    }
    Ok(dict)
}

/// A whole read's report: its pages' sums, and what merging saw.
pub(crate) fn table_report<'py>(py: Python<'py>, table: &Table) -> PyResult<Bound<'py, PyDict>> {
    let report = &table.merged.report;
    let dict = page_report(py, &report.quality)?;
    dict.set_item("pages", table.provenance.pages)?;
    dict.set_item("resumed_after_pages", table.provenance.resumed_after_pages)?;
    dict.set_item("points_read", report.points_read)?;
    dict.set_item("points", report.points)?;
    dict.set_item("series", report.series)?;
    dict.set_item("repeated", report.repeated)?;
    dict.set_item("revised", report.revised)?;
    Ok(dict)
}
