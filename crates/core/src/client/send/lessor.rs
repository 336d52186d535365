//! Lends the key and the ledger of a [`Client`] through an agent.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::{Client, DATA_PATH, DISCOVERY, RequestParts, Spending};
use crate::agent::{Holder, Lessor};
use crate::auth::{AccessToken, Authentication, ScopeSet};
use crate::error::{Error, Kind, Result};
use crate::http::{Call, Deadline};
use crate::lock::Mutex;

impl Client {
    /// Lends the tokens and the ledger of this client.
    ///
    /// # Errors
    /// `ConfigError` if another process could not use the client's tokens.
    pub fn lessor(self) -> Result<Lessor> {
        self.check_lending()?;
        let base_url = self.base_url().as_str().to_owned();
        let holder = Holder { base_url, subject: self.subject() };
        let (scopes, clock) = (self.settings().scopes.clone(), self.time().clock().clone());
        let ledger = Arc::clone(&self.0.ledger);
        let others = Mutex::default();
        let lend = move |scopes, must_remain, refused: Option<String>| -> BoxFuture<'static, _> {
            let client = self.with_scopes(&mut others.lock(), &scopes);
            Box::pin(async move { client?.lend_token(must_remain, refused.as_deref()).await })
        };
        Ok(Lessor { holder, scopes, clock, ledger, lend: Box::new(lend) })
    }

    fn check_lending(&self) -> Result<()> {
        let why = match &self.settings().authentication {
            Authentication::Assertion(credential) if credential.check_signer().is_ok() => {
                return Ok(());
            }
            Authentication::Assertion(_) => {
                "its signer is an async function, which an agent cannot call"
            }
            Authentication::MutualTls(_) => "its tokens are bound to its client certificate",
            Authentication::Leased(_) => "it is itself a client of an agent",
        };
        Err(Error::new(Kind::ConfigError, format!("An agent cannot serve this client: {why}."))
            .with_hint("Use a client with a subject and a private key (siteline.Credential)."))
    }

    /// A token is only valid for its scopes, so each set of scopes has a client. All share one
    /// ledger.
    fn with_scopes(&self, others: &mut Vec<Self>, scopes: &ScopeSet) -> Result<Self> {
        let mut clients = std::iter::once(self).chain(&*others);
        if let Some(known) = clients.find(|client| client.settings().scopes == *scopes) {
            return Ok(known.clone());
        }
        let mut settings = self.settings().clone();
        settings.scopes = scopes.clone();
        let client = Self::new(settings)?;
        others.push(client.clone());
        Ok(client)
    }

    /// Returns a token without the digest `refused`, if a request is possible that leaves
    /// `must_remain` requests.
    async fn lend_token(
        &self,
        must_remain: Option<u64>,
        refused: Option<&str>,
    ) -> Result<AccessToken> {
        let identity = self.identity();
        if let Some((tokens, digest)) = identity.tokens.as_ref().zip(refused) {
            tokens.invalidate_digest(digest);
        }
        let spending = Spending::default();
        spending.hold_back(must_remain.unwrap_or_default(), 0);
        let data = RequestParts {
            path: DATA_PATH,
            query: None,
            spending: Some(&spending),
            is_retry: false,
        };
        let request = if must_remain.is_some() { data } else { DISCOVERY };
        let mut call = Call::begin(
            self.time().clock(),
            &self.settings().token_retry,
            &self.0.quota,
            Deadline::NEVER,
        );
        let access = self.ready(&identity, request, &mut call).await?;
        access.token.ok_or_else(|| Error::new(Kind::ConfigError, "The client has no tokens."))
    }
}
