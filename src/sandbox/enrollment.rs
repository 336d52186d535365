//! Enrolled integrations: a public key, its thumbprint, the scopes allowed to it, and whether the
//! administrator has approved it (§1, §2.1).

use std::collections::BTreeMap;

use aws_lc_rs::digest;
use aws_lc_rs::signature::{RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

use super::error::SandboxError;

/// The scopes that the document names (§5.5).
pub(super) const DISCOVERY_SCOPE: &str = "customer.discovery.read";
pub(super) const DATA_SCOPE: &str = "customer.data.read";

const SMALLEST_MODULUS_BITS: usize = 2_048;

/// The public key that was reviewed during enrollment.
#[derive(Debug, Clone)]
pub(super) struct EnrolledKey {
    modulus: Vec<u8>,
    exponent: Vec<u8>,
    thumbprint: String,
}

impl EnrolledKey {
    /// Reads a public RSA JWK. A private one is refused: it must never leave its owner.
    pub(super) fn parse(jwk: &str) -> Result<Self, SandboxError> {
        let members: BTreeMap<String, Value> = serde_json::from_str(jwk)
            .map_err(|_| SandboxError::new("the public JWK is not a JSON object"))?;
        if let Some(name) = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"]
            .into_iter()
            .find(|name| members.contains_key(*name))
        {
            return Err(SandboxError::new(format!(
                "this JWK has the private member {name:?}: enroll the public one (public_jwk)"
            )));
        }
        if members.get("kty").and_then(Value::as_str) != Some("RSA") {
            return Err(SandboxError::new("the JWK's kty is not \"RSA\": RS256 needs an RSA key"));
        }
        let modulus = unsigned(&members, "n")?;
        let exponent = unsigned(&members, "e")?;
        let bits = modulus.len() * 8 - modulus[0].leading_zeros() as usize;
        if bits < SMALLEST_MODULUS_BITS {
            return Err(SandboxError::new(format!(
                "the key has {bits} bits; {SMALLEST_MODULUS_BITS} are the least"
            )));
        }
        let thumbprint = thumbprint(&modulus, &exponent);
        Ok(Self { modulus, exponent, thumbprint })
    }

    pub(super) fn thumbprint(&self) -> &str {
        &self.thumbprint
    }

    /// RSASSA-PKCS1-v1_5 with SHA-256.
    pub(super) fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        RsaPublicKeyComponents { n: &self.modulus, e: &self.exponent }
            .verify(&RSA_PKCS1_2048_8192_SHA256, message, signature)
            .is_ok()
    }
}

/// A base64url number without its leading zero octets; padding is tolerated.
fn unsigned(members: &BTreeMap<String, Value>, name: &str) -> Result<Vec<u8>, SandboxError> {
    let bad = || SandboxError::new(format!("the JWK's member {name:?} is not a base64url number"));
    let text = members.get(name).and_then(Value::as_str).ok_or_else(bad)?;
    let octets = URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).map_err(|_| bad())?;
    let start = octets.iter().position(|octet| *octet != 0).ok_or_else(bad)?;
    Ok(octets[start..].to_vec())
}

/// RFC 7638: SHA-256 over the three required members in alphabetical order.
fn thumbprint(modulus: &[u8], exponent: &[u8]) -> String {
    let (n, e) = (URL_SAFE_NO_PAD.encode(modulus), URL_SAFE_NO_PAD.encode(exponent));
    let canonical = format!(r#"{{"e":"{e}","kty":"RSA","n":"{n}"}}"#);
    URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, canonical.as_bytes()))
}

/// One customer-managed integration.
#[derive(Debug, Clone)]
pub(super) struct Integration {
    pub(super) key: EnrolledKey,
    pub(super) scopes: Vec<String>,
    pub(super) approved: bool,
}

/// All integrations by their subject.
#[derive(Debug, Default)]
pub(super) struct Enrollments {
    by_subject: BTreeMap<String, Integration>,
    enrolled: u64,
}

impl Enrollments {
    /// Takes a key in and returns the subject that identifies the integration from now on.
    pub(super) fn add(
        &mut self,
        jwk: &str,
        scopes: &[&str],
        approved: bool,
    ) -> Result<String, SandboxError> {
        let key = EnrolledKey::parse(jwk)?;
        if scopes.is_empty() || scopes.iter().any(|scope| !is_scope(scope)) {
            return Err(SandboxError::new("scopes: one or more names without spaces or quotes"));
        }
        self.enrolled += 1;
        let subject = format!("integration-{}-{}", self.enrolled, &key.thumbprint()[..8]);
        let scopes = scopes.iter().map(|scope| (*scope).to_owned()).collect();
        self.by_subject.insert(subject.clone(), Integration { key, scopes, approved });
        Ok(subject)
    }

    pub(super) fn get(&self, subject: &str) -> Option<&Integration> {
        self.by_subject.get(subject)
    }

    pub(super) fn change(
        &mut self,
        subject: &str,
        change: impl FnOnce(&mut Integration),
    ) -> Result<(), SandboxError> {
        self.by_subject
            .get_mut(subject)
            .map(change)
            .ok_or_else(|| SandboxError::new(format!("no integration has the subject {subject:?}")))
    }
}

/// The characters of RFC 6749's scope-token.
fn is_scope(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| matches!(b, 0x21 | 0x23..=0x5b | 0x5d..=0x7e))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The key of RFC 7638, section 3.1.
    const MODULUS: &str = "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw";

    #[test]
    fn the_thumbprint_is_the_published_one() {
        let key = EnrolledKey::parse(&format!(r#"{{"kty":"RSA","n":"{MODULUS}","e":"AQAB"}}"#));
        let thumbprint = key.expect("a key").thumbprint().to_owned();
        assert_eq!(thumbprint, "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs");
    }

    #[test]
    fn a_private_key_or_one_of_another_kind_is_not_enrolled() {
        let private = format!(r#"{{"kty":"RSA","n":"{MODULUS}","e":"AQAB","d":"AQAB"}}"#);
        assert!(EnrolledKey::parse(&private).is_err());
        assert!(EnrolledKey::parse(r#"{"kty":"EC","x":"AQ","y":"AQ"}"#).is_err());
        assert!(EnrolledKey::parse(r#"{"kty":"RSA","n":"AQAB","e":"AQAB"}"#).is_err());
    }
}
