//! Clients for a diagnosis, which send each request once.

use super::Client;
use crate::auth::{AssertionSettings, Authentication, TokenFacts};
use crate::error::{Error, Result};
use crate::http::LocalLedger;
use crate::http::path_probe::{self, ServicePath};

impl Client {
    /// The same settings, ledger and tokens with its own connections.
    pub fn sending_once(&self) -> Result<Self> {
        let mut settings = self.settings().clone();
        settings.authentication = self.identity().authentication.clone();
        settings.send_once();
        Self::new(settings)
    }

    /// `None` if the client signs no assertions.
    pub fn assertion(&self) -> Option<AssertionSettings> {
        match &self.identity().authentication {
            Authentication::Assertion(credential) => Some(credential.assertion().clone()),
            Authentication::MutualTls(_) | Authentication::Leased(_) => None,
        }
    }

    /// `None` if only the certificate authorises. Does not request a token.
    pub async fn token_facts(&self) -> Result<Option<TokenFacts>> {
        let identity = self.renewed_identity().await?;
        Ok(identity.tokens.as_ref().map(|tokens| tokens.facts()))
    }

    /// The configured route to the service. Opens no connection.
    pub fn planned_path(&self) -> Result<ServicePath> {
        path_probe::planned(&self.0.transport)
    }

    /// Opens a connection along the route, and sends no request.
    pub async fn walk_path(&self) -> (ServicePath, Option<Error>) {
        // An unusable certificate is reported elsewhere.
        let access = self.renewed_identity().await.ok().map(|identity| identity.access(None));
        let certificate = access.as_ref().and_then(|access| access.certificate.as_ref());
        path_probe::walk(&self.0.transport, certificate).await
    }

    /// Opens, locks and reads the ledger file as a request does. Returns whether it exists; `None`
    /// if requests are counted in memory.
    pub fn look_at_ledger(&self) -> Result<Option<bool>> {
        let settings = self.settings();
        let Some(file) = &settings.ledger_file else { return Ok(None) };
        let ledger = LocalLedger::in_file(file, settings.integration(), settings.terms());
        ledger.look().map(Some)
    }
}
