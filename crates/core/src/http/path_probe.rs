//! Probes the path to a service step by step: the name, the connection or the proxy, the handshake.
//! It uses the client's own trust settings and sends no request. A diagnosis shows the steps. If a
//! request fails for a reason that the HTTP library loses, the probe finds the reason.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConnection, ProtocolVersion};
use serde::Serialize;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use x509_cert::certificate::{CertificateInner, Raw};
use x509_cert::der::Decode as _;

use super::client_certificate::ClientCertificate;
use super::connections::Connections;
use super::failure;
use super::names;
use super::proxy::{self, Tunnel};
use super::server_verifier::timestamp;
use super::transport::Transport;
use crate::error::{Error, Kind, Result};

/// Time limit for explaining an error.
const LONGEST: Duration = Duration::from_secs(2);
/// Time limit for explaining an error of a proxy.
const LONGEST_PROXY: Duration = Duration::from_secs(5);
/// Maximum length of the head of a proxy's reply, in bytes.
const LONGEST_HEAD: usize = 16 * 1024;

/// A connection, with or without TLS.
trait ProbeStream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> ProbeStream for T {}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ProbeStep {
    Proxy,
    Name,
    Tcp,
    Tls,
}

/// The observations along the path.
#[derive(Debug, Default, Serialize)]
pub struct ServicePath {
    /// The address of the proxy, without its password.
    pub proxy: Option<String>,
    pub service: String,
    /// The addresses of the service, or of the proxy.
    pub addresses: Vec<IpAddr>,
    /// The address that accepted the connection.
    pub connected: Option<SocketAddr>,
    /// The source of the trusted certificates; `None` without TLS.
    pub trust: Option<String>,
    pub tls: Option<Handshake>,
    /// The step that failed. During a probe it is the current step.
    pub failed: Option<ProbeStep>,
}

#[derive(Debug, Serialize)]
pub struct Handshake {
    /// `TLS 1.2` or `TLS 1.3`.
    pub version: &'static str,
    /// The issuer of the service's certificate.
    pub issuer: Option<String>,
    /// The end of the certificate's validity.
    pub not_after: Option<Timestamp>,
}

/// The proxy and the trusted certificates of the client. Opens no connection.
pub(crate) fn planned(transport: &Transport) -> Result<ServicePath> {
    let (base, settings) = (transport.base_url(), transport.settings());
    Ok(ServicePath {
        proxy: proxy::for_service(base, settings.proxy.as_deref())?.map(|proxy| proxy.address),
        service: base.host_and_port(),
        trust: (!base.is_plain()).then(|| settings.trust.named_by()),
        ..ServicePath::default()
    })
}

/// Probes the path up to the step that fails, and returns its error. A SOCKS proxy is not probed.
pub(crate) async fn walk(
    transport: &Transport,
    certificate: Option<&Arc<ClientCertificate>>,
) -> (ServicePath, Option<Error>) {
    let mut path = ServicePath { failed: Some(ProbeStep::Proxy), ..ServicePath::default() };
    let walking = async {
        path = ServicePath { failed: Some(ProbeStep::Tls), ..planned(transport)? };
        let connections = transport.connections(certificate)?;
        if connections.has_socks() {
            return Ok(());
        }
        Walk { transport, connections: &connections }.go(&mut path).await.map(drop)
    };
    let error = walking.await.err();
    path.failed = path.failed.filter(|_| error.is_some());
    (path, error)
}

/// Explains the error of a request with another connection. The HTTP library loses the status of a
/// proxy's refusal, a TLS 1.3 alert that arrives before the first request, and the fact that a port
/// expects TLS.
pub(super) async fn explained(
    error: Error,
    transport: &Transport,
    connections: &Connections,
    without_tls: &AtomicBool,
) -> Error {
    let walk = Walk { transport, connections };
    let is_plain = transport.base_url().is_plain();
    let (kind, unsent) = (error.kind(), error.context().unsent);
    if connections.proxy.is_some() {
        let may_have_status = kind == Kind::ProxyError && error.context().status.is_none();
        if !may_have_status || is_plain || connections.has_socks() {
            return error;
        }
        let gone = timeout(LONGEST_PROXY, walk.go(&mut ServicePath::default())).await;
        let refusal = gone.ok().and_then(Result::err);
        return refusal.filter(|refusal| refusal.context().status.is_some()).unwrap_or(error);
    }
    let may_be_tls = matches!(kind, Kind::TransportError | Kind::ProtocolError);
    if is_plain && may_be_tls && !unsent && !without_tls.load(Ordering::Relaxed) {
        if let Ok(Some(explanation)) = timeout(LONGEST, walk.speaks_tls()).await {
            return explanation;
        }
        without_tls.store(true, Ordering::Relaxed);
    }
    let presenter = &connections.presenter;
    if !is_plain && kind == Kind::TransportError && !unsent && presenter.may_be_refused() {
        if let Ok(Some(refusal)) = timeout(LONGEST, walk.certificate_refusal()).await {
            return refusal;
        }
        presenter.settle();
    }
    error
}

struct Walk<'a> {
    transport: &'a Transport,
    connections: &'a Connections,
}

impl Walk<'_> {
    async fn go(&self, path: &mut ServicePath) -> Result<Box<dyn ProbeStream>> {
        let base = self.transport.base_url();
        let stream = match self.connections.proxy.as_deref() {
            None => self.direct(path).await?,
            Some(tunnel) => self.tunnelled(path, tunnel).await?,
        };
        if base.is_plain() {
            return Ok(stream);
        }
        path.failed = Some(ProbeStep::Tls);
        let (open, seen) = self.in_time(self.handshake(stream, base.host())).await?;
        path.tls = Some(seen);
        Ok(open)
    }

    /// The error of a port that speaks TLS.
    async fn speaks_tls(&self) -> Option<Error> {
        let base = self.transport.base_url();
        let stream = self.direct(&mut ServicePath::default()).await.ok()?;
        let name = server_name(base.host())?;
        let connecting =
            TlsConnector::from(Arc::clone(&self.connections.tls)).connect(name, stream);
        // No certificate is trusted here, so every handshake fails.
        let failure = connecting.await.err()?;
        match failure.get_ref()?.downcast_ref::<rustls::Error>()? {
            rustls::Error::InvalidMessage(_) => None,
            _ => Some(failure::plain_to_tls(&base.host_and_port())),
        }
    }

    /// The error if the service refuses the client certificate, or the lack of one.
    async fn certificate_refusal(&self) -> Option<Error> {
        let error = match self.go(&mut ServicePath::default()).await {
            Ok(mut open) => {
                let failure = open.read_u8().await.err()?;
                self.handshake_failure(&failure)
            }
            Err(error) => error,
        };
        Some(error).filter(|error| error.context().certificate_refused)
    }

    async fn direct(&self, path: &mut ServicePath) -> Result<Box<dyn ProbeStream>> {
        let base = self.transport.base_url();
        let address = base.host_and_port();
        path.failed = Some(ProbeStep::Name);
        let found = match base.loopback_name() {
            Some((_, addresses)) => addresses.to_vec(),
            None => self.in_time(looked_up(address.clone(), base.host())).await?,
        };
        path.failed = Some(ProbeStep::Tcp);
        self.connected(path, &found, |error| failure::unreached(&address, &error)).await
    }

    /// Connects to one of the addresses and records them.
    async fn connected(
        &self,
        path: &mut ServicePath,
        found: &[SocketAddr],
        lost: impl FnOnce(io::Error) -> Error,
    ) -> Result<Box<dyn ProbeStream>> {
        path.addresses = found.iter().map(SocketAddr::ip).collect();
        let connecting = async { TcpStream::connect(found).await.map_err(lost) };
        let stream = self.in_time(connecting).await?;
        path.connected = stream.peer_addr().ok();
        Ok(Box::new(stream))
    }

    /// Every failure is a proxy error, as for a request.
    async fn tunnelled(
        &self,
        path: &mut ServicePath,
        tunnel: &Tunnel,
    ) -> Result<Box<dyn ProbeStream>> {
        let base = self.transport.base_url();
        path.failed = Some(ProbeStep::Proxy);
        let lost = |why: &str| failure::from_proxy(&tunnel.address, base.host(), why);
        let looking = self.in_time(looked_up(tunnel.host_and_port(), tunnel.host()));
        let found = looking.await.map_err(|error| {
            let why = "its host name could not be resolved";
            if error.context().passing { error } else { lost(why) }
        })?;
        let unreached =
            |error: io::Error| failure::unreached_proxy(&tunnel.address, base.host(), &error);
        let mut stream = self.connected(path, &found, unreached).await?;
        if tunnel.is_tls() {
            stream = self.in_time(self.handshake(stream, tunnel.host())).await?.0;
        }
        // Plain HTTP is not tunnelled: its requests go to the proxy.
        if base.is_plain() {
            return Ok(stream);
        }
        let asking = async { Ok(ask(&mut stream, tunnel, &base.host_and_port()).await) };
        match self.in_time(asking).await.ok().flatten() {
            Some(200..=299) => Ok(stream),
            Some(status) => Err(failure::proxy_refused(&tunnel.address, base.host(), status)),
            None => Err(lost("it closed the connection")),
        }
    }

    async fn handshake(
        &self,
        stream: Box<dyn ProbeStream>,
        host: &str,
    ) -> Result<(Box<dyn ProbeStream>, Handshake)> {
        let unnamed = || self.handshake_failure(&io::ErrorKind::InvalidInput.into());
        let name = server_name(host).ok_or_else(unnamed)?;
        let connecting =
            TlsConnector::from(Arc::clone(&self.connections.tls)).connect(name, stream);
        let open = connecting.await.map_err(|error| self.handshake_failure(&error))?;
        let facts = handshake_facts(open.get_ref().1);
        Ok((Box::new(open), facts))
    }

    fn handshake_failure(&self, error: &io::Error) -> Error {
        let address = self.transport.base_url().host_and_port();
        failure::from_handshake(error, &address, &self.connections.presenter)
    }

    async fn in_time<T>(&self, step: impl Future<Output = Result<T>>) -> Result<T> {
        let limit: Duration = self.transport.settings().connect_timeout;
        let Ok(outcome) = timeout(limit, step).await else {
            let address = self.transport.base_url().host_and_port();
            return Err(failure::connect_timeout(&address, self.connections.proxy_address()));
        };
        outcome
    }
}

/// Requests a tunnel to this host and port. Returns the status of the proxy's reply, or `None` if
/// the connection ends or the reply is not HTTP.
async fn ask(stream: &mut Box<dyn ProbeStream>, tunnel: &Tunnel, to: &str) -> Option<u16> {
    stream.write_all(&tunnel.request(to)).await.ok()?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") && head.len() < LONGEST_HEAD {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8_lossy(&head);
    let mut words = head.split_ascii_whitespace();
    let is_http = words.next().is_some_and(|version| version.starts_with("HTTP/"));
    words.next().filter(|_| is_http)?.parse().ok()
}

fn server_name(host: &str) -> Option<ServerName<'static>> {
    ServerName::try_from(host.trim_matches(['[', ']']).to_owned()).ok()
}

async fn looked_up(host_and_port: String, host: &str) -> Result<Vec<SocketAddr>> {
    let found = names::addresses(host_and_port).await;
    let found = found.map_err(|error| failure::unresolved(host, Some(&error)))?;
    if found.is_empty() { Err(failure::unresolved(host, None)) } else { Ok(found) }
}

fn handshake_facts(connection: &ClientConnection) -> Handshake {
    let version = match connection.protocol_version() {
        Some(ProtocolVersion::TLSv1_2) => "TLS 1.2",
        _ => "TLS 1.3",
    };
    let own = connection.peer_certificates().and_then(<[_]>::first);
    let (issuer, not_after) = own.and_then(issuer_and_end).unzip();
    Handshake { version, issuer, not_after }
}

fn issuer_and_end(der: &CertificateDer<'_>) -> Option<(String, Timestamp)> {
    let certificate = CertificateInner::<Raw>::from_der(der).ok()?;
    let body = certificate.tbs_certificate();
    let end = timestamp(body.validity().not_after)?;
    Some((crate::error::excerpt(&body.issuer().to_string()), end))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "each test runs on a runtime of its own")]

    use rustls::AlertDescription;
    use rustls::client::ResolvesClientCert as _;

    use super::*;
    use crate::http::TransportSettings;
    use crate::http::test_server::alerting;

    /// Connections to a service that answers every handshake with this alert.
    async fn refusing(alert: AlertDescription) -> (Transport, Connections) {
        let base = alerting(u8::from(alert)).await;
        let transport = Transport::new(base, TransportSettings::default()).expect("settings");
        let connections = transport.connections(None).expect("certificates");
        (transport, connections)
    }

    fn lost() -> Error {
        Error::new(Kind::TransportError, "the connection broke")
    }

    async fn explain(error: Error, (transport, connections): &(Transport, Connections)) -> Error {
        explained(error, transport, connections, &AtomicBool::default()).await
    }

    /// Windows discards what it received before a reset, including the alert.
    #[cfg(unix)]
    #[tokio::test]
    async fn m2_an_alert_explains_a_lost_connection() {
        let service = refusing(AlertDescription::CertificateRequired).await;
        let presenter = &service.1.presenter;
        presenter.resolve(&[], &[]);
        let error = explain(lost(), &service).await;
        assert_eq!(error.kind(), Kind::AuthenticationError, "{error}");
        assert!(error.to_string().contains("client certificate"), "{error}");
        assert!(presenter.may_be_refused(), "the next error is explained too");

        let service = refusing(AlertDescription::InternalError).await;
        let presenter = &service.1.presenter;
        presenter.resolve(&[], &[]);
        assert_eq!(explain(lost(), &service).await.kind(), Kind::TransportError);
        assert!(!presenter.may_be_refused(), "it is asked once");
    }

    #[tokio::test]
    async fn m2_other_errors_need_no_explanation() {
        let unsent = lost().with(|context| context.unsent = true);
        let timeout = Error::new(Kind::TransportTimeout, "no reply");
        for (error, is_asked) in [(unsent, true), (timeout, true), (lost(), false)] {
            let service = refusing(AlertDescription::CertificateRequired).await;
            let presenter = &service.1.presenter;
            if is_asked {
                presenter.resolve(&[], &[]);
            }
            let kind = error.kind();
            assert_eq!(explain(error, &service).await.kind(), kind);
            assert_eq!(presenter.may_be_refused(), is_asked);
        }
    }
}
