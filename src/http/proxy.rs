//! Which proxy the requests use: that of `proxy=`, else that of the environment (`HTTPS_PROXY`,
//! `HTTP_PROXY`, `ALL_PROXY`, except `NO_PROXY`). Requests to loopback never use a proxy. reqwest
//! applies the same rules; they are evaluated here so that an error can name the proxy, and so that
//! an unsupported proxy gives a clear error.

use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use reqwest::header::HeaderValue;

use super::base_url::BaseUrl;
use crate::error::{Error, Kind, Result};

const SETTING_HINT: &str = "Write it as http://proxy.example.com:3128; a user and a password as \
                            http://user:password@…, with signs such as @ and : percent-encoded.";

/// Refuses a `proxy=` that is not an address, or not an HTTP proxy. The error does not contain the
/// text, which may contain a password.
pub(super) fn check(proxy: &str) -> Result<()> {
    let named = Matcher::builder().all(proxy).build();
    let usable = reqwest::Proxy::all(proxy).is_ok() && !proxy.trim().is_empty();
    match named.intercept(&hyper::Uri::from_static("https://customer.example.com/")) {
        Some(found) if usable => address(&found).map(drop),
        _ => Err(Error::new(Kind::ConfigError, "proxy is not the address of a proxy.")
            .with_hint(SETTING_HINT)),
    }
}

/// The address of the proxy for this service, without user and password; `None` without a proxy.
///
/// # Errors
/// `ConfigError` for a SOCKS proxy.
pub(super) fn for_service(base: &BaseUrl, setting: Option<&str>) -> Result<Option<String>> {
    intercept(base, setting).as_ref().map(address).transpose()
}

fn intercept(base: &BaseUrl, setting: Option<&str>) -> Option<Intercept> {
    if base.is_loopback() {
        return None;
    }
    let matcher = match setting {
        Some(proxy) => Matcher::builder().all(proxy).build(),
        None => Matcher::from_system(),
    };
    let target = base.join("/", None);
    matcher.intercept(&target.as_str().parse::<hyper::Uri>().ok()?)
}

/// How a proxy is reached, and asked for a connection to the service.
pub(super) struct Tunnel {
    /// As it is shown: without user and password.
    pub(super) address: String,
    pub(super) host: String,
    pub(super) host_and_port: String,
    /// Whether the proxy itself speaks TLS.
    pub(super) is_tls: bool,
    authorization: Option<HeaderValue>,
}

impl Tunnel {
    /// The request for a connection to this host and port.
    pub(super) fn request(&self, to: &str) -> Vec<u8> {
        let mut head = format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n").into_bytes();
        if let Some(authorization) = &self.authorization {
            head.extend_from_slice(b"Proxy-Authorization: ");
            head.extend_from_slice(authorization.as_bytes());
            head.extend_from_slice(b"\r\n");
        }
        head.extend_from_slice(b"\r\n");
        head
    }
}

/// The way to the proxy that [`for_service`] names.
pub(super) fn tunnel(base: &BaseUrl, setting: Option<&str>) -> Option<Tunnel> {
    let found = intercept(base, setting)?;
    let (address, uri) = (address(&found).ok()?, found.uri());
    let is_tls = uri.scheme_str() == Some("https");
    let host = uri.host()?.to_owned();
    let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
    let host_and_port = format!("{host}:{port}");
    let authorization = found.basic_auth().cloned();
    Some(Tunnel { address, host, host_and_port, is_tls, authorization })
}

fn address(proxy: &Intercept) -> Result<String> {
    let scheme = proxy.uri().scheme_str().unwrap_or("http");
    let authority = proxy.uri().authority().map_or("", |authority| authority.as_str());
    if scheme.starts_with("socks") {
        let message =
            format!("the proxy {scheme}://{authority} is a SOCKS proxy, which is not supported.");
        return Err(Error::new(Kind::ConfigError, message)
            .with_hint("Name an HTTP proxy in proxy= or HTTPS_PROXY.")
            .with(|context| context.unsent = true));
    }
    Ok(format!("{scheme}://{authority}"))
}

/// Whether a proxy's address contains a password.
#[must_use]
pub(crate) fn has_password(proxy: &str) -> bool {
    let rest = proxy.split_once("://").map_or(proxy, |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or_default().contains('@')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h24_a_proxy_is_named_without_its_password() {
        let base = BaseUrl::parse("https://customer.example.com", false).expect("a base URL");
        for proxy in
            ["http://user:hunter2@proxy.example.com:3128", "user:hunter2@proxy.example.com:3128"]
        {
            let named = for_service(&base, Some(proxy)).expect("an address");
            assert_eq!(named.as_deref(), Some("http://proxy.example.com:3128"));
            assert!(has_password(proxy));
        }
        assert!(!has_password("http://proxy.example.com:3128/@"));
        let loopback = BaseUrl::parse("https://127.0.0.1:1", false).expect("a base URL");
        assert_eq!(
            for_service(&loopback, Some("http://proxy.example.com:3128")).expect("none"),
            None
        );
    }

    #[test]
    fn h24_an_invalid_proxy_is_refused_and_its_text_not_shown() {
        for proxy in
            ["", " ", "http://user:hunter2@:::", "ftp://hunter2", "socks5://u:hunter2@h.example:1"]
                // A port that there is not.
                .into_iter()
                .chain(["http://user:hunter2@h.example:99999", "h.example:99999"])
        {
            let error = check(proxy).expect_err(proxy);
            assert_eq!(error.kind(), Kind::ConfigError, "{proxy}");
            assert!(!error.to_string().contains("hunter2"), "{error}");
        }
        assert!(check("http://proxy.example.com:3128").is_ok());
    }

    #[test]
    fn a_tunnel_asks_with_the_user_and_the_password_of_the_setting() {
        let base = BaseUrl::parse("https://customer.example.com", false).expect("a base URL");
        let named = Some("https://user:hunter2@proxy.example.com");
        let tunnel = tunnel(&base, named).expect("a proxy");
        assert_eq!((tunnel.host_and_port.as_str(), tunnel.is_tls), ("proxy.example.com:443", true));
        assert!(!tunnel.address.contains("hunter2"));
        let head = String::from_utf8(tunnel.request("customer.example.com:443")).expect("text");
        assert!(head.starts_with("CONNECT customer.example.com:443 HTTP/1.1\r\nHost: customer."));
        assert!(head.ends_with("\r\nProxy-Authorization: Basic dXNlcjpodW50ZXIy\r\n\r\n"));
        let plain = super::tunnel(&base, Some("http://127.0.0.1:3128")).expect("a proxy");
        assert!(!plain.is_tls && !plain.request("h:1").windows(5).any(|part| part == b"Proxy"));
    }
}
