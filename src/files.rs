//! Files that are written whole or not at all, and the folders of siteline.

use std::io;
use std::path::Path;

use pyo3::exceptions::PyOSError;

use crate::prelude::*;
use siteline_core::files;
use siteline_core::settings::Environment;

/// Dropping it removes the unfinished file.
#[pyclass(module = "siteline._core")]
pub(crate) struct NewFile {
    file: Option<files::NewFile>,
    path: PathBuf,
}

#[pymethods]
impl NewFile {
    #[new]
    fn new(path: PathBuf, part: Option<PathBuf>, mode: Option<u32>, keeps: bool) -> PyResult<Self> {
        let begun = files::NewFile::begin(&path, part, mode, keeps);
        Ok(Self { file: Some(begun.map_err(|error| failed(&error, path.clone()))?), path })
    }

    fn part(&self) -> Option<&Path> {
        self.file.as_ref().map(files::NewFile::part)
    }

    fn finish(&mut self, py: Python<'_>) -> PyResult<()> {
        let file = self.file.take();
        let finished = detached(py, || file.map_or(Ok(()), |file| file.finish(true)))?;
        finished.map_err(|error| failed(&error, self.path.clone()))
    }

    fn discard(&mut self) {
        self.file = None;
    }
}

/// Creates a folder for its owner only, and the missing ones above it.
#[pyfunction]
pub(crate) fn _create_folder(path: PathBuf) -> PyResult<()> {
    files::create_folder(&path).map_err(|error| failed(&error, path))
}

fn failed(error: &io::Error, path: PathBuf) -> PyErr {
    let text = error.to_string().split(" (os error").next().unwrap_or_default().to_owned();
    // Without a number of the system it is EINVAL.
    let number = error.raw_os_error().unwrap_or(22);
    PyOSError::new_err((number, text, path.into_os_string()))
}

/// The file of profiles (``profiles``) and the folder of the ledgers (``state``), or ``None`` without a home
/// folder. Neither need exist.
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
