use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::*;
use crate::http::provider;

impl ClientCertificate {
    pub(crate) fn chain(&self) -> &[CertificateDer<'static>] {
        &self.key.cert
    }
}

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
    assert!(!with.presents(Some(&other)) && !with.presents(None) && !without.presents(Some(&one)));
}

#[test]
fn a_certificate_is_shown_by_its_thumbprint_alone() {
    let certificate = certificate("plant-7");
    assert_eq!(format!("{certificate:?}"), "ClientCertificate(plant-7)");
    let presenter = Presenter::new(Some(certificate));
    assert_eq!(format!("{presenter:?}"), "Presenter(Some(ClientCertificate(plant-7)))");
}
