//! [`Issuer`]: where a [`TokenSource`](super::TokenSource) gets its tokens: from the service, by an
//! exchange, or from another process that holds the key.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use reqwest::header::HeaderValue;

use super::ScopeSet;
use super::grant::Grant;
use super::retry_after_gate::RetryAfterGate;
use crate::clock::Clock;
use crate::error::{Error, Kind, Result};
use crate::http::RetryQuota;

/// Issues tokens, one for each call.
pub(crate) trait Issuer: Sync {
    /// Whether the current call can get a token.
    ///
    /// # Errors
    /// Why not.
    fn check(&self) -> Result<()>;

    /// A new token.
    ///
    /// # Errors
    /// Those of the exchange.
    fn issue(&self, wish: &TokenWish<'_>) -> impl Future<Output = Result<Issued>> + Send;
}

/// What a token is wanted for, and how long it may be tried.
pub(crate) struct TokenWish<'a> {
    /// Its scopes.
    pub scopes: &'a ScopeSet,
    /// The digest of a token that the service has refused.
    pub refused: Option<String>,
    pub(super) quota: &'a RetryQuota,
    pub(super) gate: &'a RetryAfterGate,
    /// The number of attempts.
    pub tries: Tries,
}

/// The number of attempts to get a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tries {
    /// All attempts of the policy: no caller can continue without a token.
    All,
    /// One attempt: the old token is still valid.
    One,
    /// One attempt that waits for no pause and is not repeated by a corrected clock either: a diagnosis
    /// looks at what one request brings.
    Only,
}

/// A grant, and when it was requested, which is not later than the start of the token's lifetime.
pub(crate) struct Issued {
    pub(super) grant: Grant,
    pub(super) asked: Duration,
    pub(super) asked_wall: Timestamp,
}

impl Issued {
    /// A token that was requested so long ago, by another process, and has so much of its lifetime left.
    ///
    /// # Errors
    /// `ProtocolError` for a token that is not valid in a header.
    pub(crate) fn elsewhere(
        token: &str,
        age: Duration,
        left: Duration,
        clock: &Clock,
    ) -> Result<Self> {
        let mut authorization = HeaderValue::from_str(&format!("Bearer {token}"))
            .map_err(|_| Error::new(Kind::ProtocolError, "the token is not valid in a header"))?;
        authorization.set_sensitive(true);
        // This process may be younger than the token.
        let age = age.min(clock.monotonic());
        let ago = SignedDuration::try_from(age).unwrap_or(SignedDuration::MAX);
        Ok(Self {
            grant: Grant { authorization, lifetime: age.saturating_add(left), scopes: None },
            asked: clock.monotonic().saturating_sub(age),
            asked_wall: clock.wall().checked_sub(ago).unwrap_or(Timestamp::MIN),
        })
    }
}
