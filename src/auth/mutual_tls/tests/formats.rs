//! The formats of certificates and keys beside PEM, and what is read of a certificate.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use p12_keystore::{Certificate, KeyStore, KeyStoreEntry, PrivateKeyChain};

use super::*;

const PASSPHRASE: &str = "correct horse";

impl Issued {
    fn der(&self) -> Vec<u8> {
        Bundle::read(self.pem.as_bytes(), None).expect("a bundle").certificates[0].to_vec()
    }

    fn chain(&self, by: &[&Issued]) -> KeyStoreEntry {
        let certificates = std::iter::once(self).chain(by.iter().copied());
        let certificates =
            certificates.map(|one| Certificate::from_der(&one.der()).expect("a certificate"));
        KeyStoreEntry::PrivateKeyChain(PrivateKeyChain::new(
            self.key.serialize_der(),
            &self.der()[..20],
            certificates,
        ))
    }
}

fn pkcs12(entries: Vec<KeyStoreEntry>) -> Vec<u8> {
    let mut store = KeyStore::new();
    for (number, entry) in entries.into_iter().enumerate() {
        store.add_entry(&number.to_string(), entry);
    }
    let writer = store.writer(PASSPHRASE).encryption_iterations(100).mac_iterations(100);
    writer.write().expect("PKCS#12")
}

fn read(bytes: &[u8], passphrase: Option<&str>) -> Result<Bundle> {
    Bundle::read(bytes, passphrase.map(str::as_bytes))
}

/// What the error says; nothing was read.
fn unreadable(bytes: &[u8], passphrase: Option<&str>) -> String {
    let error = read(bytes, passphrase).err().expect("refused");
    assert_eq!(error.kind(), Kind::CredentialError);
    error.to_string()
}

#[test]
fn m6_pkcs12_is_read_with_its_passphrase_alone() {
    let authority = Issued::authority("authority", None);
    let client = Issued::new("plant", Some(&authority), |_| {});
    let file = pkcs12(vec![client.chain(&[&authority])]);
    let bundle = read(&file, Some(PASSPHRASE)).expect("a bundle");
    assert_eq!(bundle.certificates.len(), 2);
    let loaded = Loaded::new(bundle.certificates, bundle.key.expect("a key")).expect("loaded");
    assert_eq!(loaded.subject, "CN=plant");

    assert!(unreadable(&file, None).contains("encrypted and no passphrase was given"));
    let wrong = unreadable(&file, Some("incorrect horse"));
    assert!(wrong.contains("passphrase") && !wrong.contains("damaged"), "{wrong}");
    assert!(!wrong.contains("incorrect horse"), "{wrong}");
    let cut = unreadable(&pkcs12(vec![])[..40], Some(PASSPHRASE));
    assert!(cut.contains("neither a certificate nor a private key"), "{cut}");
}

#[test]
fn m6_pkcs12_holds_exactly_one_key() {
    let [one, two] = ["one", "two"].map(|name| Issued::new(name, None, |_| {}));
    let certificate = Certificate::from_der(&one.der()).expect("a certificate");
    let none = pkcs12(vec![KeyStoreEntry::Certificate(certificate)]);
    let text = unreadable(&none, Some(PASSPHRASE));
    assert!(text.contains("no private key with its certificate"), "{text}");
    let both = pkcs12(vec![one.chain(&[]), two.chain(&[])]);
    let text = unreadable(&both, Some(PASSPHRASE));
    assert!(text.contains("more than one private key"), "{text}");
}

#[test]
fn m6_certificate_and_key_are_read_in_der_and_in_base64() {
    let client = Issued::new("plant", None, |_| {});
    let (certificate, key) = (client.der(), client.key.serialize_der());
    let pem = client.both();
    for (bytes, certificates, has_key) in [
        (certificate.clone(), 1, false),
        (key.clone(), 0, true),
        (STANDARD.encode(&certificate).into_bytes(), 1, false),
        (STANDARD.encode(&pem).into_bytes(), 1, true),
    ] {
        let bundle = read(&bytes, None).expect("a bundle");
        assert_eq!((bundle.certificates.len(), bundle.key.is_some()), (certificates, has_key));
    }
    let source = CertificateSource {
        certificate: Part::Bytes(Zeroizing::new(certificate)),
        key: Some(Part::Bytes(Zeroizing::new(key))),
        client_id: Some("plant 7".to_owned()),
        ..source("")
    };
    let plant = MutualTls::load(source).expect("loaded").value;
    assert_eq!((plant.subject(), plant.client_id()), ("CN=plant", Some("plant 7")));
}

#[test]
fn a_certificate_without_a_subject_is_called_by_its_first_alternative_name() {
    let name = |text: &str| text.try_into().expect("a name");
    let address = SanType::IpAddress([127, 0, 0, 1].into());
    for (names, expected) in [
        (vec![address.clone(), SanType::DnsName(name("plant.example"))], "plant.example"),
        (vec![SanType::Rfc822Name(name("plant@example.com"))], "plant@example.com"),
        (vec![SanType::URI(name("urn:plant:7")), SanType::DnsName(name("other"))], "urn:plant:7"),
    ] {
        let issued = Issued::new("", None, |params| params.subject_alt_names = names);
        assert_eq!(loaded(&issued.both()).expect("loaded").subject(), expected);
    }
}

#[test]
fn m3_the_time_of_a_certificate_is_read_to_the_second() {
    let issued = Issued::new("plant", None, |params| {
        params.not_before = rcgen::date_time_ymd(2026, 1, 2);
        params.not_after = rcgen::date_time_ymd(2057, 3, 4);
    });
    let (_, begins, ends) = loaded(&issued.both()).expect("loaded").details().expect("details");
    let expected = ["2026-01-02T00:00:00Z", "2057-03-04T00:00:00Z"];
    assert_eq!([begins.to_string(), ends.to_string()], expected);
}

#[test]
fn m6_nothing_follows_a_certificate_that_has_issued_itself() {
    let [client, namesake] = [(), ()].map(|()| Issued::new("plant", None, |_| {}));
    let text = client.pem.clone() + &namesake.pem + &client.key.serialize_pem();
    let bundle = Bundle::read(text.as_bytes(), None).expect("a bundle");
    let loaded = Loaded::new(bundle.certificates, bundle.key.expect("a key")).expect("loaded");
    assert_eq!(loaded.certificate.chain().len(), 1);
}
