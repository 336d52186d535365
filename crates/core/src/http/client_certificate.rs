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
pub(super) mod tests {
    use rustls::pki_types::pem::PemObject as _;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};

    use super::*;
    use crate::http::provider;

    /// A placeholder for a certificate, identified by its name. No handshake uses it.
    pub(in crate::http) fn certificate(name: &str) -> Arc<ClientCertificate> {
        let pem = include_bytes!("../../../../tests/keys/pkcs8.pem");
        let key = PrivateKeyDer::from_pem_slice(pem).expect("a key");
        let key = provider().key_provider.load_private_key(key).expect("a key");
        let chain = vec![CertificateDer::from(name.as_bytes().to_vec())];
        Arc::new(ClientCertificate::new(CertifiedKey::new(chain, key), name.to_owned()))
    }

    #[test]
    fn a_presenter_remembers_in_all_its_copies_that_the_service_asked() {
        for certificate in [None, Some(certificate("plant-7"))] {
            let presenter = Presenter::new(certificate.clone());
            let of_the_handshake = presenter.clone();
            // It offers certificates even without one; otherwise rustls would not call it.
            assert!(presenter.has_certs() && !presenter.was_asked());
            let chain = of_the_handshake.resolve(&[], &[]).map(|key| key.cert.clone());
            assert_eq!(chain, certificate.map(|certificate| certificate.chain().to_vec()));
            assert!(presenter.was_asked());
        }
    }

    #[test]
    fn m2_a_service_may_refuse_in_handshakes_from_when_it_asked_until_it_replied() {
        let presenter = Presenter::new(None);
        assert!(!presenter.may_be_refused());
        presenter.resolve(&[], &[]);
        assert!(presenter.clone().may_be_refused());
        presenter.clone().settle();
        assert!(!presenter.may_be_refused());
        let replied = Presenter::new(None);
        replied.settle();
        replied.resolve(&[], &[]);
        assert!(!replied.may_be_refused());
    }

    #[test]
    fn m5_connections_serve_the_certificate_that_they_present_and_no_other() {
        let [one, other] = ["plant-7", "plant-8"].map(certificate);
        let (with, without) = (Presenter::new(Some(certificate("plant-7"))), Presenter::new(None));
        assert!(with.presents(Some(&one)) && without.presents(None));
        assert!(
            !with.presents(Some(&other)) && !with.presents(None) && !without.presents(Some(&one))
        );
    }

    #[test]
    fn a_certificate_is_shown_by_its_thumbprint_alone() {
        let certificate = certificate("plant-7");
        assert_eq!(format!("{certificate:?}"), "ClientCertificate(plant-7)");
        let presenter = Presenter::new(Some(certificate));
        assert_eq!(format!("{presenter:?}"), "Presenter(Some(ClientCertificate(plant-7)))");
    }
}
