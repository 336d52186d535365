//! [`Issuer`]: the source of the tokens of a [`TokenSource`](super::TokenSource): an exchange with
//! the service, or another process that holds the key.

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
    /// Returns an error if the current call cannot obtain a token.
    fn check(&self) -> Result<()>;

    /// Returns a new token.
    fn issue(&self, wish: &TokenWish<'_>) -> impl Future<Output = Result<Issued>> + Send;
}

/// The parameters of a token request.
pub(crate) struct TokenWish<'a> {
    pub scopes: &'a ScopeSet,
    /// The digest of a token that the service has refused.
    pub refused: Option<String>,
    pub(super) quota: &'a RetryQuota,
    pub(super) gate: &'a RetryAfterGate,
    pub tries: Tries,
}

/// The number of attempts to get a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tries {
    /// All attempts of the policy. The caller cannot continue without a token.
    All,
    /// One attempt. The old token is still valid.
    One,
    /// One attempt that waits for no pause and is not repeated with a corrected clock. A diagnosis
    /// needs the outcome of a single request.
    Only,
}

/// A grant, and the time of its request, which is not later than the start of the token's lifetime.
pub(crate) struct Issued {
    pub(super) grant: Grant,
    pub(super) asked: Duration,
    pub(super) asked_wall: Timestamp,
}

impl Issued {
    /// A token from another process, with its age and its remaining lifetime.
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
