//! The daily request allowance as a `siteline.Allowance`, which is written in Python.

use pyo3::prelude::*;

use crate::http::AllowanceState;
use crate::python::convert::values::datetime;

pub(crate) struct PyAllowance(pub(crate) AllowanceState);

impl<'py> IntoPyObject<'py> for PyAllowance {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let AllowanceState { used, limit, left, resets_at, token_requests } = self.0;
        let class = py.import("siteline.allowance")?.getattr("Allowance")?;
        class.call1((used, limit, left, datetime(py, resets_at)?, token_requests))
    }
}
