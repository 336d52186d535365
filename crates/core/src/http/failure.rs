//! Converts errors of reqwest, hyper and rustls. Their text is never shown, because it contains
//! addresses with queries. The messages are chosen by the types of the causes.

use std::error::Error as StdError;
use std::io;

use jiff::Timestamp;
use rustls::pki_types::UnixTime;
use rustls::{AlertDescription, CertificateError};
use url::Url;

use super::base_url::BaseUrl;
use super::certificate_refusal::{self, is_refusal};
use super::client_certificate::Presenter;
use crate::error::{Error, Kind, Phase, excerpt};
use crate::system;

/// The hint of TLS errors that a certificate setting may solve.
pub(super) const TRUST_HINT: &str = "if the service's certificate comes from a private \
CA, name the CA with ca_bundle=, SSL_CERT_FILE or SSL_CERT_DIR";

/// The hint of a name or an address that cannot be reached.
const CHECK_ADDRESS: &str =
    "check the host and port in base_url=, the network, and that the service is running";
const NOT_REACHED: &str = "no connection to it";
const NO_ADDRESS: &str = "the host name could not be resolved";
const NEEDS_A_USER: &str = "it requires another user or password (407)";

/// Finds the alert that ended an HTTP/2 connection, which keeps only the text of its error.
fn alert_of_text(causes: &[&(dyn StdError + 'static)]) -> Option<rustls::Error> {
    let texts: Vec<String> = causes.iter().map(ToString::to_string).collect();
    (0..=u8::MAX)
        .map(|code| rustls::Error::AlertReceived(code.into()))
        .find(|alert| texts.contains(&alert.to_string()))
}

/// All causes of an error, outermost first. `source()` of an [`io::Error`] would skip its inner
/// error.
fn causes<'a>(error: &'a (dyn StdError + 'static)) -> Vec<&'a (dyn StdError + 'static)> {
    let mut found: Vec<&'a (dyn StdError + 'static)> = Vec::new();
    let mut next = Some(error);
    while let Some(cause) = next {
        found.push(cause);
        next = match cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(inner) => Some(inner),
            None => cause.source(),
        };
    }
    found
}

fn find<'a, T: StdError + 'static>(causes: &[&'a (dyn StdError + 'static)]) -> Option<&'a T> {
    causes.iter().find_map(|cause| cause.downcast_ref::<T>())
}

/// Converts a failure before the headers of a reply arrived. `proxy` is the address of the proxy in
/// use, without its password.
pub(super) fn from_request(
    error: reqwest::Error,
    base: &BaseUrl,
    proxy: Option<&str>,
    presenter: &Presenter,
) -> Error {
    let error = error.without_url();
    let causes = causes(&error);
    let alert = alert_of_text(&causes);
    if let Some(tls) = find::<rustls::Error>(&causes).or(alert.as_ref()) {
        // An alert may also arrive after the handshake, when the request was already sent.
        let unsent = error.is_connect();
        return from_tls(tls, &base.host_and_port(), presenter)
            .with(|context| context.unsent |= unsent);
    }
    if error.is_connect()
        && let Some(proxy) = proxy
    {
        // A failed tunnel has its own error; plain HTTP connects to the proxy only.
        let refused = causes.iter().find_map(|cause| tunnel_refusal(*cause));
        let plain = (base.is_plain() && !error.is_timeout()).then_some(NOT_REACHED);
        match refused.or(plain) {
            Some(NEEDS_A_USER) => return proxy_refused(proxy, base.host(), 407),
            Some(NOT_REACHED) => return unreached_proxy(proxy, base.host(), &error),
            Some(why) => return from_proxy(proxy, base.host(), why),
            None => {}
        }
    }
    if error.is_connect() {
        return from_connect(&error, &causes, base, proxy);
    }
    if let Some(http) = find::<hyper::Error>(&causes) {
        if http.is_parse_too_large() {
            return Error::new(Kind::ProtocolError, "the headers of the reply are too large");
        }
        if http.is_parse() {
            return broken_framing();
        }
    }
    let message = format!("the connection broke before a reply: {}", how(&causes));
    let error = Error::new(Kind::TransportError, message);
    if !presenter.was_asked() {
        return error;
    }
    // The alert may have been lost with the connection.
    error.with_hint(match presenter.certificate {
        None => "the service asks for a client certificate, and there is none",
        Some(_) => {
            "the service asked for a client certificate, and may have refused the one presented"
        }
    })
}

/// Converts a failure while a body was read.
pub(super) fn from_body(error: reqwest::Error) -> Error {
    let error = error.without_url();
    let causes = causes(&error);
    if find::<hyper::Error>(&causes).is_some_and(hyper::Error::is_parse) {
        return broken_framing();
    }
    Error::new(Kind::TruncatedBody, format!("the body of the reply is truncated: {}", how(&causes)))
}

/// The error if the reqwest client cannot be created.
pub(super) fn unusable_settings() -> Error {
    Error::new(
        Kind::ConfigError,
        "the settings of the connection (proxy=, ca_bundle=) cannot be used",
    )
    .with(|context| context.unsent = true)
}

/// The error if this machine has no trusted certificates.
pub(super) fn no_store() -> Error {
    if let Some(error) = system::exhausted_files() {
        return unread_trust("this machine's trusted certificates cannot be read", &error);
    }
    Error::new(
        Kind::TlsError,
        "this machine has no store of trusted certificates, so the service cannot be verified",
    )
    .with_hint(TRUST_HINT)
    .with(|context| context.unsent = true)
}

/// The error if trusted certificates cannot be read at the moment.
pub(super) fn unread_trust(what: &str, error: &io::Error) -> Error {
    Error::system(Kind::TlsError, what, error).with(|context| context.unsent = true)
}

fn broken_framing() -> Error {
    Error::new(Kind::ProtocolError, "the reply is not valid HTTP")
        .with(|context| context.broken_framing = true)
}

fn from_connect(
    error: &reqwest::Error,
    causes: &[&(dyn StdError + 'static)],
    base: &BaseUrl,
    proxy: Option<&str>,
) -> Error {
    let address = base.host_and_port();
    if error.is_timeout() {
        return connect_timeout(&address, proxy);
    }
    if error.is_dns() {
        return unresolved(base.host(), refused_by_system(causes));
    }
    unreached(&address, error)
}

/// Finds the cause that shows a temporary shortage of the system, such as threads or open files.
fn refused_by_system<'a>(causes: &[&'a (dyn StdError + 'static)]) -> Option<&'a io::Error> {
    causes.iter().filter_map(|cause| cause.downcast_ref()).find(|error| system::is_passing(error))
}

/// The error of a failed lookup, or of a name without an address. It is not retried if the system
/// refused a thread.
pub(super) fn unresolved(host: &str, error: Option<&io::Error>) -> Error {
    let message = format!("the host name {host} could not be resolved");
    let unresolved = match error.filter(|error| system::is_passing(error)) {
        Some(error) => Error::system(Kind::TransportError, message, error),
        None => Error::new(Kind::TransportError, message),
    };
    with_address_hint(unresolved)
}

/// The error of an address that accepts no connection.
pub(super) fn unreached(address: &str, error: &(dyn StdError + 'static)) -> Error {
    let causes = causes(error);
    let message = format!("no connection to {address}: {}", why(&causes));
    with_address_hint(advised(Error::new(Kind::TransportError, message), &causes))
}

/// Completes the error of a connection that was not opened. A hint about the system stays.
fn with_address_hint(error: Error) -> Error {
    error.with(|context| {
        context.unsent = true;
        context.hint.get_or_insert_with(|| CHECK_ADDRESS.to_owned());
    })
}

/// The error of a proxy that accepts no connection.
pub(super) fn unreached_proxy(proxy: &str, host: &str, error: &(dyn StdError + 'static)) -> Error {
    let causes = causes(error);
    advised(from_proxy(proxy, host, &why(&causes)), &causes)
}

/// How a connection failed, or which resource the system lacks.
fn why(causes: &[&(dyn StdError + 'static)]) -> String {
    refused_by_system(causes).map_or_else(|| how(causes).to_owned(), system::reason)
}

/// Adds a hint if the system lacks a resource.
fn advised(error: Error, causes: &[&(dyn StdError + 'static)]) -> Error {
    match refused_by_system(causes).and_then(system::advice) {
        Some(advice) => error.with_hint(advice),
        None => error,
    }
}

/// Converts a failed handshake outside a request.
pub(super) fn from_handshake(error: &io::Error, address: &str, presenter: &Presenter) -> Error {
    let causes = causes(error);
    match find::<rustls::Error>(&causes) {
        Some(tls) => from_tls(tls, address, presenter),
        None => unreached(address, error),
    }
}

pub(super) fn connect_timeout(address: &str, proxy: Option<&str>) -> Error {
    let through = proxy.map_or_else(String::new, |proxy| format!(" through the proxy {proxy}"));
    let message = format!("{address} did not accept the connection{through} in time");
    Error::new(Kind::TransportTimeout, message).with(|context| {
        context.phase = Some(Phase::Connect);
        context.unsent = true;
    })
}

/// How a connection ended, by the kinds of the causes.
fn how(causes: &[&(dyn StdError + 'static)]) -> &'static str {
    let io = causes.iter().filter_map(|cause| cause.downcast_ref::<io::Error>());
    for error in io {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => return "connection refused",
            io::ErrorKind::ConnectionReset => return "connection reset",
            io::ErrorKind::ConnectionAborted => return "connection aborted",
            io::ErrorKind::BrokenPipe => return "connection closed",
            io::ErrorKind::UnexpectedEof => return "connection closed in the middle",
            io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable => {
                return "no route to it";
            }
            io::ErrorKind::TimedOut => return "the connection timed out",
            _ => {}
        }
    }
    if find::<hyper::Error>(causes).is_some_and(hyper::Error::is_incomplete_message) {
        return "connection closed in the middle";
    }
    "connection lost"
}

/// Why a proxy did not connect. The libraries do not export the error types, so their `Debug` names
/// are compared.
fn tunnel_refusal(cause: &(dyn StdError + 'static)) -> Option<&'static str> {
    let name = format!("{cause:?}");
    [
        ("ProxyAuthRequired", NEEDS_A_USER),
        ("ConnectFailed(", NOT_REACHED),
        ("TunnelUnexpectedEof", "it closed the connection"),
        ("ProxyHeadersTooLong", "its reply is too long"),
        ("Tunnel", "it refused"),
        ("SocksLocalResolve(", NO_ADDRESS),
        ("SocksConnect(Inner(", "it cannot be reached"),
        ("SocksConnect(V5(Auth(", "it requires another user or password"),
        ("SocksConnect(V5(Command(ConnectionNotAllowed", "its rules forbid this connection"),
        ("SocksConnect(V5(Command(", "it does not reach the service"),
        ("SocksConnect(Io(", "it closed the connection"),
        ("SocksConnect(", "it does not speak SOCKS 5"),
    ]
    .into_iter()
    .find_map(|(known, why)| name.starts_with(known).then_some(why))
}

pub(super) fn from_proxy(proxy: &str, host: &str, why: &str) -> Error {
    Error::new(Kind::ProxyError, format!("the proxy {proxy} did not connect to {host}: {why}"))
        .with_hint("check proxy=, HTTPS_PROXY and NO_PROXY, and the proxy's user and password")
        .with(|context| context.unsent = true)
}

/// The error of a proxy's reply with this status. The request did not reach the service.
pub(super) fn proxy_refused(proxy: &str, host: &str, status: u16) -> Error {
    let error = match status {
        407 => from_proxy(proxy, host, NEEDS_A_USER),
        _ => from_proxy(proxy, host, &format!("it refused with status {status}")),
    };
    error.with(|context| context.status = Some(status))
}

/// The error of plain HTTP that was sent to a port with TLS.
pub(super) fn plain_to_tls(address: &str) -> Error {
    Error::new(Kind::TlsError, format!("{address} speaks TLS, but plain HTTP was sent"))
        .with_hint("write base_url= with https://")
}

fn from_tls(error: &rustls::Error, address: &str, presenter: &Presenter) -> Error {
    if let rustls::Error::AlertReceived(alert) = error
        && is_refusal(*alert, presenter)
    {
        return certificate_refusal::from_alert(*alert, address, presenter);
    }
    let (what, hint) = handshake_problem(error);
    Error::new(Kind::TlsError, format!("no trusted connection to {address}: {what}"))
        .with_hint(hint)
}

/// Describes why a handshake failed, with a hint.
pub(crate) fn handshake_problem(error: &rustls::Error) -> (String, &'static str) {
    use rustls::Error as Tls;
    match error {
        Tls::InvalidCertificate(problem) => certificate_problem(problem),
        Tls::InvalidMessage(_) | Tls::InappropriateMessage { .. } => (
            "it does not speak TLS on this port, and may speak plain HTTP".to_owned(),
            "check the port in base_url=; plain HTTP to hosts other than loopback needs \
             allow_http=True",
        ),
        Tls::PeerIncompatible(_)
        | Tls::AlertReceived(
            AlertDescription::ProtocolVersion | AlertDescription::InsufficientSecurity,
        ) => (
            "it offers no version of TLS that is considered safe (1.2 or 1.3)".to_owned(),
            "no setting helps: the service, or a proxy before it, must offer one of them",
        ),
        Tls::AlertReceived(AlertDescription::HandshakeFailure) => (
            "it refused the handshake: it shares no cipher with siteline".to_owned(),
            "ask the operator of the service or the proxy",
        ),
        Tls::AlertReceived(_) => {
            ("it refused the handshake".to_owned(), "ask the operator of the service or the proxy")
        }
        _ => ("the handshake failed".to_owned(), "ask the operator of the service or the proxy"),
    }
}

/// Describes the fault of a certificate, with a hint. A setting helps only against an unknown CA.
fn certificate_problem(problem: &CertificateError) -> (String, &'static str) {
    use CertificateError as Certificate;
    const RENEW: &str = "if this machine's clock is right, the operator must renew it";
    const CLOCK: &str = "check this machine's clock";
    const NAME: &str = "base_url= must have a host name of the certificate";
    const RUN: &str = "ask the operator of the service";
    match problem {
        Certificate::Expired => ("its certificate has expired".to_owned(), RENEW),
        Certificate::ExpiredContext { time, not_after } => (
            format!("its certificate expired on {}, now is {}", day(*not_after), day(*time)),
            RENEW,
        ),
        Certificate::NotValidYet => ("its certificate is not valid yet".to_owned(), CLOCK),
        Certificate::NotValidYetContext { time, not_before } => {
            let (from, now) = (day(*not_before), day(*time));
            (format!("its certificate is not valid before {from}, now is {now}"), CLOCK)
        }
        Certificate::NotValidForName => {
            ("its certificate is for another host name".to_owned(), NAME)
        }
        Certificate::NotValidForNameContext { presented, .. } if presented.is_empty() => (
            "its certificate has no host name as subjectAltName, and its common name is ignored"
                .to_owned(),
            "create it again with a name: openssl req -x509 -addext subjectAltName=DNS:HOST",
        ),
        Certificate::NotValidForNameContext { presented, .. } => {
            (format!("its certificate is for another host name: {}", names(presented)), NAME)
        }
        Certificate::UnknownIssuer => {
            ("its certificate was issued by an unknown authority".to_owned(), TRUST_HINT)
        }
        Certificate::Revoked => ("its certificate was revoked".to_owned(), RUN),
        other => {
            let (what, hint) = rare_problem(other).unwrap_or(("is not valid", RUN));
            (format!("its certificate {what}"), hint)
        }
    }
}

/// Describes the fault of an unusual certificate, mostly one that was made by hand.
fn rare_problem(problem: &CertificateError) -> Option<(&'static str, &'static str)> {
    use CertificateError as Certificate;
    const AGAIN: &str = "the operator must have it issued again";
    Some(match problem {
        Certificate::InvalidPurpose | Certificate::InvalidPurposeContext { .. } => {
            ("is not for servers: its extended key usage lacks serverAuth", AGAIN)
        }
        Certificate::UnsupportedSignatureAlgorithmContext { .. }
        | Certificate::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            ("has a signature that is not considered safe, such as SHA-1", AGAIN)
        }
        Certificate::BadSignature => {
            ("has a signature that does not match its key or its CA", AGAIN)
        }
        // The library has no type for these, only the name of a variant as text.
        Certificate::Other(other) => match other.to_string().as_str() {
            text if text.contains("CaUsedAsEndEntity") => (
                "is self-signed or a CA's own, and is not trusted",
                "if you trust it, name this certificate with ca_bundle=, or use one that was \
                 issued for the service",
            ),
            text if text.contains("UnsupportedCriticalExtension") => {
                ("has a critical extension that siteline does not know", AGAIN)
            }
            text if text.contains("UnsupportedCertVersion") => (
                "is of X.509 version 1, which has no host names",
                "create it again as version 3: openssl req -x509 -addext subjectAltName=DNS:HOST",
            ),
            _ => return None,
        },
        _ => return None,
    })
}

fn day(time: UnixTime) -> String {
    let second = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    Timestamp::from_second(second).map_or("an unknown time".to_owned(), |time| time.to_string())
}

/// The first names of a certificate, for an error message.
fn names(presented: &[String]) -> String {
    // The library's form is `DnsName("plant.example")` or `IpAddress(127.0.0.1)`.
    let plain = |name: &String| {
        let (_, inner) = name.trim_end_matches(')').split_once('(').unwrap_or(("", name));
        excerpt(inner.trim_matches('"'))
    };
    let shown: Vec<String> = presented.iter().take(3).map(plain).collect();
    let more = if presented.len() > 3 { ", …" } else { "" };
    format!("{}{more}", shown.join(", "))
}

/// The error of a URL that is too long for the HTTP library.
pub(super) fn too_long_url(url: &Url) -> Error {
    let (path, length) = (url.path(), url.as_str().len());
    let message = format!("GET {path} was not sent: its URL would have {length} bytes");
    Error::new(Kind::RequestRejected, message)
        .with_hint("A URL has at most 65,534 bytes: request less in one query.")
        .with(|context| context.unsent = true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m1_m2_an_alert_is_found_by_its_text() {
        let alert = rustls::Error::AlertReceived(AlertDescription::CertificateRequired);
        for (text, expected) in [
            (alert.to_string(), Some(alert.clone())),
            (format!("the service says: {alert}"), None),
            ("received nothing".to_owned(), None),
        ] {
            // h2 keeps the kind and the text of the connection's error.
            let error = io::Error::new(io::ErrorKind::InvalidData, text);
            assert_eq!(alert_of_text(&causes(&error)), expected);
        }
    }

    #[test]
    fn h20_every_failed_tls_check_is_named_and_none_is_retried() {
        use rustls::Error as Tls;
        let invalid = Tls::InvalidCertificate;
        let alert = Tls::AlertReceived;
        for (error, named, hint) in [
            (invalid(CertificateError::UnknownIssuer), "unknown authority", "SSL_CERT_FILE"),
            (invalid(CertificateError::NotValidForName), "another host name", "base_url="),
            (invalid(CertificateError::Expired), "has expired", "renew"),
            (invalid(CertificateError::Revoked), "was revoked", "the operator"),
            (alert(AlertDescription::ProtocolVersion), "no version of TLS", "must offer one"),
            (alert(AlertDescription::HandshakeFailure), "no cipher", "the operator"),
        ] {
            // reqwest wraps the error in two `io::Error`s, and their `source()` skips it.
            let wrapped = io::Error::other(io::Error::other(error));
            let found = causes(&wrapped);
            let tls = find::<Tls>(&found).expect("found inside");
            let error = from_tls(tls, "customer.example.com:443", &Presenter::new(None));
            assert_eq!(error.kind(), Kind::TlsError);
            assert_eq!(error.transience(), crate::error::Transience::Never);
            let text = error.to_string();
            assert!(text.contains(named) && text.contains(hint), "{text}");
            assert_eq!(text.contains("ca_bundle="), named == "unknown authority", "{text}");
        }
    }
}

#[cfg(test)]
#[path = "failure_edge_tests.rs"]
mod edge_tests;
