//! The four routes: a request in, an answer out. Who may ask is decided before.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::leases::Leases;
use super::lessor::Lessor;
use super::message::{
    AgentFailure, AgentState, Holder, LeaseRequest, LeasedPage, LeasedToken, Report, Return,
    TokenRequest,
};
use crate::auth::{AccessToken, ScopeSet};
use crate::error::{Error, Kind, Result};
use crate::http::{AllowanceState, Permit};
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
        Self { lessor, leases: Mutex::default() }
    }

    /// The address and the subject that its tokens are for.
    pub(super) fn holder(&self) -> Holder {
        Holder { base_url: self.lessor.base_url(), subject: self.lessor.subject() }
    }

    pub(super) async fn answer(&self, method: &str, path: &str, body: &[u8]) -> Answer {
        let answered = match (method, path) {
            ("POST", "/v1/token") => match self.request(body) {
                Ok(request) => self.token(&request).await.and_then(|token| json(&token)),
                Err(error) => Err(error),
            },
            ("POST", "/v1/page") => match self.request(body) {
                Ok(request) => self.page(&request).await.and_then(|page| json(&page)),
                Err(error) => Err(error),
            },
            ("POST", "/v1/return") => self
                .request(body)
                .and_then(|request| self.take_back(&request))
                .and_then(|a| json(&a)),
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

    async fn token(&self, request: &TokenRequest) -> Result<LeasedToken> {
        let scopes = self.scopes(&request.scopes)?;
        if let Some(digest) = &request.refused {
            self.lessor.refuse(&scopes, digest);
        }
        let token = self.lessor.token(&scopes, request.must_remain).await?;
        self.leases.lock().granted += 1;
        Ok(leased(&token))
    }

    async fn page(&self, request: &LeaseRequest) -> Result<LeasedPage> {
        let (lessor, ledger) = (&*self.lessor, self.lessor.ledger());
        let now = || lessor.clock().moment();
        self.settle(&request.reports);
        let must_remain = request.must_remain;
        let reserved = match ledger.reserve(now(), must_remain) {
            // Only the reply to a token request can show whether the day has ended.
            Err(_) if matches!(ledger.permit(now(), must_remain)?, Permit::Unknown { .. }) => {
                lessor.token(&lessor.scopes(), Some(must_remain)).await?;
                ledger.reserve(now(), must_remain)
            }
            reserved => reserved,
        };
        let page = self.leases.lock().grant(reserved?, lessor.clock().monotonic());
        let (allowance, service_time) = (ledger.state(now())?, ledger.service_time(now())?);
        Ok(LeasedPage { page, allowance, service_time })
    }

    /// Counts what became of pages.
    fn settle(&self, reports: &[Report]) {
        let (ledger, clock) = (self.lessor.ledger(), self.lessor.clock());
        let now = clock.moment();
        let settled = self.leases.lock().settled(reports, clock.monotonic(), now);
        for (page, outcome) in settled {
            ledger.settle(page, outcome, now);
        }
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
        self.settle(&request.reports);
        if let Some(pause) = request.pause {
            let pause = std::time::Duration::try_from_secs_f64(pause).unwrap_or_default();
            ledger.pin(pause, clock.moment())?;
        }
        ledger.state(clock.moment())
    }

    /// What the agent tells of itself.
    pub(super) fn state(&self) -> Result<AgentState> {
        self.settle(&[]);
        let leases = self.leases.lock();
        Ok(AgentState {
            holder: self.holder(),
            scopes: self.lessor.scopes().to_string(),
            allowance: self.lessor.ledger().state(self.lessor.clock().moment())?,
            lent: leases.lent(),
            leases: leases.granted,
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
    (status, serde_json::to_vec(&AgentFailure::from(error)).unwrap_or_default())
}
