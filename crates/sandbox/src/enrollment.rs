//! Enrolled integrations: a public key, its thumbprint, the allowed scopes, and whether the
//! administrator has approved the integration (§1, §2.1).
//!
//! jsonwebtoken parses the key, computes its thumbprint and verifies signatures with it. The
//! client's own code for keys is not used, so that its errors are detected.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::crypto::aws_lc;
use jsonwebtoken::jwk::{AlgorithmParameters, Jwk, ThumbprintHash};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde_json::{Map, Value};

use super::error::SandboxError;

/// The scopes that the document names (§5.5).
pub(super) const DISCOVERY_SCOPE: &str = "customer.discovery.read";
pub(super) const DATA_SCOPE: &str = "customer.data.read";

const SMALLEST_MODULUS_BITS: usize = 2_048;

/// The public key of an integration.
#[derive(Debug, Clone)]
pub(super) struct EnrolledKey {
    key: DecodingKey,
    thumbprint: String,
}

impl EnrolledKey {
    /// Parses a public RSA JWK. A private key is refused: it must never leave its owner.
    pub(super) fn parse(json: &str) -> Result<Self, SandboxError> {
        // Another crate can enable a second crypto backend of jsonwebtoken, which then panics at its
        // first use unless one is installed (K15). The call fails only if one is installed.
        let _ = aws_lc::DEFAULT_PROVIDER.install_default();
        let members: Map<String, Value> = serde_json::from_str(json)
            .map_err(|_| SandboxError::new("the public JWK is not a JSON object"))?;
        check_public_rsa(&members)?;
        let mut jwk: Jwk = serde_json::from_value(members.into()).map_err(unreadable)?;
        let AlgorithmParameters::RSA(numbers) = &mut jwk.algorithm else {
            return Err(SandboxError::new("the JWK's members \"n\" and \"e\" must be text"));
        };
        let modulus = canonical("n", &mut numbers.n)?;
        canonical("e", &mut numbers.e)?;
        let bits = modulus.len() * 8 - modulus[0].leading_zeros() as usize;
        if bits < SMALLEST_MODULUS_BITS {
            return Err(SandboxError::new(format!(
                "the key has {bits} bits; at least {SMALLEST_MODULUS_BITS} are required"
            )));
        }
        let thumbprint = jwk.thumbprint(ThumbprintHash::SHA256).map_err(unreadable)?;
        Ok(Self { key: DecodingKey::from_jwk(&jwk).map_err(unreadable)?, thumbprint })
    }

    /// The thumbprint by RFC 7638, with SHA-256.
    pub(super) fn thumbprint(&self) -> &str {
        &self.thumbprint
    }

    /// Whether the signature is the message's RS256 signature (RSASSA-PKCS1-v1_5 with SHA-256).
    /// `Err` if it is not base64url.
    pub(super) fn verifies(&self, message: &[u8], signature: &str) -> Result<bool, String> {
        jsonwebtoken::crypto::verify(signature, message, &self.key, Algorithm::RS256)
            .map_err(|error| format!("the signature cannot be checked: {error}"))
    }
}

fn unreadable(error: impl std::fmt::Display) -> SandboxError {
    SandboxError::new(format!("the public JWK cannot be read: {error}"))
}

fn check_public_rsa(members: &Map<String, Value>) -> Result<(), SandboxError> {
    let private = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"];
    if let Some(name) = private.into_iter().find(|name| members.contains_key(*name)) {
        return Err(SandboxError::new(format!(
            "this JWK has the private member {name:?}: enroll the public one (public_jwk)"
        )));
    }
    if members.get("kty").and_then(Value::as_str) != Some("RSA") {
        return Err(SandboxError::new("the JWK's kty is not \"RSA\": RS256 needs an RSA key"));
    }
    Ok(())
}

/// Removes padding and leading zero octets from a base64url number: a thumbprint is computed from
/// that form. Returns its octets.
fn canonical(name: &str, text: &mut String) -> Result<Vec<u8>, SandboxError> {
    let bad = || SandboxError::new(format!("the JWK's member {name:?} is not a base64url number"));
    let octets = URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).map_err(|_| bad())?;
    let zeros = octets.iter().position(|octet| *octet != 0).ok_or_else(bad)?;
    let octets = octets[zeros..].to_vec();
    *text = URL_SAFE_NO_PAD.encode(&octets);
    Ok(octets)
}

#[derive(Debug, Clone)]
pub(super) struct Integration {
    pub(super) key: EnrolledKey,
    pub(super) scopes: Vec<String>,
    pub(super) approved: bool,
}

#[derive(Debug)]
pub(super) struct Enrollments {
    by_subject: BTreeMap<String, Integration>,
    enrolled: u64,
    /// A part of each subject that no other sandbox has: sandboxes may enroll the same key, and one may
    /// get the port of another that has ended.
    tag: String,
}

impl Default for Enrollments {
    fn default() -> Self {
        let mut tag = uuid::Uuid::new_v4().simple().to_string();
        tag.truncate(12);
        Self { by_subject: BTreeMap::new(), enrolled: 0, tag }
    }
}

impl Enrollments {
    /// Enrolls a key; returns the subject of the new integration.
    pub(super) fn add(
        &mut self,
        jwk: &str,
        scopes: &[&str],
        approved: bool,
    ) -> Result<String, SandboxError> {
        let key = EnrolledKey::parse(jwk)?;
        if scopes.is_empty() || scopes.iter().any(|scope| !is_scope(scope)) {
            return Err(SandboxError::new(
                "scopes must be one or more names without spaces or quotes",
            ));
        }
        self.enrolled += 1;
        let subject = format!("integration-{}-{}", self.enrolled, self.tag);
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

/// Whether the text is a scope-token of RFC 6749.
fn is_scope(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| matches!(b, 0x21 | 0x23..=0x5b | 0x5d..=0x7e))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The key of RFC 7638, section 3.1.
    const MODULUS: &str = "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw";

    #[test]
    fn the_thumbprint_is_that_of_rfc_7638() {
        for (padding, zeros) in [("", ""), ("=", "AAAA")] {
            let key = format!(
                r#"{{"kty":"RSA","n":"{zeros}{MODULUS}{padding}","e":"{zeros}AQAB{padding}"}}"#
            );
            let key = EnrolledKey::parse(&key).expect("a key");
            assert_eq!(key.thumbprint(), "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs");
        }
    }

    #[test]
    fn a_private_key_or_one_of_another_kind_is_not_enrolled() {
        let private = format!(r#"{{"kty":"RSA","n":"{MODULUS}","e":"AQAB","d":"AQAB"}}"#);
        assert!(EnrolledKey::parse(&private).is_err());
        assert!(EnrolledKey::parse(r#"{"kty":"EC","x":"AQ","y":"AQ"}"#).is_err());
        assert!(EnrolledKey::parse(r#"{"kty":"RSA","n":"AQAB","e":"AQAB"}"#).is_err());
        assert!(EnrolledKey::parse(r#"{"kty":"RSA","n":65537,"e":"AQAB"}"#).is_err());
    }
}
