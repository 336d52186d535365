//! [`Authentication`]: how a client proves its identity, in the two modes of §1.

use std::sync::Arc;

use super::{Credential, MutualTls};

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
    #[must_use]
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
