//! One exchange for a diagnosis: at most one token request, and a token that was there costs none.

use serde::Serialize;

use super::TokenSource;
use crate::auth::access_token::{AccessToken, CachedToken};
use crate::auth::issuer::{Issuer, Tries};
use crate::error::Result;

/// What is known of a token, without the token.
#[derive(Debug, Serialize)]
pub struct TokenFacts {
    /// Whether it was there already, so that nothing was sent.
    pub was_cached: bool,
    /// The granted scopes; `None` if the service did not name them.
    pub scopes: Option<Vec<String>>,
    /// Its lifetime from issuance, in seconds.
    pub lifetime: u64,
    /// What is left of it.
    pub left: u64,
}

impl TokenSource {
    /// The cached token, while it is good. Requests none.
    #[must_use]
    pub(crate) fn cached(&self) -> Option<AccessToken> {
        self.usable().map(|cached| cached.access)
    }

    /// The cached token, or a new one by exactly one token request, whose assertion has this machine's
    /// time: no pause is waited for, and nothing is repeated. A failure is not remembered, because another
    /// caller would correct for the clocks.
    ///
    /// # Errors
    /// Those of the exchange.
    pub(crate) async fn once(&self, issuer: &impl Issuer) -> Result<TokenFacts> {
        let flight = self.flight();
        let _flight = flight.lock().await;
        if let Some(cached) = self.usable() {
            return Ok(facts(&cached, true));
        }
        issuer.check()?;
        let new = issuer.issue(&self.wish(Tries::Only)).await?;
        let cached = CachedToken::new(new, &self.clock);
        let facts = facts(&cached, false);
        self.keep(cached);
        Ok(facts)
    }

    fn usable(&self) -> Option<CachedToken> {
        let state = self.state.lock();
        state.token.clone().filter(|cached| cached.access.left() > cached.renew_first_at())
    }
}

fn facts(cached: &CachedToken, was_cached: bool) -> TokenFacts {
    let scopes = cached.scopes.as_ref();
    TokenFacts {
        was_cached,
        scopes: scopes.map(|scopes| scopes.iter().map(str::to_owned).collect()),
        lifetime: cached.access.lifetime().as_secs(),
        left: cached.access.left().as_secs(),
    }
}
