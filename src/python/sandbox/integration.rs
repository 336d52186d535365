//! The integration of a sandbox's own clients.

use pyo3::prelude::*;

use crate::auth::PrivateKey;
use crate::error::{Error, Kind, Result};
use crate::lock::Mutex;
use crate::python::bridge::runtime::step;
use crate::sandbox::{DEFAULT_SCOPES, Sandbox};

/// The key of sandboxes and its subject here, enrolled at first use.
#[derive(Default)]
pub(super) struct Integration(Mutex<Option<(PrivateKey, String)>>);

impl Integration {
    /// The key and the subject; the interpreter is released while the key is made.
    pub(super) fn credential(
        &self,
        py: Python<'_>,
        sandbox: &Sandbox,
    ) -> PyResult<(PrivateKey, String)> {
        Ok(step(py, || -> Result<_> {
            let mut known = self.0.lock();
            if let Some(known) = &*known {
                return Ok(known.clone());
            }
            let key = PrivateKey::of_sandboxes()?;
            let subject = sandbox.enroll(&key.public_jwk().to_json(), &DEFAULT_SCOPES);
            let subject =
                subject.map_err(|error| Error::new(Kind::InternalError, error.to_string()))?;
            Ok(known.insert((key, subject)).clone())
        })??)
    }
}
