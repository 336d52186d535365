//! Lends the key and the ledger of a [`Client`] through an agent.

use futures_util::future::BoxFuture;

use super::{Client, DATA_PATH, DISCOVERY, RequestParts, Spending};
use crate::agent::{Holder, Lessor};
use crate::auth::{AccessToken, Authentication, ScopeSet};
use crate::clock::Clock;
use crate::error::{Error, Kind, Result};
use crate::http::{Call, Deadline, Ledger};
use crate::lock::Mutex;

/// A token is only valid for its scopes, so each set of scopes has a client. All share one ledger.
pub struct ClientLessor {
    client: Client,
    others: Mutex<Vec<Client>>,
}

impl ClientLessor {
    /// Returns `ConfigError` if another process could not use the client's tokens.
    pub fn new(client: Client) -> Result<Self> {
        let why = match &client.settings().authentication {
            Authentication::Assertion(credential) if credential.check_signer().is_ok() => {
                return Ok(Self { client, others: Mutex::default() });
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

    fn client(&self, scopes: &ScopeSet) -> Result<Client> {
        if self.client.settings().scopes == *scopes {
            return Ok(self.client.clone());
        }
        let mut others = self.others.lock();
        if let Some(known) = others.iter().find(|client| client.settings().scopes == *scopes) {
            return Ok(known.clone());
        }
        let mut settings = self.client.settings().clone();
        settings.scopes = scopes.clone();
        let client = Client::new(settings)?;
        others.push(client.clone());
        Ok(client)
    }
}

impl Lessor for ClientLessor {
    fn holder(&self) -> Holder {
        let base_url = self.client.base_url().as_str().to_owned();
        Holder { base_url, subject: self.client.subject() }
    }

    fn scopes(&self) -> ScopeSet {
        self.client.settings().scopes.clone()
    }

    fn clock(&self) -> &Clock {
        self.client.time().clock()
    }

    fn ledger(&self) -> &dyn Ledger {
        &*self.client.0.ledger
    }

    fn token<'a>(
        &'a self,
        scopes: &'a ScopeSet,
        must_remain: Option<u64>,
        refused: Option<&'a str>,
    ) -> BoxFuture<'a, Result<AccessToken>> {
        Box::pin(async move { self.client(scopes)?.lend_token(must_remain, refused).await })
    }
}

impl Client {
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
