//! `siteline.types.SyncReport`.

use pyo3::prelude::*;

use crate::convert::state::record;
use siteline_core::sync::SyncReport;

/// The report of a sync.
pub(crate) fn report_object<'py>(
    py: Python<'py>,
    report: &SyncReport,
) -> PyResult<Bound<'py, PyAny>> {
    record(py, ("siteline._records.sync", "SyncReport"), report, [])
}
