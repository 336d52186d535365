//! A diagnosis sends at most one token request, and none if a token is cached.

use serde::Serialize;

use super::{Issuer, TokenSource, Tries};
use crate::auth::access_token::{AccessToken, CachedToken};
use crate::error::Result;

/// The cached token, without its text.
#[derive(Debug, Default, Serialize)]
pub struct TokenFacts {
    /// Whether there is a usable token. If not, the other fields are empty.
    pub is_cached: bool,
    /// The granted scopes; `None` if the service did not name them.
    pub scopes: Option<Vec<String>>,
    /// The lifetime from issuance, in seconds.
    pub lifetime: u64,
    /// The remaining lifetime, in seconds.
    pub left: u64,
}

impl TokenSource {
    /// Describes the cached token without requesting one.
    pub(crate) fn facts(&self) -> TokenFacts {
        let Some(cached) = self.usable() else { return TokenFacts::default() };
        let scopes = cached.scopes.as_ref();
        TokenFacts {
            is_cached: true,
            scopes: scopes.map(|scopes| scopes.iter().map(str::to_owned).collect()),
            lifetime: cached.access.lifetime().as_secs(),
            left: cached.access.expires_in().as_secs(),
        }
    }

    /// Returns the cached token, or a new one from exactly one token request. The request waits for
    /// no pause, and is not repeated with a corrected clock. Its failure is not remembered, because
    /// another caller would correct for the clocks.
    pub(crate) async fn once(&self, issuer: &impl Issuer) -> Result<AccessToken> {
        let flight = self.flight();
        let _flight = flight.lock().await;
        if let Some(cached) = self.usable() {
            return Ok(cached.access);
        }
        issuer.check()?;
        let new = issuer.issue(self, Tries::Only).await?;
        Ok(self.keep(new))
    }

    /// The cached token, unless it is about to expire.
    pub(super) fn usable(&self) -> Option<CachedToken> {
        let state = self.state.lock();
        state.token.clone().filter(|cached| cached.access.expires_in() > cached.renew_first_at())
    }
}
