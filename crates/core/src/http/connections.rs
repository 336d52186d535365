//! [`Connections`]: a pool of connections to one service, with one client certificate or none.

use std::sync::Arc;
use std::time::Duration;

use reqwest::redirect;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::{ClientConfig, RootCertStore};

use super::base_url::BaseUrl;
use super::client_certificate::{ClientCertificate, Presenter};
use super::failure;
use super::names::Names;
use super::proxy::{self, Tunnel};
use super::server_verifier::ServerVerifier;
use super::transport_settings::TransportSettings;
use super::trust::Trust;
use crate::error::Result;

/// How long an idle connection is kept.
const IDLE: Duration = Duration::from_secs(90);
/// The protocols that are offered in a handshake.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

#[derive(Clone)]
pub(super) struct Connections {
    pub(super) http: reqwest::Client,
    pub(super) proxy: Option<Arc<Tunnel>>,
    pub(super) presenter: Presenter,
    pub(super) tls: Arc<ClientConfig>,
}

impl Connections {
    /// Loads the trusted certificates without opening a connection.
    pub(super) fn new(
        base: &BaseUrl,
        settings: &TransportSettings,
        certificate: Option<Arc<ClientCertificate>>,
    ) -> Result<Self> {
        let presenter = Presenter::new(certificate);
        let proxy = proxy::for_service(base, settings.proxy.as_deref())?;
        let tls = tls(base, &settings.trust, presenter.clone())?;
        let builder = builder(base, settings, proxy.as_ref())?;
        let builder = builder.tls_backend_preconfigured(tls.clone());
        let http = builder.build().map_err(|_| failure::unusable_settings())?;
        Ok(Self { http, proxy: proxy.map(Arc::new), presenter, tls: Arc::new(tls) })
    }

    pub(super) fn has_socks(&self) -> bool {
        self.proxy.as_deref().is_some_and(Tunnel::is_socks)
    }

    /// The address of the proxy in use, without its password.
    pub(super) fn proxy_address(&self) -> Option<&str> {
        self.proxy.as_ref().map(|proxy| proxy.address.as_str())
    }
}

fn builder(
    base: &BaseUrl,
    settings: &TransportSettings,
    proxy: Option<&Tunnel>,
) -> Result<reqwest::ClientBuilder> {
    let builder = reqwest::Client::builder()
        .dns_resolver(Names)
        .redirect(redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .user_agent(settings.user_agent())
        .connect_timeout(settings.connect_timeout)
        .pool_idle_timeout(IDLE);
    let builder = match base.loopback_name() {
        Some((name, addresses)) => builder.resolve_to_addrs(name, &addresses),
        None => builder,
    };
    // reqwest would read the proxy variables itself, with other rules.
    let Some(tunnel) = proxy else { return Ok(builder.no_proxy()) };
    let proxy = tunnel.for_library().map_err(|_| failure::unusable_settings())?;
    Ok(builder.proxy(proxy))
}

/// The provider is explicit because the process may have installed another one as its default.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

fn tls(base: &BaseUrl, trust: &Trust, presenter: Presenter) -> Result<ClientConfig> {
    let provider = provider();
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|_| failure::no_store())?;
    let builder = match trusted(base, trust, &provider)? {
        None => builder.with_root_certificates(RootCertStore::empty()),
        Some(verifier) => builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)),
    };
    let mut config = builder.with_client_cert_resolver(Arc::new(presenter));
    config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
    Ok(config)
}

/// Returns `None` for plain HTTP, which needs no certificate.
fn trusted(
    base: &BaseUrl,
    trust: &Trust,
    provider: &Arc<CryptoProvider>,
) -> Result<Option<ServerVerifier>> {
    if base.is_plain() {
        return Ok(None);
    }
    if let Some(named) = trust.named()? {
        return ServerVerifier::of_certificates(named, provider).map(Some);
    }
    if let Some(verifier) = ServerVerifier::of_platform(provider) {
        return Ok(Some(verifier));
    }
    let fallback = trust.fallback().ok_or_else(failure::no_store)?;
    ServerVerifier::of_certificates(fallback, provider).map(Some)
}
