//! [`OwnAssertion`]: what the service would read in an assertion of ours, for a diagnosis. The assertion
//! is made as for a request, taken apart and overwritten here: it reaches no caller, who might send or show
//! it.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value};

use super::assertion;
use super::{Credential, PublicJwk};
use crate::{Error, Kind, Result};

/// The parts of an assertion that was made and not sent.
#[derive(Debug, Serialize)]
pub struct OwnAssertion {
    /// The header.
    pub header: Map<String, Value>,
    /// All claims but `jti`.
    pub claims: Map<String, Value>,
    /// The characters of `jti`; `None` if it has none.
    pub jti_length: Option<usize>,
    /// Whether the public key verifies the signature over the header and claims as they would be sent.
    pub is_verified: bool,
}

impl OwnAssertion {
    /// Makes one and takes it apart.
    ///
    /// # Errors
    /// As [`assertion::make`].
    pub(crate) async fn make(
        credential: &Credential,
        token_url: &str,
        now: Timestamp,
    ) -> Result<Self> {
        credential.check_signer()?;
        let assertion = assertion::make(credential, token_url, now).await?.into_form_value();
        Self::read(&assertion, credential.public_jwk()).ok_or_else(|| {
            Error::new(Kind::InternalError, "An assertion that was made cannot be read.")
        })
    }

    fn read(compact: &str, public_jwk: &PublicJwk) -> Option<Self> {
        let (signed, signature) = compact.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        let mut claims = members(claims)?;
        let jti = claims.remove("jti");
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        Some(Self {
            header: members(header)?,
            claims,
            jti_length: jti.as_ref().and_then(Value::as_str).map(|jti| jti.chars().count()),
            is_verified: public_jwk.verify(signed.as_bytes(), &signature),
        })
    }
}

fn members(part: &str) -> Option<Map<String, Value>> {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).ok()?).ok()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "each test runs on a runtime of its own")]

    use super::*;
    use crate::auth::test_harness::{credential, noon};

    const TOKEN_URL: &str = "https://customer.example.com/api/customer/oauth/token";

    #[tokio::test]
    async fn an_assertion_is_described_by_its_parts_as_they_would_be_sent() {
        let (credential, now) = (credential(), noon().wall());
        let own = OwnAssertion::make(&credential, TOKEN_URL, now).await.expect("made");
        assert!(own.is_verified);
        assert_eq!(own.header.keys().collect::<Vec<_>>(), ["alg", "kid"]);
        assert_eq!(own.header["kid"], credential.kid());
        assert_eq!(own.claims["aud"], TOKEN_URL);
        assert_eq!(own.claims["exp"].as_i64(), Some(now.as_second() + 120));
        assert_eq!(own.jti_length, Some(32));
        assert!(!own.claims.contains_key("jti"));
    }

    #[tokio::test]
    async fn a_changed_claim_is_not_verified() {
        let credential = credential();
        let made = assertion::make(&credential, TOKEN_URL, noon().wall()).await.expect("made");
        let text = made.into_form_value();
        let mut parts: Vec<&str> = text.split('.').collect();
        let other = URL_SAFE_NO_PAD.encode(r#"{"iss":"another"}"#);
        parts[1] = &other;
        let own = OwnAssertion::read(&parts.join("."), credential.public_jwk()).expect("read");
        assert!(!own.is_verified);
        assert_eq!(own.jti_length, None);
        assert!(OwnAssertion::read("no.assertion", credential.public_jwk()).is_none());
    }
}
