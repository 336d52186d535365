//! [`AgentLink`]: the client's side of an agent. It is a ledger, whose requests another process counts,
//! and it issues the tokens that the other process has.

use std::fmt;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use futures_util::future::BoxFuture;
use jiff::Timestamp;

use super::address::{AgentAddress, Place};
use super::connection::Connection;
use super::message::{
    AgentState, Holder, LeaseRequest, LeasedPage, LeasedToken, Return, TokenRequest,
};
use super::pages::Pages;
use super::trust::ClientTls;
use crate::auth::{Issued, Issuer, ScopeSet, TokenWish, Tries};
use crate::clock::{Clock, Moment, Reading};
use crate::error::{Error, Kind, Result};
use crate::fork::Owned;
use crate::http::{
    AllowanceState, Call, Deadline, Ledger, Outcome, Permit, Policy, Reservation, RetryQuota,
};
use crate::lock::Mutex;
use crate::system::on_thread;

/// Longest wait for a token: the agent may have to get one, with all attempts.
const TOKEN_PATIENCE: Duration = Duration::from_secs(75);
/// Longest wait for every other answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest wait for the answer of an agent to which pages are given back.
const RETURN_PATIENCE: Duration = Duration::from_secs(1);

/// The connection of one client to its agent, with the pages that it was granted.
pub struct AgentLink {
    connection: Connection,
    holder: Holder,
    clock: Clock,
    quota: RetryQuota,
    /// A forked child has none of its parent's pages.
    pages: Owned<Mutex<Pages>>,
}

impl AgentLink {
    /// The link to the agent at this place, which has the tokens of this holder. Opens nothing.
    #[must_use]
    pub fn new(place: Place, holder: Holder, tls: ClientTls, clock: Clock) -> Arc<Self> {
        Arc::new(Self {
            connection: Connection::new(place, tls),
            holder,
            clock,
            quota: RetryQuota::new(),
            pages: Owned::empty(),
        })
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
        Ok(connection.call::<AgentState>("/v1/state", None::<&()>, PATIENCE)?.holder)
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
    pub fn state(&self) -> Result<AgentState> {
        self.connection.call("/v1/state", None::<&()>, PATIENCE)
    }

    /// Gives back the pages that this process does not use, and reports the others. If that fails, they
    /// stay counted.
    fn give_back(&self) {
        if let Some(body) = self.rest()
            && let Err(error) = self.tell(&body, RETURN_PATIENCE)
        {
            log::info!(target: "siteline::ledger", "pages stay counted: {error}");
        }
    }

    /// What is to be given back and reported, if anything.
    fn rest(&self) -> Option<Return> {
        let mut pages = self.pages.get()?.lock();
        pages.give_back();
        let reports = pages.reports(self.clock.moment());
        (!reports.is_empty()).then(|| Return { holder: self.holder.clone(), reports, pause: None })
    }

    fn tell(&self, body: &Return, patience: Duration) -> Result<AllowanceState> {
        self.connection.call("/v1/return", Some(body), patience)
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.get_or_init(Mutex::default).lock()
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

    /// Asks for a page that leaves this many requests.
    fn fill(&self, must_remain: u64) -> Result<()> {
        let reports = self.pages().reports(self.clock.moment());
        let request = LeaseRequest { holder: self.holder.clone(), must_remain, reports };
        let page: LeasedPage = self.connection.call("/v1/page", Some(&request), PATIENCE)?;
        self.pages().add(page, must_remain, &self.clock);
        Ok(())
    }

    /// Asks for a token, in the place of a refused one if there is one.
    fn token(
        &self,
        scopes: &ScopeSet,
        refused: Option<String>,
        must_remain: Option<u64>,
    ) -> Result<LeasedToken> {
        // An agent that does not answer at all is not waited for as long as an exchange may take.
        self.state()?;
        // No token is requested if no page is left for it.
        let has_page = |must_remain: &u64| self.pages().has_page(&self.clock, *must_remain);
        let request = TokenRequest {
            holder: self.holder.clone(),
            scopes: scopes.to_string(),
            must_remain: must_remain.filter(|must_remain| !has_page(must_remain)),
            refused,
        };
        self.connection.call("/v1/token", Some(&request), TOKEN_PATIENCE)
    }
}

impl fmt::Debug for AgentLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AgentLink({}, {})", self.place(), self.holder.subject)
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
        let has_page = self.0.pages().has_page(&self.0.clock, must_remain);
        let fill = move |link: &AgentLink| link.fill(must_remain);
        (!has_page)
            .then(|| Box::pin(self.0.ask(Deadline::NEVER, Tries::All, fill)) as BoxFuture<'_, _>)
    }

    fn reserve(&self, _now: Moment, must_remain: u64) -> Result<Reservation> {
        loop {
            let page = self.0.pages().take(&self.0.clock, must_remain);
            match page {
                Some(page) => return Ok(page),
                // Another caller has taken the one that was prepared.
                None => self.0.fill(must_remain)?,
            }
        }
    }

    fn settle(&self, reservation: Reservation, outcome: Outcome, _now: Moment) {
        self.0.pages().settle(&reservation, outcome, &self.0.clock);
    }

    fn observe(&self, reading: Reading, _now: Moment) {
        self.0.pages().observe(reading);
    }

    /// Told at once: others must stop.
    fn pin(&self, pause: Duration, now: Moment) -> Result<()> {
        let reports = self.0.pages().reports(now);
        let (holder, pause) = (self.0.holder.clone(), Some(pause.as_secs_f64()));
        self.0.tell(&Return { holder, reports, pause }, PATIENCE).map(drop)
    }

    fn state(&self, _now: Moment) -> Result<AllowanceState> {
        match self.0.rest() {
            Some(body) => self.0.tell(&body, PATIENCE),
            None => Ok(self.0.state()?.allowance),
        }
    }

    /// As the agent said with the latest page.
    fn left(&self, _now: Moment) -> Option<u64> {
        self.0.pages().left()
    }

    fn service_time(&self, now: Moment) -> Result<Timestamp> {
        let reading = self.0.pages().reading();
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
