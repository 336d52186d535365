//! Records of the core as plain dicts, and back: for reports, and for `pickle`. Members have names, so
//! a state that an older siteline pickled still loads when a newer one has one more member.

use pyo3::prelude::*;
use pythonize::{depythonize, pythonize};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A record as a dict, its lists as lists.
///
/// # Errors
/// None but those of Python itself.
pub(crate) fn dict<'py>(py: Python<'py>, record: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    Ok(pythonize(py, record)?)
}

/// The record of a dict, as [`dict`] makes it.
///
/// # Errors
/// `ValueError` or `TypeError` where it is none.
pub(crate) fn restore<T: DeserializeOwned>(state: &Bound<'_, PyAny>) -> PyResult<T> {
    Ok(depythonize(state)?)
}

/// The JSON text of a Python object.
///
/// # Errors
/// `TypeError` where JSON has no such thing.
pub(crate) fn json_text(value: &Bound<'_, PyAny>) -> PyResult<String> {
    restore::<serde_json::Value>(value).map(|value| value.to_string())
}

/// The record of `siteline.types` with the fields of a Rust struct, and with others that it does not have.
///
/// # Errors
/// `TypeError` if the fields differ from those of the dataclass; those of Python itself.
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
