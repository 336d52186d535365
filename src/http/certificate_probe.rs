//! Whether a service refuses the client certificate in the handshake. HTTP/2 loses the alert of TLS 1.3
//! where it arrives before the first request is written: only a lost connection is left of it.

use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{AlertDescription, ClientConfig};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::base_url::BaseUrl;
use super::certificate_refusal::{from_alert, is_refusal};
use super::client_certificate::Presenter;
use crate::error::{Error, Kind};

/// The longest time for the handshake and what follows it.
const LIMIT: Duration = Duration::from_secs(2);

/// The error of a request, which says so if the service refuses the certificate, or the lack of one. That
/// is asked over a connection of its own, if the service asks for a certificate and has not replied yet;
/// once, if it refuses nothing.
pub(super) async fn explained(
    error: Error,
    base: &BaseUrl,
    config: &Arc<ClientConfig>,
    presenter: &Presenter,
) -> Error {
    let is_lost = error.kind() == Kind::TransportError && !error.context().unsent;
    if !is_lost || !presenter.may_be_refused() {
        return error;
    }
    let answer = tokio::time::timeout(LIMIT, alert(base, config)).await;
    match answer.ok().flatten() {
        Some(alert) if is_refusal(alert, presenter) => {
            from_alert(alert, &base.host_and_port(), presenter)
        }
        _ => {
            presenter.settle();
            error
        }
    }
}

/// The alert that ends a connection before its first byte.
async fn alert(base: &BaseUrl, config: &Arc<ClientConfig>) -> Option<AlertDescription> {
    let tcp = match base.loopback_addresses() {
        Some(addresses) => TcpStream::connect(&addresses[..]).await,
        None => TcpStream::connect(base.host_and_port()).await,
    };
    let name = base.host().trim_matches(['[', ']']).to_owned();
    let connecting =
        TlsConnector::from(Arc::clone(config)).connect(ServerName::try_from(name).ok()?, tcp.ok()?);
    let failure = match connecting.await {
        Ok(mut open) => open.read_u8().await.err()?,
        Err(failure) => failure,
    };
    match failure.get_ref()?.downcast_ref::<rustls::Error>()? {
        rustls::Error::AlertReceived(alert) => Some(*alert),
        _ => None,
    }
}
