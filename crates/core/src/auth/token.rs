//! The cache of access tokens: in memory, shared by the process, renewed shortly before they expire
//! (§5.3, §5.4).
//!
//! A [`TokenSource`] caches one token. A caller without a token takes the flight lock and requests
//! one. The others wait for that lock and then find the token, or the error of that flight. If the
//! caller is cancelled, the lock is released and the next waiter requests the token. There is no
//! background task: an idle client sends nothing. A forked child keeps the cached tokens and gets a
//! new lock.

mod once;

use std::sync::Arc;
use std::time::Duration;

pub(crate) use self::once::TokenFacts;
use super::ScopeSet;
use super::access_token::{AccessToken, CachedToken};
use super::exchange::is_invalid_client;
use super::retry_after_gate::{LONGEST_PAUSE, RetryAfterGate};
use crate::clock::Clock;
use crate::error::{Error, Kind, Result};
use crate::fork::Owned;
use crate::http::RetryQuota;
use crate::lock::Mutex;

/// Minimum time between two renewals.
const BETWEEN_RENEWALS: Duration = Duration::from_secs(30);
/// How long the error of a failed exchange is returned without a new request.
const FAILURE_MEMORY: Duration = Duration::from_secs(30);
/// The same for a refused assertion.
const REFUSAL_MEMORY: Duration = Duration::from_secs(60);

static REGISTRY: Mutex<Vec<Arc<TokenSource>>> = Mutex::new(Vec::new());

/// The key of the registry: callers with equal keys share a token.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct TokenKey {
    pub token_url: String,
    /// The `aud` of the assertions.
    pub audience: String,
    pub subject: String,
    /// The thumbprint of the key, or of the certificate to which the tokens are bound.
    pub kid: String,
    /// The `client_id` of token requests that a certificate authenticates. Several integrations may
    /// share one certificate.
    pub client_id: Option<String>,
    pub scopes: ScopeSet,
}

/// The source of the tokens of a [`TokenSource`], one for each call: an exchange with the service,
/// or another process that holds the key.
pub(crate) trait Issuer: Sync {
    /// Returns an error if the current call cannot obtain a token.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// Returns a new token for this source.
    fn issue(
        &self,
        source: &TokenSource,
        tries: Tries,
    ) -> impl Future<Output = Result<CachedToken>> + Send;
}

/// The number of attempts to get a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tries {
    /// All attempts of the policy. The caller cannot continue without a token.
    All,
    /// One attempt. The old token is still valid.
    One,
    /// One attempt that waits for no pause and is not repeated with a corrected clock. A diagnosis
    /// needs the outcome of a single request.
    Only,
}

/// Caches the token of one key.
pub(crate) struct TokenSource {
    pub(crate) key: TokenKey,
    clock: Clock,
    pub(super) quota: RetryQuota,
    pub(super) gate: RetryAfterGate,
    state: Mutex<TokenState>,
}

#[derive(Default)]
struct TokenState {
    flight: Owned<Arc<tokio::sync::Mutex<()>>>,
    token: Option<CachedToken>,
    /// The digest of the last refused token. An agent that has the same token must not return it
    /// again.
    refused: Option<String>,
    /// The last failure since the last new token.
    failure: Option<Failure>,
    failed_flights: u64,
    last_renewal: Option<Duration>,
}

struct Failure {
    error: Error,
    /// Later callers receive the error too until then.
    until: Duration,
}

/// The state of the cached token.
enum TokenStatus {
    /// Usable.
    Valid(AccessToken),
    /// One caller should renew it while others use it.
    ShouldRenew(AccessToken),
    /// About to expire: it must be renewed before it is used.
    MustRenew(AccessToken),
    Missing,
}

impl TokenSource {
    /// The source for this key in this process. A second client with the same credential uses the
    /// token of the first. Only clients with the same clock share a source.
    pub(crate) fn shared(key: TokenKey, clock: &Clock) -> Arc<Self> {
        let mut registry = REGISTRY.lock();
        if let Some(known) = registry.iter().find(|s| s.key == key && s.clock.is_same(clock)) {
            return Arc::clone(known);
        }
        // Removes sources without a client and without a valid token.
        registry.retain(|source| Arc::strong_count(source) > 1 || source.usable().is_some());
        let source = Arc::new(Self::new(key, clock.clone()));
        registry.push(Arc::clone(&source));
        source
    }

    fn new(key: TokenKey, clock: Clock) -> Self {
        let (quota, gate) = (RetryQuota::new(), RetryAfterGate::default());
        Self { key, clock, quota, gate, state: Mutex::default() }
    }

    /// Returns a valid token: the cached one, or a new one for this source's scopes.
    ///
    /// # Errors
    /// The error of the exchange, for all callers that waited for it, and for a while for later
    /// callers too, without a request. [`Kind::ConfigError`] if there is no valid token and this
    /// call cannot await the credential's signer.
    pub(crate) async fn token(&self, issuer: &impl Issuer) -> Result<AccessToken> {
        // Exchanges are boxed, because each request would have their size.
        let seen = self.state.lock().failed_flights;
        match self.status() {
            TokenStatus::Valid(token) => return Ok(token),
            // A call that cannot await the signer leaves the renewal to other calls.
            TokenStatus::ShouldRenew(token) | TokenStatus::MustRenew(token)
                if issuer.check().is_err() =>
            {
                return Ok(token);
            }
            TokenStatus::ShouldRenew(token) => {
                let flight = self.flight();
                // Another caller is renewing it.
                let Ok(_flight) = flight.try_lock() else { return Ok(token) };
                return Ok(Box::pin(self.renew(issuer, token)).await);
            }
            TokenStatus::MustRenew(_) => {}
            TokenStatus::Missing => {
                self.check_remembered_failure()?;
                issuer.check()?;
            }
        }
        let flight = self.flight();
        let _flight = flight.lock().await;
        let error_of_the_flight = self.failed_since(seen);
        match (self.status(), error_of_the_flight) {
            (TokenStatus::Valid(token) | TokenStatus::ShouldRenew(token), _)
            | (TokenStatus::MustRenew(token), Some(_)) => Ok(token),
            (TokenStatus::MustRenew(token), None) => Ok(Box::pin(self.renew(issuer, token)).await),
            (TokenStatus::Missing, Some(error)) => Err(error),
            (TokenStatus::Missing, None) => Box::pin(self.obtain(issuer)).await,
        }
    }

    /// Drops the cached token if it is the refused one. If many requests fail with one token,
    /// the first drops it, and the others find its successor.
    pub(crate) fn invalidate(&self, refused: &AccessToken) {
        let mut state = self.state.lock();
        if state.token.as_ref().is_some_and(|t| t.access.generation() == refused.generation()) {
            state.token = None;
            state.refused = Some(refused.digest());
        }
    }

    /// [`TokenSource::invalidate`] for a token of another process, which is identified by its
    /// digest.
    pub(crate) fn invalidate_digest(&self, refused: &str) {
        let mut state = self.state.lock();
        if state.token.as_ref().is_some_and(|t| t.access.digest() == refused) {
            state.token = None;
        }
    }

    /// Copies the token of a source with another key of the same subject. It is used until it
    /// expires; the next one is requested with the new key. A token that is bound to a certificate
    /// is not copied.
    pub(crate) fn adopt(&self, former: &Self) {
        let same_kid = TokenKey { kid: self.key.kid.clone(), ..former.key.clone() };
        let same = self.key == same_kid
            && self.key.client_id.is_none()
            && self.clock.is_same(&former.clock);
        let cached = if same { former.state.lock().token.clone() } else { None };
        let mut state = self.state.lock();
        if state.token.is_none() {
            state.token = cached;
        }
    }

    async fn obtain(&self, issuer: &impl Issuer) -> Result<AccessToken> {
        match issuer.issue(self, Tries::All).await {
            Ok(new) => Ok(self.keep(new)),
            Err(error) => {
                self.remember(&error);
                Err(error)
            }
        }
    }

    /// Makes one attempt. Returns the new token, or the old one, which is still valid.
    async fn renew(&self, issuer: &impl Issuer, old: AccessToken) -> AccessToken {
        self.state.lock().last_renewal = Some(self.clock.monotonic());
        match issuer.issue(self, Tries::One).await {
            Ok(new) => self.keep(new),
            Err(error) => {
                self.renewal_failed(&old, &error);
                old
            }
        }
    }

    /// The digest of a token that the service has refused.
    pub(crate) fn refused(&self) -> Option<String> {
        self.state.lock().refused.clone()
    }

    fn keep(&self, cached: CachedToken) -> AccessToken {
        let (access, lifetime) = (cached.access.clone(), cached.access.lifetime());
        let mut state = self.state.lock();
        state.failure = None;
        state.token = Some(cached);
        drop(state);
        log::info!(
            target: "siteline::token",
            "a new access token, valid for {} s", lifetime.as_secs()
        );
        access
    }

    fn status(&self) -> TokenStatus {
        let now = self.clock.monotonic();
        let state = self.state.lock();
        let Some(cached) = &state.token else { return TokenStatus::Missing };
        let left = cached.access.expires_in();
        if left <= cached.unusable_at() {
            return TokenStatus::Missing;
        }
        let token = cached.access.clone();
        let may_renew =
            state.last_renewal.is_none_or(|last| now.saturating_sub(last) >= BETWEEN_RENEWALS)
                && state.failure.as_ref().is_none_or(|failure| failure.until <= now)
                && self.gate.closed(&self.clock).is_none();
        if left > cached.renew_at || !may_renew {
            TokenStatus::Valid(token)
        } else if left > cached.renew_first_at() {
            TokenStatus::ShouldRenew(token)
        } else {
            TokenStatus::MustRenew(token)
        }
    }

    /// Records a failed flight. Its waiters receive its error, and so do later callers for a while
    /// if the service replied. The caller's own deadline and the end of its signer's event loop are
    /// not recorded: the next waiter requests a token.
    fn remember(&self, error: &Error) {
        if matches!(error.kind(), Kind::DeadlineExceeded | Kind::ClosedError) {
            return;
        }
        // A local failure may be fixed at once, so later callers try again.
        let is_local = error.context().unsent
            || matches!(
                error.kind(),
                Kind::CredentialError | Kind::ConfigError | Kind::TlsError | Kind::ProxyError
            );
        let lasts = if is_local { Duration::ZERO } else { remembered_for(error) };
        let until = self.clock.monotonic().saturating_add(lasts);
        let mut state = self.state.lock();
        state.failed_flights += 1;
        state.failure = Some(Failure { error: error.clone(), until });
    }

    fn renewal_failed(&self, old: &AccessToken, error: &Error) {
        let now = self.clock.monotonic();
        let mut state = self.state.lock();
        // A refusal is remembered here. The gate holds a pause that the service requested.
        if is_invalid_client(error) {
            let until = now.saturating_add(remembered_for(error));
            state.failure = Some(Failure { error: error.clone(), until });
        }
        let Some(cached) =
            state.token.as_mut().filter(|t| t.access.generation() == old.generation())
        else {
            return;
        };
        if std::mem::replace(&mut cached.renewal_failed, true) {
            return;
        }
        let left = cached.access.expires_in().as_secs();
        drop(state);
        log::warn!(
            target: "siteline::token",
            "the access token could not be renewed; it is valid for {left} s more: {}",
            error.context().message
        );
    }

    fn check_remembered_failure(&self) -> Result<()> {
        let now = self.clock.monotonic();
        match &self.state.lock().failure {
            Some(failure) if failure.until > now => {
                let left = failure.until.saturating_sub(now).as_secs_f64().ceil();
                Err(failure.error.clone().with(|context| {
                    context.message = format!(
                        "{} (remembered: no token is requested in the next {left} s)",
                        context.message
                    );
                }))
            }
            _ => Ok(()),
        }
    }

    fn failed_since(&self, seen: u64) -> Option<Error> {
        let state = self.state.lock();
        let failure = state.failure.as_ref().filter(|_| state.failed_flights > seen);
        failure.map(|failure| failure.error.clone())
    }

    fn flight(&self) -> Arc<tokio::sync::Mutex<()>> {
        Arc::clone(self.state.lock().flight.get_or_init(Arc::default))
    }
}

fn remembered_for(error: &Error) -> Duration {
    let least = if is_invalid_client(error) { REFUSAL_MEMORY } else { FAILURE_MEMORY };
    error.context().retry_after.unwrap_or(least).min(LONGEST_PAUSE)
}

#[cfg(test)]
#[path = "token_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "token_skew_tests.rs"]
mod skew;

#[cfg(test)]
#[path = "token_storm_tests.rs"]
mod storms;

#[cfg(test)]
#[path = "token_apart_tests.rs"]
mod apart;
