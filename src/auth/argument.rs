//! `credential=`: a `Credential` or a `MutualTls`.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use super::credential::PyCredential;
use super::mutual_tls::PyMutualTls;
use crate::convert::values::described;
use siteline_core::auth::Authentication;

/// What `credential=` names.
///
/// # Errors
/// `TypeError` for anything else.
pub(crate) fn authentication(given: &Bound<'_, PyAny>) -> PyResult<Authentication> {
    if let Ok(credential) = given.cast::<PyCredential>() {
        return Ok(credential.get().0.clone().into());
    }
    if let Ok(certificate) = given.cast::<PyMutualTls>() {
        return Ok(certificate.get().0.clone().into());
    }
    Err(PyTypeError::new_err(format!(
        "credential= is a siteline.Credential or siteline.MutualTls; this is {}.",
        described(given)
    )))
}
