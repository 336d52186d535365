//! What proves a client and its agent to each other over a network: certificates, or a secret.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::Verifier;
use zeroize::Zeroizing;

use crate::error::{Error, Kind, Result};
use crate::files::{read_whole, text_of};
use crate::http::{ServerVerifier, certificates, provider};
use crate::system::exhausted_files;

/// The largest file of certificates or of a key.
const LARGEST_FILE: u64 = 16 * 1024 * 1024;

/// What a client shows to its agent, and whom it trusts. Over a socket of this machine nothing of it is
/// used. Files are read when the first call is made.
#[derive(Clone, Default)]
pub struct ClientTls {
    /// The certificates (PEM) of the authority of the agent's certificate; `None` for those that the
    /// machine trusts.
    pub authority: Option<PathBuf>,
    /// The certificate (PEM) and the private key that it shows.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// The secret that it tells, in the place of a certificate.
    pub secret: Option<Zeroizing<String>>,
}

impl fmt::Debug for ClientTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientTls")
            .field("authority", &self.authority)
            .field("identity", &self.identity)
            .field("secret", &self.secret.is_some())
            .finish()
    }
}

impl ClientTls {
    pub(super) fn config(&self) -> Result<Arc<ClientConfig>> {
        let builder = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(|_| unusable("TLS"))?;
        let verifier = if let Some(path) = &self.authority {
            ServerVerifier::of_certificates(chain(path)?, &provider())?
        } else {
            let platform =
                Verifier::new(provider()).map_err(|_| unusable("the machine's trust"))?;
            ServerVerifier::of_platform(platform)
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

pub(super) fn authority(path: &Path) -> Result<RootCertStore> {
    let mut store = RootCertStore::empty();
    for certificate in chain(path)? {
        store.add(certificate).map_err(|_| unreadable(path, "a certificate of an authority"))?;
    }
    Ok(store)
}

/// A certificate, and those between it and its authority.
pub(super) fn chain(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let bytes = bytes_of(path)?;
    certificates(&bytes).map_err(|why| {
        let message = format!("The file of certificates {:?} {why}.", path.to_string_lossy());
        Error::new(Kind::CredentialError, message)
    })
}

/// In any encoding of a text.
pub(super) fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>> {
    let bytes = bytes_of(path)?;
    let key = text_of(&bytes).and_then(|text| PrivateKeyDer::from_pem_slice(text.as_bytes()).ok());
    key.ok_or_else(|| unreadable(path, "an unencrypted PEM key"))
}

fn bytes_of(path: &Path) -> Result<Zeroizing<Vec<u8>>> {
    read_whole(path, LARGEST_FILE).map_err(|error| {
        let what = format!("{:?} cannot be read", path.to_string_lossy());
        Error::system(Kind::CredentialError, what, &error)
    })
}

pub(super) fn mismatch(certificate: &Path, key: &Path) -> Error {
    let (certificate, key) = (certificate.display(), key.display());
    let message = format!("The key {key} does not belong to the certificate {certificate}.");
    Error::new(Kind::CredentialError, message)
}

fn unreadable(path: &Path, what: &str) -> Error {
    if let Some(error) = exhausted_files() {
        return Error::system(
            Kind::CredentialError,
            format!("{:?} cannot be read", path.display()),
            &error,
        );
    }
    let message = format!("{:?} cannot be read as {what}.", path.display());
    Error::new(Kind::CredentialError, message)
}

fn unusable(what: &str) -> Error {
    Error::new(Kind::TlsError, format!("{what} cannot be used for the connection to the agent."))
        .with_hint("SITELINE_AGENT_CA names a file of the certificates to trust.")
}
