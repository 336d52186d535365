//! [`ClientCertificate`]: the certificate that connections present if the service requests one.

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
    /// `thumbprint` identifies the certificate: its SHA-256 in base64url (RFC 8705 §3.1).
    pub(crate) fn new(key: CertifiedKey, thumbprint: String) -> Self {
        Self { key: Arc::new(key), thumbprint }
    }

    pub(crate) fn thumbprint(&self) -> &str {
        &self.thumbprint
    }

    /// Whether both present the same chain. The same certificate may have a chain that was
    /// completed later.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.key.cert == other.key.cert
    }
}

impl fmt::Debug for ClientCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClientCertificate({})", self.thumbprint)
    }
}

/// Presents the certificate, if there is one, when the service requests it. Remembers the request,
/// because a refused handshake does not show its reason.
#[derive(Clone)]
pub(super) struct Presenter {
    pub(super) certificate: Option<Arc<ClientCertificate>>,
    asked: Arc<AtomicBool>,
    /// Whether the service is known not to refuse the certificate in handshakes.
    settled: Arc<AtomicBool>,
}

impl Presenter {
    pub(super) fn new(certificate: Option<Arc<ClientCertificate>>) -> Self {
        Self { certificate, asked: Arc::default(), settled: Arc::default() }
    }

    /// Whether the service requested a certificate in a handshake.
    pub(super) fn was_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// Records that the service does not refuse the certificate in handshakes.
    pub(super) fn settle(&self) {
        self.settled.store(true, Ordering::Relaxed);
    }

    /// Whether the service may still refuse the certificate in a handshake.
    pub(super) fn may_be_refused(&self) -> bool {
        self.was_asked() && !self.settled.load(Ordering::Relaxed)
    }

    /// Whether this presents the same certificate; two without a certificate are equal.
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
        // The CAs that the service names are ignored: it may accept more, and its refusal explains
        // more than a missing certificate.
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

#[cfg(test)]
#[path = "client_certificate_tests.rs"]
pub(super) mod tests;
