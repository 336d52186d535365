//! The integration of a sandbox's own clients.

use pyo3::prelude::*;

use crate::bridge::errors::OrRaise as _;
use crate::bridge::runtime::step;
use siteline_base::lock::Mutex;
use siteline_core::auth::PrivateKey;
use siteline_core::error::{Error, Kind, Result};
use siteline_sandbox::{CertificateRequest, DEFAULT_SCOPES, Sandbox};

/// The key and its subject, enrolled at first use, or the client certificate, issued at first use.
#[derive(Default)]
pub(super) struct Integration {
    enrolled: Mutex<Option<(String, String)>>,
    certificate: Mutex<Option<String>>,
}

impl Integration {
    /// The key as PEM text, and the subject. Releases the interpreter while the key is generated.
    pub(super) fn key(&self, py: Python<'_>, sandbox: &Sandbox) -> PyResult<(String, String)> {
        step(py, || -> Result<_> {
            let mut known = self.enrolled.lock();
            if let Some(known) = &*known {
                return Ok(known.clone());
            }
            let key = PrivateKey::of_sandboxes()?;
            let subject = sandbox.enroll(&key.public_jwk().to_json(), &DEFAULT_SCOPES);
            let subject =
                subject.map_err(|error| Error::new(Kind::InternalError, error.to_string()))?;
            Ok(known.insert((key.to_pkcs8_pem(None)?.to_string(), subject)).clone())
        })?
        .or_raise()
    }

    /// The client certificate of this name with its key (PEM), valid at all times.
    pub(super) fn certificate(&self, name: &str, sandbox: &Sandbox) -> PyResult<String> {
        let mut known = self.certificate.lock();
        if let Some(known) = &*known {
            return Ok(known.clone());
        }
        let request = CertificateRequest {
            begins: "1971-01-01T00:00:00Z".parse().ok(),
            lifetime_seconds: u32::MAX,
            ..CertificateRequest::default()
        };
        let pem = sandbox.certificate(name, &request).or_raise()?;
        Ok(known.insert(pem).clone())
    }
}
