//! What makes a client, and how a scan is read.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::background::Spawner;
use crate::auth::{Credential, ScopeSet};
use crate::clock::Clock;
use crate::http::{BaseUrl, Ledger, Policy, Terms, TimeOfDay, TransportSettings};

/// Everything a [`Client`](super::Client) can be told. [`ClientSettings::new`] has the defaults.
#[derive(Clone)]
pub struct ClientSettings {
    /// Where the service is.
    pub base_url: BaseUrl,
    /// Who asks.
    pub credential: Credential,
    /// The scopes of the token; `customer.discovery.read` and `customer.data.read` (§5.5).
    pub scopes: ScopeSet,
    /// `aud` of the assertions where it is not the token endpoint's address as dialled (§2.1).
    pub audience: Option<String>,
    /// From `iat` to `exp`; 120 s.
    pub assertion_lifetime: Duration,
    /// From `nbf` to `iat`; 0.
    pub assertion_tolerance: Duration,
    /// Whether the header of an assertion has `typ`; no.
    pub assertion_typ: bool,
    /// The time.
    pub clock: Clock,
    /// Data requests allowed per day (§8), where the user knows it.
    pub daily_allowance: Option<u64>,
    /// When the service's day begins, where the user knows it; midnight UTC until the service shows
    /// another time.
    pub allowance_resets: Option<TimeOfDay>,
    /// Who counts them; in memory by default. A ledger has its own [`Terms`]: these here are for the
    /// one in memory.
    pub ledger: Option<Arc<dyn Ledger>>,
    /// How far behind the service's time a query ends that names no end (§4.5.1); 5 minutes.
    pub settle_lag: Duration,
    /// The limits and ways of the connections.
    pub transport: TransportSettings,
    /// How data and discovery requests are repeated.
    pub retry: Policy,
    /// How token requests are repeated.
    pub token_retry: Policy,
    /// How a task is started that goes on beside its caller: on tokio's current runtime.
    pub spawner: Arc<dyn Spawner>,
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

    /// What the user stated about the allowance, for a ledger.
    #[must_use]
    pub fn terms(&self) -> Terms {
        Terms { limit: self.daily_allowance, resets: self.allowance_resets }
    }
}

/// How a scan is read, besides its query.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ReadSettings {
    /// Stop with an error after so many pages of one chain; never quietly.
    pub max_pages: Option<u64>,
    /// Bounds one read from its first request to its last, waits and token exchange included.
    pub deadline: Option<Duration>,
    /// Keep each page's body as it came.
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
