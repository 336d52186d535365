//! [`Client`]: who asks, with what, and in which order: allowance, token, request, and one recovery
//! from a 401.

use std::fmt;
use std::future::ready;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::watch;

use super::density::Seen;
use super::reply::{self, Asked};
use super::settings::ClientSettings;
use super::spending::Spending;
use crate::auth::{AccessToken, AssertionSettings, Credential, Exchange, TokenKey, TokenSource};
use crate::clock::ServiceTime;
use crate::data::Query;
use crate::error::{Error, Kind, Result};
use crate::http::allowance::exhausted;
use crate::http::retry_after::end_of_pause;
use crate::http::{
    AllowanceState, BaseUrl, Call, Deadline, Ledger, MemoryLedger, Reply, Request, RetryQuota,
    Transport,
};

/// The path of the discovery endpoint below the base URL (§4.2).
pub const DISCOVERY_PATH: &str = "/api/customer/v1/discovery";
/// The path of the data endpoint below the base URL (§4.3).
pub const DATA_PATH: &str = "/api/customer/v1/data";

/// A token that is refused at this age may not have reached all of the service yet ...
const YOUNG: Duration = Duration::from_secs(5);
/// ... and gets so long to arrive.
const ARRIVAL: Duration = Duration::from_secs(1);

/// A client of the service for one credential. Cheap to clone; clones are the same client.
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    settings: ClientSettings,
    assertion: AssertionSettings,
    identity: RwLock<Arc<Identity>>,
    transport: Transport,
    time: ServiceTime,
    quota: RetryQuota,
    ledger: Arc<dyn Ledger>,
    closed: watch::Sender<bool>,
    token_requests: AtomicU64,
    data_requests: AtomicU64,
    seen: Seen,
}

/// Who asks, and where its tokens are kept.
struct Identity {
    credential: Credential,
    tokens: Arc<TokenSource>,
}

/// What one call has already done about refused tokens.
#[derive(Default)]
struct Recovery {
    waited: bool,
    refreshed: bool,
}

enum Remedy {
    /// Repeat with the same token after a moment.
    Wait,
    /// Repeat with a new one.
    Refresh,
    /// Nothing more.
    GiveUp,
}

impl Recovery {
    /// After one refresh a refusal ends the call, however young the token (D2, D7, M4).
    fn next(&mut self, refused: &AccessToken) -> Remedy {
        if self.refreshed {
            Remedy::GiveUp
        } else if !self.waited && refused.age() < YOUNG {
            self.waited = true;
            Remedy::Wait
        } else {
            self.refreshed = true;
            Remedy::Refresh
        }
    }
}

impl Client {
    /// A client with these settings. Nothing is sent, opened or loaded yet.
    ///
    /// # Errors
    /// `ConfigError` for settings that no request can be made with.
    pub fn new(mut settings: ClientSettings) -> Result<Self> {
        let audience = settings.audience.clone();
        let assertion = AssertionSettings {
            lifetime: settings.assertion_lifetime,
            tolerance: settings.assertion_tolerance,
            typ: settings.assertion_typ,
            ..AssertionSettings::new(audience.unwrap_or_else(|| settings.base_url.token_url()))
        };
        assertion.check()?;
        let terms = settings.terms();
        let ledger =
            settings.ledger.get_or_insert_with(|| Arc::new(MemoryLedger::with(terms))).clone();
        let identity = identity(&settings, &assertion, settings.credential.clone());
        Ok(Self(Arc::new(Inner {
            assertion,
            identity: RwLock::new(Arc::new(identity)),
            transport: Transport::new(settings.base_url.clone(), settings.transport.clone())?,
            time: ServiceTime::new(settings.clock.clone()),
            quota: RetryQuota::new(),
            ledger,
            closed: watch::Sender::new(false),
            token_requests: AtomicU64::new(0),
            data_requests: AtomicU64::new(0),
            seen: Seen::default(),
            settings,
        })))
    }

    /// What may be read (§4.2): the whole body, a JSON object, not further interpreted; a byte order
    /// mark is left out.
    ///
    /// # Errors
    /// As [`Client::get`], and `ProtocolError` for a body that is no JSON object.
    pub async fn discover(&self, deadline: Option<Duration>) -> Result<Bytes> {
        let asked = Asked { path: DISCOVERY_PATH, query: None, spending: None };
        let read = |reply: &Reply| ready(reply::json_object(reply));
        let deadline = Deadline::after(self.0.time.clock(), deadline);
        self.unless_closed(Box::pin(self.send(asked, deadline, &read))).await
    }

    /// Sends one data request and whatever repeats it takes, each counted in the allowance before
    /// it leaves. `query` is percent-encoded and sent as it is. A reply with status 200 is handed to
    /// `read` before another is sent, so that a body that turns out to be cut is asked for again like
    /// any other that broke off. `spending` counts those of the caller's read, without those that
    /// never left, and holds some of the allowance back.
    ///
    /// # Errors
    /// `AllowanceExhausted`, those of the token exchange, those of the connection, `ServiceError`s,
    /// `ProtocolError`, `DeadlineExceeded`, and `ClosedError` as soon as the client is closed; each
    /// with its attempts. Those of `read`.
    pub async fn get<T: Send, R: Future<Output = Result<T>> + Send>(
        &self,
        path: &str,
        query: &str,
        deadline: Deadline,
        spending: &Spending,
        read: impl Fn(&Reply) -> R + Send + Sync,
    ) -> Result<T> {
        let asked = Asked { path, query: Some(query), spending: Some(spending) };
        self.unless_closed(Box::pin(self.send(asked, deadline, &read))).await
    }

    /// Signs with another credential from the next exchange on: a valid token is used to its end
    /// (T30). The subject should be the same; for another one the token is not kept.
    pub fn replace_credential(&self, credential: Credential) {
        let new = identity(&self.0.settings, &self.0.assertion, credential);
        let mut identity = self.0.identity.write().unwrap_or_else(PoisonError::into_inner);
        new.tokens.adopt(&identity.tokens);
        *identity = Arc::new(new);
    }

    /// The daily allowance of data requests (§8) as its ledger knows it.
    ///
    /// # Errors
    /// `StoreError`s of a ledger that cannot be read: what it holds is not known then.
    pub fn allowance(&self) -> Result<AllowanceState> {
        self.0.ledger.state(self.0.time.now())
    }

    /// The service's time, once learnt.
    #[must_use]
    pub fn time(&self) -> &ServiceTime {
        &self.0.time
    }

    /// Where the service is.
    #[must_use]
    pub fn base_url(&self) -> &BaseUrl {
        &self.0.settings.base_url
    }

    /// Where bookmarks of this client belong: host and subject.
    #[must_use]
    pub fn origin(&self) -> String {
        format!("{}\n{}", self.base_url().as_str(), self.subject())
    }

    /// The subject of the credential.
    #[must_use]
    pub fn subject(&self) -> String {
        self.identity().credential.subject().to_owned()
    }

    /// How far behind the service's time a query ends that names no end (§4.5.1).
    #[must_use]
    pub fn settle_lag(&self) -> Duration {
        self.0.settings.settle_lag
    }

    /// What the client was made with, its live ledger included: another client made with it counts
    /// in the same ledger and finds the same token, with connections of its own.
    #[must_use]
    pub fn settings(&self) -> &ClientSettings {
        &self.0.settings
    }

    /// True for clones of one client.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Token requests that this client has made.
    #[must_use]
    pub fn token_requests(&self) -> u64 {
        self.0.token_requests.load(Ordering::Relaxed)
    }

    /// Data requests that this client has made, repeats included, those that never left not.
    #[must_use]
    pub fn data_requests(&self) -> u64 {
        self.0.data_requests.load(Ordering::Relaxed)
    }

    /// Learns how many pages a question takes, from a chain that was read over all of the query's
    /// range: so many pages and points, of which so many came with the last page.
    pub fn learn(&self, query: &Query, pages: u64, points: u64, on_last: u64) {
        self.0.seen.learn(query, pages, points, on_last);
    }

    /// Pages that the whole of a query is expected to take, where this client has read its like.
    #[must_use]
    pub fn expected_pages(&self, query: &Query) -> Option<u64> {
        self.0.seen.pages(query)
    }

    /// Ends the client: new calls, and those under way, get `ClosedError`. Twice is fine.
    pub fn close(&self) {
        self.0.closed.send_replace(true);
    }

    /// True after [`Client::close`].
    #[must_use]
    pub fn is_closed(&self) -> bool {
        *self.0.closed.borrow()
    }

    async fn unless_closed<T>(&self, future: impl Future<Output = Result<T>>) -> Result<T> {
        let mut closed = self.0.closed.subscribe();
        tokio::select! {
            biased;
            _ = closed.wait_for(|closed| *closed) => {
                Err(Error::new(Kind::ClosedError, "the client is closed"))
            }
            outcome = future => outcome,
        }
    }

    async fn send<T: Send, R: Future<Output = Result<T>> + Send>(
        &self,
        asked: Asked<'_>,
        deadline: Deadline,
        read: &(impl Fn(&Reply) -> R + Send + Sync),
    ) -> Result<T> {
        let inner = &*self.0;
        let clock = inner.time.clock();
        let mut call = Call::begin(clock, &inner.settings.retry, &inner.quota, deadline);
        let mut recovery = Recovery::default();
        let mut keep = asked.spending.map_or(0, |spending| spending.keep);
        loop {
            let identity = self.identity();
            let token = match self.ready(&identity, asked, keep, &mut call).await {
                Ok(token) => token,
                Err(error) => return Err(call.ended(error)),
            };
            let outcome = match call.attempt(Box::pin(self.attempt(asked, keep, &token))).await {
                // Whoever reads may be at something else, and takes what time it likes.
                Ok(reply) => call.untimed(Self::read(&reply, read)).await,
                Err(error) => Err(error),
            };
            let error = match outcome {
                Ok(value) => {
                    call.succeeded();
                    return Ok(value);
                }
                Err(error) => error,
            };
            keep = asked.spending.map_or(0, |spending| spending.keep_from_repeats);
            if error.kind() != Kind::AuthenticationError {
                call.after(error).await?;
                continue;
            }
            match recovery.next(&token) {
                Remedy::Wait => {
                    call.record_attempt(&error, ARRIVAL);
                    call.pause(ARRIVAL, error).await?;
                }
                Remedy::Refresh => {
                    call.record_attempt(&error, Duration::ZERO);
                    identity.tokens.invalidate(&token);
                }
                Remedy::GiveUp => return Err(call.failed(error)),
            }
        }
    }

    /// Everything before the request itself. With nothing left of the allowance no token is asked
    /// for; the request is counted only once there is one.
    async fn ready(
        &self,
        identity: &Identity,
        asked: Asked<'_>,
        keep: u64,
        call: &mut Call<'_>,
    ) -> Result<AccessToken> {
        let inner = &*self.0;
        if asked.spending.is_some() {
            let state = self.allowance()?;
            if state.left.is_some_and(|left| left <= keep) {
                return Err(exhausted(state));
            }
        }
        let exchange = Exchange {
            transport: &inner.transport,
            time: &inner.time,
            credential: &identity.credential,
            settings: &inner.assertion,
            policy: &inner.settings.token_retry,
            deadline: call.deadline(),
            requests: &inner.token_requests,
            ledger: &*inner.ledger,
        };
        call.untimed(identity.tokens.token(&exchange)).await
    }

    /// One request, counted before its bytes leave, and given back only if none of them did.
    async fn attempt(&self, asked: Asked<'_>, keep: u64, token: &AccessToken) -> Result<Reply> {
        let inner = &*self.0;
        let request = Request {
            url: inner.settings.base_url.join(asked.path, asked.query),
            authorization: Some(token.authorization()),
            form: None,
        };
        let reservation = match asked.spending {
            Some(_) => Some(inner.ledger.reserve(inner.time.now(), keep)?),
            None => None,
        };
        let counts =
            || asked.spending.into_iter().flat_map(|spent| [&spent.requests, &inner.data_requests]);
        for count in counts() {
            count.fetch_add(1, Ordering::Relaxed);
        }
        let outcome = inner.transport.send(request, &inner.time).await;
        if let (Err(error), Some(reservation)) = (&outcome, reservation)
            && error.context().unsent
        {
            for count in counts() {
                count.fetch_sub(1, Ordering::Relaxed);
            }
            inner.ledger.give_back(reservation);
        }
        let now = inner.time.now();
        let checked = reply::check(outcome?, asked, token.secret(), now);
        if let Err(error) = &checked
            && error.kind() == Kind::AllowanceExhausted
            && let Some(pause) = error.context().retry_after
        {
            // What the service said is told in any case.
            if let Err(error) = inner.ledger.pin_until(end_of_pause(now, pause), now) {
                log::warn!(target: "siteline::ledger", "the refusal is not kept: {error}");
            }
        }
        checked
    }

    async fn read<T, R: Future<Output = Result<T>>>(
        reply: &Reply,
        read: impl Fn(&Reply) -> R,
    ) -> Result<T> {
        read(reply).await.map_err(|error| {
            error.with(|context| {
                context.status = Some(reply.status);
                context.request_id = reply.request_id();
            })
        })
    }

    fn identity(&self) -> Arc<Identity> {
        Arc::clone(&self.0.identity.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client({}, {:?})", self.base_url(), self.identity().credential)
    }
}

fn identity(
    settings: &ClientSettings,
    assertion: &AssertionSettings,
    credential: Credential,
) -> Identity {
    let key = TokenKey {
        token_url: settings.base_url.token_url(),
        audience: assertion.audience.clone(),
        subject: credential.subject().to_owned(),
        kid: credential.kid().to_owned(),
        scopes: settings.scopes.clone(),
    };
    Identity { credential, tokens: TokenSource::shared(key, &settings.clock) }
}
