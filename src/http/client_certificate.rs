//! [`ClientCertificate`]: what a connection presents to a service that asks for a certificate.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustls::SignatureScheme;
use rustls::client::ResolvesClientCert;
use rustls::sign::CertifiedKey;

/// A certificate with its chain and private key. `Debug` shows its thumbprint.
pub(crate) struct ClientCertificate {
    key: Arc<CertifiedKey>,
    thumbprint: String,
}

impl ClientCertificate {
    /// `thumbprint` tells certificates apart: the SHA-256 of the certificate in base64url (RFC 8705
    /// §3.1).
    #[must_use]
    pub(crate) fn new(key: CertifiedKey, thumbprint: String) -> Self {
        Self { key: Arc::new(key), thumbprint }
    }

    /// The SHA-256 of the certificate in base64url.
    #[must_use]
    pub(crate) fn thumbprint(&self) -> &str {
        &self.thumbprint
    }

    /// Whether both present the same certificates: a chain may be completed under the same certificate.
    #[must_use]
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.key.cert == other.key.cert
    }

    /// The certificates that are presented, its own first.
    #[cfg(test)]
    pub(crate) fn chain(&self) -> &[rustls::pki_types::CertificateDer<'static>] {
        &self.key.cert
    }
}

impl fmt::Debug for ClientCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClientCertificate({})", self.thumbprint)
    }
}

/// Presents the certificate, if there is one, where a service asks for it; and remembers that it asked,
/// because a refused handshake does not say why.
#[derive(Clone)]
pub(super) struct Presenter {
    pub(super) certificate: Option<Arc<ClientCertificate>>,
    asked: Arc<AtomicBool>,
    /// Whether it is known not to refuse handshakes.
    settled: Arc<AtomicBool>,
}

impl Presenter {
    pub(super) fn new(certificate: Option<Arc<ClientCertificate>>) -> Self {
        Self { certificate, asked: Arc::default(), settled: Arc::default() }
    }

    /// Whether the service asked for a certificate in a handshake.
    pub(super) fn was_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// The service does not refuse the certificate in handshakes: it has replied, or was asked.
    pub(super) fn settle(&self) {
        self.settled.store(true, Ordering::Relaxed);
    }

    /// Whether the service may refuse the certificate in handshakes, for all that is known.
    pub(super) fn may_be_refused(&self) -> bool {
        self.was_asked() && !self.settled.load(Ordering::Relaxed)
    }

    /// Whether this presents the same certificates, or none as well.
    pub(super) fn presents(&self, certificate: Option<&Arc<ClientCertificate>>) -> bool {
        match (&self.certificate, certificate) {
            (Some(one), Some(other)) => one.is_same(other),
            (None, None) => true,
            _ => false,
        }
    }
}

impl ResolvesClientCert for Presenter {
    fn resolve(
        &self,
        _authorities: &[&[u8]],
        _schemes: &[SignatureScheme],
    ) -> Option<Arc<CertifiedKey>> {
        self.asked.store(true, Ordering::Relaxed);
        // Whatever authorities it names: it may know more of them, and its refusal says more than none.
        self.certificate.as_ref().map(|certificate| Arc::clone(&certificate.key))
    }

    fn has_certs(&self) -> bool {
        true
    }
}

impl fmt::Debug for Presenter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Presenter({:?})", self.certificate)
    }
}
