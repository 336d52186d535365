//! Formats other than PEM, the fields of a certificate, and log records.

#![expect(clippy::disallowed_methods, reason = "each test has its own runtime")]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use p12_keystore::{Certificate, KeyStore, KeyStoreEntry, PrivateKey, PrivateKeyChain};

use super::*;
use crate::auth::Proof;

const PASSPHRASE: &str = "correct horse";

impl Issued {
    fn der(&self) -> Vec<u8> {
        Bundle::read(self.pem.as_bytes(), None).expect("a bundle").certificates[0].to_vec()
    }

    fn chain(&self, by: &[&Issued]) -> KeyStoreEntry {
        let certificates = std::iter::once(self).chain(by.iter().copied());
        let certificates =
            certificates.map(|one| Certificate::from_der(&one.der()).expect("a certificate"));
        let key = PrivateKey::from_der(&self.key.serialize_der()).expect("a key");
        KeyStoreEntry::PrivateKeyChain(PrivateKeyChain::new(&self.der()[..20], key, certificates))
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

/// The error for an unreadable bundle.
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

    assert!(unreadable(&file, None).contains("encrypted, and there is no passphrase"));
    let wrong = unreadable(&file, Some("incorrect horse"));
    assert!(wrong.contains("passphrase") && !wrong.contains("damaged"), "{wrong}");
    assert!(!wrong.contains("incorrect horse"), "{wrong}");
    let cut = unreadable(&pkcs12(vec![])[..40], Some(PASSPHRASE));
    assert!(cut.contains("not a certificate or private key"), "{cut}");
}

#[test]
fn m6_pkcs12_of_another_method_is_told_from_a_wrong_passphrase() {
    const SHA_256: &[u8] = b"\x60\x86\x48\x01\x65\x03\x04\x02\x01";
    let mut file = pkcs12(vec![Issued::new("plant", None, |_| {}).chain(&[])]);
    let digest = file.windows(SHA_256.len()).rposition(|bytes| bytes == SHA_256).expect("a digest");
    // SHA3-256.
    file[digest + SHA_256.len() - 1] = 8;
    let text = unreadable(&file, Some(PASSPHRASE));
    assert!(text.contains("old or rare"), "{text}");
}

/// `p12_keystore` has a lower limit than `key_cost`.
#[test]
fn pkcs12_with_too_many_rounds_is_refused() {
    let mut store = KeyStore::new();
    store.add_entry("plant", Issued::new("plant", None, |_| {}).chain(&[]));
    let writer = store.writer(PASSPHRASE).encryption_iterations(100).mac_iterations(0x1_1170);
    let mut file = writer.write().expect("PKCS#12");
    let written = b"\x02\x03\x01\x11\x70";
    let rounds = file.windows(5).rposition(|bytes| bytes == written).expect("the rounds");
    file[rounds + 2] = 0x11;
    let text = unreadable(&file, Some(PASSPHRASE));
    assert!(text.contains("requires too much work"), "{text}");
}

#[tokio::test]
async fn m4_what_proves_a_token_request_is_what_its_connection_presents() {
    let plant = loaded(&Issued::new("plant", None, |_| {}).both()).expect("loaded");
    let (_, now, _) = plant.details().expect("details");
    let certificate = plant.current(now).await.expect("a certificate");
    let proof = Proof::Certificate { client_id: "plant 7", certificate: &certificate };
    assert!(proof.certificate().is_some_and(|presented| Arc::ptr_eq(presented, &certificate)));
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

#[tokio::test]
async fn m5_what_became_of_the_files_is_told_once_for_each_reason() {
    let path = std::env::temp_dir().join(format!("siteline-m5-told-{}.pem", std::process::id()));
    let [first, second] = [(), ()].map(|()| Issued::new("plant", None, |_| {}));
    // Renaming a new file changes the stamp each time.
    let put = |text: &str| {
        let new = path.with_extension("new");
        std::fs::write(&new, text).expect("written");
        std::fs::rename(&new, &path).expect("renamed");
    };
    put(&first.both());
    let source = CertificateSource { certificate: Part::File(path.clone()), ..source("") };
    let plant = MutualTls::load(source).expect("loaded").value;
    let (_, now, _) = plant.details().expect("details");
    // The records that the next request would log if the files were read at this second.
    let told = |after: i64| {
        plant.loaded(Some(now + after.seconds())).expect("one of both");
        let unlogged = std::mem::take(&mut plant.0.state.lock().unlogged);
        // The warning about the file mode is tested elsewhere.
        let told = unlogged.into_iter().filter(|(_, text)| !text.starts_with("Other users"));
        told.map(|(level, text)| format!("{level} {text}")).collect::<Vec<_>>()
    };
    assert!(told(0).is_empty());
    put("nothing");
    assert!(told(0)[0].starts_with("WARN the replaced client certificate is unusable"));
    assert!(told(60).is_empty(), "the same files for the same reason");
    put("nothing ");
    assert_eq!(told(61).len(), 1, "other files");
    put(&second.both());
    assert!(told(62)[0].starts_with("INFO the client certificate was replaced: "));
    put(&(second.both() + "\n"));
    assert!(told(63).is_empty(), "the same certificate");
    std::fs::remove_file(&path).expect("removed");
}

#[tokio::test]
#[should_panic(expected = "the passphrase command is broken")]
async fn a_panic_of_what_gets_the_passphrase_ends_the_call() {
    let ask: Box<AskPassphrase> = Box::new(|| panic!("the passphrase command is broken"));
    let plant = MutualTls::deferred(
        CertificateSource { passphrase: ask, ..source("") },
        "CN=plant".to_owned(),
    );
    drop(plant.current(Timestamp::UNIX_EPOCH).await);
}

#[test]
fn base64_of_another_text_is_no_bundle_without_a_key() {
    let text = unreadable(STANDARD.encode("a plain text ".repeat(40)).as_bytes(), None);
    assert!(text.contains("not a certificate or private key"), "{text}");
}
