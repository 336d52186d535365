//! Calls into `siteline.frames`, which makes frames and records in Python.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

use crate::python::bridge::process::guarded;
use crate::python::convert::zone::zone;

/// `siteline.frames.NAME`.
pub(crate) fn frames<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    static FRAMES: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module = FRAMES.get_or_try_init(py, || py.import("siteline.frames").map(Bound::unbind))?;
    module.bind(py).getattr(name)
}

/// Calls `siteline.frames.NAME(holder, ids=…, tz=…)`.
///
/// # Errors
/// `QueryError` for a zone that is none, before anything is read; what the call raises.
pub(crate) fn call_frames<'py>(
    holder: &Bound<'py, PyAny>,
    name: &str,
    ids: Option<&str>,
    tz: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let (py, options) = (holder.py(), PyDict::new(holder.py()));
    guarded(|| {
        if let Some(tz) = tz {
            options.set_item("tz", zone(tz)?.0)?;
        }
        if let Some(ids) = ids {
            options.set_item("ids", ids)?;
        }
        frames(py, name)?.call((holder,), Some(&options))
    })
}
