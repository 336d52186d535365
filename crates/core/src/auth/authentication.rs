//! [`Authentication`]: how a client proves to be its integration, in the two modes of §1.

use std::fmt;
use std::sync::Arc;

use super::{Credential, MutualTls};

/// A credential of either mode. Cheap to clone; safe to print.
#[derive(Clone)]
pub enum Authentication {
    /// Customer-managed: a signed assertion is exchanged for a token (§5.2).
    Assertion(Credential),
    /// Platform-managed: mutual TLS (§5.6).
    MutualTls(MutualTls),
    /// Customer-managed, with the key in another process, an agent; by its subject.
    Leased(Arc<str>),
}

impl Authentication {
    /// What the service knows the integration by, as far as the client does: the credential's subject,
    /// or that of the certificate.
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

impl fmt::Debug for Authentication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Assertion(credential) => credential.fmt(f),
            Self::MutualTls(certificate) => certificate.fmt(f),
            Self::Leased(subject) => write!(f, "Leased({subject:?})"),
        }
    }
}
