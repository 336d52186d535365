//! Selects the proxy: `proxy=`, then the environment. Requests to loopback never use one. The
//! address is parsed here because the HTTP library ignores a variable that it does not understand,
//! and would send the request without the proxy.
//!
//! The variables are the same as curl's: `https_proxy`, or `http_proxy` for plain HTTP, then
//! `all_proxy`; lower case has precedence. A CGI program ignores `HTTP_PROXY`, because the request
//! header `Proxy` sets it.

use std::ffi::OsString;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode_str;
use reqwest::header::HeaderValue;
use url::Url;

use super::base_url::BaseUrl;
use super::no_proxy;
use crate::error::{Error, Kind, Result};
use crate::written::unquoted;

const SETTING_HINT: &str = "Write it as http://proxy.example.com:3128 or \
socks5://proxy.example.com:1080. With a user: http://user:password@…, where / ? # and % are \
percent-encoded.";

/// `socks5` resolves the service's name here, `socks5h` at the proxy.
const SCHEMES: [&str; 4] = ["http", "https", "socks5", "socks5h"];

type Lookup<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// Refuses a `proxy=` that is not the address of a proxy. The error omits the text, which may
/// contain a password.
pub(super) fn check(proxy: &str) -> Result<()> {
    read("proxy", proxy).map(drop)
}

/// The proxy for this service, from the setting or the environment.
pub(super) fn for_service(base: &BaseUrl, setting: Option<&str>) -> Result<Option<Tunnel>> {
    let chosen = chosen(base, setting, &|name| std::env::var_os(name));
    chosen.map_err(|error| error.with(|context| context.unsent = true))
}

fn chosen(base: &BaseUrl, setting: Option<&str>, lookup: Lookup<'_>) -> Result<Option<Tunnel>> {
    if base.is_loopback() {
        return Ok(None);
    }
    if let Some(proxy) = setting {
        return read("proxy", proxy).map(Some);
    }
    let port = base.join("/", None).port_or_known_default().unwrap_or_default();
    let (_, exceptions) = variable(lookup, &["no_proxy", "NO_PROXY"])?.unwrap_or_default();
    if no_proxy::names(&exceptions, base.host(), port) {
        return Ok(None);
    }
    match variable(lookup, names(base.is_plain(), lookup("REQUEST_METHOD").is_some()))? {
        Some((name, address)) => read(name, &address).map(Some),
        None => Ok(system_proxy(base)),
    }
}

/// The variables in the order of precedence.
fn names(is_plain: bool, is_cgi: bool) -> &'static [&'static str] {
    match (is_plain, is_cgi) {
        (true, true) => &["http_proxy", "all_proxy", "ALL_PROXY"],
        (true, false) => &["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"],
        (false, _) => &["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"],
    }
}

/// The first of these variables that is set and not empty, and its value.
fn variable(lookup: Lookup<'_>, names: &[&'static str]) -> Result<Option<(&'static str, String)>> {
    for name in names {
        let Some(value) = lookup(name) else { continue };
        let Ok(value) = value.into_string() else {
            return Err(refused(name, "it is not UTF-8 text"));
        };
        let value = unquoted(&value);
        if !value.is_empty() {
            return Ok(Some((name, value.to_owned())));
        }
    }
    Ok(None)
}

/// The proxy in the system settings of macOS or Windows.
#[cfg(any(windows, target_os = "macos"))]
fn system_proxy(base: &BaseUrl) -> Option<Tunnel> {
    let matcher = hyper_util::client::proxy::matcher::Matcher::from_system();
    let target = base.join("/", None);
    let found = matcher.intercept(&target.as_str().parse::<hyper::Uri>().ok()?)?;
    read("proxy", &found.uri().to_string()).ok()
}

#[cfg(not(any(windows, target_os = "macos")))]
fn system_proxy(_base: &BaseUrl) -> Option<Tunnel> {
    None
}

/// A proxy that tunnels connections to the service.
#[derive(Clone)]
pub(super) struct Tunnel {
    /// The address for messages, without user and password.
    pub(super) address: String,
    /// The complete address, with a percent-encoded user and password.
    url: Url,
}

impl Tunnel {
    /// The host; an IPv6 address is in brackets.
    pub(super) fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }

    pub(super) fn host_and_port(&self) -> String {
        let default = if self.is_socks() { 1080 } else { 80 };
        format!("{}:{}", self.host(), self.url.port_or_known_default().unwrap_or(default))
    }

    /// Whether the connection to the proxy uses TLS.
    pub(super) fn is_tls(&self) -> bool {
        self.url.scheme() == "https"
    }

    pub(super) fn is_socks(&self) -> bool {
        self.url.scheme().starts_with("socks")
    }

    /// The library would replace the bytes of a password that are not UTF-8.
    pub(super) fn for_library(&self) -> reqwest::Result<reqwest::Proxy> {
        match self.authorization().filter(|_| !self.is_socks()) {
            Some(header) => Ok(reqwest::Proxy::all(&self.address)?.custom_http_auth(header)),
            None => reqwest::Proxy::all(self.url.clone()),
        }
    }

    fn has_user(&self) -> bool {
        !self.url.username().is_empty() || self.url.password().is_some()
    }

    /// The header with user and password, marked as sensitive.
    fn authorization(&self) -> Option<HeaderValue> {
        if !self.has_user() {
            return None;
        }
        let mut plain: Vec<u8> = percent_decode_str(self.url.username()).collect();
        plain.push(b':');
        plain.extend(percent_decode_str(self.url.password().unwrap_or_default()));
        let mut header =
            HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(plain))).ok()?;
        header.set_sensitive(true);
        Some(header)
    }

    /// The request for a tunnel to this host and port.
    pub(super) fn request(&self, to: &str) -> Vec<u8> {
        let mut head = format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n").into_bytes();
        if let Some(authorization) = self.authorization() {
            head.extend_from_slice(b"Proxy-Authorization: ");
            head.extend_from_slice(authorization.as_bytes());
            head.extend_from_slice(b"\r\n");
        }
        head.extend_from_slice(b"\r\n");
        head
    }
}

fn refused(name: &str, why: &str) -> Error {
    let message = format!("{name} is not the address of a proxy: {why}.");
    Error::new(Kind::ConfigError, message).with_hint(SETTING_HINT)
}

/// Parses a complete address. A user and a password end at the last `@`.
fn read(name: &str, written: &str) -> Result<Tunnel> {
    let written = unquoted(written);
    let refused = |why: &str| refused(name, why);
    if written.is_empty() {
        return Err(refused("it is empty"));
    }
    if written.chars().any(char::is_control) {
        return Err(refused("it contains a line break or another control character"));
    }
    let (scheme, rest) = match written.split_once("://") {
        Some((scheme, rest)) if !scheme.contains(['@', ':']) => (scheme.to_ascii_lowercase(), rest),
        _ => ("http".to_owned(), written),
    };
    if !SCHEMES.contains(&scheme.as_str()) {
        return Err(refused("it starts with none of http://, https://, socks5:// and socks5h://"));
    }
    tunnel(&scheme, rest).ok_or_else(|| {
        refused("it is not HOST:PORT, or USER:PASSWORD@HOST:PORT without one of / ? #")
    })
}

fn tunnel(scheme: &str, rest: &str) -> Option<Tunnel> {
    // With the scheme http, the parser checks the host as a name or IP address. It would read a
    // backslash, which Windows puts between domain and user, as a slash.
    let rest = rest.trim_end_matches('/');
    let parsed = Url::parse(&format!("http://{}", rest.replace('\\', "%5C"))).ok()?;
    let has_more = parsed.path() != "/" || parsed.query().is_some() || parsed.fragment().is_some();
    if has_more || parsed.port() == Some(0) || rest.ends_with(':') {
        return None;
    }
    // The parser drops the default port of http, however it is written.
    let written = rest.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
    let port = parsed.port().or(written.filter(|port| *port == 80));
    let port = port.map_or_else(String::new, |port| format!(":{port}"));
    let address = format!("{scheme}://{}{port}", parsed.host_str()?);
    let mut url = Url::parse(&address).ok()?;
    url.set_username(parsed.username()).ok()?;
    url.set_password(parsed.password()).ok()?;
    Some(Tunnel { address, url })
}

/// Whether a proxy's address contains a user or a password.
pub(crate) fn has_password(proxy: &str) -> bool {
    read("proxy", proxy).map_or(proxy.contains('@'), |tunnel| tunnel.has_user())
}

#[cfg(test)]
#[path = "proxy_tests.rs"]
mod tests;
