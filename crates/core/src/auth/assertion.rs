//! The client assertion (§2.1): a signed JWT with a new `jti`, used once.
//!
//! Its header is serialised from a struct with `alg`, `kid` and an optional `typ`, so `jku`, `x5u`
//! and `x5c` cannot be added. An [`Assertion`] cannot be copied or printed, and the request
//! that sends it consumes it: each attempt creates its own.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use serde::Serialize;
use uuid::Uuid;
use zeroize::Zeroizing;

use super::Credential;
use crate::{Error, Kind, Result};

/// `exp` is at most five minutes after `iat` (§8).
pub(super) const LONGEST_LIFETIME: Duration = Duration::from_secs(300);
/// `nbf` allows "only necessary clock tolerance" (§2.1). This is the maximum.
pub(super) const LARGEST_TOLERANCE: Duration = Duration::from_secs(60);

/// The settings of all assertions of a credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssertionSettings {
    /// `aud`, which the service compares as text; `None` is `BaseUrl::token_url`.
    pub audience: Option<String>,
    /// From `iat` to `exp`: 1 to 300 whole seconds; 120.
    pub lifetime: Duration,
    /// From `nbf` to `iat`: 0 to 60 whole seconds; 0.
    pub tolerance: Duration,
    /// Whether the header also contains `"typ": "JWT"`. The interface names only `alg` and `kid`.
    pub typ: bool,
}

impl Default for AssertionSettings {
    fn default() -> Self {
        let lifetime = Duration::from_secs(120);
        Self { audience: None, lifetime, tolerance: Duration::ZERO, typ: false }
    }
}

impl AssertionSettings {
    /// Checks the limits of the interface.
    pub(super) fn check(&self) -> Result<()> {
        let is_wrong = |audience: &&str| {
            audience.is_empty()
                || audience.trim() != *audience
                || audience.chars().any(char::is_control)
        };
        if let Some(audience) = self.audience.as_deref().filter(is_wrong) {
            return Err(Error::new(
                Kind::ConfigError,
                format!("audience={audience:?} is empty or contains unexpected white space."),
            )
            .with_hint(
                "The service compares it with the address of its token endpoint as text. The \
                 default is {base_url}/api/customer/oauth/token.",
            ));
        }
        check_seconds("lifetime", self.lifetime, Duration::from_secs(1), LONGEST_LIFETIME)?;
        check_seconds("tolerance", self.tolerance, Duration::ZERO, LARGEST_TOLERANCE)
    }
}

fn check_seconds(name: &str, given: Duration, least: Duration, most: Duration) -> Result<()> {
    if given >= least && given <= most && given.subsec_nanos() == 0 {
        return Ok(());
    }
    Err(Error::new(
        Kind::ConfigError,
        format!(
            "The assertion's {name} is {given:?}. It must be whole seconds from {} to {}.",
            least.as_secs(),
            most.as_secs(),
        ),
    )
    .with_hint(
        "The service refuses an assertion that is valid for more than five minutes. The defaults \
         (lifetime 120 s, tolerance 0 s) suit every clock that a time server sets.",
    ))
}

/// A signed assertion for one request. It is not `Clone`, and
/// [`into_form_value`](Self::into_form_value) consumes it.
pub(super) struct Assertion(Zeroizing<String>);

impl Assertion {
    /// The compact JWT, for the form field `client_assertion` only.
    pub(crate) fn into_form_value(self) -> Zeroizing<String> {
        self.0
    }
}

#[derive(Serialize)]
struct Header<'a> {
    alg: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    typ: Option<&'static str>,
    kid: &'a str,
}

#[derive(Serialize)]
struct Claims<'a> {
    iss: &'a str,
    sub: &'a str,
    aud: &'a str,
    iat: i64,
    nbf: i64,
    exp: i64,
    jti: &'a str,
}

/// Creates and signs an assertion issued at `now`, the estimated service time, for the token
/// endpoint.
///
/// Every call uses a new random `jti` (122 random bits, 32 characters), because the service accepts
/// each value only once, even if the request fails.
pub(super) async fn make(
    credential: &Credential,
    token_url: &str,
    now: Timestamp,
) -> Result<Assertion> {
    let settings = &credential.assertion;
    let jti = Uuid::new_v4().simple().to_string();
    let iat = now.as_second();
    let header = Header { alg: "RS256", typ: settings.typ.then_some("JWT"), kid: credential.kid() };
    let claims = Claims {
        iss: credential.subject(),
        sub: credential.subject(),
        aud: credential.audience(token_url),
        iat,
        nbf: iat - whole_seconds(settings.tolerance),
        exp: iat + whole_seconds(settings.lifetime),
        jti: &jti,
    };
    let text = Zeroizing::new(format!("{}.{}", part(&header)?, part(&claims)?));
    let signature = URL_SAFE_NO_PAD.encode(credential.sign(text.as_bytes()).await?);
    Ok(Assertion(Zeroizing::new(format!("{}.{signature}", text.as_str()))))
}

/// Encodes a part of a compact JWT: JSON in base64url without padding.
fn part(value: &impl Serialize) -> Result<String> {
    let json = serde_json::to_vec(value).map_err(|_| {
        Error::new(Kind::InternalError, "An assertion could not be written as JSON.")
    })?;
    Ok(URL_SAFE_NO_PAD.encode(json))
}

/// Cannot overflow: [`AssertionSettings::check`] limits the durations to 300 s.
fn whole_seconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_secs()).unwrap_or(0)
}

#[cfg(test)]
mod tests;
