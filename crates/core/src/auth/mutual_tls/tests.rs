#![expect(clippy::disallowed_methods, reason = "each test has its own runtime")]

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use jiff::ToSpan as _;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, SanType,
};

use super::*;
use crate::http::test_server::TestFolder;

mod formats;

struct Issued {
    pem: String,
    key: KeyPair,
    params: CertificateParams,
}

impl Issued {
    fn new(name: &str, by: Option<&Issued>, change: impl FnOnce(&mut CertificateParams)) -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        if !name.is_empty() {
            params.distinguished_name.push(DnType::CommonName, name);
        }
        change(&mut params);
        let certificate = match by {
            Some(by) => params.signed_by(&key, &Issuer::from_params(&by.params, &by.key)),
            None => params.self_signed(&key),
        };
        Self { pem: certificate.expect("a certificate").pem(), key, params }
    }

    fn authority(name: &str, by: Option<&Issued>) -> Self {
        Self::new(name, by, |params| params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained))
    }

    fn both(&self) -> String {
        self.pem.clone() + &self.key.serialize_pem()
    }
}

fn source(text: &str) -> CertificateSource {
    CertificateSource {
        certificate: Part::Bytes(Zeroizing::new(text.as_bytes().to_vec())),
        key: None,
        passphrase: Box::new(|| Ok(None)),
        client_id: None,
        strict: false,
    }
}

impl MutualTls {
    /// [`MutualTls::open`] with the passphrase of the source.
    fn load(source: CertificateSource) -> Result<Checked<Self>> {
        let passphrase = source.ask()?;
        Self::open(source, passphrase.as_ref().map(|text| text.as_slice()))
    }
}

/// A file with certificate and key, removed on drop.
struct CertificateFile(TestFolder);

impl CertificateFile {
    fn new(text: &str) -> Self {
        let file = Self(TestFolder::new());
        file.put(text);
        file
    }

    fn path(&self) -> PathBuf {
        self.0.join("plant.pem")
    }

    /// Renames a new file, which changes the stamp each time.
    fn put(&self, text: &str) {
        let new = self.0.join("new");
        std::fs::write(&new, text).expect("written");
        std::fs::rename(&new, self.path()).expect("renamed");
    }

    /// The certificate, and the time at which it becomes valid.
    fn load(&self, change: impl FnOnce(&mut CertificateSource)) -> (MutualTls, Timestamp) {
        let mut source = CertificateSource { certificate: Part::File(self.path()), ..source("") };
        change(&mut source);
        let plant = MutualTls::load(source).expect("loaded").value;
        let (_, begins, _) = plant.details().expect("details");
        (plant, begins)
    }
}

async fn thumbprint(plant: &MutualTls, now: Timestamp) -> String {
    plant.current(now).await.expect("a certificate").thumbprint().to_owned()
}

fn loaded(text: &str) -> Result<MutualTls> {
    MutualTls::load(source(text)).map(|checked| checked.value)
}

fn refusal(text: &str) -> String {
    let error = loaded(text).expect_err("refused");
    assert_eq!(error.kind(), Kind::CredentialError);
    assert!(!error.to_string().contains("PRIVATE"), "{error}");
    error.to_string()
}

#[test]
fn m6_certificates_in_any_order_become_the_chain_of_the_key() {
    let root = Issued::authority("root", None);
    let middle = Issued::authority("middle", Some(&root));
    let other = Issued::authority("other", None);
    let client = Issued::new("plant-7", Some(&middle), |_| {});
    let key = client.key.serialize_pem();
    let [root, middle, other, client] = [&root, &middle, &other, &client].map(|one| &*one.pem);
    for (given, expected) in [
        (vec![client, middle, root], 3),
        (vec![root, other, middle, client], 3),
        (vec![root, client], 1),
        (vec![middle, client], 2),
    ] {
        let bundle = Bundle::read((given.concat() + &key).as_bytes(), None).expect("a bundle");
        let leaf = Bundle::read(client.as_bytes(), None).expect("a bundle").certificates;
        let loaded = Loaded::new(bundle.certificates, bundle.key.expect("a key")).expect("a chain");
        assert_eq!(loaded.subject, "CN=plant-7");
        let chain = loaded.certificate.chain();
        assert_eq!((chain.len(), &chain[0]), (expected, &leaf[0]), "{}", given.len());
    }
}

#[test]
fn the_subject_is_the_name_or_an_alternative_one_or_the_thumbprint() {
    let text = |text: &str| text.try_into().expect("a name");
    let address = SanType::IpAddress([127, 0, 0, 1].into());
    for (name, alternatives, expected) in [
        ("plant, \"7\"", vec![], "O=Acme,CN=plant\\, \\\"7\\\""),
        ("", vec![SanType::URI(text("spiffe://acme/plant"))], "spiffe://acme/plant"),
        ("", vec![address, SanType::DnsName(text("plant.example"))], "plant.example"),
        ("", vec![SanType::Rfc822Name(text("plant@example.com"))], "plant@example.com"),
    ] {
        let issued = Issued::new(name, None, |params| {
            params.subject_alt_names = alternatives;
            if !name.is_empty() {
                params.distinguished_name.push(DnType::OrganizationName, "Acme");
            }
        });
        assert_eq!(loaded(&issued.both()).expect("loaded").subject(), expected);
    }
    let nameless = loaded(&Issued::new("", None, |_| {}).both()).expect("loaded");
    let (thumbprint, _, _) = nameless.details().expect("details");
    assert_eq!(nameless.subject(), format!("certificate {thumbprint}"));
    assert_eq!(thumbprint.len(), 43);
    assert_eq!(format!("{nameless:?}").find("PRIVATE"), None);
}

#[test]
fn m3_a_key_of_another_certificate_or_another_use_is_refused() {
    let [one, other] = ["one", "other"].map(|name| Issued::new(name, None, |_| {}));
    let text = refusal(&(one.pem.clone() + &other.key.serialize_pem()));
    assert!(text.contains("does not belong to the certificate \"CN=one\""), "{text}");
    assert!(refusal(&one.pem).contains("no private key"));
    assert!(refusal(&one.key.serialize_pem()).contains("no certificate"));
    assert!(refusal(" \n").contains("empty"));
    let two = one.both() + &other.key.serialize_pem();
    assert!(refusal(&two).contains("more than one private key"));
    let usage = |usage: ExtendedKeyUsagePurpose| {
        Issued::new("plant", None, |params| params.extended_key_usages = vec![usage]).both()
    };
    assert!(refusal(&usage(ExtendedKeyUsagePurpose::ServerAuth)).contains("not for clients"));
    assert!(loaded(&usage(ExtendedKeyUsagePurpose::ClientAuth)).is_ok());
    assert!(loaded(&usage(ExtendedKeyUsagePurpose::Any)).is_ok());
}

#[tokio::test]
async fn m3_a_certificate_is_used_within_its_time_alone() {
    let plant = loaded(&Issued::new("plant", None, |_| {}).both()).expect("loaded");
    let (_, begins, ends) = plant.details().expect("details");
    for (now, expected) in [
        (begins - 1.second(), Some("is not valid before")),
        (begins, None),
        (ends, None),
        (ends + 1.second(), Some("expired on")),
    ] {
        let outcome = plant.current(now).await;
        let Some(expected) = expected else {
            outcome.expect("within its time");
            continue;
        };
        let error = outcome.expect_err("out of its time");
        assert_eq!(error.kind(), Kind::CredentialError);
        assert!(error.to_string().contains(expected) && error.context().unsent, "{error}");
    }
}

#[tokio::test]
async fn m5_files_are_read_again_when_they_change_and_only_then() {
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    let [first, second] = [(), ()].map(|()| Issued::new("plant", None, |_| {}));
    let file = CertificateFile::new(&first.both());
    let (plant, now) = file.load(|source| {
        source.passphrase = Box::new(|| {
            ASKED.fetch_add(1, Ordering::SeqCst);
            Ok(None)
        });
    });
    let before = thumbprint(&plant, now).await;
    thumbprint(&plant, now).await;
    assert_eq!(ASKED.load(Ordering::SeqCst), 1);
    file.put(&second.both());
    let after = thumbprint(&plant, now).await;
    assert_ne!(before, after);
    for unusable in [Some(Issued::new("another", None, |_| {})), None] {
        match unusable {
            Some(other) => file.put(&other.both()),
            None => std::fs::remove_file(file.path()).expect("removed"),
        }
        let asked = ASKED.load(Ordering::SeqCst);
        for _ in 0..3 {
            assert_eq!(thumbprint(&plant, now).await, after);
        }
        assert_eq!(ASKED.load(Ordering::SeqCst), asked + 1, "it is tried once");
        let error = plant.current(Timestamp::MAX).await.expect_err("it is over").to_string();
        assert!(error.contains("expired on") && error.contains("were replaced"), "{error}");
    }
    file.put(&first.both());
    assert_eq!(thumbprint(&plant, now).await, before);
}

#[tokio::test]
async fn m5_files_that_cannot_be_opened_for_a_while_are_tried_again() {
    static FAILS: AtomicBool = AtomicBool::new(false);
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    let [first, second] = [(), ()].map(|()| Issued::new("plant", None, |_| {}));
    let file = CertificateFile::new(&first.both());
    let (plant, now) = file.load(|source| {
        source.passphrase = Box::new(|| {
            ASKED.fetch_add(1, Ordering::SeqCst);
            if FAILS.load(Ordering::SeqCst) { Err(refused("the vault is down")) } else { Ok(None) }
        });
    });
    let before = thumbprint(&plant, now).await;
    file.put(&second.both());
    FAILS.store(true, Ordering::SeqCst);
    for (after, asked) in [(0, 2), (0, 2), (59, 2), (60, 3), (119, 3), (-30, 4)] {
        let found = plant.current(now + after.seconds()).await;
        assert_eq!(found.is_ok(), after >= 0, "{after}");
        assert_eq!(ASKED.load(Ordering::SeqCst), asked, "after {after} s");
    }
    FAILS.store(false, Ordering::SeqCst);
    let found = thumbprint(&plant, now + 200.seconds()).await;
    assert_ne!(found, before);
    assert_eq!(plant.details().expect("details").0, found);
}

#[cfg(unix)]
#[tokio::test]
async fn m5_a_file_that_gets_its_mode_after_its_content_is_read_then() {
    use std::os::unix::fs::PermissionsExt;
    let [first, second] = [(), ()].map(|()| Issued::new("plant", None, |_| {}));
    let file = CertificateFile::new(&first.both());
    let mode = |mode| {
        std::fs::set_permissions(file.path(), PermissionsExt::from_mode(mode)).expect("a mode");
    };
    mode(0o600);
    let (plant, now) = file.load(|source| source.strict = true);
    let before = thumbprint(&plant, now).await;
    mode(0o644);
    std::fs::write(file.path(), second.both()).expect("written");
    assert_eq!(thumbprint(&plant, now).await, before);
    mode(0o600);
    assert_ne!(thumbprint(&plant, now).await, before);
}

#[tokio::test]
async fn m5_a_chain_that_is_completed_is_presented_with_the_same_certificate() {
    let root = Issued::authority("root", None);
    let middle = Issued::authority("middle", Some(&root));
    let client = Issued::new("plant", Some(&middle), |_| {});
    let file = CertificateFile::new(&client.both());
    let (plant, now) = file.load(|_| {});
    let alone = plant.current(now).await.expect("alone");
    file.put(&(client.both() + &middle.pem));
    let complete = plant.current(now).await.expect("complete");
    assert_eq!((alone.chain().len(), complete.chain().len()), (1, 2));
    assert_eq!(alone.thumbprint(), complete.thumbprint());
    assert!(!alone.is_same(&complete) && complete.is_same(&complete));
}

#[test]
fn m3_what_was_given_as_the_key_is_named() {
    let issued = Issued::new("plant", None, |_| {});
    for (key, words) in [
        (issued.pem.as_str(), "key= contains no private key"),
        ("", "empty"),
        ("no key", "not a certificate or private key"),
    ] {
        let key = Some(Part::Bytes(Zeroizing::new(key.as_bytes().to_vec())));
        let loaded = MutualTls::load(CertificateSource { key, ..source(&issued.both()) });
        let text = loaded.expect_err("refused").to_string();
        assert!(text.contains(words), "{text}");
    }
}

#[test]
fn a_deferred_certificate_is_read_at_its_first_use() {
    let issued = Issued::new("plant", None, |_| {});
    let plant = MutualTls::deferred(source("nothing"), "CN=plant".to_owned());
    assert_eq!(plant.subject(), "CN=plant");
    assert!(plant.details().is_err());
    let other = MutualTls::deferred(source(&issued.both()), "CN=another".to_owned());
    assert!(other.details().expect_err("another").to_string().contains("Create another client"));
    assert!(MutualTls::deferred(source(&issued.both()), "CN=plant".to_owned()).details().is_ok());
}

#[test]
fn a_client_id_is_one_line() {
    let issued = Issued::new("plant", None, |_| {});
    for (id, is_valid) in [("plant 7", true), ("", false), (" ", false), ("a\nb", false)] {
        let source = CertificateSource { client_id: Some(id.to_owned()), ..source(&issued.both()) };
        let loaded = MutualTls::load(source);
        assert_eq!(loaded.is_ok(), is_valid, "{id:?}");
        if let Err(error) = loaded {
            assert_eq!(error.kind(), Kind::ConfigError);
        }
    }
}
