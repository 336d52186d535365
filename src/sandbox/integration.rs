//! The integration of a sandbox's own clients.

use pyo3::prelude::*;

use crate::bridge::errors::OrRaise as _;
use crate::bridge::runtime::step;
use siteline_base::lock::Mutex;
use siteline_core::auth::PrivateKey;
use siteline_core::error::{Error, Kind, Result};
use siteline_sandbox::{CertificateRequest, DEFAULT_SCOPES, Sandbox};

/// The name of the certificate of a sandbox's own clients.
pub(super) const CLIENT: &str = "sandbox-client";

/// The key of sandboxes and its subject here, enrolled at first use; or the client certificate, issued at
/// first use.
#[derive(Default)]
pub(super) struct Integration {
    enrolled: Mutex<Option<(PrivateKey, String)>>,
    certificate: Mutex<Option<String>>,
}

impl Integration {
    /// The key and the subject; the interpreter is released while the key is made.
    pub(super) fn credential(
        &self,
        py: Python<'_>,
        sandbox: &Sandbox,
    ) -> PyResult<(PrivateKey, String)> {
        step(py, || -> Result<_> {
            let mut known = self.enrolled.lock();
            if let Some(known) = &*known {
                return Ok(known.clone());
            }
            let key = PrivateKey::of_sandboxes()?;
            let subject = sandbox.enroll(&key.public_jwk().to_json(), &DEFAULT_SCOPES);
            let subject =
                subject.map_err(|error| Error::new(Kind::InternalError, error.to_string()))?;
            Ok(known.insert((key, subject)).clone())
        })?
        .or_raise()
    }

    /// The client certificate with its key (PEM), valid for as long as any clock shows.
    pub(super) fn certificate(&self, sandbox: &Sandbox) -> PyResult<String> {
        let mut known = self.certificate.lock();
        if let Some(known) = &*known {
            return Ok(known.clone());
        }
        let request = CertificateRequest {
            begins: "1971-01-01T00:00:00Z".parse().ok(),
            lifetime_seconds: u32::MAX,
            ..CertificateRequest::default()
        };
        let pem = sandbox.certificate(CLIENT, &request).or_raise()?;
        Ok(known.insert(pem).clone())
    }
}
