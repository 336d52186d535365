//! `siteline.SyncReport`: what a sync did, as Python sees it.

use pyo3::prelude::*;

use crate::convert::state::{dict, python_object};
use siteline_core::sync::SyncReport;

/// A `siteline.SyncReport`.
pub(crate) fn report_object<'py>(
    py: Python<'py>,
    report: &SyncReport,
) -> PyResult<Bound<'py, PyAny>> {
    python_object(py, ("siteline.sync", "SyncReport"), (dict(py, report)?,))
}
