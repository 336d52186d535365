//! [`AgentLink`]: the client's side of an agent. It is a ledger whose requests the agent counts,
//! and it issues the agent's tokens.

use std::fmt;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use serde::de::DeserializeOwned;

use super::address::{AgentAddress, Place};
use super::connection::Connection;
use super::message::{AgentRequest, AgentState, Ask, Holder, LeasedPage, LeasedToken};
use super::pages::Pages;
use super::trust::ClientTls;
use crate::auth::{CachedToken, Issuer, ScopeSet, TokenSource, Tries};
use crate::clock::{Clock, Moment, Reading};
use crate::error::{Error, Kind, Result, on_thread};
use crate::fork::Owned;
use crate::http::{
    AllowanceState, Call, Deadline, Ledger, Outcome, Permit, Policy, Reservation, RetryQuota,
};
use crate::lock::Mutex;

/// Timeout for a token. It covers all attempts of the agent at the service.
const TOKEN_PATIENCE: Duration = Duration::from_secs(75);
/// Timeout for every other response.
const PATIENCE: Duration = Duration::from_secs(5);
/// Timeout for giving pages back.
const RETURN_PATIENCE: Duration = Duration::from_secs(1);

/// The link of one client to its agent, with the granted pages.
pub struct AgentLink {
    connection: Connection,
    holder: Holder,
    clock: Clock,
    quota: RetryQuota,
    /// A forked child does not inherit the pages of its parent.
    pages: Owned<Mutex<Pages>>,
}

impl AgentLink {
    /// Creates the link to the agent at this place without opening a connection.
    pub fn new(place: Place, holder: Holder, tls: ClientTls, clock: Clock) -> Arc<Self> {
        Arc::new(Self {
            connection: Connection::new(place, tls),
            holder,
            clock,
            quota: RetryQuota::new(),
            pages: Owned::empty(),
        })
    }

    /// Returns the holder of the agent's tokens. Asks the agent if the address does not contain it.
    pub fn holder_at(address: &AgentAddress, tls: &ClientTls) -> Result<Holder> {
        if let (Some(base_url), Some(subject)) = (&address.base_url, &address.subject) {
            return Ok(Holder { base_url: base_url.clone(), subject: subject.clone() });
        }
        let connection = Connection::new(address.place.clone(), tls.clone());
        Ok(connection.call::<AgentState>(&AgentRequest::State, PATIENCE)?.holder)
    }

    /// The complete address, with the holder of the tokens.
    pub fn address(&self) -> AgentAddress {
        self.holder.clone().address(self.place().clone())
    }

    pub fn place(&self) -> &Place {
        &self.connection.place
    }

    pub fn state(&self) -> Result<AgentState> {
        self.connection.call(&AgentRequest::State, PATIENCE)
    }

    fn call<A: DeserializeOwned>(&self, ask: Ask, patience: Duration) -> Result<A> {
        self.connection.call(&AgentRequest::Of(self.holder.clone(), ask), patience)
    }

    /// The pages to give back and to report; `None` if there are none.
    fn rest(&self) -> Option<Ask> {
        let mut pages = self.pages.get()?.lock();
        pages.give_back();
        let reports = pages.reports(self.clock.moment());
        (!reports.is_empty()).then_some(Ask::Return { reports, pause: None })
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.get_or_init(Mutex::default).lock()
    }

    /// Calls the agent on a thread that may block, and retries while the agent does not respond. A
    /// cancelled caller loses nothing: a page that arrives later serves the next call.
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
            let error = match call.attempt(on_thread(move || ask(&link))).await {
                Ok(answer) => {
                    call.succeeded();
                    return Ok(answer);
                }
                Err(error) => error,
            };
            if tries != Tries::All || error.kind() != Kind::AgentUnavailable {
                let is_refused = error.context().unsent;
                // A refused page was no attempt at the service.
                return Err(if is_refused {
                    call.with_attempts(error)
                } else {
                    call.with_last_attempt(error)
                });
            }
            call.pause_after(error).await?;
        }
    }

    /// Requests a page that leaves `must_remain` requests.
    fn fill(&self, must_remain: u64) -> Result<()> {
        let reports = self.pages().reports(self.clock.moment());
        let page: LeasedPage = self.call(Ask::Page { must_remain, reports }, PATIENCE)?;
        self.pages().add(page, must_remain, &self.clock);
        Ok(())
    }

    /// Requests a token. `refused` is the digest of a token that the service refused.
    fn token(
        &self,
        scopes: &ScopeSet,
        refused: Option<String>,
        must_remain: Option<u64>,
    ) -> Result<LeasedToken> {
        // This call fails fast if the agent is down; a token request has a much longer timeout.
        self.state()?;
        // The agent must not request a token if no request would remain to use it.
        let has_page = |must_remain: &u64| self.pages().has_page(&self.clock, *must_remain);
        let must_remain = must_remain.filter(|must_remain| !has_page(must_remain));
        let scopes = scopes.to_string();
        self.call(Ask::Token { scopes, must_remain, refused }, TOKEN_PATIENCE)
    }
}

impl fmt::Debug for AgentLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AgentLink({}, {})", self.place(), self.holder.subject)
    }
}

/// Retries for an agent that does not respond. A restarted agent is ready within seconds.
fn policy() -> Policy {
    Policy {
        tries: 7,
        base: Duration::from_millis(250),
        attempt_limit: None,
        // Each attempt has its own timeout.
        call_limit: Duration::MAX,
        ..Policy::data()
    }
}

/// The agent's ledger, as seen by one client.
impl Ledger for Arc<AgentLink> {
    /// The agent decides when a page is requested.
    fn permit(&self, _now: Moment, _must_remain: u64) -> Result<Permit> {
        Ok(Permit::Granted)
    }

    fn prepare(&self, _now: Moment, must_remain: u64) -> Option<BoxFuture<'_, Result<()>>> {
        let has_page = self.pages().has_page(&self.clock, must_remain);
        let fill = move |link: &AgentLink| link.fill(must_remain);
        (!has_page)
            .then(|| Box::pin(self.ask(Deadline::NEVER, Tries::All, fill)) as BoxFuture<'_, _>)
    }

    fn reserve(&self, _now: Moment, must_remain: u64) -> Result<Reservation> {
        loop {
            let page = self.pages().take(&self.clock, must_remain);
            match page {
                Some(page) => return Ok(page),
                // Another caller took the page that was prepared.
                None => self.fill(must_remain)?,
            }
        }
    }

    fn settle(&self, reservation: Reservation, outcome: Outcome, _now: Moment) {
        self.pages().settle(&reservation, outcome, &self.clock);
    }

    fn observe(&self, reading: Reading, _now: Moment) {
        self.pages().reading = Some(reading);
    }

    /// Reports the pause at once, because other clients of the agent must stop too.
    fn pin(&self, pause: Duration, now: Moment) -> Result<()> {
        let reports = self.pages().reports(now);
        let report = Ask::Return { reports, pause: Some(pause.as_secs_f64()) };
        self.call::<AllowanceState>(report, PATIENCE).map(drop)
    }

    fn state(&self, _now: Moment) -> Result<AllowanceState> {
        match self.rest() {
            Some(report) => self.call(report, PATIENCE),
            None => Ok(AgentLink::state(self)?.allowance),
        }
    }

    /// The value that the agent sent with the latest page.
    fn remaining(&self, _now: Moment) -> Option<u64> {
        self.pages().remaining()
    }

    fn service_time(&self, now: Moment) -> Result<Timestamp> {
        let reading = self.pages().reading;
        let known = reading.and_then(|reading| reading.service_at(now.boot));
        known.ok_or_else(|| Error::new(Kind::AgentUnavailable, "the service's time is unknown"))
    }

    /// Gives back unused pages and reports the others. If that fails, the pages stay counted.
    fn close(&self) {
        if let Some(report) = self.rest()
            && let Err(error) = self.call::<AllowanceState>(report, RETURN_PATIENCE)
        {
            log::info!(target: "siteline::ledger", "pages stay counted: {error}");
        }
    }
}

/// Issues the agent's tokens for one call.
pub(crate) struct AgentIssuer<'a> {
    pub link: &'a Arc<AgentLink>,
    /// The requests that must remain after the page that the token is for; `None` for a request
    /// that is not counted.
    pub must_remain: Option<u64>,
    pub deadline: Deadline,
}

impl Issuer for AgentIssuer<'_> {
    /// The agent has already made all attempts at the service. Only calls to the agent are retried.
    async fn issue(&self, source: &TokenSource, tries: Tries) -> Result<CachedToken> {
        let (scopes, refused, must_remain) =
            (source.key.scopes.clone(), source.refused(), self.must_remain);
        let token = move |link: &AgentLink| link.token(&scopes, refused.clone(), must_remain);
        let LeasedToken { token, expires_in, age } =
            self.link.ask(self.deadline, tries, token).await?;
        let [age, left] = [age, expires_in]
            .map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or_default());
        CachedToken::elsewhere(&token, age, left, &self.link.clock)
    }
}
