//! Authentication: the credential, its key, assertions and access tokens.
//!
//! ```text
//! bytes -> encoding (pem, DER, jwk) -> PrivateKey -> Credential -> assertion -> token
//! ```
//!
//! [`Authentication`] is one of the two modes of §1: a [`Credential`], or [`MutualTls`].
//!
//! A [`Credential`] is a subject from enrollment and a signer: a [`PrivateKey`] in memory, or a
//! [`Signer`] or [`AsyncSigner`] that uses a vault. Its `kid` is the RFC 7638 thumbprint of the
//! public key. A `kid` from the user must equal it.

mod access_token;
mod assertion;
mod encoding;
mod exchange;
mod grant;
mod jwk;
mod key;
mod key_cost;
pub(crate) mod key_file;
mod mutual_tls;
mod pem;
mod proof;
mod refusal;
mod retry_after_gate;
mod scope;
#[cfg(test)]
pub(crate) mod test_harness;
mod token;

use std::fmt;
use std::sync::Arc;

pub(crate) use access_token::{AccessToken, CachedToken};
pub use assertion::AssertionSettings;
pub use encoding::is_key_text;
pub(crate) use exchange::Exchange;
pub use jwk::PublicJwk;
pub use key::{AsyncSigner, PrivateKey, SignFuture, Signer};
pub use mutual_tls::MutualTls;
pub use mutual_tls::{AskPassphrase, CertificateSource, Part};
pub(crate) use proof::Proof;
pub(crate) use retry_after_gate::RetryAfterGate;
pub use scope::ScopeSet;
pub(crate) use token::{Issuer, TokenFacts, TokenKey, TokenSource, Tries};

use crate::error::on_thread;
use crate::{Error, Kind, Result};

/// A valid value, with warnings about it.
#[derive(Debug, Clone)]
pub struct Checked<T> {
    /// The value.
    pub value: T,
    /// The texts of Python warnings.
    pub warnings: Vec<String>,
}

/// A subject and its signer. Cheap to clone. Its `Debug` output contains no secret.
#[derive(Clone)]
pub struct Credential {
    subject: Arc<str>,
    signing: Signing,
    public_jwk: PublicJwk,
    assertion: AssertionSettings,
}

/// A credential of either mode. Cheap to clone. Its `Debug` output contains no secret.
#[derive(Debug, Clone)]
pub enum Authentication {
    /// Customer-managed: a signed assertion is exchanged for a token.
    Assertion(Credential),
    /// Platform-managed: mutual TLS.
    MutualTls(MutualTls),
    /// Customer-managed, by its subject. An agent in another process holds the key.
    Leased(Arc<str>),
}

impl Authentication {
    /// The subject of the credential or the certificate.
    pub fn subject(&self) -> &str {
        match self {
            Self::Assertion(credential) => credential.subject(),
            Self::MutualTls(certificate) => certificate.subject(),
            Self::Leased(subject) => subject,
        }
    }
}

impl From<Credential> for Authentication {
    fn from(credential: Credential) -> Self {
        Self::Assertion(credential)
    }
}

impl From<MutualTls> for Authentication {
    fn from(certificate: MutualTls) -> Self {
        Self::MutualTls(certificate)
    }
}

/// The signer of a credential.
#[derive(Clone)]
pub enum Signing {
    /// Called on a separate thread, because it may wait for a vault or a lock. A cancelled caller
    /// does not wait for it.
    Blocking(Arc<dyn Signer>),
    /// Awaited on the caller's event loop.
    Awaited(Arc<dyn AsyncSigner>),
}

impl Credential {
    /// A credential with its key in memory.
    ///
    /// `kid` is optional, because it is the thumbprint of the key. White space around the subject
    /// is removed, with a warning.
    pub fn with_key(subject: &str, key: PrivateKey, kid: Option<&str>) -> Result<Checked<Self>> {
        let public_jwk = key.public_jwk();
        Self::with_signer(subject, Signing::Blocking(Arc::new(key)), public_jwk, kid)
    }

    /// A credential with an external key. Each signature is verified with `public_jwk`, the enrolled
    /// public key, before it is used.
    pub fn with_signer(
        subject: &str,
        signing: Signing,
        public_jwk: PublicJwk,
        kid: Option<&str>,
    ) -> Result<Checked<Self>> {
        let Checked { value: subject, warnings } = checked_subject(subject)?;
        if let Some(stated) = kid {
            check_kid(stated, &public_jwk)?;
        }
        let assertion = AssertionSettings::default();
        Ok(Checked { value: Self { subject, signing, public_jwk, assertion }, warnings })
    }

    /// The same credential with other assertion settings.
    pub fn with_assertions(self, assertion: AssertionSettings) -> Result<Self> {
        assertion.check()?;
        Ok(Self { assertion, ..self })
    }

    /// The `aud` of its assertions for this token endpoint.
    pub(crate) fn audience<'a>(&'a self, token_url: &'a str) -> &'a str {
        self.assertion.audience.as_deref().unwrap_or(token_url)
    }

    /// The subject that enrollment returned: the `iss` and `sub` of every assertion.
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// The thumbprint of the public key: the `kid` of every assertion.
    pub fn kid(&self) -> &str {
        self.public_jwk.thumbprint()
    }

    pub fn assertion(&self) -> &AssertionSettings {
        &self.assertion
    }

    pub fn public_jwk(&self) -> &PublicJwk {
        &self.public_jwk
    }

    /// Returns an error if the current call cannot await the signer.
    pub(crate) fn check_signer(&self) -> Result<()> {
        match &self.signing {
            Signing::Blocking(_) => Ok(()),
            Signing::Awaited(signer) => signer.check(),
        }
    }

    /// Signs, and verifies the signature with the public key. For a wrong signature the service
    /// would only reply `invalid_client`.
    pub async fn sign(&self, signing_input: &[u8]) -> Result<Vec<u8>> {
        let input = signing_input.to_vec();
        let signature = match &self.signing {
            Signing::Blocking(signer) => {
                let signer = Arc::clone(signer);
                on_thread(move || signer.sign(&input)).await?
            }
            Signing::Awaited(signer) => signer.sign(input).await?,
        };
        if self.public_jwk.verify(signing_input, &signature) {
            return Ok(signature);
        }
        Err(Error::new(
            Kind::CredentialError,
            format!(
                "The signer returned {} bytes that are not an RS256 signature by the key with kid \
                 {}. A signature by this key has {} bytes. Nothing was sent.",
                signature.len(),
                self.kid(),
                self.public_jwk.signature_length(),
            ),
        )
        .with_hint(
            "Return the raw RSASSA-PKCS1-v1_5 signature with SHA-256 (not PSS, not base64, not \
             over a hash) of exactly the given bytes, by the private key of public_jwk.",
        ))
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credential")
            .field("subject", &self.subject)
            .field("kid", &self.kid())
            .finish_non_exhaustive()
    }
}

/// Removes white space around a subject, which variables and files often contain, with a warning.
fn checked_subject(subject: &str) -> Result<Checked<Arc<str>>> {
    let trimmed = subject.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    if trimmed.is_empty() {
        return Err(Error::new(Kind::ConfigError, "The subject of the credential is empty.")
            .with_hint(
                "Use the value that enrollment returned after an administrator approved it.",
            ));
    }
    if trimmed.chars().any(char::is_control) {
        return Err(Error::new(
            Kind::ConfigError,
            format!("The subject {trimmed:?} contains a line break or another control character."),
        )
        .with_hint("Use the line that enrollment returned, unchanged."));
    }
    let mut warnings = Vec::new();
    if trimmed.len() != subject.len() {
        warnings.push(format!(
            "White space around the subject was removed: {subject:?} is used as {trimmed:?}. \
             Correct it at its source."
        ));
    }
    Ok(Checked { value: trimmed.into(), warnings })
}

/// Compares a given `kid` with the thumbprint.
pub fn check_kid(stated: &str, public_jwk: &PublicJwk) -> Result<()> {
    let computed = public_jwk.thumbprint();
    if stated == computed {
        return Ok(());
    }
    Err(Error::new(
        Kind::CredentialError,
        format!("kid={stated:?} is not the thumbprint of this key, which is {computed}."),
    )
    .with_hint(
        "Omit kid: it is derived from the key (RFC 7638, SHA-256). If this kid was enrolled, the \
         loaded key is not the enrolled one.",
    ))
}

#[cfg(test)]
mod tests;
