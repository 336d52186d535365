//! The settings of clients and scans.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::background::Spawner;
use crate::agent::AgentLink;
use crate::auth::{Authentication, ScopeSet};
use crate::clock::Clock;
use crate::error::{Error, Kind, Result};
use crate::http::proxy::has_password;
use crate::http::{
    BaseUrl, Integration, Ledger, LocalLedger, Policy, Terms, TimeOfDay, TransportSettings,
};
use crate::system;

const MEMORY: &str = "memory";

/// The defaults are those of [`ClientSettings::new`].
#[derive(Clone)]
pub struct ClientSettings {
    pub base_url: BaseUrl,
    pub authentication: Authentication,
    /// By default `customer.discovery.read` and `customer.data.read`.
    pub scopes: ScopeSet,
    pub clock: Clock,
    /// Whether a sandbox in another process owns the clock.
    pub(crate) has_sandbox_clock: bool,
    pub daily_allowance: Option<u64>,
    /// The start of the service's day. If unknown, midnight UTC until a reply shows another time.
    pub allowance_resets: Option<TimeOfDay>,
    /// The default counts in memory. A ledger has its own [`Terms`], so the two settings above
    /// apply only to the default ledger.
    pub ledger: Option<Arc<dyn Ledger>>,
    /// The agent holds the key and the ledger.
    pub agent: Option<Arc<AgentLink>>,
    /// The distance from the service's time at which a query without an end stops.
    pub settle_lag: Duration,
    pub transport: TransportSettings,
    pub retry: Policy,
    pub token_retry: Policy,
    /// Whether each request is sent only once, for a diagnosis. The first count then creates the
    /// ledger file.
    pub sends_once: bool,
    pub ledger_file: Option<PathBuf>,
    /// A client of an agent remembers a refused page size next to this ledger, and does not use it.
    pub unused_ledger_file: Option<PathBuf>,
    /// `None` sends no page size.
    pub page_size: Option<u32>,
    /// By default on tokio's current runtime.
    pub spawner: Arc<Spawner>,
}

impl ClientSettings {
    #[must_use]
    pub fn new(base_url: BaseUrl, credential: impl Into<Authentication>) -> Self {
        Self {
            base_url,
            authentication: credential.into(),
            scopes: ScopeSet::granted("customer.discovery.read customer.data.read"),
            clock: Clock::system(),
            has_sandbox_clock: false,
            daily_allowance: None,
            allowance_resets: None,
            ledger: None,
            agent: None,
            settle_lag: Duration::from_secs(300),
            transport: TransportSettings::default(),
            retry: Policy::data(),
            token_retry: Policy::token(),
            sends_once: false,
            ledger_file: None,
            unused_ledger_file: None,
            page_size: None,
            spawner: Arc::new(|work| Some(tokio::spawn(work).abort_handle())),
        }
    }

    pub(crate) fn terms(&self) -> Terms {
        Terms { limit: self.daily_allowance, resets: self.allowance_resets }
    }

    /// Counts requests in the file `named`, or in memory if that is `memory`. Without `named` it
    /// uses the file that `default` returns for its name; a loopback service or a manual clock,
    /// which are for tests, count in memory. Returns `named` with an absolute path.
    ///
    /// It is a `ConfigError` if the default file cannot be created and `daily_allowance` is set.
    pub fn choose_ledger(
        &mut self,
        named: Option<&Path>,
        default: impl FnOnce(&str) -> Option<PathBuf>,
    ) -> Result<Option<PathBuf>> {
        let (integration, terms) = (self.integration(), self.terms());
        let ledger = match named {
            None if !self.uses_files() => return Ok(None),
            None => {
                let path = default(&integration.file_name());
                LocalLedger::in_default_file(path.as_deref(), integration, terms)
            }
            Some(path) if path.as_os_str().is_empty() => {
                return Err(Error::new(Kind::ConfigError, "ledger= is an empty path."));
            }
            Some(path) if !names_file(path) => return Ok(Some(path.to_owned())),
            Some(path) => LocalLedger::in_file(path, integration, terms),
        };
        let ledger = if self.sends_once { ledger } else { ledger.opened()? };
        self.ledger_file = ledger.path().map(Path::to_owned);
        self.ledger = Some(Arc::new(ledger));
        Ok(self.ledger_file.clone().filter(|_| named.is_some()))
    }

    pub fn leave_ledger(&mut self, default: impl FnOnce(&str) -> Option<PathBuf>) {
        if self.uses_files() {
            self.unused_ledger_file = default(&self.integration().file_name());
        }
    }

    fn uses_files(&self) -> bool {
        !self.base_url.is_loopback() && !self.clock.is_manual()
    }

    /// Uses the clock of a sandbox. `sandbox` is its address and the file of its clock, separated
    /// by `#`. The address must be this client's own and a loopback address. A `ledger` file needs
    /// the machine's time, so it is a `ConfigError` if the sandbox's clock was moved or is frozen.
    pub fn take_sandbox_clock(&mut self, sandbox: &str, ledger: Option<&Path>) -> Result<()> {
        let Some((address, file)) = sandbox.split_once('#') else { return Ok(()) };
        if address != self.base_url.as_str() || !self.base_url.is_loopback_address() {
            return Ok(());
        }
        let clock = Clock::of_file(Path::new(file)).map_err(|error| {
            let why = system::reason(&error);
            let message = format!("The clock of the sandbox {address} could not be read: {why}.");
            let error_of_setting = Error::new(Kind::ConfigError, message).with_hint(
                "SITELINE_SANDBOX_CLOCK refers to a sandbox that has ended or runs on another machine. \
                 Set the variables of sandbox.env() again, or unset this one.",
            );
            error_of_setting.passing_as(&error)
        })?;
        if ledger.is_some_and(names_file) {
            return if clock.shows_system_time() { Ok(()) } else { Err(ledger_by_sandbox_clock()) };
        }
        log::info!(
            target: "siteline::ledger",
            "Using the clock of the sandbox {address} (SITELINE_SANDBOX_CLOCK). Requests are counted \
             in memory."
        );
        self.clock = clock;
        self.has_sandbox_clock = true;
        Ok(())
    }

    /// A secret setting, or one that is valid only in this process.
    pub fn why_not_pickled(&self) -> Option<&'static str> {
        if self.clock.is_manual() && !self.has_sandbox_clock {
            return Some(
                "A client with clock= cannot be pickled, because the clock exists only in this process. \
                 Omit clock=; for a sandbox, set the variables of sandbox.env().",
            );
        }
        let is_secret = self.transport.proxy.as_deref().is_some_and(has_password);
        is_secret.then_some(
            "A client cannot be pickled if its proxy= contains a user or password. Set HTTPS_PROXY in \
             both processes instead.",
        )
    }

    /// Applies the user's attempts, longest `Retry-After` and response timeout to token requests. A
    /// timeout within the token attempt's own limit changes nothing.
    pub fn hold_for_tokens(&mut self) {
        let response_timeout = self.transport.response_timeout;
        let is_usual = response_timeout == TransportSettings::default().response_timeout;
        let token = &mut self.token_retry;
        token.tries = self.retry.tries;
        token.max_retry_after = self.retry.max_retry_after;
        if !is_usual && token.attempt_limit.is_some_and(|limit| limit < response_timeout) {
            token.attempt_limit = Some(response_timeout);
            token.call_limit = token.call_limit.max(response_timeout);
        }
    }

    pub fn send_once(&mut self) {
        self.sends_once = true;
        self.retry.tries = 1;
        self.token_retry.tries = 1;
    }

    pub(super) fn integration(&self) -> Integration {
        Integration::new(self.base_url.as_str(), self.authentication.subject())
    }
}

fn names_file(ledger: &Path) -> bool {
    ledger.as_os_str() != MEMORY
}

fn ledger_by_sandbox_clock() -> Error {
    let message =
        "A ledger file cannot count by the clock of a sandbox that was moved or is frozen.";
    Error::new(Kind::ConfigError, message).with_hint(
        "Remove ledger= (or SITELINE_LEDGER), so that requests are counted in memory. To count in a \
         file, create the Sandbox without now= and do not move its clock.",
    )
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ReadSettings {
    /// The most pages of all chains.
    pub max_pages: Option<u64>,
    /// By default four.
    #[serde(default)]
    pub concurrency: Option<usize>,
    /// Includes waits and token exchange.
    pub deadline: Option<Duration>,
    pub keep_raw: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::test_harness::{credential, noon};
    use crate::http::test_server::TestFolder;

    fn settings(address: &str) -> ClientSettings {
        ClientSettings::new(BaseUrl::parse(address, false).expect("an address"), credential())
    }

    #[test]
    fn k20_what_is_set_for_pages_holds_for_tokens_and_the_defaults_are_their_own() {
        let usual = settings("https://customer.example.com");
        let mut unset = usual.clone();
        unset.hold_for_tokens();
        assert_eq!(unset.token_retry, usual.token_retry);
        let mut set = usual;
        set.retry.tries = 1;
        set.retry.max_retry_after = Duration::from_secs(5);
        set.transport.response_timeout = Duration::from_secs(100);
        set.hold_for_tokens();
        let token = &set.token_retry;
        assert_eq!((token.tries, token.max_retry_after), (1, Duration::from_secs(5)));
        let limits = (token.attempt_limit, token.call_limit);
        assert_eq!(limits, (Some(Duration::from_secs(100)), Duration::from_secs(100)));
        // A shorter timeout ends an attempt before its limit.
        set.token_retry = Policy::token();
        set.transport.response_timeout = Duration::from_secs(2);
        set.hold_for_tokens();
        assert_eq!(set.token_retry.attempt_limit, Policy::token().attempt_limit);
    }

    #[test]
    fn a_service_on_loopback_is_counted_in_memory_unless_a_file_is_named() {
        let mut local = settings("http://127.0.0.1:9");
        let no_file = |_: &str| unreachable!("no file is wanted");
        local.choose_ledger(None, no_file).expect("memory");
        assert!(local.ledger.is_none());
        let empty = local.choose_ledger(Some(Path::new("")), no_file).expect_err("no path");
        assert_eq!(empty.kind(), Kind::ConfigError);

        let mut manual = settings("https://customer.example.com");
        manual.clock = noon();
        manual.choose_ledger(None, no_file).expect("memory");
        assert!(manual.ledger.is_none());

        let mut usual = settings("https://customer.example.com");
        usual.choose_ledger(None, |_| None).expect("memory, with a warning");
        assert!(usual.ledger.is_some());
    }

    #[test]
    fn b20_an_allowance_to_be_kept_needs_a_file_unless_memory_is_named() {
        let mut limited = settings("https://customer.example.com");
        limited.daily_allowance = Some(25);
        let folder = TestFolder::new();
        let file = folder.join("file");
        std::fs::write(&file, "in the way").expect("written");
        for path in [None, Some(file.join("ledger.txt"))] {
            let error = limited.choose_ledger(None, |_| path.clone()).expect_err("no file");
            assert_eq!(error.kind(), Kind::ConfigError);
            let hint = error.context().hint.clone().unwrap_or_default();
            assert!(hint.contains("ledger=\"memory\""), "{error}");
            let named = path.map_or("home".to_owned(), |path| path.display().to_string());
            assert!(error.context().message.contains(&named), "{error}");
        }
        assert!(limited.ledger.is_none());
        let named = limited.choose_ledger(Some(Path::new("memory")), |_| unreachable!());
        assert_eq!(named.expect("memory"), Some("memory".into()));
        assert!(limited.ledger.is_none());
    }

    #[test]
    fn r20_a_sandbox_clock_is_taken_only_where_its_address_is_the_base_url_and_loopback() {
        let sandbox = noon();
        let file = sandbox.share().expect("a file");
        let takes = |base_url: &str, address: &str| {
            let mut settings = settings(base_url);
            let variable = format!("{address}#{}", file.display());
            settings.take_sandbox_clock(&variable, None).expect("no error");
            let taken = settings.clock.is_same(&sandbox);
            assert_eq!(settings.has_sandbox_clock, taken);
            assert!(taken || settings.clock.is_same(&Clock::system()));
            taken
        };
        for address in ["http://127.0.0.1:80", "http://127.9.9.9:8080", "https://[::1]:9"] {
            assert!(takes(address, address) && takes(&format!("{address}/"), address), "{address}");
        }
        for address in
            ["https://customer.example.com", "http://localhost:80", "http://a.localhost:80"]
        {
            assert!(!takes(address, address), "{address}");
        }
        for other in [
            "",
            "http://127.0.0.1",
            "http://127.0.0.1:8",
            "http://127.0.0.2:80",
            "https://127.0.0.1:80",
            "http://127.0.0.1:80/",
            "http://127.0.0.1:80/eu",
            "HTTP://127.0.0.1:80",
        ] {
            assert!(!takes("http://127.0.0.1:80", other), "{other}");
        }
        assert!(!takes("http://127.0.0.1:80/eu", "http://127.0.0.1:80"));
        let mut settings = settings("http://127.0.0.1:80");
        let unread = settings.take_sandbox_clock("http://127.0.0.1:80#/nowhere/clock", None);
        assert_eq!(unread.expect_err("no such file").kind(), Kind::ConfigError);
        settings.take_sandbox_clock("http://127.0.0.1:80", None).expect("no file, no clock");
        assert!(!settings.has_sandbox_clock);
    }

    #[test]
    fn r20_a_ledger_never_counts_by_a_sandbox_clock() {
        let address = "http://127.0.0.1:80";
        let take = |sandbox: &Clock| {
            let mut settings = settings(address);
            let file = sandbox.share().expect("a file");
            let taken = settings.take_sandbox_clock(
                &format!("{address}#{}", file.display()),
                Some(Path::new("ledger.txt")),
            );
            assert!(settings.clock.is_same(&Clock::system()) && !settings.has_sandbox_clock);
            taken
        };
        assert_eq!(take(&noon()).expect_err("a fixed time").kind(), Kind::ConfigError);
        let running = Clock::running();
        take(&running).expect("it shows the machine's time");
        running.advance(Duration::from_secs(1));
        assert_eq!(take(&running).expect_err("moved").kind(), Kind::ConfigError);
    }
}
