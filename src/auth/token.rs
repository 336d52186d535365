//! Access tokens: kept in memory, shared by the whole process, replaced shortly before they end
//! (§5.3, §5.4).
//!
//! A [`TokenSource`] keeps one token. Whoever needs one and finds none takes the lock of the flight
//! and asks; all others wait for that lock and find the token, or the error of that flight. One who
//! is cancelled drops the lock, and the next waiter takes over. There is no standing task: an idle
//! client spends nothing. In a forked child the tokens go on; the lock of a flight that the parent
//! had under way is replaced.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::ScopeSet;
use super::access_token::{AccessToken, Held};
use super::exchange::{Exchange, Issued, Patience, is_invalid_client};
use super::gate::{Gate, LONGEST_PAUSE};
use crate::clock::Clock;
use crate::error::{Error, Kind, Result};
use crate::http::RetryQuota;

/// Between two renewals of a token that was not refused.
const BETWEEN_RENEWALS: Duration = Duration::from_secs(30);
/// A failed exchange is not repeated for so long ...
const FAILURE_MEMORY: Duration = Duration::from_secs(30);
/// ... or so, if the assertion was refused.
const REFUSAL_MEMORY: Duration = Duration::from_secs(60);

static REGISTRY: Mutex<Vec<Arc<TokenSource>>> = Mutex::new(Vec::new());

/// Which tokens are the same token.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenKey {
    /// The address of the token endpoint.
    pub token_url: String,
    /// `aud` of the assertions.
    pub audience: String,
    /// The credential's subject.
    pub subject: String,
    /// The thumbprint of its key.
    pub kid: String,
    /// The scopes asked for.
    pub scopes: ScopeSet,
}

impl TokenKey {
    /// The same integration and key, whatever the scopes.
    fn is_kin(&self, other: &Self) -> bool {
        let mut other = other.clone();
        other.scopes = self.scopes.clone();
        *self == other
    }
}

/// Keeps the token of one key of the registry.
pub struct TokenSource {
    key: TokenKey,
    clock: Clock,
    quota: RetryQuota,
    gate: Gate,
    state: Mutex<State>,
}

struct State {
    /// The process that the lock of the flight belongs to.
    process: u32,
    flight: Arc<tokio::sync::Mutex<()>>,
    token: Option<Held>,
    failure: Option<Failure>,
    /// Flights that ended without a token, and how the last of them ended.
    failed_flights: u64,
    last_error: Option<Error>,
    last_renewal: Option<Duration>,
}

struct Failure {
    error: Error,
    until: Duration,
}

/// What a look at the kept token tells.
enum Glance {
    /// Good for now.
    Use(AccessToken),
    /// Good, but to be renewed by one of those who use it.
    Renew(AccessToken),
    /// Good for a moment: to be renewed first.
    Late(AccessToken),
    /// None.
    Missing,
}

impl TokenSource {
    /// The source for this key in this process: a second client of the same credential finds the
    /// token of the first. Only clients on the same clock share one.
    #[must_use]
    pub fn shared(key: TokenKey, clock: &Clock) -> Arc<Self> {
        let mut registry = registry();
        if let Some(known) = registry.iter().find(|s| s.key == key && s.clock.is_same(clock)) {
            return Arc::clone(known);
        }
        // Sources that nobody holds and that hold nothing go.
        registry.retain(|source| Arc::strong_count(source) > 1 || source.peek().is_some());
        let source = Arc::new(Self::new(key, clock.clone()));
        registry.push(Arc::clone(&source));
        source
    }

    fn new(key: TokenKey, clock: Clock) -> Self {
        let state = State {
            process: std::process::id(),
            flight: Arc::default(),
            token: None,
            failure: None,
            failed_flights: 0,
            last_error: None,
            last_renewal: None,
        };
        let (quota, gate) = (RetryQuota::new(), Gate::default());
        Self { key, clock, quota, gate, state: Mutex::new(state) }
    }

    /// A valid token: the kept one, a wider one of the same credential, or a new one.
    ///
    /// # Errors
    /// Those of the exchange. All who waited for it get the same; for a while after it the next
    /// ones get it too, without a request.
    pub async fn token(&self, exchange: &Exchange<'_>) -> Result<AccessToken> {
        let seen = self.lock().failed_flights;
        match self.glance() {
            Glance::Use(token) => return Ok(token),
            Glance::Renew(token) => {
                let flight = self.flight();
                // Somebody else renews it: go on.
                let Ok(_flight) = flight.try_lock() else { return Ok(token) };
                return Ok(self.renew(exchange, token).await);
            }
            Glance::Late(_) => {}
            Glance::Missing => {
                if let Some(wider) = self.wider() {
                    return Ok(wider);
                }
                self.check_memory()?;
            }
        }
        let flight = self.flight();
        let _flight = flight.lock().await;
        let failed_meanwhile = self.failed_since(seen);
        match (self.glance(), failed_meanwhile) {
            (Glance::Use(token) | Glance::Renew(token), _) | (Glance::Late(token), Some(_)) => {
                Ok(token)
            }
            (Glance::Late(token), None) => Ok(self.renew(exchange, token).await),
            (Glance::Missing, Some(error)) => Err(error),
            (Glance::Missing, None) => self.obtain(exchange).await,
        }
    }

    /// Drops the token if it is still the one that was refused: of many requests that one token
    /// failed, the first drops it, and the others find its successor.
    pub fn invalidate(&self, refused: &AccessToken) {
        if self.drop_if(refused) {
            return;
        }
        // It may have been a wider one.
        let kin: Vec<_> = registry().iter().filter(|s| s.key.is_kin(&self.key)).cloned().collect();
        for source in kin {
            source.drop_if(refused);
        }
    }

    /// Takes over the valid token of a source with another key of the same subject: it is used to
    /// its end, and the next one is asked for with the new key.
    pub fn adopt(&self, former: &Self) {
        let same = self.key.subject == former.key.subject
            && self.key.token_url == former.key.token_url
            && self.key.scopes == former.key.scopes
            && self.clock.is_same(&former.clock);
        let held = if same { former.lock().token.clone() } else { None };
        let mut state = self.lock();
        if state.token.is_none() {
            state.token = held;
        }
    }

    async fn obtain(&self, exchange: &Exchange<'_>) -> Result<AccessToken> {
        match exchange.run(&self.key.scopes, &self.quota, &self.gate, Patience::All).await {
            Ok(issued) => Ok(self.keep(issued)),
            Err(error) => {
                self.remember(&error);
                Err(error)
            }
        }
    }

    /// One try; whatever comes of it, the caller has a token that is still valid.
    async fn renew(&self, exchange: &Exchange<'_>, old: AccessToken) -> AccessToken {
        self.lock().last_renewal = Some(self.clock.monotonic());
        match exchange.run(&self.key.scopes, &self.quota, &self.gate, Patience::One).await {
            Ok(issued) => self.keep(issued),
            Err(error) => {
                self.renewal_failed(&old, &error);
                old
            }
        }
    }

    fn keep(&self, issued: Issued) -> AccessToken {
        let held = Held::new(issued, &self.clock);
        let (access, lifetime) = (held.access.clone(), held.lifetime);
        let mut state = self.lock();
        state.failure = None;
        state.token = Some(held);
        drop(state);
        log::info!(
            target: "siteline::token",
            "a new access token, good for {} s", lifetime.as_secs()
        );
        access
    }

    fn glance(&self) -> Glance {
        let now = self.clock.monotonic();
        let state = self.lock();
        let Some(held) = &state.token else { return Glance::Missing };
        let left = held.left(&self.clock);
        if left <= held.over() {
            return Glance::Missing;
        }
        let token = held.access.clone();
        let rested =
            state.last_renewal.is_none_or(|last| now.saturating_sub(last) >= BETWEEN_RENEWALS)
                && state.failure.as_ref().is_none_or(|failure| failure.until <= now)
                && self.gate.closed(&self.clock).is_none();
        if left > held.early || !rested {
            Glance::Use(token)
        } else if left > held.late() {
            Glance::Renew(token)
        } else {
            Glance::Late(token)
        }
    }

    /// The kept token if it lives a while yet.
    fn peek(&self) -> Option<Held> {
        self.lock().token.clone().filter(|held| held.left(&self.clock) > held.late())
    }

    /// A valid token of the same credential that was granted all that is asked for here (§5.4).
    fn wider(&self) -> Option<AccessToken> {
        let registry = registry();
        let kin = registry.iter().filter(|source| {
            !std::ptr::eq(&raw const ***source, self)
                && source.key.is_kin(&self.key)
                && source.clock.is_same(&self.clock)
        });
        kin.filter_map(|source| source.peek())
            .find(|held| {
                held.scopes.as_ref().is_some_and(|granted| self.key.scopes.is_subset_of(granted))
            })
            .map(|held| held.access)
    }

    fn drop_if(&self, refused: &AccessToken) -> bool {
        let mut state = self.lock();
        let is_it =
            state.token.as_ref().is_some_and(|t| t.access.generation() == refused.generation());
        if is_it {
            state.token = None;
        }
        is_it
    }

    /// A flight failed: those who wait for it get its error, and if the service has spoken, those
    /// who come within a while too. A caller's own deadline is no failure of the flight.
    fn remember(&self, error: &Error) {
        if error.kind() == Kind::DeadlineExceeded {
            return;
        }
        let now = self.clock.monotonic();
        let mut state = self.lock();
        state.failed_flights += 1;
        state.last_error = Some(error.clone());
        // What went wrong on this side of the wire may be set right at once.
        let local =
            matches!(error.kind(), Kind::Credential | Kind::Config | Kind::Tls | Kind::Proxy);
        if !local && !error.context().unsent {
            let until = now.saturating_add(memory(error));
            state.failure = Some(Failure { error: error.clone(), until });
        }
    }

    fn renewal_failed(&self, old: &AccessToken, error: &Error) {
        let now = self.clock.monotonic();
        let mut state = self.lock();
        // A refusal is not repeated by the next ones; a pause that was asked for is kept by the gate.
        if is_invalid_client(error) {
            let until = now.saturating_add(memory(error));
            state.failure = Some(Failure { error: error.clone(), until });
        }
        let Some(held) = state.token.as_mut().filter(|t| t.access.generation() == old.generation())
        else {
            return;
        };
        if std::mem::replace(&mut held.renewal_failed, true) {
            return;
        }
        let left = held.left(&self.clock).as_secs();
        drop(state);
        log::warn!(
            target: "siteline::token",
            "the access token could not be renewed and is used for its last {left} s: {}",
            error.context().message
        );
    }

    fn check_memory(&self) -> Result<()> {
        let now = self.clock.monotonic();
        let mut state = self.lock();
        match &state.failure {
            Some(failure) if failure.until > now => {
                let left = failure.until.saturating_sub(now).as_secs_f64().ceil();
                Err(failure.error.clone().with(|context| {
                    context.message = format!(
                        "{} (remembered; no token is asked for in the next {left} s)",
                        context.message
                    );
                }))
            }
            Some(_) => {
                state.failure = None;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn failed_since(&self, seen: u64) -> Option<Error> {
        let state = self.lock();
        state.last_error.clone().filter(|_| state.failed_flights > seen)
    }

    /// The lock of the flight, a new one in a forked child.
    fn flight(&self) -> Arc<tokio::sync::Mutex<()>> {
        let mut state = self.lock();
        let process = std::process::id();
        if state.process != process {
            state.process = process;
            state.flight = Arc::default();
        }
        Arc::clone(&state.flight)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for TokenSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TokenSource({}, {:?})", self.key.subject, self.key.scopes)
    }
}

fn registry() -> MutexGuard<'static, Vec<Arc<TokenSource>>> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

fn memory(error: &Error) -> Duration {
    let least = if is_invalid_client(error) { REFUSAL_MEMORY } else { FAILURE_MEMORY };
    error.context().retry_after.unwrap_or(least).min(LONGEST_PAUSE)
}

#[cfg(test)]
#[path = "token_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "token_storm_tests.rs"]
mod storms;
