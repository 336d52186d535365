//! Mutual authentication of a client and its agent over a network, by certificates or a secret.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use zeroize::Zeroizing;

use crate::auth::key_file;
use crate::error::{Error, Kind, Result};
use crate::files::text_of;
use crate::http::{ServerVerifier, certificates, provider};

/// The identity of a client and the CA that it trusts. Unix sockets do not use it. The files are
/// read at the first call.
#[derive(Clone, Default)]
pub struct ClientTls {
    /// The CA certificates for the agent's certificate, as PEM; `None` for the machine's trust
    /// store.
    pub authority: Option<PathBuf>,
    /// The client certificate (PEM) and its private key.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// The secret that the client sends if it has no certificate.
    pub secret: Option<Zeroizing<String>>,
}

impl ClientTls {
    pub(super) fn config(&self) -> Result<Arc<ClientConfig>> {
        let builder = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(|_| unusable("TLS"))?;
        let verifier = match &self.authority {
            Some(path) => ServerVerifier::of_certificates(chain(path)?, &provider())?,
            None => ServerVerifier::of_platform(&provider())
                .ok_or_else(|| unusable("the machine's trust store"))?,
        };
        let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
        let config = match &self.identity {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => builder
                .with_client_auth_cert(chain(certificate)?, private_key(key)?)
                .map_err(|_| mismatch(certificate, key))?,
        };
        Ok(Arc::new(config))
    }
}

/// Reads a certificate and its intermediates.
pub(super) fn chain(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let (bytes, _) = key_file::read("certificate", path)?;
    certificates(&bytes).map_err(|unusable| {
        let what = format!("The certificate file {:?}", path.to_string_lossy());
        unusable.error(Kind::CredentialError, &what)
    })
}

/// Reads a private key in any text encoding.
pub(super) fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>> {
    let (bytes, _) = key_file::read("private key", path)?;
    let key = text_of(&bytes).and_then(|text| PrivateKeyDer::from_pem_slice(text.as_bytes()).ok());
    key.ok_or_else(|| unreadable(path, "an unencrypted PEM key"))
}

pub(super) fn mismatch(certificate: &Path, key: &Path) -> Error {
    let (certificate, key) = (certificate.display(), key.display());
    let message = format!("The key {key} does not belong to the certificate {certificate}.");
    Error::new(Kind::CredentialError, message)
}

fn unreadable(path: &Path, what: &str) -> Error {
    let message = format!("{:?} cannot be read as {what}.", path.display());
    Error::new(Kind::CredentialError, message)
}

fn unusable(what: &str) -> Error {
    Error::new(Kind::TlsError, format!("{what} cannot be used for the connection to the agent."))
        .with_hint("Set SITELINE_AGENT_CA to a file with the certificates to trust.")
}
