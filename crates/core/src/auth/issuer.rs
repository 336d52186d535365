//! [`Issuer`]: the source of the tokens of a [`TokenSource`](super::TokenSource): an exchange with
//! the service, or another process that holds the key.

use super::TokenSource;
use super::access_token::CachedToken;
use crate::error::Result;

/// Issues tokens, one for each call.
pub(crate) trait Issuer: Sync {
    /// Returns an error if the current call cannot obtain a token.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// Returns a new token for this source.
    fn issue(
        &self,
        source: &TokenSource,
        tries: Tries,
    ) -> impl Future<Output = Result<CachedToken>> + Send;
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
