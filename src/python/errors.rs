//! Stand-in on this branch.
use crate::error::Error;
use pyo3::prelude::*;
use pyo3::types::PyType;

fn class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyType>> {
    Ok(py.import("siteline.errors")?.getattr(name)?.cast_into()?)
}

pub(crate) fn raise(py: Python<'_>, error: &Error) -> PyErr {
    let made = class(py, error.kind().class_name()).and_then(|c| c.call1((error.to_string(),)));
    let exception = match made {
        Ok(value) => PyErr::from_value(value),
        Err(failure) => failure,
    };
    if let Some(cause) = error.foreign().and_then(|source| source.downcast_ref::<PyErr>()) {
        exception.set_cause(py, Some(cause.clone_ref(py)));
    }
    exception
}

pub(crate) fn warn(py: Python<'_>, warnings: &[String]) -> PyResult<()> {
    let category = class(py, "SitelineWarning")?;
    for warning in warnings {
        let text = std::ffi::CString::new(warning.as_str()).unwrap_or_default();
        PyErr::warn(py, category.as_any(), &text, 1)?;
    }
    Ok(())
}
