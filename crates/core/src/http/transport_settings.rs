//! [`TransportSettings`]: time limits and other limits of a connection, its trust and its proxy.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::HeaderValue;

use super::note::Observer;
use super::proxy;
use super::trust::Trust;
use crate::error::{Error, Kind, Result};

#[derive(Clone)]
#[non_exhaustive]
pub struct TransportSettings {
    /// Time limit for name lookup, TCP and TLS together.
    pub connect_timeout: Duration,
    /// Time limit for the status and headers of a reply, including the time to connect.
    pub response_timeout: Duration,
    /// Maximum time without data within a body.
    pub idle_timeout: Duration,
    /// Minimum number of bytes of a body in each `throughput_window`.
    pub throughput_bytes: usize,
    pub throughput_window: Duration,
    /// Maximum number of requests in flight, and so of connections.
    pub max_connections: usize,
    /// Maximum size of a body in bytes, before and after decompression.
    pub body_cap: usize,
    /// The application's name. It follows `siteline/VERSION` in the header `User-Agent`.
    pub application: Option<String>,
    pub trust: Trust,
    /// The address of a proxy; `None` uses the environment. Requests to loopback never use a proxy.
    pub proxy: Option<String>,
    /// Is notified of each request.
    pub observer: Option<Arc<dyn Observer>>,
}

impl Default for TransportSettings {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(5),
            response_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(15),
            throughput_bytes: 20 * 1024,
            throughput_window: Duration::from_secs(20),
            max_connections: 64,
            body_cap: 64 * 1024 * 1024,
            application: None,
            trust: Trust::default(),
            proxy: None,
            observer: None,
        }
    }
}

impl TransportSettings {
    /// Checks the name of the application and the proxy.
    pub fn check(&self) -> Result<()> {
        let agent = self.user_agent();
        if !agent.is_ascii() || HeaderValue::from_str(&agent).is_err() {
            return Err(Error::new(Kind::ConfigError, "application is not printable ASCII"));
        }
        self.proxy.as_deref().map_or(Ok(()), proxy::check)
    }

    pub(super) fn user_agent(&self) -> String {
        match self.application.as_deref().map(str::trim).filter(|name| !name.is_empty()) {
            Some(application) => format!("siteline/{} {application}", crate::VERSION),
            None => format!("siteline/{}", crate::VERSION),
        }
    }
}
