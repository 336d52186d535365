//! The credential of a client with its token cache, and the authorisation of one request.

use std::sync::Arc;

use jiff::Timestamp;

use super::settings::ClientSettings;
use crate::auth::{AccessToken, Authentication, Proof, TokenKey, TokenSource};
use crate::error::{Error, Kind, Result};
use crate::http::{BaseUrl, ClientCertificate};

pub(super) struct Identity {
    pub(super) authentication: Authentication,
    /// `None` if only a client certificate authorises requests.
    pub(super) tokens: Option<Arc<TokenSource>>,
    /// The certificate of the connections, once it was read.
    certificate: Option<Arc<ClientCertificate>>,
}

impl Identity {
    pub(super) fn new(authentication: Authentication, settings: &ClientSettings) -> Self {
        let tokens = match &authentication {
            Authentication::Assertion(credential) => {
                let mut key = token_key(settings, credential.subject(), credential.kid());
                credential.audience(&key.token_url).clone_into(&mut key.audience);
                Some(TokenSource::shared(key, &settings.clock))
            }
            Authentication::MutualTls(_) => None,
            Authentication::Leased(subject) => {
                let agent = settings.agent.as_ref().map(|agent| agent.place().to_string());
                let key = token_key(settings, subject, &agent.unwrap_or_default());
                Some(TokenSource::shared(key, &settings.clock))
            }
        };
        Self { authentication, tokens, certificate: None }
    }

    /// The same identity with the current certificate of its files; `None` if it has not changed.
    /// Tokens bound to another certificate are not used.
    pub(super) async fn renewed(
        &self,
        settings: &ClientSettings,
        now: Timestamp,
    ) -> Result<Option<Self>> {
        let Authentication::MutualTls(mutual_tls) = &self.authentication else { return Ok(None) };
        let certificate = mutual_tls.current(now).await?;
        if self.certificate.as_ref().is_some_and(|known| known.is_same(&certificate)) {
            return Ok(None);
        }
        let tokens = mutual_tls.client_id().map(|client_id| {
            let key = token_key(settings, mutual_tls.subject(), certificate.thumbprint());
            let key = TokenKey { client_id: Some(client_id.to_owned()), ..key };
            TokenSource::shared(key, &settings.clock)
        });
        let authentication = self.authentication.clone();
        Ok(Some(Self { authentication, tokens, certificate: Some(certificate) }))
    }

    /// The proof for token requests; `None` if it sends none.
    pub(super) fn proof<'a>(&'a self, token_url: &'a str) -> Option<Proof<'a>> {
        match &self.authentication {
            Authentication::Assertion(credential) => {
                Some(Proof::Assertion { credential, token_url })
            }
            Authentication::MutualTls(mutual_tls) => {
                let (client_id, certificate) =
                    mutual_tls.client_id().zip(self.certificate.as_ref())?;
                Some(Proof::Certificate { client_id, certificate })
            }
            Authentication::Leased(_) => None,
        }
    }

    pub(super) fn access(&self, token: Option<AccessToken>) -> Access {
        Access { token, certificate: self.certificate.clone() }
    }

    pub(super) fn invalidate(&self, access: &Access) {
        if let (Some(tokens), Some(token)) = (&self.tokens, &access.token) {
            tokens.invalidate(token);
        }
    }
}

fn token_key(settings: &ClientSettings, subject: &str, kid: &str) -> TokenKey {
    let token_url = settings.base_url.token_url();
    TokenKey {
        audience: token_url.clone(),
        token_url,
        subject: subject.to_owned(),
        kid: kid.to_owned(),
        client_id: None,
        scopes: settings.scopes.clone(),
    }
}

/// The authorisation of one request: a token, the certificate of its connection, or both.
pub(super) struct Access {
    pub(super) token: Option<AccessToken>,
    pub(super) certificate: Option<Arc<ClientCertificate>>,
}

impl Access {
    pub(super) fn secret(&self) -> Option<&str> {
        self.token.as_ref().map(AccessToken::secret)
    }
}

/// Rejects mutual TLS over plain HTTP, which presents no certificate.
pub(super) fn check(base_url: &BaseUrl, authentication: &Authentication) -> Result<()> {
    match authentication {
        Authentication::MutualTls(_) if base_url.is_plain() => {
            let address = base_url.as_str();
            let message =
                format!("Mutual TLS needs an https:// address, but base_url is {address}.");
            Err(Error::new(Kind::ConfigError, message)
                .with_hint("Plain HTTP presents no certificate and encrypts nothing."))
        }
        _ => Ok(()),
    }
}
