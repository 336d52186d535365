//! Records of the core as plain dicts, and back: for reports, and for `pickle`. Members have names, so
//! a state that an older siteline pickled still loads when a newer one has one more member.

use pyo3::exceptions::PyOverflowError;
use pyo3::types::IntoPyDict as _;
use pythonize::{depythonize, pythonize};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::prelude::*;

/// A record as a dict, its lists as lists.
pub(crate) fn dict<'py>(py: Python<'py>, record: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    Ok(pythonize(py, record)?)
}

/// The record of a dict, as [`dict`] makes it.
pub(crate) fn restore<T: DeserializeOwned>(state: &Bound<'_, PyAny>) -> PyResult<T> {
    Ok(depythonize(state)?)
}

/// The JSON text of a Python object.
pub(crate) fn json_text(value: &Bound<'_, PyAny>) -> PyResult<String> {
    restore::<serde_json::Value>(value).map(|value| value.to_string())
}

/// The record of a call's keywords. `siteline._keywords` explains the error for a wrong type.
pub(crate) fn keywords<T: DeserializeOwned>(given: &Bound<'_, PyDict>) -> PyResult<T> {
    let py = given.py();
    let read = |given: &Bound<'_, PyDict>| depythonize::<T>(given).map_err(PyErr::from);
    read(given).map_err(|error| {
        let is_wrong = |(name, value): &(Bound<'_, PyAny>, Bound<'_, PyAny>)| {
            [(name, value)].into_py_dict(py).is_ok_and(|one| read(&one).is_err())
        };
        let Some((name, value)) = given.iter().find(is_wrong) else { return error };
        if error.is_instance_of::<PyOverflowError>(py) {
            let shown = value.repr().map_or_else(|_| "this".to_owned(), |repr| repr.to_string());
            let message = format!("{name}={} is out of range.", excerpt(&shown));
            return refuse(py, Kind::ConfigError, message);
        }
        PyTypeError::new_err(format!("{name}=: {}", error.value(py)))
    })
}

/// The record of `siteline.types` with the fields of a Rust struct, and with others that it does not have.
pub(crate) fn record<'py>(
    py: Python<'py>,
    (module, class): (&str, &str),
    fields: &impl Serialize,
    others: impl IntoIterator<Item = (&'static str, Bound<'py, PyAny>)>,
) -> PyResult<Bound<'py, PyAny>> {
    let members = dict(py, fields)?;
    others.into_iter().try_for_each(|(name, value)| members.set_item(name, value))?;
    py.import(module)?.getattr(class)?.call_method1("_restore", (members,))
}
