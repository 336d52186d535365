//! Handles of keys and credentials. Their classes are in `siteline.credentials`.

mod certificate;
mod credential;
mod key;
mod settings;
mod signer;

pub(crate) use self::certificate::CertificateHandle;
pub(crate) use self::credential::CredentialHandle;
pub(crate) use self::key::KeyHandle;
pub(crate) use self::settings::from_settings;
use crate::bridge::errors::error_of;
use crate::prelude::*;
use siteline_core::auth::{Authentication, is_key_text};
use siteline_core::settings::variable_of_pickle;

pub(crate) fn authentication(given: &Object<'_>) -> PyResult<Authentication> {
    if let Some(credential) = handle_of::<CredentialHandle>(given)? {
        return Ok(credential.get().0.clone().into());
    }
    if let Some(certificate) = handle_of::<CertificateHandle>(given)? {
        return Ok(certificate.get().0.clone().into());
    }
    Err(key::wrong("credential= is a siteline.Credential or siteline.MutualTls", given))
}

/// Calls a Python function on a thread of the core.
fn called<T>(function: &Py<PyAny>, convert: impl FnOnce(Object<'_>) -> PyResult<T>) -> Result<T> {
    let returned = attached(|py| {
        let returned = function.bind(py).call0().and_then(convert);
        returned.map_err(|raised| error_of(py, raised))
    });
    returned.unwrap_or_else(|| {
        Err(Error::new(Kind::ClosedError, "Python is shutting down: no command can run."))
    })
}

#[pyfunction]
pub(crate) fn _is_key_text(text: Text<'_>) -> bool {
    text.0.trim().is_empty() || is_key_text(text.0)
}

#[pyfunction]
pub(crate) fn _variable<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyString>> {
    Ok(PyString::new(py, &variable_of_pickle(name).or_raise()?))
}

#[pyfunction]
pub(crate) fn _excerpt(text: &str) -> String {
    excerpt(text)
}
