//! Where siteline's own files are, and what a profile may have: for the command, which is Python.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::bridge::process::guarded;
use crate::client::once::_sources;
use siteline_core::settings::{Environment, profile_members};

/// The file of profiles that `Client` reads (``profiles``), and the folder of the
/// ledgers (``state``); ``None`` where there is no home folder. Neither need exist.
#[pyfunction]
fn _paths(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let environment = Environment::of_process();
    let find = || Ok([environment.config_file(), environment.state_folder()]);
    let paths = PyDict::new(py);
    for (name, path) in ["profiles", "state"].into_iter().zip(guarded(find)?) {
        paths.set_item(name, path.map(PathBuf::into_os_string))?;
    }
    Ok(paths)
}

/// The names of the members that a profile may have.
#[pyfunction]
fn _profile_members() -> Vec<&'static str> {
    profile_members().collect()
}

/// Adds these, past `add_function`, which would list them in `__all__`.
pub(crate) fn export(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let any = module.as_any();
    any.setattr("_paths", wrap_pyfunction!(_paths, module)?)?;
    any.setattr("_profile_members", wrap_pyfunction!(_profile_members, module)?)?;
    any.setattr("_sources", wrap_pyfunction!(_sources, module)?)
}
