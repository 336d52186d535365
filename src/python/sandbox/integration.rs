//! The integration of the clients that a sandbox hands out itself.

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;

use crate::auth::PrivateKey;
use crate::error::{Error, Kind};
use crate::python::bridge::errors::raise;
use crate::python::bridge::runtime::step;
use crate::sandbox::{DEFAULT_SCOPES, Sandbox};

const KEY_BITS: u32 = 2_048;

/// A key and its subject, made and enrolled at first use.
#[derive(Default)]
pub(super) struct Integration(Mutex<Option<(PrivateKey, String)>>);

impl Integration {
    /// The key and the subject; the interpreter is released while the key is made.
    pub(super) fn credential(
        &self,
        py: Python<'_>,
        sandbox: &Sandbox,
    ) -> PyResult<(PrivateKey, String)> {
        let made = step(py, || {
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(known) = known.as_ref() {
                return Ok(known.clone());
            }
            let key = PrivateKey::generate(KEY_BITS)?;
            let subject = sandbox.enroll(&key.public_jwk().to_json(), &DEFAULT_SCOPES);
            let subject =
                subject.map_err(|error| Error::new(Kind::InternalError, error.to_string()))?;
            Ok(known.insert((key, subject)).clone())
        })?;
        made.map_err(|error: Error| raise(py, &error))
    }
}
