//! With which status a proxy refuses a connection to the service. The HTTP library keeps none, so the
//! proxy is asked once more, over a connection of its own.

use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::base_url::BaseUrl;
use super::failure;
use super::proxy::Tunnel;
use crate::error::{Error, Kind, Result};

/// The longest time for the connection and the reply.
const LIMIT: Duration = Duration::from_secs(5);
/// The longest head of a proxy's reply.
const LONGEST_HEAD: usize = 16 * 1024;

/// A connection, with or without TLS.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// The error of a request, with the status if the proxy refused the connection to the service.
pub(super) async fn explained(
    error: Error,
    base: &BaseUrl,
    tunnel: &Tunnel,
    config: &Arc<ClientConfig>,
) -> Error {
    let is_refusal = error.kind() == Kind::ProxyError && error.context().status.is_none();
    if !is_refusal || base.is_plain() {
        return error;
    }
    let to = base.host_and_port();
    let asking = tokio::time::timeout(LIMIT, status(tunnel, &to, config));
    match asking.await.ok().flatten() {
        // It connects now: the first error is all that is known.
        None | Some(200..=299) => error,
        Some(status) => failure::proxy_refused(&tunnel.address, base.host(), status),
    }
}

async fn status(tunnel: &Tunnel, to: &str, config: &Arc<ClientConfig>) -> Option<u16> {
    let tcp = TcpStream::connect(tunnel.host_and_port.as_str()).await.ok()?;
    let mut stream: Box<dyn Stream> = Box::new(tcp);
    if tunnel.is_tls {
        let name = ServerName::try_from(tunnel.host.trim_matches(['[', ']']).to_owned()).ok()?;
        let connector = TlsConnector::from(Arc::clone(config));
        stream = Box::new(connector.connect(name, stream).await.ok()?);
    }
    ask(&mut stream, tunnel, to).await.ok()?
}

/// Asks for a connection to this host and port. The status of the proxy's reply; `None` if it closes the
/// connection.
pub(super) async fn ask(
    stream: &mut Box<dyn Stream>,
    tunnel: &Tunnel,
    to: &str,
) -> Result<Option<u16>> {
    let lost = |_| Error::new(Kind::ProxyError, "the connection to the proxy was lost");
    stream.write_all(&tunnel.request(to)).await.map_err(lost)?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") && head.len() < LONGEST_HEAD {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return Ok(None),
        }
    }
    let head = String::from_utf8_lossy(&head);
    let mut words = head.split_ascii_whitespace();
    let is_http = words.next().is_some_and(|version| version.starts_with("HTTP/"));
    Ok(words.next().filter(|_| is_http).and_then(|status| status.parse().ok()))
}
