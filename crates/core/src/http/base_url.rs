//! [`BaseUrl`]: the validated address of the service.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use url::{Host, Url};

use crate::error::{Error, Kind, Result};

/// The path of the token endpoint below the base URL (§4.1). It has no version segment.
pub(crate) const TOKEN_PATH: &str = "/api/customer/oauth/token";

/// The validated address of the service. All paths of the interface are relative to it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BaseUrl {
    /// The address used in requests, without a trailing slash. Contains a default port (`:443`) if
    /// the user typed one, because the service compares `aud` with the address of the request as
    /// text.
    text: String,
    url: Url,
}

impl BaseUrl {
    /// Parses an address: `https://host[:port][/prefix]`, or `http://` on loopback.
    ///
    /// # Errors
    /// `ConfigError` for another scheme; for user information, a query or a fragment; and for plain
    /// HTTP to a host other than loopback unless `allow_http`. The error omits the address, which
    /// may contain a password.
    pub fn parse(text: &str, allow_http: bool) -> Result<Self> {
        let text = text.trim();
        let refuse = |what: &str| Err(Error::new(Kind::ConfigError, format!("base_url {what}")));
        if text.chars().any(|c| c.is_whitespace() || c.is_control() || c == '\\') {
            return refuse("contains a space, a control character or a backslash");
        }
        let Ok(url) = Url::parse(text) else {
            return refuse("is not an address; write it as https://customer.example.com");
        };
        if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
            return refuse("must begin with https:// and name a host");
        }
        if url.password().is_some() || authority(text).contains('@') {
            return refuse("contains a user name or password; pass the credential separately");
        }
        if url.query().is_some() || url.fragment().is_some() {
            return refuse("contains a query or a fragment; pass only the address");
        }
        let base = Self { text: normalized(text, &url), url };
        if base.is_plain() && !base.is_loopback() && !allow_http {
            return refuse("is plain http, which would send tokens unprotected").map_err(|error| {
                error.with_hint("use https://, or allow_http=True on your own network")
            });
        }
        Ok(base)
    }

    /// The address used in requests, without a trailing slash.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The address of the token endpoint, which is the default `aud` of assertions.
    pub(crate) fn token_url(&self) -> String {
        format!("{}{TOKEN_PATH}", self.text)
    }

    /// The address of a path of the interface, with a query that is already percent-encoded.
    pub fn join(&self, path: &str, query: Option<&str>) -> Url {
        let mut url = self.url.clone();
        url.set_path(&format!("{}{path}", self.url.path().trim_end_matches('/')));
        url.set_query(query);
        url
    }

    /// Whether the host is loopback. Plain HTTP is allowed there by default.
    pub(crate) fn is_loopback(&self) -> bool {
        match self.url.host() {
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            Some(Host::Domain(name)) => {
                let name = name.trim_end_matches('.');
                name == "localhost" || name.ends_with(".localhost")
            }
            None => false,
        }
    }

    /// The host, if it is loopback and a name (`localhost`, or one that ends with `.localhost`), and
    /// its addresses, independent of any resolver. Requests to such a name count as local, and need
    /// no TLS.
    pub(crate) fn loopback_name(&self) -> Option<(&str, [SocketAddr; 2])> {
        let is_name = self.is_loopback() && !self.is_loopback_address();
        let name = self.url.host_str().filter(|_| is_name)?;
        let port = self.url.port_or_known_default().unwrap_or_default();
        let addresses: [IpAddr; 2] = [Ipv6Addr::LOCALHOST.into(), Ipv4Addr::LOCALHOST.into()];
        Some((name, addresses.map(|address| SocketAddr::new(address, port))))
    }

    /// Whether the host is a loopback address, not a name.
    pub(crate) fn is_loopback_address(&self) -> bool {
        self.is_loopback() && !matches!(self.url.host(), Some(Host::Domain(_)))
    }

    pub(crate) fn is_plain(&self) -> bool {
        self.url.scheme() == "http"
    }

    /// The host and port, for error messages.
    pub(crate) fn host_and_port(&self) -> String {
        let port = self.url.port_or_known_default().unwrap_or_default();
        format!("{}:{port}", self.host())
    }

    pub fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }
}

/// The part of a typed address between the scheme and the path.
fn authority(text: &str) -> &str {
    let rest = text.split_once(':').map_or(text, |(_, rest)| rest).trim_start_matches('/');
    rest.split(['/', '?', '#']).next().unwrap_or_default()
}

/// The address as a request sends it: scheme and host in lower case, the host in ASCII. A typed
/// port is kept, even if it is the default.
fn normalized(text: &str, url: &Url) -> String {
    let scheme = url.scheme();
    let default = if scheme == "https" { 443 } else { 80 };
    let port = match url.port() {
        Some(port) => format!(":{port}"),
        None if authority(text).ends_with(&format!(":{default}")) => format!(":{default}"),
        None => String::new(),
    };
    let (host, path) = (url.host_str().unwrap_or_default(), url.path().trim_end_matches('/'));
    format!("{scheme}://{host}{port}{path}")
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        let error = BaseUrl::parse(text, false).expect_err(text);
        assert_eq!(error.kind(), Kind::ConfigError, "{text}");
        error.to_string()
    }

    #[test]
    fn k9_plain_http_is_refused_beyond_loopback_unless_allowed() {
        assert!(refused("http://customer.example.com").contains("plain http"));
        assert!(BaseUrl::parse("http://customer.example.com", true).is_ok());
        for loopback in
            ["http://127.0.0.1:8080", "http://[::1]:9", "http://localhost", "http://a.localhost:1"]
        {
            let base = BaseUrl::parse(loopback, false).expect(loopback);
            assert!(base.is_loopback() && base.is_plain());
        }
    }

    #[test]
    fn k10_user_information_query_and_fragment_are_refused_and_not_repeated() {
        for text in [
            "https://user:hunter2@customer.example.com",
            "https://@customer.example.com",
            "https://:@customer.example.com/eu",
            "https://customer.example.com?key=hunter2",
            "https://customer.example.com/?",
            "https://customer.example.com#hunter2",
            "https://customer.example.com/a b",
            "ftp://customer.example.com",
            // Other parsers treat the text after a backslash as another host, or drop characters.
            "https://customer.example.com\\@other.example.com",
            "https://customer\u{7}.com/eu",
            "customer.example.com",
            "",
        ] {
            assert!(!refused(text).contains("hunter2"));
        }
    }

    #[test]
    fn k10_the_audience_is_the_request_address_and_the_documented_path() {
        for (typed, audience) in [
            ("https://c.example.com/", "https://c.example.com/api/customer/oauth/token"),
            (" https://c.example.com//\n", "https://c.example.com/api/customer/oauth/token"),
            ("https://c.example.com/eu/", "https://c.example.com/eu/api/customer/oauth/token"),
            ("https://c.example.com:443", "https://c.example.com:443/api/customer/oauth/token"),
            ("HTTPS://C.Example.com/eu", "https://c.example.com/eu/api/customer/oauth/token"),
            ("https:c.example.com", "https://c.example.com/api/customer/oauth/token"),
            ("https://m\u{fc}n.example", "https://xn--mn-xka.example/api/customer/oauth/token"),
            ("https://c.example.com/a@b", "https://c.example.com/a@b/api/customer/oauth/token"),
            ("https://[2001:DB8::1]:8443", "https://[2001:db8::1]:8443/api/customer/oauth/token"),
        ] {
            let base = BaseUrl::parse(typed, false).expect(typed);
            assert_eq!(base.token_url(), audience);
            let sent = base.join(TOKEN_PATH, None);
            assert_eq!(sent.as_str().replace(":443", ""), audience.replace(":443", ""));
        }
    }
}
