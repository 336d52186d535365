//! Finds the status with which a proxy refuses a connection to the service. The HTTP library discards the
//! status, so a separate connection repeats the request to the proxy.

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

/// Time limit for the connection and the reply together.
const LIMIT: Duration = Duration::from_secs(5);
/// Maximum length of the head of a proxy's reply, in bytes.
const LONGEST_HEAD: usize = 16 * 1024;

/// A connection, with or without TLS.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// Returns an error with the proxy's status, if the proxy refuses the connection to the service. Otherwise
/// returns the error unchanged.
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
        // The proxy sent no status or connects now, so only the first error remains.
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

/// Requests a connection to this host and port. Returns the status of the proxy's reply, or `None` if the
/// proxy closes the connection or does not reply in HTTP.
///
/// # Errors
/// `ProxyError` if the request cannot be sent.
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
