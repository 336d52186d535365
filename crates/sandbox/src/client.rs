//! The client of a request with a certificate, as the TLS terminator and the service's register identify
//! it.

use super::certificates::{Client, Holder};
use super::enrollment::{DATA_SCOPE, DISCOVERY_SCOPE};
use super::fault::Endpoint;
use super::options::MutualMode;
use super::reply::Reply;
use super::service::{Caller, Request, Service};

impl Service {
    /// The client of a request's connection; `None` if the service requests no certificates. The terminator
    /// refuses an absent or untrusted certificate, and the service an unknown one.
    pub(super) fn client(&mut self, request: &Request) -> Result<Option<Client>, Reply> {
        let Some(certificates) = &self.certificates else { return Ok(None) };
        let has_tokens = certificates.mode == MutualMode::Token;
        let endpoint = request.endpoint().unwrap_or(Endpoint::Data);
        match certificates.holder(&request.presented, &self.clock) {
            Holder::Known(name, thumbprint) => Ok(Some(Client { name, thumbprint, has_tokens })),
            Holder::Absent => {
                self.stats.log_refusal(endpoint, "no client certificate");
                Err(Reply::page(400, "No required SSL certificate was sent"))
            }
            Holder::Untrusted => {
                let reason = "the client certificate is not trusted, or out of its time";
                self.stats.log_refusal(endpoint, reason);
                Err(Reply::page(400, "The SSL certificate error"))
            }
            Holder::Unregistered if endpoint == Endpoint::Token => {
                self.stats.log_refusal(endpoint, UNREGISTERED);
                Err(Reply::token_error(401, "invalid_client"))
            }
            Holder::Unregistered => Err(self.refuse(endpoint, 401, "invalid_client", UNREGISTERED)),
        }
    }

    /// A client that is authorised by its certificate, without a token.
    pub(super) fn known_client(
        &mut self,
        request: &Request,
        client: &Client,
        endpoint: Endpoint,
    ) -> Result<Caller, Reply> {
        if request.header("authorization").is_some() {
            let detail = "an Authorization header, although the certificate authorises";
            return Err(self.refuse(endpoint, 400, "invalid_request", detail));
        }
        let scopes = [DISCOVERY_SCOPE, DATA_SCOPE].map(str::to_owned).to_vec();
        Ok(Caller { subject: client.name.clone(), scopes })
    }
}

const UNREGISTERED: &str = "the client certificate is not registered";
