//! Whether a service refuses the client certificate in the handshake. HTTP/2 loses the alert of TLS 1.3
//! where it arrives before the first request is written: only a lost connection is left of it.

use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{AlertDescription, ClientConfig};
use tokio::io::AsyncReadExt as _;
use tokio_rustls::TlsConnector;

use super::base_url::BaseUrl;
use super::certificate_refusal::{from_alert, is_refusal};
use super::client_certificate::Presenter;
use super::names::connect;
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
    let tcp = connect(base).await;
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

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "each test runs on a runtime of its own")]

    use rustls::RootCertStore;
    use rustls::client::ResolvesClientCert as _;
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::TcpListener;

    use super::*;
    use crate::http::provider;

    /// A service that answers the first bytes of each handshake with this alert.
    async fn service(alert: AlertDescription) -> BaseUrl {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let _hello = stream.read_u8().await;
                // A record of TLS 1.2: an alert of two bytes, fatal.
                let record = [0x15, 3, 3, 0, 2, 2, u8::from(alert)];
                stream.write_all(&record).await.expect("written");
            }
        });
        BaseUrl::parse(&format!("https://127.0.0.1:{port}"), false).expect("a base URL")
    }

    fn config() -> Arc<ClientConfig> {
        let builder = ClientConfig::builder_with_provider(provider());
        let builder = builder.with_safe_default_protocol_versions().expect("versions");
        let builder = builder.with_root_certificates(RootCertStore::empty());
        Arc::new(builder.with_no_client_auth())
    }

    fn lost() -> Error {
        Error::new(Kind::TransportError, "the connection broke")
    }

    fn asked() -> Presenter {
        let presenter = Presenter::new(None);
        presenter.resolve(&[], &[]);
        presenter
    }

    /// Windows gives up what it received before a reset, the alert too.
    #[cfg(unix)]
    #[tokio::test]
    async fn m2_a_lost_connection_is_explained_by_the_alert_of_another_one() {
        let base = service(AlertDescription::CertificateRequired).await;
        let presenter = asked();
        let error = explained(lost(), &base, &config(), &presenter).await;
        assert_eq!(error.kind(), Kind::AuthenticationError, "{error}");
        assert!(error.to_string().contains("client certificate"), "{error}");
        assert!(presenter.may_be_refused(), "the next one is asked about too");

        let base = service(AlertDescription::InternalError).await;
        let error = explained(lost(), &base, &config(), &presenter).await;
        assert_eq!(error.kind(), Kind::TransportError);
        assert!(!presenter.may_be_refused(), "it is asked once");
    }

    #[tokio::test]
    async fn m2_other_errors_and_services_that_do_not_ask_are_not_looked_into() {
        let base = service(AlertDescription::CertificateRequired).await;
        let unsent = lost().with(|context| context.unsent = true);
        let timeout = Error::new(Kind::TransportTimeout, "no reply");
        for (error, presenter) in
            [(unsent, asked()), (timeout, asked()), (lost(), Presenter::new(None))]
        {
            let (kind, is_open) = (error.kind(), presenter.may_be_refused());
            let error = explained(error, &base, &config(), &presenter).await;
            assert_eq!((error.kind(), presenter.may_be_refused()), (kind, is_open));
        }
    }
}
