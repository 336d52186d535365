//! Provides the Python code with the error texts of the core for failed system operations.

use std::io;

use pyo3::prelude::*;

use siteline_core::system;

/// Returns the reason for a system error, and a remedy if the error may be temporary. ``number`` is its
/// ``errno``, or ``None`` if a thread or a process could not be started.
#[pyfunction]
pub(crate) fn _refusal(number: Option<i32>) -> (String, Option<&'static str>) {
    let error = number.map_or_else(system::no_thread, io::Error::from_raw_os_error);
    (system::reason(&error), system::advice(&error))
}
