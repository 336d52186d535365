//! The four routes: a request in, an answer out. Who may ask is decided before.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::batch::MOST_PAGES;
use super::leases::Leases;
use super::lessor::Lessor;
use super::message::{
    Failure, Holder, Lease, LeaseRequest, LeasedToken, Refused, Report, Return, State,
};
use crate::auth::{AccessToken, ScopeSet};
use crate::error::{Error, Kind, Result};
use crate::http::{AllowanceState, Lent, Outcome, Permit, Reservation, Wish};
use crate::lock::Mutex;

/// A status and a JSON body.
pub(super) type Answer = (u16, Vec<u8>);

/// The agent behind its routes.
pub(super) struct Routes {
    lessor: Box<dyn Lessor>,
    leases: Mutex<Leases>,
}

impl Routes {
    pub(super) fn new(lessor: Box<dyn Lessor>) -> Self {
        Self { lessor, leases: Mutex::new(Leases::new()) }
    }

    /// The address and the subject that its tokens are for.
    pub(super) fn holder(&self) -> Holder {
        Holder { base_url: self.lessor.base_url(), subject: self.lessor.subject() }
    }

    pub(super) async fn answer(&self, method: &str, path: &str, body: &[u8]) -> Answer {
        let answered = match (method, path) {
            ("POST", "/v1/lease") => match self.request(body) {
                Ok(request) => self.lease(request).await.and_then(|lease| json(&lease)),
                Err(error) => Err(error),
            },
            ("POST", "/v1/return") => self
                .request(body)
                .and_then(|request| self.take_back(&request))
                .and_then(|a| json(&a)),
            ("POST", "/v1/refused") => self
                .request(body)
                .and_then(|request| self.refused(&request))
                .and_then(|()| json(&())),
            ("GET", "/v1/state") => self.state().and_then(|state| json(&state)),
            _ => {
                Err(Error::new(Kind::ConfigError, format!("an agent has no route {method} {path}")))
            }
        };
        answered.map_or_else(|error| refusal(&error), |body| (200, body))
    }

    /// Reads a request, whose member `base_url` and `subject` are this agent's.
    fn request<T: DeserializeOwned>(&self, body: &[u8]) -> Result<T> {
        let broken =
            |_| Error::new(Kind::ConfigError, "the request is not one that this agent understands");
        let holder: Holder = serde_json::from_slice(body).map_err(broken)?;
        let own = self.holder();
        if holder != own {
            let message = format!(
                "The agent has tokens for {} of {}, not for {} of {}.",
                own.subject, own.base_url, holder.subject, holder.base_url
            );
            return Err(Error::new(Kind::ConfigError, message).with_hint(
                "SITELINE_AGENT is the address of another agent: take the one that `siteline agent` \
                 prints for this service and subject.",
            ));
        }
        serde_json::from_slice(body).map_err(broken)
    }

    async fn lease(&self, request: LeaseRequest) -> Result<Lease> {
        let (lessor, ledger) = (&*self.lessor, self.lessor.ledger());
        let now = || lessor.clock().moment();
        let (pages, must_remain) = (request.pages.min(MOST_PAGES), request.must_remain);
        let granted =
            |settled, requests| ledger.lend(Wish { settled, requests, must_remain }, now());
        let is_counted = (pages > 0).then_some(must_remain);
        let mut settled = self.settled(&request.reports);
        let mut token = None;
        if let Some(text) = &request.scopes {
            if !settled.is_empty() {
                // It is known before it is decided whether a page is left.
                granted(std::mem::take(&mut settled), 0)?;
            }
            token = Some(lessor.token(&self.scopes(text)?, is_counted).await?);
        }
        let mut lent = granted(settled, pages)?;
        // Only the reply to a token request can show whether the day has ended.
        if lent.requests.is_err()
            && token.is_none()
            && matches!(ledger.permit(now(), must_remain)?, Permit::Unknown { .. })
        {
            lessor.token(&lessor.scopes(), is_counted).await?;
            lent = granted(Vec::new(), pages)?;
        }
        let Lent { requests, allowance, token_pause, service_time } = lent;
        let requests = requests?;
        let pages = requests.len() as u64;
        Ok(Lease {
            token: token.as_ref().map(leased),
            name: self.leases.lock().grant(requests, lessor.clock().monotonic()),
            pages,
            allowance,
            resets_at: allowance.resets_at,
            pause_until: token_pause,
            service_time,
        })
    }

    /// What became of pages.
    fn settled(&self, reports: &[Report]) -> Vec<(Reservation, Outcome)> {
        let clock = self.lessor.clock();
        self.leases.lock().settled(reports, clock.monotonic(), clock.moment())
    }

    /// Some of the scopes that the agent has.
    fn scopes(&self, text: &str) -> Result<ScopeSet> {
        let (asked, own) = (ScopeSet::parse(text)?, self.lessor.scopes());
        let missing = asked.missing_from(&own);
        if missing.is_empty() {
            return Ok(asked);
        }
        let message = format!("the agent does not give the scope {}", missing.join(" "));
        Err(Error::new(Kind::ScopeError, message)
            .with_hint(format!("It was started for {own}: start it with the others (scopes=)."))
            .with(|context| context.missing = missing))
    }

    fn take_back(&self, request: &Return) -> Result<AllowanceState> {
        let (ledger, clock) = (self.lessor.ledger(), self.lessor.clock());
        let settled = self.settled(&request.reports);
        let lent = ledger.lend(Wish { settled, ..Wish::default() }, clock.moment())?;
        if let Some(pause) = request.pause {
            let pause = std::time::Duration::try_from_secs_f64(pause).unwrap_or_default();
            ledger.pin(pause, clock.moment())?;
            return ledger.state(clock.moment());
        }
        Ok(lent.allowance)
    }

    fn refused(&self, request: &Refused) -> Result<()> {
        self.lessor.refuse(&self.scopes(&request.scopes)?, &request.digest);
        Ok(())
    }

    /// What the agent tells of itself.
    pub(super) fn state(&self) -> Result<State> {
        let leases = self.leases.lock();
        Ok(State {
            holder: self.holder(),
            scopes: self.lessor.scopes().to_string(),
            allowance: self.lessor.ledger().state(self.lessor.clock().moment())?,
            lent: leases.lent(),
            leases: leases.count(),
            version: crate::VERSION.to_owned(),
        })
    }
}

fn leased(token: &AccessToken) -> LeasedToken {
    LeasedToken {
        token: token.secret().to_owned().into(),
        expires_in: token.left().as_secs_f64(),
        age: token.age().as_secs_f64(),
    }
}

fn json(answer: &impl Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec(answer)
        .map_err(|_| Error::new(Kind::InternalError, "the answer cannot be written as JSON"))
}

/// The answer to a request that fails.
pub(super) fn refusal(error: &Error) -> Answer {
    let status = if error.kind() == Kind::ConfigError { 409 } else { 502 };
    (status, serde_json::to_vec(&Failure::from(error)).unwrap_or_default())
}
