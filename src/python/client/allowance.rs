//! The daily request allowance as a `siteline.Allowance`, which is written in Python.

use pyo3::prelude::*;

use crate::http::AllowanceState;

pub(crate) fn allowance(py: Python<'_>, state: AllowanceState) -> PyResult<Bound<'_, PyAny>> {
    let AllowanceState { used, limit, left, resets_at, token_requests } = state;
    let class = py.import("siteline.allowance")?.getattr("Allowance")?;
    class.call1((used, limit, left, resets_at, token_requests))
}
