//! The way to a service, step by step, for a diagnosis: the name, the connection or the proxy, the
//! handshake. It goes as a request does, with the client's own trust, and no request is sent on it.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConnection, ProtocolVersion};
use serde::Serialize;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use x509_cert::certificate::{CertificateInner, Raw};
use x509_cert::der::Decode as _;

use super::client_certificate::ClientCertificate;
use super::connections::Connections;
use super::failure;
use super::names;
use super::proxy::{self, Tunnel};
use super::transport::Transport;
use super::tunnel_probe::{Stream, ask};
use crate::error::{Error, Result};

/// A step of the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Step {
    Proxy,
    Name,
    Tcp,
    Tls,
}

/// What was seen on the way.
#[derive(Debug, Default, Serialize)]
pub struct Path {
    /// The address of the proxy, without its password.
    pub proxy: Option<String>,
    /// The host and port of the service.
    pub service: String,
    /// Where the name leads, of the service or of the proxy.
    pub addresses: Vec<IpAddr>,
    /// What accepted the connection.
    pub connected: Option<SocketAddr>,
    /// Which certificates are trusted; `None` without TLS.
    pub trust: Option<String>,
    /// The handshake.
    pub tls: Option<Handshake>,
    /// The step that failed.
    pub failed: Option<Step>,
}

/// What a verified handshake showed.
#[derive(Debug, Serialize)]
pub struct Handshake {
    /// `TLS 1.2` or `TLS 1.3`.
    pub version: &'static str,
    /// Who issued the service's certificate.
    pub issuer: Option<String>,
    /// When it expires.
    pub not_after: Option<Timestamp>,
}

/// Which proxy and which trust the client uses. Opens nothing.
///
/// # Errors
/// `ConfigError` if the setting or the variable is not the address of an HTTP proxy.
pub(crate) fn planned(transport: &Transport) -> Result<Path> {
    let (base, settings) = (transport.base_url(), transport.settings());
    Ok(Path {
        proxy: proxy::for_service(base, settings.proxy.as_deref())?.map(|proxy| proxy.address),
        service: base.host_and_port(),
        trust: (!base.is_plain()).then(|| settings.trust.named_by()),
        ..Path::default()
    })
}

/// Goes the way, and says how far it came; with the error of the step that failed.
pub(crate) async fn walk(
    transport: &Transport,
    certificate: Option<&Arc<ClientCertificate>>,
) -> (Path, Option<Error>) {
    let mut path = match planned(transport) {
        Ok(path) => path,
        Err(error) => {
            return (Path { failed: Some(Step::Proxy), ..Path::default() }, Some(error));
        }
    };
    let walked = match transport.connections(certificate) {
        Ok(connections) => Walk { transport, connections }.go(&mut path).await,
        Err(error) => Err((Step::Tls, error)),
    };
    let error = walked.err().map(|(step, error)| {
        path.failed = Some(step);
        error
    });
    (path, error)
}

type Stepped<T> = std::result::Result<T, (Step, Error)>;

struct Walk<'a> {
    transport: &'a Transport,
    connections: Connections,
}

impl Walk<'_> {
    async fn go(&self, path: &mut Path) -> Stepped<()> {
        let base = self.transport.base_url();
        let stream = match self.connections.proxy.as_deref() {
            None => self.direct(path).await?,
            Some(tunnel) => {
                self.tunnelled(path, tunnel).await.map_err(|error| (Step::Proxy, error))?
            }
        };
        if base.is_plain() {
            return Ok(());
        }
        let shake = self.handshake(stream, base.host());
        let (_, seen) = self.in_time(shake).await.map_err(|error| (Step::Tls, error))?;
        path.tls = Some(seen);
        Ok(())
    }

    async fn direct(&self, path: &mut Path) -> Stepped<Box<dyn Stream>> {
        let base = self.transport.base_url();
        let found: Vec<SocketAddr> = match base.loopback_addresses() {
            Some(addresses) => addresses.to_vec(),
            None => self
                .in_time(looked_up(&base.host_and_port(), base.host()))
                .await
                .map_err(|error| (Step::Name, error))?,
        };
        path.addresses = found.iter().map(SocketAddr::ip).collect();
        let address = base.host_and_port();
        let connecting = async {
            let stream = TcpStream::connect(&found[..]).await;
            stream.map_err(|error| failure::unreached(&address, &error))
        };
        let stream = self.in_time(connecting).await.map_err(|error| (Step::Tcp, error))?;
        path.connected = stream.peer_addr().ok();
        Ok(Box::new(stream))
    }

    /// Every failure is one of the proxy, as it is for a request.
    async fn tunnelled(&self, path: &mut Path, tunnel: &Tunnel) -> Result<Box<dyn Stream>> {
        let base = self.transport.base_url();
        let lost = |why: &str| failure::from_proxy(&tunnel.address, base.host(), why);
        let found = self.in_time(looked_up(&tunnel.host_and_port, &tunnel.host)).await.map_err(
            |error| {
                let why = "its host name could not be resolved";
                if error.context().passing { error } else { lost(why) }
            },
        )?;
        path.addresses = found.iter().map(SocketAddr::ip).collect();
        let connecting = async {
            let stream = TcpStream::connect(&found[..]).await;
            stream.map_err(|error| lost(&failure::why_unreached(&error)).advised_by(&error))
        };
        let stream = self.in_time(connecting).await?;
        path.connected = stream.peer_addr().ok();
        let mut stream: Box<dyn Stream> = Box::new(stream);
        if tunnel.is_tls {
            stream = self.in_time(self.handshake(stream, &tunnel.host)).await?.0;
        }
        // Plain HTTP is not tunnelled: its requests go to the proxy itself.
        if base.is_plain() {
            return Ok(stream);
        }
        let to = base.host_and_port();
        match self.in_time(ask(&mut stream, tunnel, &to)).await.ok().flatten() {
            Some(200..=299) => Ok(stream),
            Some(status) => Err(failure::proxy_refused(&tunnel.address, base.host(), status)),
            None => Err(lost("it closed the connection")),
        }
    }

    async fn handshake(
        &self,
        stream: Box<dyn Stream>,
        host: &str,
    ) -> Result<(Box<dyn Stream>, Handshake)> {
        let Connections { tls, presenter, .. } = &self.connections;
        let address = self.transport.base_url().host_and_port();
        let failed = |error: &io::Error| failure::from_handshake(error, &address, presenter);
        let name = ServerName::try_from(host.trim_matches(['[', ']']).to_owned());
        let name = name.map_err(|error| failed(&io::Error::other(error)))?;
        let connecting = TlsConnector::from(Arc::clone(tls)).connect(name, stream);
        let open = connecting.await.map_err(|error| failed(&error))?;
        let seen = seen(open.get_ref().1);
        Ok((Box::new(open), seen))
    }

    async fn in_time<T>(&self, step: impl Future<Output = Result<T>>) -> Result<T> {
        let limit: Duration = self.transport.settings().connect_timeout;
        let Ok(outcome) = tokio::time::timeout(limit, step).await else {
            let address = self.transport.base_url().host_and_port();
            return Err(failure::connect_timeout(&address, self.connections.proxy_address()));
        };
        outcome
    }
}

async fn looked_up(host_and_port: &str, host: &str) -> Result<Vec<SocketAddr>> {
    let found = names::addresses(host_and_port.to_owned()).await;
    let found = found.map_err(|error| failure::not_looked_up(host, &error))?;
    if found.is_empty() { Err(failure::unresolved(host)) } else { Ok(found) }
}

fn seen(connection: &ClientConnection) -> Handshake {
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
    let end = body.validity().not_after.to_unix_duration().as_secs();
    let end = Timestamp::from_second(i64::try_from(end).ok()?).ok()?;
    Some((crate::error::excerpt(&body.issuer().to_string()), end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_says_who_issued_it_and_when_it_ends() {
        use rustls::pki_types::pem::PemObject as _;
        let pem = include_bytes!("../../../../tests/keys/certificate.pem");
        let der = CertificateDer::from_pem_slice(pem).expect("a certificate");
        let (issuer, end) = issuer_and_end(&der).expect("readable");
        assert!(issuer.contains("CN="), "{issuer}");
        assert!(end > Timestamp::UNIX_EPOCH);
        assert!(issuer_and_end(&CertificateDer::from(vec![0])).is_none());
    }
}
