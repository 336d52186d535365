//! Verifies client assertions strictly by §2.1. The reply is only `invalid_client`; the reason is in
//! the statistics, for the author of a test.
//!
//! jsonwebtoken verifies the signature. The claims are verified here, because jsonwebtoken's own
//! checks read the machine's clock and accept a list as `aud` and duplicate members.

use std::collections::{BTreeMap, HashSet};
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::Value;

use super::enrollment::Enrollments;

/// The longest lifetime of an assertion, `exp` minus `iat`, in seconds.
const LONGEST_LIFETIME: i64 = 300;
/// How many seconds `nbf` may be before `iat`.
const LARGEST_TOLERANCE: i64 = 60;
const LONGEST_JTI: usize = 128;

/// None of them is verified.
pub(super) struct UnverifiedAssertion<'a> {
    signing_input: &'a str,
    signature: &'a str,
    header: Members,
    claims: Members,
}

pub(super) struct VerificationContext<'a> {
    pub(super) audience: &'a str,
    /// Unix seconds by the service's clock.
    pub(super) now: i64,
    pub(super) leeway: i64,
}

impl<'a> UnverifiedAssertion<'a> {
    /// Splits the compact form: two JSON objects in base64url, and a signature.
    pub(super) fn parse(compact: &'a str) -> Result<Self, &'static str> {
        let (signing_input, signature) = compact.rsplit_once('.').ok_or("not three parts")?;
        let (header, claims) = signing_input.split_once('.').ok_or("not three parts")?;
        Ok(Self { signing_input, signature, header: object(header)?, claims: object(claims)? })
    }

    pub(super) fn claimed_issuer(&self) -> &str {
        self.claims.text("iss").unwrap_or_default()
    }

    pub(super) fn jti(&self) -> Option<&str> {
        self.claims.text("jti")
    }

    /// Verifies everything except that the jti is new. Returns the subject, or the reason for the
    /// refusal.
    pub(super) fn verify(
        &self,
        enrollments: &Enrollments,
        context: &VerificationContext<'_>,
    ) -> Result<String, String> {
        self.check_header()?;
        let subject = self.claims.text("iss").ok_or("iss is not a string")?;
        let integration = enrollments.get(subject).ok_or("iss is no enrolled subject")?;
        if self.claims.text("sub") != Some(subject) {
            return Err("sub is not iss".to_owned());
        }
        if self.header.text("kid") != Some(integration.key.thumbprint()) {
            return Err("kid is not the thumbprint of the enrolled key".to_owned());
        }
        if !integration.key.verifies(self.signing_input.as_bytes(), self.signature)? {
            return Err("signature does not verify with the enrolled key".to_owned());
        }
        if self.claims.text("aud") != Some(context.audience) {
            return Err("aud is not the token endpoint's address as one string".to_owned());
        }
        self.check_times(context)?;
        let jti = self.jti().ok_or("jti is not a string")?;
        if jti.is_empty() || jti.chars().count() > LONGEST_JTI {
            return Err("jti is not 1 to 128 characters long".to_owned());
        }
        if !integration.approved {
            return Err("the integration is not approved".to_owned());
        }
        Ok(subject.to_owned())
    }

    /// The header has `alg` and `kid`. `typ` "JWT" is allowed; any other member (jku, x5u, x5c, crit,
    /// jwk, ...) is refused.
    fn check_header(&self) -> Result<(), String> {
        if let Some(name) =
            self.header.0.keys().find(|name| !matches!(name.as_str(), "alg" | "kid" | "typ"))
        {
            return Err(format!("header member {name:?}"));
        }
        if self.header.0.contains_key("typ") && self.header.text("typ") != Some("JWT") {
            return Err("typ is not \"JWT\"".to_owned());
        }
        if self.header.text("alg") != Some("RS256") {
            return Err("alg is not \"RS256\"".to_owned());
        }
        Ok(())
    }

    fn check_times(&self, context: &VerificationContext<'_>) -> Result<(), String> {
        let integer = |name: &str| {
            let value = self.claims.0.get(name).and_then(Value::as_i64);
            value.ok_or_else(|| format!("{name} is not a JSON integer"))
        };
        let (issued, not_before, expires) = (integer("iat")?, integer("nbf")?, integer("exp")?);
        let (now, leeway) = (context.now, context.leeway);
        let lifetime = expires.checked_sub(issued).unwrap_or_default();
        let checks = [
            ((1..=LONGEST_LIFETIME).contains(&lifetime), "exp is not 1 to 300 seconds after iat"),
            (issued <= now.saturating_add(leeway), "iat is in the future"),
            (not_before <= now.saturating_add(leeway), "nbf is in the future"),
            (not_before >= issued.saturating_sub(LARGEST_TOLERANCE), "nbf is too far before iat"),
            (not_before < expires, "nbf is not before exp"),
            (expires > now, "exp has passed"),
        ];
        match checks.into_iter().find(|(holds, _)| !holds) {
            Some((_, reason)) => {
                Err(format!("{reason} (iat {issued}, nbf {not_before}, exp {expires}, now {now})"))
            }
            None => Ok(()),
        }
    }
}

/// The jtis that were presented, with their issuers; failed requests count too.
#[derive(Debug, Default)]
pub(super) struct SpentJtis(HashSet<(String, String)>);

impl SpentJtis {
    /// Spends a jti. Returns whether it was new.
    pub(super) fn spend(&mut self, issuer: &str, jti: &str) -> bool {
        self.0.insert((issuer.to_owned(), jti.to_owned()))
    }
}

fn object(part: &str) -> Result<Members, &'static str> {
    let octets = URL_SAFE_NO_PAD.decode(part).map_err(|_| "a part is not base64url")?;
    serde_json::from_slice(&octets).map_err(|_| "a part is not a JSON object of distinct members")
}

/// A JSON object without duplicate members.
struct Members(BTreeMap<String, Value>);

impl Members {
    fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).and_then(Value::as_str)
    }
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct DistinctMembers;
        impl<'de> Visitor<'de> for DistinctMembers {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with distinct members")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Members, A::Error> {
                let mut members = BTreeMap::new();
                while let Some((name, value)) = access.next_entry::<String, Value>()? {
                    if members.insert(name, value).is_some() {
                        return Err(A::Error::custom("a duplicate member"));
                    }
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(DistinctMembers)
    }
}
