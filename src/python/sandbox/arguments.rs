//! Arguments that several methods of the sandbox take.

use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use super::refused;
use crate::python::conversions::{duration, instant};
use crate::sandbox::Identity;

/// JSON text as it is; anything else through `json.dumps`.
pub(super) fn json_text(value: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(text.to_cow()?.into_owned());
    }
    value.py().import("json")?.getattr("dumps")?.call1((value,))?.extract()
}

/// The error of a keyword's value, with the keyword in it.
pub(super) fn named(error: PyErr, name: &str, value: &Bound<'_, PyAny>) -> PyErr {
    let py = value.py();
    if error.is_instance_of::<PyOverflowError>(py) {
        let shown = value.repr().map_or_else(|_| "this".to_owned(), |repr| repr.to_string());
        return refused(py, format!("{name}={} is out of range.", crate::error::excerpt(&shown)));
    }
    if error.is_instance_of::<PyTypeError>(py) {
        // As pyo3 does for arguments that have a place of their own. A note less is no harm.
        let _ = error.value(py).call_method1("add_note", (format!("while processing '{name}'"),));
    }
    error
}

/// Whole seconds, 1 or more.
pub(super) fn whole_seconds(value: &Bound<'_, PyAny>, name: &str) -> PyResult<u32> {
    let length = duration(value, name)?;
    let seconds = u32::try_from(length.as_secs()).ok().filter(|seconds| *seconds > 0);
    seconds
        .filter(|_| length.subsec_nanos() == 0)
        .ok_or_else(|| refused(value.py(), format!("{name}= is not a whole number of seconds.")))
}

/// An instant as microseconds since the Unix epoch.
pub(super) fn microseconds(value: &Bound<'_, PyAny>, name: &str) -> PyResult<i64> {
    Ok(instant(value, name)?.as_microsecond())
}

/// The series that the keywords name; what is left out has a default.
pub(super) fn identity(ids: Option<&Bound<'_, PyDict>>) -> PyResult<Identity> {
    let mut identity = Identity::new("S1", "L1", "M1", "D1", "T1");
    for (name, id) in ids.into_iter().flatten() {
        let id = if id.is_none() { None } else { Some(id.str()?.to_cow()?.as_ref().into()) };
        match name.extract::<String>()?.as_str() {
            "site" => identity.site = id,
            "line" => identity.line = id,
            "machine" => identity.machine = id,
            "device" => identity.device = id,
            "tag" => identity.tag = id,
            other => return Err(unexpected(other)),
        }
    }
    Ok(identity)
}

/// Python's own error for a keyword that a method does not have.
pub(super) fn unexpected(name: &str) -> PyErr {
    PyTypeError::new_err(format!("got an unexpected keyword argument '{name}'"))
}
