//! Where siteline's own files are, and what a profile may have: for the command, which is Python.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::bridge::process::guarded;
use siteline_core::settings::Environment;

/// The file of profiles that `Client` reads (``profiles``), and the folder of the
/// ledgers (``state``); ``None`` where there is no home folder. Neither need exist.
#[pyfunction]
pub(crate) fn _paths(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let environment = Environment::of_process();
    let find = || Ok([environment.config_file(), environment.state_folder()]);
    let paths = PyDict::new(py);
    for (name, path) in ["profiles", "state"].into_iter().zip(guarded(find)?) {
        paths.set_item(name, path.map(PathBuf::into_os_string))?;
    }
    Ok(paths)
}
