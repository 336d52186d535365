use std::sync::LazyLock;

use super::*;

/// One key for all tests of this room: making one takes time.
pub(super) static KEY: LazyLock<PrivateKey> =
    LazyLock::new(|| PrivateKey::generate(2048).expect("a key"));

pub(super) fn credential() -> Credential {
    Credential::with_key("customer-7", KEY.clone(), None).expect("a credential").value
}

/// A signer as a vault would be: it may answer anything.
pub(super) struct Vault(pub(super) Answer);

type Answer = fn(&[u8]) -> Result<Vec<u8>>;

impl Signer for Vault {
    fn sign(&self, signing_input: &[u8]) -> Result<Vec<u8>> {
        (self.0)(signing_input)
    }
}

fn with_vault(answer: Answer) -> Credential {
    Credential::with_signer("customer-7", Arc::new(Vault(answer)), KEY.public_jwk(), None)
        .expect("a credential")
        .value
}

#[test]
fn k6_a_stated_kid_that_is_not_the_thumbprint_is_refused_with_the_computed_one() {
    let error = Credential::with_key("s", KEY.clone(), Some("my-key")).expect_err("refused");
    assert_eq!(error.kind(), Kind::Credential);
    let text = error.to_string();
    assert!(text.contains("\"my-key\"") && text.contains(KEY.thumbprint()), "{text}");

    let stated = Credential::with_key("s", KEY.clone(), Some(KEY.thumbprint())).expect("agreed");
    assert_eq!(stated.value.kid(), KEY.thumbprint());
}

#[test]
fn k12_white_space_around_a_subject_is_removed_once_with_a_warning() {
    let clean = Credential::with_key("a b", KEY.clone(), None).expect("a credential");
    assert!(clean.warnings.is_empty());
    for given in ["a b\n", " a b\r\n", "\u{feff}a b", "a b\u{a0}"] {
        let checked = Credential::with_key(given, KEY.clone(), None).expect("a credential");
        assert_eq!(checked.value.subject(), "a b");
        assert_eq!(checked.warnings.len(), 1, "{given:?}");
    }
}

#[test]
fn k12_a_subject_that_is_empty_or_has_a_line_break_inside_is_refused() {
    for given in ["", " \n", "a\nb", "a\0b"] {
        let error = Credential::with_key(given, KEY.clone(), None).expect_err("refused");
        assert_eq!(error.kind(), Kind::Config, "{given:?}");
    }
}

#[test]
fn a_signature_of_the_signer_is_believed_only_when_it_matches_the_public_key() {
    assert!(with_vault(|input| KEY.sign(input)).sign(b"x").is_ok());

    let wrong: [Answer; 4] = [
        |_| Ok(Vec::new()),
        |_| Ok(vec![0; 256]),
        |_| KEY.sign(b"something else"),
        |input| PrivateKey::generate(2048)?.sign(input),
    ];
    for answer in wrong {
        let error = with_vault(answer).sign(b"x").expect_err("refused");
        assert_eq!(error.kind(), Kind::Credential);
        assert!(error.to_string().contains("PKCS1-v1_5"), "{error}");
    }
}

#[test]
fn an_error_of_the_signer_arrives_as_it_was() {
    let answer = |_: &[u8]| Err(Error::new(Kind::Credential, "the vault is sealed"));
    let error = with_vault(answer).sign(b"x").expect_err("refused");
    assert_eq!(error.to_string(), "the vault is sealed");
}

#[test]
fn a_credential_prints_its_subject_and_kid_alone() {
    let expected =
        format!("Credential {{ subject: \"customer-7\", kid: \"{}\", .. }}", KEY.thumbprint());
    assert_eq!(format!("{:?}", credential()), expected);
}
