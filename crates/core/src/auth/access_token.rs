//! An access token (§2.2) and its lifetime. If the lifetime is shorter than the documented 600
//! seconds, the margins below are shortened too.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::{SignedDuration, Timestamp};
use reqwest::header::HeaderValue;

use super::grant::Grant;
use super::scope::ScopeSet;
use crate::clock::Clock;
use crate::error::{Error, Result};

/// Remaining lifetime at which a token is renewed while other callers still use it. It is reduced
/// by a random part of up to a half, so that processes that started together do not renew together.
const RENEW: Duration = Duration::from_secs(120);
/// Remaining lifetime at which callers wait for the renewal.
const RENEW_FIRST: Duration = Duration::from_secs(15);
/// Remaining lifetime at which a token is no longer used.
const UNUSABLE: Duration = Duration::from_secs(5);

static NEXT_GENERATION: AtomicU64 = AtomicU64::new(1);

/// A bearer token. Its `Debug` output omits the secret.
#[derive(Clone)]
pub(crate) struct AccessToken {
    authorization: HeaderValue,
    generation: u64,
    obtained: Duration,
    obtained_wall: Timestamp,
    lifetime: Duration,
    clock: Clock,
}

impl AccessToken {
    /// The value of the header `Authorization`, marked as sensitive.
    pub(crate) fn authorization(&self) -> HeaderValue {
        self.authorization.clone()
    }

    /// The token without `Bearer`, to redact it in texts that echo it.
    pub(crate) fn secret(&self) -> &str {
        self.authorization.to_str().unwrap_or_default().trim_start_matches("Bearer ")
    }

    /// The number of the exchange that returned it, unique in the process.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// The time since it was requested.
    pub(crate) fn age(&self) -> Duration {
        self.clock.monotonic().saturating_sub(self.obtained)
    }

    /// The time from its request to its end.
    pub(crate) fn lifetime(&self) -> Duration {
        self.lifetime
    }

    /// The remaining lifetime, the shorter by two clocks: the wall clock advances while the machine
    /// is suspended, and the monotonic clock cannot be set back.
    pub(crate) fn expires_in(&self) -> Duration {
        let wall = self.clock.wall().duration_since(self.obtained_wall);
        let wall = Duration::try_from(wall).unwrap_or_default();
        self.lifetime.saturating_sub(self.age().max(wall))
    }

    /// The SHA-256 of the token. It identifies the token without showing it.
    pub(crate) fn digest(&self) -> String {
        URL_SAFE_NO_PAD.encode(digest(&SHA256, self.secret().as_bytes()))
    }
}

impl fmt::Debug for AccessToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AccessToken(generation {})", self.generation)
    }
}

/// The header of a token, marked as sensitive.
pub(super) fn bearer(token: &str) -> Result<HeaderValue> {
    let mut header = HeaderValue::from_str(&format!("Bearer {token}"))
        .map_err(|_| Error::protocol_at("$.access_token", "the token is invalid in a header"))?;
    header.set_sensitive(true);
    Ok(header)
}

/// A token in the cache.
#[derive(Clone)]
pub(crate) struct CachedToken {
    pub(super) access: AccessToken,
    /// The granted scopes; `None` if the service did not name them.
    pub(super) scopes: Option<ScopeSet>,
    /// Remaining lifetime at which it is renewed.
    pub(super) renew_at: Duration,
    /// Whether a renewal failed and a warning was logged.
    pub(super) renewal_failed: bool,
}

impl CachedToken {
    /// A token that was requested this long ago, which is not later than it was issued.
    pub(super) fn new(grant: Grant, age: Duration, clock: &Clock) -> Self {
        let ago = SignedDuration::try_from(age).unwrap_or(SignedDuration::MAX);
        let access = AccessToken {
            authorization: grant.authorization,
            generation: NEXT_GENERATION.fetch_add(1, Ordering::Relaxed),
            obtained: clock.monotonic().saturating_sub(age),
            obtained_wall: clock.wall().checked_sub(ago).unwrap_or(Timestamp::MIN),
            lifetime: grant.lifetime,
            clock: clock.clone(),
        };
        Self {
            access,
            renew_at: RENEW.min(grant.lifetime / 2).mul_f64(1.0 - fastrand::f64() / 2.0),
            scopes: grant.scopes,
            renewal_failed: false,
        }
    }

    /// A token from another process, with its age and its remaining lifetime.
    pub(crate) fn elsewhere(
        token: &str,
        age: Duration,
        left: Duration,
        clock: &Clock,
    ) -> Result<Self> {
        // This process may be younger than the token.
        let age = age.min(clock.monotonic());
        let lifetime = age.saturating_add(left);
        let grant = Grant { authorization: bearer(token)?, lifetime, scopes: None };
        Ok(Self::new(grant, age, clock))
    }

    /// Remaining lifetime at which callers wait for its renewal.
    pub(super) fn renew_first_at(&self) -> Duration {
        RENEW_FIRST.min(self.access.lifetime / 8)
    }

    /// Remaining lifetime at which it is no longer used.
    pub(super) fn unusable_at(&self) -> Duration {
        UNUSABLE.min(self.access.lifetime / 20)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::test_harness::noon;

    #[test]
    fn t22_the_margins_of_a_short_token_are_parts_of_its_lifetime() {
        let clock = noon();
        let token = |seconds| {
            let lifetime = Duration::from_secs(seconds);
            let authorization = HeaderValue::from_static("Bearer tok");
            let grant = Grant { authorization, lifetime, scopes: None };
            CachedToken::new(grant, Duration::ZERO, &clock)
        };
        // The lifetime in seconds, then three margins in milliseconds: earliest renewal, first,
        // unusable.
        for (seconds, renew, first, unusable) in
            [(600, 120_000, 15_000, 5_000), (80, 40_000, 10_000, 4_000), (10, 5_000, 1_250, 500)]
        {
            let mut drawn = std::collections::BTreeSet::new();
            for _ in 0..50 {
                let token = token(seconds);
                let renew_at = token.renew_at.as_millis();
                drawn.insert(renew_at);
                assert!((renew / 2..=renew).contains(&renew_at), "{seconds} s: {renew_at} ms");
                assert_eq!(token.renew_first_at().as_millis(), first, "{seconds} s");
                assert_eq!(token.unusable_at().as_millis(), unusable, "{seconds} s");
            }
            assert!(drawn.len() > 25, "T31: processes renew their tokens at different times");
        }
    }
}
