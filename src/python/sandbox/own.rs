//! The integration of the clients that a sandbox hands out itself.

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;

use crate::auth::PrivateKey;
use crate::error::{Error, Kind};
use crate::python::errors::raise;
use crate::python::runtime::step;
use crate::sandbox::{DEFAULT_SCOPES, Sandbox};

const KEY_BITS: u32 = 2_048;

/// A key and its subject, made and enrolled at first use.
#[derive(Default)]
pub(super) struct Own(Mutex<Option<(PrivateKey, String)>>);

impl Own {
    /// The key and the subject; the interpreter is released while the key is made.
    pub(super) fn get(&self, py: Python<'_>, sandbox: &Sandbox) -> PyResult<(PrivateKey, String)> {
        let made = step(py, || {
            let mut own = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(own) = own.as_ref() {
                return Ok(own.clone());
            }
            let key = PrivateKey::generate(KEY_BITS)?;
            let subject = sandbox.enroll(&key.public_jwk().to_json(), &DEFAULT_SCOPES);
            let subject = subject.map_err(|error| Error::new(Kind::Internal, error.to_string()))?;
            Ok(own.insert((key, subject)).clone())
        })?;
        made.map_err(|error: Error| raise(py, &error))
    }
}
