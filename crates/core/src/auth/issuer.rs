//! [`Issuer`]: the source of the tokens of a [`TokenSource`](super::TokenSource): an exchange with
//! the service, or another process that holds the key.

use super::ScopeSet;
use super::access_token::CachedToken;
use super::retry_after_gate::RetryAfterGate;
use crate::error::Result;
use crate::http::RetryQuota;

/// Issues tokens, one for each call.
pub(crate) trait Issuer: Sync {
    /// Returns an error if the current call cannot obtain a token.
    fn check(&self) -> Result<()>;

    /// Returns a new token.
    fn issue(&self, wish: &TokenWish<'_>) -> impl Future<Output = Result<CachedToken>> + Send;
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
