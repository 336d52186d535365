//! `siteline.Allowance`: the daily request allowance, as it stood when it was asked for.

use pyo3::prelude::*;

use crate::http::AllowanceState;
use crate::python::convert::state::{Reduced, reduce, restore};
use crate::python::convert::values::{datetime, html, many};

/// The daily request allowance, as the client's ledger counts it (§8).
///
/// ``used`` requests of ``limit`` today, ``left`` of them; ``resets_at`` is when the day ends. Every
/// page request counts, retries included, before its bytes leave. Without ``daily_allowance=``
/// ``limit`` and ``left`` are ``None``. ``token_requests`` are counted apart: they are limited over
/// the whole integration (§5.4).
///
/// >>> client = sandbox.client(daily_allowance=100)
/// >>> table = client.data(site="S1", start="2026-11-01T00:00Z", interval="1h").collect()
/// >>> client.allowance
/// <Allowance 6 of 100 used, 94 left; 1 token request>
#[pyclass(frozen, eq, name = "Allowance", module = "siteline")]
#[derive(PartialEq)]
pub(crate) struct PyAllowance(pub(crate) AllowanceState);

#[pymethods]
impl PyAllowance {
    /// Requests counted today.
    #[getter]
    fn used(&self) -> u64 {
        self.0.used
    }

    /// Requests allowed a day, or ``None``.
    #[getter]
    fn limit(&self) -> Option<u64> {
        self.0.limit
    }

    /// Requests left today, or ``None`` where no limit is known.
    #[getter]
    fn left(&self) -> Option<u64> {
        self.0.left
    }

    /// When the count begins anew, an aware ``datetime`` in UTC.
    #[getter]
    fn resets_at<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        datetime(py, self.0.resets_at)
    }

    /// Token requests counted today.
    #[getter]
    fn token_requests(&self) -> u64 {
        self.0.token_requests
    }

    fn __repr__(&self) -> String {
        let AllowanceState { used, limit, left, token_requests, .. } = self.0;
        let tokens = many(token_requests, "token request");
        match (limit, left) {
            (Some(limit), Some(left)) => {
                format!("<Allowance {used} of {limit} used, {left} left; {tokens}>")
            }
            _ => format!("<Allowance {used} used, no limit set; {tokens}>"),
        }
    }

    /// What ``pickle`` and ``copy`` make it again with.
    #[staticmethod]
    fn _restore(state: &Bound<'_, PyAny>) -> PyResult<Self> {
        restore(state).map(Self)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        reduce(slf, &slf.get().0)
    }

    /// What notebooks show.
    #[pyo3(name = "_repr_html_")]
    fn repr_html<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        html(slf.as_any(), "allowance")
    }
}
