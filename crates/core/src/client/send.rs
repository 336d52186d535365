//! The client: it checks the allowance, gets a token, sends the request, and recovers once from a
//! 401.

mod attempt;
mod lessor;
mod once;

use std::fmt;
use std::future::ready;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use tokio::sync::watch;

use super::density::QueryDensities;
use super::identity::{self, Identity};
use super::listed::ListedIds;
use super::naming::NamesInFlight;
use super::page_sizes::PageSizes;
use super::reply::{self, RequestParts};
use super::seen::SeenSeries;
use super::settings::ClientSettings;
use super::spending::Spending;
use crate::auth::Authentication;
use crate::clock::{Moment, ServiceTime};
use crate::data::Query;
use crate::error::{Error, Kind, Result};
use crate::fork::Owned;
use crate::http::{
    AllowanceState, BaseUrl, Call, Deadline, Ledger, LocalLedger, Reply, RetryQuota, Transport,
};
use crate::lock::Mutex;

pub(crate) const DISCOVERY_PATH: &str = "/api/customer/v1/discovery";
pub const DATA_PATH: &str = "/api/customer/v1/data";
pub(super) const DISCOVERY: RequestParts<'static> =
    RequestParts { path: DISCOVERY_PATH, query: None, spending: None, is_retry: false };

/// A younger token that the service refuses may not have reached all its servers. The next one is
/// used after [`ARRIVAL`].
const YOUNG: Duration = Duration::from_secs(5);
const ARRIVAL: Duration = Duration::from_secs(1);

/// Clones are cheap and share one state.
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    settings: ClientSettings,
    token_url: String,
    identity: Mutex<Arc<Identity>>,
    transport: Transport,
    time: ServiceTime,
    quota: RetryQuota,
    ledger: Arc<dyn Ledger>,
    closed: watch::Sender<bool>,
    data_requests: AtomicU64,
    densities: QueryDensities,
    listed: Arc<ListedIds>,
    seen: SeenSeries,
    names_in_flight: Owned<NamesInFlight>,
    page_sizes: Owned<PageSizes>,
}

impl Client {
    /// Sends, opens and loads nothing yet.
    pub fn new(mut settings: ClientSettings) -> Result<Self> {
        identity::check(&settings.base_url, &settings.authentication)?;
        if let Some(agent) = &settings.agent {
            settings.ledger = Some(Arc::new(Arc::clone(agent)));
        }
        let terms = settings.terms();
        let ledger =
            settings.ledger.get_or_insert_with(|| Arc::new(LocalLedger::in_memory(terms))).clone();
        let identity = Identity::new(settings.authentication.clone(), &settings);
        Ok(Self(Arc::new(Inner {
            token_url: settings.base_url.token_url(),
            identity: Mutex::new(Arc::new(identity)),
            transport: Transport::new(settings.base_url.clone(), settings.transport.clone())?,
            time: ServiceTime::new(settings.clock.clone()),
            quota: RetryQuota::new(),
            ledger,
            closed: watch::Sender::new(false),
            data_requests: AtomicU64::new(0),
            densities: QueryDensities::default(),
            listed: Arc::default(),
            seen: SeenSeries::default(),
            names_in_flight: Owned::default(),
            page_sizes: Owned::default(),
            settings,
        })))
    }

    /// Returns a JSON object as sent, without a byte order mark.
    pub async fn discover(&self, deadline: Option<Duration>) -> Result<Bytes> {
        let read = |reply: &Reply| ready(reply::json_object(reply));
        let deadline = Deadline::after(self.0.time.clock(), deadline);
        let body = self.unless_closed(Box::pin(self.send(DISCOVERY, deadline, &read))).await;
        match &body {
            Ok(body) => {
                self.0.listed.learn(body, self.0.time.clock().monotonic());
                self.0.seen.forget_fresh();
            }
            Err(error) => self.give_up_names(error.to_string()),
        }
        body
    }

    pub(super) fn give_up_names(&self, reason: String) {
        self.0.listed.give_up(reason, self.0.time.clock().monotonic());
    }

    /// A forked child has its own.
    pub(super) fn names_in_flight(&self) -> &NamesInFlight {
        self.0.names_in_flight.get_or_init(Mutex::default)
    }

    /// A forked child decides for itself.
    pub(super) fn page_sizes(&self) -> &PageSizes {
        self.0.page_sizes.get_or_init(|| PageSizes::new(&self.0.settings))
    }

    /// Sends one data request with its retries, each counted in the allowance first. `query` is
    /// percent-encoded and sent unchanged. `read` receives a reply with status 200 as part of the
    /// attempt, so a truncated body is retried. An attempt that sent no byte is not counted.
    /// Closing the client fails all calls with `ClosedError`.
    pub async fn get<T: Send, R: Future<Output = Result<T>> + Send>(
        &self,
        path: &str,
        query: &str,
        deadline: Deadline,
        spending: &Spending,
        read: impl Fn(&Reply) -> R + Send + Sync,
    ) -> Result<T> {
        let (query, spending) = (Some(query), Some(spending));
        let request = RequestParts { path, query, spending, is_retry: false };
        self.unless_closed(Box::pin(self.send(request, deadline, &read))).await
    }

    /// The new credential is used from the next token exchange on. A valid token is used until it
    /// expires, unless the
    /// subject differs.
    pub fn replace_credential(&self, credential: impl Into<Authentication>) -> Result<()> {
        let credential = credential.into();
        if self.0.settings.agent.is_some() {
            let message = "The client's agent holds the credential.";
            return Err(Error::new(Kind::ConfigError, message)
                .with_hint("Replace the key on the agent's machine, then restart the agent."));
        }
        identity::check(&self.0.settings.base_url, &credential)?;
        let new = Identity::new(credential, &self.0.settings);
        let mut identity = self.0.identity.lock();
        if let (Some(new), Some(former)) = (&new.tokens, &identity.tokens) {
            new.adopt(former);
        }
        *identity = Arc::new(new);
        Ok(())
    }

    pub fn allowance(&self) -> Result<AllowanceState> {
        self.0.ledger.state(self.moment())
    }

    /// The remaining allowance, for display. Does not query another process.
    pub fn allowance_left(&self) -> Option<u64> {
        self.0.ledger.remaining(self.moment())
    }

    /// The service's time. Without confirmed evidence it is the earlier of the last reply's date
    /// and this machine's clock, so it is never in the service's future.
    pub fn now(&self) -> Timestamp {
        self.0.ledger.service_time(self.moment()).unwrap_or_else(|_| self.0.time.now())
    }

    fn moment(&self) -> Moment {
        self.0.time.clock().moment()
    }

    pub fn time(&self) -> &ServiceTime {
        &self.0.time
    }

    pub fn base_url(&self) -> &BaseUrl {
        &self.0.settings.base_url
    }

    /// Identifies the origin of bookmarks.
    pub fn origin(&self) -> String {
        format!("{}\n{}", self.base_url().as_str(), self.subject())
    }

    pub fn subject(&self) -> String {
        self.identity().authentication.subject().to_owned()
    }

    /// A client created from them shares ledger and token, but has its own connections.
    pub fn settings(&self) -> &ClientSettings {
        &self.0.settings
    }

    /// Requests sent, with retries. An attempt that sent no byte is not counted.
    pub fn data_requests(&self) -> u64 {
        self.0.data_requests.load(Ordering::Relaxed)
    }

    pub(crate) fn densities(&self) -> &QueryDensities {
        &self.0.densities
    }

    /// The pages that a plan expects: from full pages if possible, otherwise from the page size.
    pub(crate) fn planned_pages(&self, query: &Query) -> Option<u64> {
        let sent = || query.input().page_size.or_else(|| self.page_sizes().automatic(self.now()));
        let densities = self.densities();
        densities.pages(query).or_else(|| densities.pages_of_size(query, sent()?))
    }

    pub fn listed(&self) -> &Arc<ListedIds> {
        &self.0.listed
    }

    pub fn seen(&self) -> &SeenSeries {
        &self.0.seen
    }

    /// New calls and those in progress get `ClosedError`. May be called again.
    pub fn close(&self) {
        self.0.closed.send_replace(true);
        self.0.ledger.close();
    }

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
        mut request: RequestParts<'_>,
        deadline: Deadline,
        read: &(impl Fn(&Reply) -> R + Send + Sync),
    ) -> Result<T> {
        let inner = &*self.0;
        let clock = inner.time.clock();
        let mut call = Call::begin(clock, &inner.settings.retry, &inner.quota, deadline);
        let mut refusal: Option<Error> = None;
        let mut arrival = Duration::ZERO;
        loop {
            // Waits for a connection first, because a token might expire during the wait.
            let slot = match call.untimed(pin!(inner.transport.slot())).await {
                Ok(slot) => slot,
                Err(error) => return Err(call.with_attempts(error)),
            };
            let pause = request.spending.and_then(|spending| spending.pause.closed(clock));
            if let Some((left, because)) = pause {
                // Requests of other reads may use the connection during the pause.
                drop(slot);
                call.wait_out(left, because).await?;
                continue;
            }
            let ready = match call.untimed(pin!(self.renewed_identity())).await {
                Ok(identity) => {
                    self.ready(&identity, request, &mut call).await.map(|access| (identity, access))
                }
                Err(error) => Err(error),
            };
            let (identity, access) = match ready {
                Ok(ready) => ready,
                Err(error) => return Err(call.with_attempts(error)),
            };
            if let (Some(refusal), Some(token)) = (&refusal, &access.token) {
                call.pause(arrival.saturating_sub(token.age()), refusal.clone()).await?;
            }
            let mut note = self.note(&call, request);
            let attempt = self.attempt(request, &access, &mut note);
            let attempted = call.attempt(Box::pin(attempt)).await;
            drop(slot);
            let outcome = match attempted {
                // `read` may wait for its caller, so its time does not count.
                Ok(reply) => {
                    let read = call.untimed(pin!(reply::read(&reply, read))).await;
                    read.map_err(|error| reply::without_secrets(error, request, access.secret()))
                }
                Err(error) => Err(error),
            };
            let error = match outcome {
                Ok(value) => {
                    call.succeeded();
                    return Ok(value);
                }
                Err(error) => error,
            };
            note.failed(&error);
            request.is_retry = true;
            if error.kind() != Kind::AuthenticationError {
                if let Some(spending) = request.spending {
                    spending.note_pause(clock, &error, inner.settings.retry.max_retry_after);
                }
                call.pause_after(error).await?;
                continue;
            }
            // One new token and one repeat. A second refusal ends the call.
            let may_help = refusal.is_none()
                && !error.context().certificate_refused
                && !inner.settings.sends_once;
            let Some(token) = access.token.as_ref().filter(|_| may_help) else {
                return Err(call.with_last_attempt(error));
            };
            arrival = if token.age() < YOUNG { ARRIVAL } else { Duration::ZERO };
            call.record_attempt(&error, arrival);
            identity.invalidate(&access);
            refusal = Some(error);
        }
    }

    fn identity(&self) -> Arc<Identity> {
        Arc::clone(&self.0.identity.lock())
    }

    /// Reloads the client certificate if its files changed.
    async fn renewed_identity(&self) -> Result<Arc<Identity>> {
        let known = self.identity();
        let Some(new) = known.renewed(&self.0.settings, self.0.time.now()).await? else {
            return Ok(known);
        };
        let new = Arc::new(new);
        let mut identity = self.0.identity.lock();
        // Another caller may have replaced it meanwhile.
        if Arc::ptr_eq(&identity, &known) {
            *identity = Arc::clone(&new);
        }
        Ok(new)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client({}, {:?})", self.base_url(), self.identity().authentication)
    }
}
