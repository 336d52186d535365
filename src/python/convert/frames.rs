//! Calls into `siteline.frames`, which makes frames and records in Python.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::IntoPyDict as _;

use crate::python::bridge::process::guarded;

/// `siteline.frames.NAME`.
pub(crate) fn frames<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    static FRAMES: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module = FRAMES.get_or_try_init(py, || py.import("siteline.frames").map(Bound::unbind))?;
    module.bind(py).getattr(name)
}

/// Calls `siteline.frames.NAME(holder, ids=…)`.
pub(crate) fn call_frames<'py>(
    holder: &Bound<'py, PyAny>,
    name: &str,
    ids: Option<&str>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = holder.py();
    let options = ids.map(|ids| ("ids", ids)).into_iter().into_py_dict(py)?;
    guarded(|| frames(py, name)?.call((holder,), Some(&options)))
}
