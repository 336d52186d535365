use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::crypto::aws_lc;
use jsonwebtoken::jwk::{Jwk, ThumbprintHash};
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use serde_json::{Map, Value};

use super::test_harness::{Harness, good};
use super::*;

/// One key for all tests of this module, because generating one is slow.
pub(super) static KEY: LazyLock<PrivateKey> =
    LazyLock::new(|| PrivateKey::generate(2048).expect("a key"));

pub(super) fn credential() -> Credential {
    Credential::with_key("customer-7", KEY.clone(), None).expect("a credential").value
}

/// A signer with arbitrary answers, in place of a vault.
struct Vault(Answer);

type Answer = fn(&[u8]) -> Result<Vec<u8>>;

impl Signer for Vault {
    fn sign(&self, signing_input: &[u8]) -> Result<Vec<u8>> {
        (self.0)(signing_input)
    }
}

/// Runs `future` to completion on a new runtime.
#[expect(clippy::disallowed_methods, reason = "a test on its own thread")]
pub(super) fn finished<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(future)
}

fn signed(credential: &Credential) -> Result<Vec<u8>> {
    finished(credential.sign(b"x"))
}

/// The claims of an assertion, read with jsonwebtoken: verifies the signature with the public JWK
/// (JSON text), and compares the `kid` and the audience.
pub(super) fn verified_claims(
    assertion: &str,
    public_jwk: &str,
    audience: &str,
) -> Map<String, Value> {
    let (jwk, key) = verification_key(public_jwk);
    let mut validation = Validation::new(Algorithm::RS256);
    // jsonwebtoken uses the system clock; tests have their own.
    validation.validate_exp = false;
    validation.set_audience(&[audience]);
    validation.set_required_spec_claims(&["iss", "sub", "aud", "nbf", "exp"]);
    let token = jsonwebtoken::decode::<Map<String, Value>>(assertion, &key, &validation);
    let token = token.expect("an assertion that jsonwebtoken verifies");
    let thumbprint = jwk.thumbprint(ThumbprintHash::SHA256).expect("a thumbprint");
    assert_eq!(token.header.kid, Some(thumbprint));
    token.claims
}

/// Whether jsonwebtoken verifies this RS256 signature with the public JWK (JSON text).
pub(super) fn verifies(public_jwk: &str, message: &[u8], signature: &[u8]) -> bool {
    let (_, key) = verification_key(public_jwk);
    let signature = URL_SAFE_NO_PAD.encode(signature);
    let verified = jsonwebtoken::crypto::verify(&signature, message, &key, Algorithm::RS256);
    verified.expect("a key for RS256")
}

fn verification_key(public_jwk: &str) -> (Jwk, DecodingKey) {
    // Fails only if another test has installed it.
    let _ = aws_lc::DEFAULT_PROVIDER.install_default();
    let jwk: Jwk = serde_json::from_str(public_jwk).expect("a JWK");
    let key = DecodingKey::from_jwk(&jwk).expect("a key");
    (jwk, key)
}

fn with_vault(answer: Answer) -> Credential {
    let signing = Signing::Blocking(Arc::new(Vault(answer)));
    Credential::with_signer("customer-7", signing, KEY.public_jwk(), None)
        .expect("a credential")
        .value
}

#[test]
fn k6_a_kid_that_is_not_the_thumbprint_is_refused_with_the_computed_one() {
    let error = Credential::with_key("s", KEY.clone(), Some("my-key")).expect_err("refused");
    assert_eq!(error.kind(), Kind::CredentialError);
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
        assert_eq!(error.kind(), Kind::ConfigError, "{given:?}");
    }
}

#[test]
fn a_signature_is_accepted_only_if_it_matches_the_public_key() {
    let signature = signed(&with_vault(|input| KEY.sign(input))).expect("a signature");
    assert!(verifies(&KEY.public_jwk().to_json(), b"x", &signature));

    let wrong: [Answer; 4] = [
        |_| Ok(Vec::new()),
        |_| Ok(vec![0; 256]),
        |_| KEY.sign(b"something else"),
        |input| PrivateKey::generate(2048)?.sign(input),
    ];
    for answer in wrong {
        let error = signed(&with_vault(answer)).expect_err("refused");
        assert_eq!(error.kind(), Kind::CredentialError);
        assert!(error.to_string().contains("PKCS1-v1_5"), "{error}");
        assert!(error.to_string().contains("A signature by this key has 256 bytes"), "{error}");
    }
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "the test has its own runtime")]
async fn r13_debug_texts_name_what_they_hide() {
    let harness = Harness::new(vec![good("very-secret-token")]).await;
    let token = harness.token().await.expect("a token");
    let (authorization, credential) = (token.authorization(), credential());
    let checked = Checked { value: KEY.clone(), warnings: Vec::new() };
    let texts = format!("{token:?} {authorization:?} {checked:?} {credential:?}");
    assert!(!texts.contains("very-secret-token"), "{texts}");
    let thumbprint = KEY.thumbprint();
    for shown in [
        format!("PrivateKey(RSA 2048 bits, thumbprint={thumbprint})"),
        format!("Credential {{ subject: \"customer-7\", kid: \"{thumbprint}\", .. }}"),
    ] {
        assert!(texts.contains(&shown), "{texts}");
    }
    let pem = KEY.to_pkcs8_pem(None).expect("PEM");
    let is_shown = pem.lines().any(|line| !line.starts_with("-----") && texts.contains(line));
    assert!(!is_shown, "{texts}");
}

#[test]
fn r21_sandboxes_share_one_key_and_generate_makes_another() {
    let key = || PrivateKey::of_sandboxes().expect("a key").public_jwk().thumbprint().to_owned();
    assert_eq!(key(), key());
    assert_ne!(PrivateKey::generate(2048).expect("a key").public_jwk().thumbprint(), key());
}
