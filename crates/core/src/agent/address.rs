//! [`AgentAddress`]: the address of an agent, with the service and subject of its tokens.

use std::fmt;
use std::path::{Path, PathBuf};

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

use crate::error::{Error, Kind, Result};
use crate::http::BaseUrl;

/// Characters to escape in a subject: the separator, spaces, quotes, and the escape itself.
const ESCAPED: &AsciiSet = &CONTROLS.add(b'#').add(b'%').add(b' ').add(b'"').add(b'\'');
const FORMS: &str =
    "An agent's address is unix:PATH or https://HOST:PORT; `siteline agent` prints it.";

/// The value of `SITELINE_AGENT`: the place, then `#` and the base URL, then `#` and the subject.
/// The last two are optional; the client then requests them from the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentAddress {
    pub place: Place,
    /// The base URL of the service.
    pub base_url: Option<String>,
    /// The subject of the credential.
    pub subject: Option<String>,
}

/// The place where an agent listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// The absolute path of a Unix socket.
    Unix(PathBuf),
    /// TLS on a host and port.
    Tls {
        /// A name or an address; an IPv6 address has no brackets.
        host: String,
        port: u16,
    },
}

impl AgentAddress {
    /// Reads the value of `SITELINE_AGENT` or `agent=`.
    pub fn parse(text: &str) -> Result<Self> {
        let mut parts = text.trim().splitn(3, '#');
        let place = Place::parse(parts.next().unwrap_or_default())?;
        let mut given = || parts.next().map(str::trim).filter(|text| !text.is_empty());
        // Plain HTTP is allowed here because the agent has already checked it.
        let base_url = given().map(|text| BaseUrl::parse(text, true)).transpose()?;
        let base_url = base_url.map(|base_url| base_url.as_str().to_owned());
        let subject = given();
        let subject = subject.map(|text| percent_decode_str(text).decode_utf8_lossy().into_owned());
        Ok(Self { place, base_url, subject })
    }
}

impl Place {
    /// Reads a place without base URL and subject.
    pub fn parse(text: &str) -> Result<Self> {
        let refused = |what: &str| {
            // The text is not quoted: it may be a secret that was meant for another variable.
            let message = format!(
                "SITELINE_AGENT, agent= or listen= is not the address of an agent: {what}."
            );
            Error::new(Kind::ConfigError, message).with_hint(FORMS)
        };
        if let Some(path) = text.strip_prefix("unix:") {
            // `unix://` and a path is accepted too, as in a URL without a host.
            let path = Path::new(path.strip_prefix("//").unwrap_or(path));
            if path.as_os_str().is_empty() || text.contains('#') {
                return Err(refused("it has no path"));
            }
            let path = std::path::absolute(path).map_err(|_| refused("it has no path"))?;
            return Ok(Self::Unix(path));
        }
        let url = BaseUrl::parse(text, false).ok().map(|base| base.join("/", None));
        let url = url.filter(|url| url.scheme() == "https" && url.path() == "/");
        let place = url.and_then(|url| {
            let host = url.host_str()?.trim_start_matches('[').trim_end_matches(']').to_owned();
            Some(Self::Tls { host, port: url.port_or_known_default()? })
        });
        place.ok_or_else(|| refused("it is neither unix:PATH nor https://HOST:PORT"))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tls { host, port } if host.contains(':') => write!(f, "https://[{host}]:{port}"),
            Self::Tls { host, port } => write!(f, "https://{host}:{port}"),
        }
    }
}

impl fmt::Display for AgentAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.place.fmt(f)?;
        if self.base_url.is_some() || self.subject.is_some() {
            write!(f, "#{}", self.base_url.as_deref().unwrap_or_default())?;
        }
        match &self.subject {
            Some(subject) => write!(f, "#{}", utf8_percent_encode(subject, ESCAPED)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_it_is_written() {
        for text in [
            "unix:/run/siteline.sock",
            "unix:/run/siteline.sock#https://customer.example.com",
            "unix:/run/siteline.sock#https://customer.example.com#integration-7",
            "https://agent.example.com:8443#https://customer.example.com/eu#a%20b%23c%25",
            "https://[::1]:8443",
        ] {
            assert_eq!(AgentAddress::parse(text).expect("an address").to_string(), text);
        }
        let subject = AgentAddress::parse("unix:/a##a%20b%23").expect("an address").subject;
        assert_eq!(subject.as_deref(), Some("a b#"));
        let default = AgentAddress::parse("https://agent.example.com/").expect("an address");
        assert_eq!(default.to_string(), "https://agent.example.com:443");
        let written = "unix:/a# HTTPS://Customer.example.com/ # integration-7 ";
        let read = AgentAddress::parse(written).expect("an address").to_string();
        assert_eq!(read, "unix:/a#https://customer.example.com#integration-7");
        let slashes = AgentAddress::parse("unix:///run/a").expect("an address");
        assert_eq!(slashes.to_string(), "unix:/run/a");
    }

    #[test]
    fn an_invalid_address_is_refused() {
        for text in [
            "",
            "unix:",
            "unix:/a#customer.example.com",
            "/run/siteline.sock",
            "http://127.0.0.1:8443",
            "https://user:word@host:1",
            "https://host:1/path",
            "https://host:1?query",
        ] {
            let error = AgentAddress::parse(text).expect_err(text);
            assert_eq!(error.kind(), Kind::ConfigError);
        }
    }
}
