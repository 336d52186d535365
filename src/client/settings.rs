//! The settings of a client and of a scan.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::background::Spawner;
use crate::auth::{Credential, ScopeSet};
use crate::clock::Clock;
use crate::error::{Error, Kind, Result};
use crate::http::{
    BaseUrl, DefaultLedger, FileLedger, Integration, Ledger, Policy, Terms, TimeOfDay,
    TransportSettings,
};

/// All settings of a [`Client`](super::Client). [`ClientSettings::new`] has the defaults.
#[derive(Clone)]
pub struct ClientSettings {
    /// The address of the service.
    pub base_url: BaseUrl,
    /// The credential.
    pub credential: Credential,
    /// The scopes of the token; `customer.discovery.read` and `customer.data.read` (§5.5).
    pub scopes: ScopeSet,
    /// `aud` of the assertions if it differs from the address of the token endpoint (§2.1).
    pub audience: Option<String>,
    /// From `iat` to `exp`; 120 s.
    pub assertion_lifetime: Duration,
    /// From `nbf` to `iat`; 0.
    pub assertion_tolerance: Duration,
    /// Whether the header of an assertion has `typ`; no.
    pub assertion_typ: bool,
    /// The clock.
    pub clock: Clock,
    /// Data requests allowed per day (§8), if the user knows it.
    pub daily_allowance: Option<u64>,
    /// When the service's day begins, if the user knows it; midnight UTC until the service shows another
    /// time.
    pub allowance_resets: Option<TimeOfDay>,
    /// The ledger that counts requests; in memory by default. A ledger has its own [`Terms`]; the two
    /// settings above apply only to the default one.
    pub ledger: Option<Arc<dyn Ledger>>,
    /// How long before the service's time a query without an end ends (§4.5.1); 5 minutes.
    pub settle_lag: Duration,
    /// The settings of the connections.
    pub transport: TransportSettings,
    /// The retry policy of data and discovery requests.
    pub retry: Policy,
    /// The retry policy of token requests.
    pub token_retry: Policy,
    /// Starts background tasks; on tokio's current runtime by default.
    pub spawner: Arc<Spawner>,
}

impl ClientSettings {
    /// The defaults for this service and credential.
    #[must_use]
    pub fn new(base_url: BaseUrl, credential: Credential) -> Self {
        Self {
            base_url,
            credential,
            scopes: ScopeSet::granted("customer.discovery.read customer.data.read"),
            audience: None,
            assertion_lifetime: Duration::from_secs(120),
            assertion_tolerance: Duration::ZERO,
            assertion_typ: false,
            clock: Clock::system(),
            daily_allowance: None,
            allowance_resets: None,
            ledger: None,
            settle_lag: Duration::from_secs(300),
            transport: TransportSettings::default(),
            retry: Policy::data(),
            token_retry: Policy::token(),
            spawner: Arc::new(|work| Some(tokio::spawn(work).abort_handle())),
        }
    }

    /// The user's settings of the allowance, for a ledger.
    #[must_use]
    pub(crate) fn terms(&self) -> Terms {
        Terms { limit: self.daily_allowance, resets: self.allowance_resets }
    }

    /// Counts requests in this file, and returns its absolute path.
    ///
    /// # Errors
    /// `ConfigError` for an empty path, and as [`FileLedger::open`].
    pub(crate) fn count_in_file(&mut self, path: &Path) -> Result<PathBuf> {
        if path.as_os_str().is_empty() {
            return Err(Error::new(Kind::ConfigError, "ledger= is an empty path."));
        }
        let ledger = FileLedger::open(path, self.integration(), self.terms())?;
        let path = ledger.path().to_owned();
        self.ledger = Some(Arc::new(ledger));
        Ok(path)
    }

    /// Counts requests in the file that `path` returns for this name. A service on loopback and a manual
    /// clock are for tests: their requests are counted in memory.
    pub(crate) fn count_in_default_file(&mut self, path: impl FnOnce(&str) -> Option<PathBuf>) {
        if self.base_url.is_loopback() || self.clock.is_manual() {
            return;
        }
        let integration = self.integration();
        let path = path(&integration.file_name());
        let ledger = DefaultLedger::new(path.as_deref(), integration, self.terms());
        self.ledger = Some(Arc::new(ledger));
    }

    fn integration(&self) -> Integration {
        Integration::new(self.base_url.as_str(), self.credential.subject())
    }
}

/// The settings of a read.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct ReadSettings {
    /// After so many pages of one chain, the read fails.
    pub max_pages: Option<u64>,
    /// The longest time of one read, including waits and token exchange.
    pub deadline: Option<Duration>,
    /// Whether to keep the body of each page.
    pub keep_raw: bool,
}

impl fmt::Debug for ClientSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientSettings")
            .field("base_url", &self.base_url)
            .field("credential", &self.credential)
            .field("scopes", &self.scopes)
            .field("audience", &self.audience)
            .field("daily_allowance", &self.daily_allowance)
            .field("allowance_resets", &self.allowance_resets)
            .field("ledger", &self.ledger)
            .field("settle_lag", &self.settle_lag)
            .field("transport", &self.transport)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::test_harness::credential;

    fn settings(address: &str) -> ClientSettings {
        ClientSettings::new(BaseUrl::parse(address, false).expect("an address"), credential())
    }

    #[test]
    fn a_service_on_loopback_is_counted_in_memory_unless_a_file_is_named() {
        let mut local = settings("http://127.0.0.1:9");
        local.count_in_default_file(|_| unreachable!("no file is wanted"));
        assert!(local.ledger.is_none());
        let empty = local.count_in_file(Path::new("")).expect_err("no path");
        assert_eq!(empty.kind(), Kind::ConfigError);

        let mut manual = settings("https://customer.example.com");
        manual.clock = Clock::frozen_at("2026-11-20T12:00:00Z".parse().expect("a time"));
        manual.count_in_default_file(|_| unreachable!("no file is wanted"));
        assert!(manual.ledger.is_none());

        let mut usual = settings("https://customer.example.com");
        usual.count_in_default_file(|_| None);
        assert!(usual.ledger.is_some());
    }
}
