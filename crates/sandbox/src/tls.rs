//! TLS in front of the service: the handshake, and the client's certificate after it.

use std::fmt;
use std::io;
use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::version::{TLS12, TLS13};
use rustls::{
    DigitallySignedStruct, DistinguishedName, RootCertStore, ServerConfig, SignatureScheme,
};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;

use super::authority::Authority;
use super::error::SandboxError;
use super::options::{CertificateRefusal, Options, TlsOption, TlsVersion};
use siteline_base::clock::Clock;

/// Judges a client certificate by the sandbox's time.
pub(super) type Verifier = Arc<dyn ClientCertVerifier>;

#[derive(Debug, Clone, Default)]
pub(super) struct Presented(pub(super) Vec<CertificateDer<'static>>);

/// The verifier of client certificates of this authority.
pub(super) fn verifier(authority: &Authority) -> Result<Verifier, SandboxError> {
    let mut roots = RootCertStore::empty();
    roots.add(authority.der()).map_err(failed)?;
    let builder = WebPkiClientVerifier::builder_with_provider(roots.into(), provider());
    builder.build().map_err(failed)
}

/// Whether the certificate is one of the authority, for a client, and within its time.
pub(super) fn is_trusted(verifier: &Verifier, presented: &Presented, clock: &Clock) -> bool {
    let Some((certificate, intermediates)) = presented.0.split_first() else { return false };
    verifier.verify_client_cert(certificate, intermediates, unix_time(clock)).is_ok()
}

/// Accepts handshakes with a certificate of the authority.
/// Fails if the library refuses the settings.
pub(super) fn acceptor(
    authority: &Authority,
    options: &Options,
    clock: &Clock,
) -> Result<TlsAcceptor, SandboxError> {
    let versions = match options.tls {
        TlsOption::Version(TlsVersion::V12) => vec![&TLS12],
        TlsOption::Version(TlsVersion::V13) => vec![&TLS13],
        TlsOption::Switch(_) => vec![&TLS12, &TLS13],
    };
    let builder = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&versions)
        .map_err(failed)?;
    let builder = if options.mutual_tls.is_none() {
        builder.with_no_client_auth()
    } else {
        let refuses = options.certificate_refusal == CertificateRefusal::Alert;
        let (inner, clock) = (verifier(authority)?, clock.clone());
        builder.with_client_cert_verifier(Arc::new(Asking { inner, refuses, clock }))
    };
    let (certificate, key) = authority.server()?;
    let mut config = builder.with_single_cert(vec![certificate], key).map_err(failed)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    if options.mutual_tls.is_some() {
        // Every handshake presents the certificate.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
    }
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// It is named: a process may have another default (K15).
fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

fn failed(error: impl fmt::Display) -> SandboxError {
    SandboxError::new(format!("TLS cannot be set up: {error}"))
}

fn unix_time(clock: &Clock) -> UnixTime {
    let seconds = u64::try_from(clock.wall().as_second()).unwrap_or_default();
    UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds))
}

/// Asks each client for a certificate. Whatever proves to have its key is accepted, unless handshakes
/// are what refuses: a terminator such as nginx answers each request instead.
#[derive(Debug)]
struct Asking {
    inner: Verifier,
    refuses: bool,
    clock: Clock,
}

impl ClientCertVerifier for Asking {
    fn client_auth_mandatory(&self) -> bool {
        self.refuses
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.inner.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        if !self.refuses {
            return Ok(ClientCertVerified::assertion());
        }
        self.inner.verify_client_cert(certificate, intermediates, unix_time(&self.clock))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.inner.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

pub(super) type Stream = Either<TcpStream, Box<TlsStream<TcpStream>>>;

/// Begins a connection. `Err` for a client that fails the handshake.
pub(super) async fn begin(tcp: TcpStream, tls: Option<TlsAcceptor>) -> io::Result<Stream> {
    let Some(acceptor) = tls else { return Ok(Either::Left(tcp)) };
    match acceptor.accept(tcp).into_fallible().await {
        Ok(stream) => Ok(Either::Right(Box::new(stream))),
        Err((error, tcp)) => {
            refuse(tcp).await;
            Err(error)
        }
    }
}

pub(super) fn presented(stream: &Stream) -> Presented {
    let certificates = match stream {
        Either::Left(_) => None,
        Either::Right(stream) => stream.get_ref().1.peer_certificates(),
    };
    Presented(certificates.unwrap_or_default().to_vec())
}

/// Ends the connection with a TCP reset, when it is dropped.
pub(super) fn reset(stream: &Stream) {
    let tcp = match stream {
        Either::Left(tcp) => tcp,
        Either::Right(stream) => stream.get_ref().0,
    };
    // Fails if the client has disconnected.
    let _ = tcp.set_zero_linger();
}

/// Lets the alert arrive: a connection that is closed with unread bytes of the request is reset, and a
/// reset may overtake the alert.
async fn refuse(mut tcp: TcpStream) {
    // Both fail if the client has disconnected.
    let _ = tcp.shutdown().await;
    let _ = tokio::io::copy(&mut tcp, &mut tokio::io::sink()).await;
}
