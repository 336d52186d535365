//! Records as dicts. Members have names, so that a newer siteline with one more member loads an older pickle.

use pyo3::exceptions::PyOverflowError;
use pyo3::types::IntoPyDict as _;
use pythonize::{depythonize, pythonize};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::prelude::*;

pub(crate) fn dict<'py>(py: Python<'py>, record: &impl Serialize) -> PyResult<Object<'py>> {
    Ok(pythonize(py, record)?)
}

pub(crate) fn restore<T: DeserializeOwned>(state: &Object<'_>) -> PyResult<T> {
    Ok(depythonize(state)?)
}

/// `siteline._keywords` explains the error of a wrong type.
pub(crate) fn keywords<T: DeserializeOwned>(given: &Bound<'_, PyDict>) -> PyResult<T> {
    let py = given.py();
    let read = |given: &Bound<'_, PyDict>| depythonize::<T>(given).map_err(PyErr::from);
    read(given).map_err(|error| {
        let is_wrong = |(name, value): &(Object<'_>, Object<'_>)| {
            [(name, value)].into_py_dict(py).is_ok_and(|one| read(&one).is_err())
        };
        let Some((name, value)) = given.iter().find(is_wrong) else { return error };
        if error.is_instance_of::<PyOverflowError>(py) {
            let message = format!("{name}={} is out of range.", quoted(&value));
            return refuse(py, Kind::ConfigError, message);
        }
        PyTypeError::new_err(format!("{name}=: {}", error.value(py)))
    })
}

/// A record of `siteline.types`.
pub(crate) fn record<'py>(class: &Object<'py>, fields: &impl Serialize) -> PyResult<Object<'py>> {
    class.call_method1(intern!(class.py(), "_restore"), (dict(class.py(), fields)?,))
}
