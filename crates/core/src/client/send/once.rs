//! A client that looks at what is wrong: each request is sent once, and only where it is asked for.

use super::Client;
use crate::agent::AgentIssuer;
use crate::auth::{Authentication, Exchange, OwnAssertion, TokenFacts};
use crate::error::{Error, Result};
use crate::http::path_probe::{self, Path};
use crate::http::{Deadline, FileLedger};

impl Client {
    /// A client with the same settings, ledger and tokens, and connections of its own, that sends each
    /// request once.
    ///
    /// # Errors
    /// None: the settings were valid.
    pub fn sending_once(&self) -> Result<Self> {
        let mut settings = self.settings().clone();
        settings.authentication = self.identity().authentication.clone();
        settings.send_once();
        Self::new(settings)
    }

    /// An assertion as the next token request would have it, which is not sent; `None` for a client
    /// certificate.
    ///
    /// # Errors
    /// Those of the signer.
    pub async fn own_assertion(&self) -> Result<Option<OwnAssertion>> {
        let identity = self.identity();
        let Authentication::Assertion(credential) = &identity.authentication else {
            return Ok(None);
        };
        let now = self.0.time.now();
        OwnAssertion::make(credential, &self.0.token_url, now).await.map(Some)
    }

    /// `aud` of the credential's assertions, if it was stated.
    #[must_use]
    pub fn audience(&self) -> Option<String> {
        match &self.identity().authentication {
            Authentication::Assertion(credential) => credential.assertion().audience.clone(),
            Authentication::MutualTls(_) | Authentication::Leased(_) => None,
        }
    }

    /// What is known of the cached token, or of a new one by one token request; `None` if the certificate
    /// alone authorises.
    ///
    /// # Errors
    /// Those of the exchange and of the client certificate.
    pub async fn token_once(&self) -> Result<Option<TokenFacts>> {
        let inner = &*self.0;
        let identity = self.renewed_identity().await?;
        if let Some((tokens, link)) = identity.tokens.as_ref().zip(inner.settings.agent.as_ref()) {
            let issuer = AgentIssuer { link, must_remain: None, deadline: Deadline::NEVER };
            return tokens.once(&issuer).await.map(Some);
        }
        let proof = identity.proof(&inner.token_url);
        let Some((tokens, proof)) = identity.tokens.as_ref().zip(proof) else { return Ok(None) };
        let exchange = Exchange {
            transport: &inner.transport,
            time: &inner.time,
            proof,
            policy: &inner.settings.token_retry,
            deadline: Deadline::NEVER,
            ledger: &*inner.ledger,
        };
        tokens.once(&exchange).await.map(Some)
    }

    /// The way to the service as it is set. Opens nothing.
    ///
    /// # Errors
    /// `ConfigError` for a proxy that is not supported.
    pub fn planned_path(&self) -> Result<Path> {
        path_probe::planned(&self.0.transport)
    }

    /// Goes the way to the service, and sends no request on it.
    pub async fn walk_path(&self) -> (Path, Option<Error>) {
        // A certificate that cannot be used is no part of the way.
        let access = self.renewed_identity().await.ok().map(|identity| identity.access(None));
        let certificate = access.as_ref().and_then(|access| access.certificate.as_ref());
        path_probe::walk(&self.0.transport, certificate).await
    }

    /// Opens, locks and reads the file of the ledger as a count does; whether it is there. `None` if
    /// requests are counted in memory.
    ///
    /// # Errors
    /// `StoreError`s of the file.
    pub fn look_at_ledger(&self) -> Result<Option<bool>> {
        let settings = self.settings();
        let Some(file) = &settings.ledger_file else { return Ok(None) };
        let ledger = FileLedger::unopened(file, settings.integration(), settings.terms());
        ledger.look().map(Some)
    }
}
