//! A failure of the sandbox is a wrong setting of the test that uses it: a `ConfigError`.

use std::fmt;

use pyo3::prelude::*;

use crate::error::Kind;
use crate::python::convert::values::refuse;

pub(super) fn refused(py: Python<'_>, text: impl Into<String>) -> PyErr {
    refuse(py, Kind::ConfigError, text)
}

pub(super) fn checked<T>(py: Python<'_>, outcome: Result<T, impl fmt::Display>) -> PyResult<T> {
    outcome.map_err(|error| refused(py, error.to_string()))
}
