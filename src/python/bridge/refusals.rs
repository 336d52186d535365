//! The words for what the system refuses, for the parts that are Python.

use std::io;

use pyo3::prelude::*;

use crate::system;

/// Why an operation of the system failed, by its ``errno``, and what helps if that may pass. ``None``: a
/// thread, or a process, could not be started.
#[pyfunction]
fn _refusal(number: Option<i32>) -> (String, Option<&'static str>) {
    let error = number.map_or_else(system::no_thread, io::Error::from_raw_os_error);
    (system::reason(&error), system::advice(&error))
}

/// Adds it, past `add_function`, which would list it in `__all__`.
pub(crate) fn export(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.as_any().setattr("_refusal", wrap_pyfunction!(_refusal, module)?)
}
