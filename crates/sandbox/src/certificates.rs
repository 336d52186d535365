//! The client certificates of a sandbox (§1, §5.6): issuing, registering, and who a request is of.

use std::collections::BTreeMap;

use aws_lc_rs::digest::{SHA256, digest};
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

use super::authority::{Authority, ClientCertificate, Issued, ROOT};
use super::error::SandboxError;
use super::options::MutualMode;
use super::tls::{self, Presented, Verifier};
use siteline_base::clock::Clock;

/// The SHA-256 of a certificate, which identifies it (RFC 8705 §3.1).
pub(super) type Thumbprint = [u8; 32];

/// The properties of a new client certificate. By default the service accepts it, for 30 days.
/// The switches can be deserialized from the keywords of Python's `sandbox.certificate(...)`.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent switch")]
pub struct CertificateRequest {
    /// From when it is valid; `None` for five minutes before the sandbox's time.
    #[serde(skip)]
    pub begins: Option<Timestamp>,
    /// Its lifetime in seconds.
    #[serde(skip)]
    pub lifetime_seconds: u32,
    /// Whether it is for clients; otherwise for servers.
    pub client_auth: bool,
    /// Whether it is signed by the authority that the service knows.
    pub trusted: bool,
    /// Whether the service knows it.
    pub registered: bool,
    /// Whether an intermediate authority signs it. The file then contains that authority's certificate too.
    pub chain: bool,
}

impl Default for CertificateRequest {
    fn default() -> Self {
        Self {
            begins: None,
            lifetime_seconds: 30 * 86_400,
            client_auth: true,
            trusted: true,
            registered: true,
            chain: false,
        }
    }
}

pub(super) struct Certificates {
    pub(super) mode: MutualMode,
    authority: Authority,
    intermediate: Authority,
    stranger: Authority,
    verifier: Verifier,
    names: BTreeMap<Thumbprint, String>,
}

pub(super) struct Client {
    pub(super) name: String,
    pub(super) thumbprint: Thumbprint,
    pub(super) has_tokens: bool,
}

/// Who holds the certificate of a connection.
pub(super) enum Holder {
    /// This registered integration, with this certificate.
    Known(String, Thumbprint),
    /// The certificate is trusted, but not registered.
    Unregistered,
    /// It is of another authority, out of its time or not for clients.
    Untrusted,
    /// There is none.
    Absent,
}

impl Certificates {
    pub(super) fn new(mode: MutualMode, authority: Authority) -> Result<Self, SandboxError> {
        let intermediate = Authority::new("intermediate authority", Some(&authority))?;
        let stranger = Authority::new(ROOT, None)?;
        let verifier = tls::verifier(&authority)?;
        Ok(Self { mode, authority, intermediate, stranger, verifier, names: BTreeMap::new() })
    }

    /// Issues a certificate, and registers it if that was asked for. PEM with the private key.
    pub(super) fn issue(
        &mut self,
        name: &str,
        request: &CertificateRequest,
        clock: &Clock,
    ) -> Result<String, SandboxError> {
        let begins = request.begins.unwrap_or_else(|| clock.wall() - SignedDuration::from_mins(5));
        let ends = begins + SignedDuration::from_secs(request.lifetime_seconds.into());
        let is_for_clients = request.client_auth;
        let wanted = ClientCertificate { name, begins, ends, is_for_clients };
        let authority = match (request.trusted, request.chain) {
            (false, _) => &self.stranger,
            (true, true) => &self.intermediate,
            (true, false) => &self.authority,
        };
        let Issued { pem, der } = authority.client(&wanted)?;
        if request.registered {
            self.names.insert(thumbprint(&der), name.to_owned());
        }
        Ok(pem)
    }

    /// Forgets all certificates of a name.
    /// Fails for a name that has none.
    pub(super) fn unregister(&mut self, name: &str) -> Result<(), SandboxError> {
        let before = self.names.len();
        self.names.retain(|_, known| known != name);
        if self.names.len() == before {
            return Err(SandboxError::new(format!("no certificate is registered for {name:?}.")));
        }
        Ok(())
    }

    /// Who holds what was presented, by the sandbox's time.
    pub(super) fn holder(&self, presented: &Presented, clock: &Clock) -> Holder {
        let Some(certificate) = presented.0.first() else { return Holder::Absent };
        if !tls::is_trusted(&self.verifier, presented, clock) {
            return Holder::Untrusted;
        }
        let thumbprint = thumbprint(certificate);
        match self.names.get(&thumbprint) {
            Some(name) => Holder::Known(name.clone(), thumbprint),
            None => Holder::Unregistered,
        }
    }
}

fn thumbprint(der: &[u8]) -> Thumbprint {
    let mut octets = [0; 32];
    octets.copy_from_slice(digest(&SHA256, der).as_ref());
    octets
}
