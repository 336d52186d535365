//! [`AgentLink`]: the client's side of an agent. It is a ledger, whose requests another process counts,
//! and it issues the tokens that the other process has.

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use serde::de::IgnoredAny;

use super::address::{AgentAddress, Place};
use super::batch::Batch;
use super::connection::Connection;
use super::message::{Holder, Lease, LeaseRequest, LeasedToken, Refused, Return, State};
use super::trust::ClientTls;
use crate::auth::{Issued, Issuer, ScopeSet, TokenWish, Tries};
use crate::clock::{Clock, Moment, Reading};
use crate::error::{Error, Kind, Result};
use crate::fork::Owned;
use crate::http::{
    AllowanceState, Call, Deadline, Ledger, Lent, Outcome, Permit, Policy, Reservation, RetryQuota,
    Wish,
};
use crate::lock::Mutex;
use crate::system::{on_thread, start};

/// Longest wait for a lease with a token: the agent may have to get one, with all attempts.
const TOKEN_PATIENCE: Duration = Duration::from_secs(75);
/// Longest wait for every other answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest wait for the answer of an agent to which pages are given back.
const RETURN_PATIENCE: Duration = Duration::from_secs(1);

/// The links of this process, whose pages are given back at its end.
static LINKS: Mutex<Vec<Weak<AgentLink>>> = Mutex::new(Vec::new());

/// The connection of one client to its agent, with the pages that it was granted.
pub struct AgentLink {
    connection: Arc<Connection>,
    holder: Holder,
    clock: Clock,
    quota: RetryQuota,
    /// A forked child has none of its parent's pages.
    pages: Owned<Pages>,
}

#[derive(Default)]
struct Pages {
    batch: Mutex<Batch>,
    /// Held while pages are asked for, so that callers side by side do not each ask.
    asking: Mutex<()>,
}

impl AgentLink {
    /// The link to the agent at this place, which has the tokens of this holder. Opens nothing.
    pub fn new(place: Place, holder: Holder, tls: ClientTls, clock: Clock) -> Arc<Self> {
        let link = Arc::new(Self {
            connection: Arc::new(Connection::new(place, tls)),
            holder,
            clock,
            quota: RetryQuota::new(),
            pages: Owned::empty(),
        });
        let mut links = LINKS.lock();
        links.retain(|known| known.strong_count() > 0);
        links.push(Arc::downgrade(&link));
        link
    }

    /// Whose tokens the agent at this address has. Where the address does not say it, the agent is asked.
    ///
    /// # Errors
    /// `AgentUnavailable`, `TlsError`, or `ConfigError` where something else answers.
    pub fn holder_at(address: &AgentAddress, tls: &ClientTls) -> Result<Holder> {
        if let (Some(base_url), Some(subject)) = (&address.base_url, &address.subject) {
            return Ok(Holder { base_url: base_url.clone(), subject: subject.clone() });
        }
        let connection = Connection::new(address.place.clone(), tls.clone());
        Ok(connection.call::<State>("/v1/state", None::<&()>, PATIENCE)?.holder)
    }

    /// Its address, with what its tokens are for.
    pub fn address(&self) -> AgentAddress {
        AgentAddress {
            place: self.place().clone(),
            base_url: Some(self.holder.base_url.clone()),
            subject: Some(self.holder.subject.clone()),
        }
    }

    /// Where the agent listens.
    pub fn place(&self) -> &Place {
        self.connection.place()
    }

    /// What the agent tells of itself.
    ///
    /// # Errors
    /// `AgentUnavailable`, and those that the agent tells.
    pub fn state(&self) -> Result<State> {
        self.connection.call("/v1/state", None::<&()>, PATIENCE)
    }

    /// Gives the pages back that this process does not use, and says what became of the others. Where
    /// that fails, they stay counted.
    pub fn give_back(&self) {
        while let Some(body) = self.rest() {
            if let Err(error) = self.tell(&body, RETURN_PATIENCE) {
                log::info!(target: "siteline::ledger", "pages stay counted: {error}");
                return;
            }
        }
    }

    /// What is to be given back and told, if anything.
    fn rest(&self) -> Option<Return> {
        let mut batch = self.pages.get()?.batch.lock();
        batch.give_back();
        let reports = batch.reports(self.clock.moment());
        (!reports.is_empty()).then(|| Return { holder: self.holder.clone(), reports, pause: None })
    }

    fn tell(&self, body: &Return, patience: Duration) -> Result<AllowanceState> {
        self.connection.call("/v1/return", Some(body), patience)
    }

    fn pages(&self) -> &Pages {
        self.pages.get_or_init(Pages::default)
    }

    /// Asks on a thread where it may wait, and again where the agent does not answer.
    async fn ask<T: Send + 'static>(
        self: &Arc<Self>,
        deadline: Deadline,
        tries: Tries,
        ask: impl Fn(&Self) -> Result<T> + Clone + Send + 'static,
    ) -> Result<T> {
        let policy = policy();
        let mut call = Call::begin(&self.clock, &policy, &self.quota, deadline);
        loop {
            let (link, ask) = (Arc::clone(self), ask.clone());
            let error = match call.attempt(blocking(move || ask(&link))).await {
                Ok(answer) => {
                    call.succeeded();
                    return Ok(answer);
                }
                Err(error) => error,
            };
            if tries != Tries::All || error.kind() != Kind::AgentUnavailable {
                let is_refused = error.context().unsent;
                // A page that is not granted is no attempt at the service.
                return Err(if is_refused {
                    call.with_attempts(error)
                } else {
                    call.with_last_attempt(error)
                });
            }
            call.pause_after(error).await?;
        }
    }

    /// Asks for a page that leaves so many requests, unless there is one.
    fn fill(&self, must_remain: u64) -> Result<()> {
        let pages = self.pages();
        let _asking = pages.asking.lock();
        if pages.batch.lock().has_page(&self.clock, must_remain) {
            return Ok(());
        }
        self.lease(None, Some(must_remain), PATIENCE).map(drop)
    }

    /// Asks for a token, for pages that leave so many requests, or for both.
    fn lease(
        &self,
        scopes: Option<&ScopeSet>,
        must_remain: Option<u64>,
        patience: Duration,
    ) -> Result<Option<LeasedToken>> {
        let batch = &self.pages().batch;
        let request = {
            let mut batch = batch.lock();
            LeaseRequest {
                holder: self.holder.clone(),
                scopes: scopes.map(ToString::to_string),
                pages: if must_remain.is_some() { batch.wanted(&self.clock) } else { 0 },
                must_remain: must_remain.unwrap_or_default(),
                reports: batch.reports(self.clock.moment()),
            }
        };
        let mut lease: Lease = self.connection.call("/v1/lease", Some(&request), patience)?;
        let token = lease.token.take();
        if request.pages > 0 && lease.pages == 0 {
            let message = "the agent answered with no page, and without saying why";
            return Err(Error::new(Kind::ProtocolError, message));
        }
        batch.lock().add(&lease, request.must_remain, &self.clock);
        Ok(token)
    }

    /// Tells of a refused token, and asks for one.
    fn token(
        &self,
        scopes: &ScopeSet,
        refused: Option<String>,
        must_remain: Option<u64>,
    ) -> Result<LeasedToken> {
        match refused {
            Some(digest) => {
                let (holder, scopes) = (self.holder.clone(), scopes.to_string());
                let body = Refused { holder, scopes, digest };
                self.connection.call::<IgnoredAny>("/v1/refused", Some(&body), PATIENCE)?;
            }
            // One that does not answer at all is not waited for as long as an exchange may take.
            None => drop(self.state()?),
        }
        // The page that the token is wanted for, so that none is requested where no page is left.
        let must_remain = must_remain
            .filter(|must_remain| !self.pages().batch.lock().has_page(&self.clock, *must_remain));
        self.lease(Some(scopes), must_remain, TOKEN_PATIENCE)?
            .ok_or_else(|| Error::new(Kind::ProtocolError, "the agent answered without a token"))
    }
}

impl fmt::Debug for AgentLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AgentLink({}, {})", self.place(), self.holder.subject)
    }
}

impl Drop for AgentLink {
    /// On a thread of its own, because whoever drops it may hold the interpreter.
    fn drop(&mut self) {
        let bodies: Vec<_> = std::iter::from_fn(|| self.rest()).collect();
        if bodies.is_empty() {
            return;
        }
        let connection = Arc::clone(&self.connection);
        let told = move || {
            // Where that fails, they stay counted.
            let tell =
                |body| connection.call::<IgnoredAny>("/v1/return", Some(body), RETURN_PATIENCE);
            let _told = bodies.iter().try_for_each(|body| tell(body).map(drop));
        };
        let _started = start("siteline-agent-link", told);
    }
}

/// At the end of the process: gives back what its clients did not use.
pub fn give_all_back() {
    let links: Vec<_> = LINKS.lock().iter().filter_map(Weak::upgrade).collect();
    for link in links {
        link.give_back();
    }
}

/// How often an agent is asked that does not answer: one that is started again is there in seconds.
fn policy() -> Policy {
    Policy {
        tries: 7,
        base: Duration::from_millis(250),
        attempt_limit: None,
        // Each attempt has an end of its own.
        call_limit: Duration::MAX,
        ..Policy::data()
    }
}

/// The count that the agent keeps, for one client.
#[derive(Debug)]
pub(crate) struct AgentLedger(pub(crate) Arc<AgentLink>);

impl Ledger for AgentLedger {
    /// The agent decides when a page is asked for.
    fn permit(&self, _now: Moment, _must_remain: u64) -> Result<Permit> {
        Ok(Permit::Granted)
    }

    fn prepare(&self, _now: Moment, must_remain: u64) -> Option<BoxFuture<'_, Result<()>>> {
        let has_page = self.0.pages().batch.lock().has_page(&self.0.clock, must_remain);
        let fill = move |link: &AgentLink| link.fill(must_remain);
        (!has_page)
            .then(|| Box::pin(self.0.ask(Deadline::NEVER, Tries::All, fill)) as BoxFuture<'_, _>)
    }

    fn reserve(&self, _now: Moment, must_remain: u64) -> Result<Reservation> {
        loop {
            let page = self.0.pages().batch.lock().take(&self.0.clock, must_remain);
            match page {
                Some(page) => return Ok(page),
                // Another caller has taken the one that was prepared.
                None => self.0.fill(must_remain)?,
            }
        }
    }

    fn settle(&self, reservation: Reservation, outcome: Outcome, _now: Moment) {
        self.0.pages().batch.lock().settle(&reservation, outcome, &self.0.clock);
    }

    fn lend(&self, _wish: Wish, _now: Moment) -> Result<Lent> {
        Err(Error::new(Kind::ConfigError, "A client of an agent lends nothing."))
    }

    fn observe(&self, reading: Reading, _now: Moment) {
        self.0.pages().batch.lock().observe(reading);
    }

    /// Told at once: others must stop.
    fn pin(&self, pause: Duration, now: Moment) -> Result<()> {
        let reports = self.0.pages().batch.lock().reports(now);
        let (holder, pause) = (self.0.holder.clone(), Some(pause.as_secs_f64()));
        self.0.tell(&Return { holder, reports, pause }, PATIENCE).map(drop)
    }

    /// As the agent counts, without the pages that this client has and did not use.
    fn state(&self, now: Moment) -> Result<AllowanceState> {
        let pages = self.0.pages();
        let (reports, free) = {
            let mut batch = pages.batch.lock();
            (batch.reports(now), batch.free_pages())
        };
        let state = if reports.is_empty() {
            self.0.state()?.allowance
        } else {
            let body = Return { holder: self.0.holder.clone(), reports, pause: None };
            self.0.tell(&body, PATIENCE)?
        };
        Ok(AllowanceState {
            used: state.used.saturating_sub(free),
            left: state.left.map(|left| left.saturating_add(free)),
            ..state
        })
    }

    /// By the latest lease.
    fn left(&self, _now: Moment) -> Option<u64> {
        self.0.pages().batch.lock().left()
    }

    fn service_time(&self, now: Moment) -> Result<Timestamp> {
        let reading = self.0.pages().batch.lock().reading();
        let known = reading.and_then(|reading| reading.service_at(now.boot));
        known.ok_or_else(|| Error::new(Kind::AgentUnavailable, "the service's time is not known"))
    }

    /// The agent counts its own.
    fn count_token_request(&self, _now: Moment) -> Result<()> {
        Ok(())
    }

    fn begin_token_request(&self, _now: Moment) -> Result<u64> {
        Ok(0)
    }

    fn pause_tokens(&self, _pause: Duration, _now: Moment) -> Result<()> {
        Ok(())
    }

    fn token_pause(&self, _now: Moment) -> Result<Option<(Duration, Timestamp)>> {
        Ok(None)
    }

    fn close(&self) {
        self.0.give_back();
    }
}

/// The tokens of the agent, for one call.
pub(crate) struct AgentIssuer<'a> {
    /// The agent.
    pub link: &'a Arc<AgentLink>,
    /// The requests that must be left after the page that the token is for; `None` for a request that
    /// is not counted.
    pub must_remain: Option<u64>,
    /// The caller's deadline.
    pub deadline: Deadline,
}

impl Issuer for AgentIssuer<'_> {
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// The agent has made all attempts at the service itself; only it may be asked again.
    async fn issue(&self, wish: &TokenWish<'_>) -> Result<Issued> {
        let (scopes, refused, must_remain) =
            (wish.scopes.clone(), wish.refused.clone(), self.must_remain);
        let token = move |link: &AgentLink| link.token(&scopes, refused.clone(), must_remain);
        let LeasedToken { token, expires_in, age } =
            self.link.ask(self.deadline, wish.tries, token).await?;
        let [age, left] = [age, expires_in]
            .map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or_default());
        Issued::elsewhere(&token, age, left, &self.link.clock)
    }
}

/// On a thread where it may wait. Whoever is cancelled meanwhile loses nothing: pages that come later
/// are there for the next call.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    on_thread(work).await.map_err(|refused| Error::no_thread(&refused))?
}
