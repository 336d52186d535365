//! Formats other than PEM, the fields of a certificate, and log records.

#![expect(clippy::disallowed_methods, reason = "each test has its own runtime")]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use p12_keystore::{Certificate, KeyStore, KeyStoreEntry, PrivateKey, PrivateKeyChain};

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
        let key = PrivateKey::from_der(&self.key.serialize_der()).expect("a key");
        KeyStoreEntry::PrivateKeyChain(PrivateKeyChain::new(&self.der()[..20], key, certificates))
    }
}

fn pkcs12(entries: Vec<KeyStoreEntry>) -> Vec<u8> {
    pkcs12_with(entries, 100)
}

fn pkcs12_with(entries: Vec<KeyStoreEntry>, rounds: u32) -> Vec<u8> {
    let mut store = KeyStore::new();
    for (number, entry) in entries.into_iter().enumerate() {
        store.add_entry(&number.to_string(), entry);
    }
    let writer = store.writer(PASSPHRASE).encryption_iterations(100).mac_iterations(rounds);
    writer.write().expect("PKCS#12")
}

fn read(bytes: &[u8], passphrase: Option<&str>) -> Result<Bundle> {
    Bundle::read(bytes, passphrase.map(str::as_bytes))
}

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

fn element(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let [high, low] = u16::try_from(content.len()).expect("a short element").to_be_bytes();
    let head = match content.len() {
        ..128 => vec![tag, low],
        128..256 => vec![tag, 0x81, low],
        _ => vec![tag, 0x82, high, low],
    };
    [head, content].concat()
}

fn pbes2(parameters: &[u8]) -> Vec<u8> {
    element(0x30, &[b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x05\x0d", parameters])
}

/// A PKCS#12 file whose only part is encrypted with these parameters of PBES2.
fn pkcs12_encrypted_with(parameters: &[u8], encrypted: &[u8]) -> Vec<u8> {
    const DATA: &[u8] = b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x07\x01";
    const ENCRYPTED: &[u8] = b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x07\x06";
    let content = element(0x30, &[DATA, &pbes2(parameters), &element(0x80, &[encrypted])]);
    let encrypted = element(0xa0, &[&element(0x30, &[b"\x02\x01\0", &content])]);
    let parts = element(0x30, &[&element(0x30, &[ENCRYPTED, &encrypted])]);
    let outer = element(0x30, &[DATA, &element(0xa0, &[&element(0x04, &[&parts])])]);
    element(0x30, &[b"\x02\x01\x03", &outer])
}

/// Parts that are encrypted with these parameters, among them a key within such a part. With the
/// cost 0 the library panics.
#[test]
fn pkcs12_with_a_wrong_or_high_cost_of_scrypt_is_refused() {
    use pkcs8::der::Encode as _;
    use pkcs8::pkcs5::pbes2::{EncryptionScheme, Parameters, ScryptParams};
    const SHROUDED_KEY: &[u8] = b"\x06\x0b\x2a\x86\x48\x86\xf7\x0d\x01\x0c\x0a\x01\x02";
    let outer = Parameters::generate_pbkdf2_sha256_aes256cbc(100, b"salt", [0; 16]);
    let outer = outer.expect("parameters");
    for (cost_parameter, text) in [
        (0, "old or rare"),
        (3, "old or rare"),
        (1 << 19, "requires 512 MiB of memory"),
        (2, "damaged or has a rare form"),
    ] {
        let salt = b"salt"[..].try_into().expect("a salt");
        let (block_size, parallelization, key_length) = (8, 1, None);
        let kdf = ScryptParams { salt, cost_parameter, block_size, parallelization, key_length };
        let encryption = EncryptionScheme::Aes256Cbc { iv: [0; 16] };
        let parameters = Parameters { kdf: kdf.into(), encryption }.to_der().expect("parameters");
        let key = element(0x30, &[&pbes2(&parameters), &element(0x04, &[&[0; 16]])]);
        let bag = element(0x30, &[SHROUDED_KEY, &element(0xa0, &[&key])]);
        let inner = outer.encrypt(PASSPHRASE, &element(0x30, &[&bag])).expect("encrypted");
        for file in [
            pkcs12_encrypted_with(&parameters, &[0; 16]),
            pkcs12_encrypted_with(&outer.to_der().expect("parameters"), &inner),
        ] {
            let refused = unreadable(&file, Some(PASSPHRASE));
            assert!(refused.contains(text), "{cost_parameter}: {refused}");
        }
    }
}

/// The parts are decrypted before the passphrase is known to be right.
#[test]
fn pkcs12_with_many_encrypted_parts_is_refused() {
    use pkcs8::der::Encode as _;
    use pkcs8::pkcs5::pbes2::Parameters;
    const PBES1: &[u8] = b"\x06\x0a\x2a\x86\x48\x86\xf7\x0d\x01\x0c\x01\x03";
    let parameters = Parameters::generate_pbkdf2_sha256_aes256cbc(100, b"salt", [0; 16]);
    let parameters = parameters.expect("parameters").to_der().expect("DER");
    let encrypted = element(0x80, &[&[0; 16]]);
    let rounds = element(0x30, &[&element(0x04, &[b"saltsalt"]), b"\x02\x01\x01"]);
    for algorithm in [pbes2(&parameters), element(0x30, &[PBES1, &rounds])] {
        let part = [algorithm, encrypted.clone()].concat();
        for (count, text) in [(3, "damaged or has a rare form"), (4, "too many parts")] {
            let file = pkcs12_encrypted_with(&parameters, &part.repeat(count));
            let refused = unreadable(&file, Some(PASSPHRASE));
            assert!(refused.contains(text), "{count}: {refused}");
        }
    }
}

#[test]
fn pkcs12_with_too_many_rounds_is_refused() {
    let mut file = pkcs12_with(vec![Issued::new("plant", None, |_| {}).chain(&[])], 0x1_1170);
    let written = b"\x02\x03\x01\x11\x70";
    let rounds = file.windows(5).rposition(|bytes| bytes == written).expect("the rounds");
    file[rounds + 2] = 0x11;
    let text = unreadable(&file, Some(PASSPHRASE));
    assert!(text.contains("requires too much work"), "{text}");
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
fn m6_nothing_follows_a_certificate_that_has_issued_itself() {
    let [client, namesake] = [(), ()].map(|()| Issued::new("plant", None, |_| {}));
    let text = client.pem.clone() + &namesake.pem + &client.key.serialize_pem();
    let bundle = Bundle::read(text.as_bytes(), None).expect("a bundle");
    let loaded = Loaded::new(bundle.certificates, bundle.key.expect("a key")).expect("loaded");
    assert_eq!(loaded.certificate.chain().len(), 1);
}

#[tokio::test]
async fn m5_what_became_of_the_files_is_told_once_for_each_reason() {
    let [first, second] = [(), ()].map(|()| Issued::new("plant", None, |_| {}));
    let file = CertificateFile::new(&first.both());
    let (plant, now) = file.load(|_| {});
    // The records that the next request would log if the files were read at this second.
    let told = |after: i64| {
        plant.loaded(Some(now + after.seconds())).expect("one of both");
        let unlogged = std::mem::take(&mut plant.0.state.lock().unlogged);
        // The warning about the file mode is tested elsewhere.
        let told = unlogged.into_iter().filter(|(_, text)| !text.starts_with("Other users"));
        told.map(|(level, text)| format!("{level} {text}")).collect::<Vec<_>>()
    };
    assert!(told(0).is_empty());
    file.put("nothing");
    assert!(told(0)[0].starts_with("WARN the replaced client certificate is unusable"));
    assert!(told(60).is_empty(), "the same files for the same reason");
    file.put("nothing ");
    assert_eq!(told(61).len(), 1, "other files");
    file.put(&second.both());
    assert!(told(62)[0].starts_with("INFO the client certificate was replaced: "));
    file.put(&(second.both() + "\n"));
    assert!(told(63).is_empty(), "the same certificate");
}
