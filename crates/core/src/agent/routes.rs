//! The answers of an agent, and the pages that it granted. The peer is checked before.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::Serialize;

use super::message::{
    AgentFailure, AgentRequest, AgentState, Ask, Holder, LeasedPage, LeasedToken, Report,
};
use crate::auth::{AccessToken, ScopeSet};
use crate::clock::{Clock, Moment};
use crate::error::{Error, Kind, Result};
use crate::http::{AllowanceState, Ledger, Outcome, Permit, Reservation};
use crate::lock::Mutex;

/// How long a grant is kept. Clients use a page for half of this time, and a request takes at most
/// the rest.
const LEASE: Duration = Duration::from_secs(600);

/// The client behind an agent, with its key and its ledger.
pub struct Lessor {
    /// The service and the subject of the credential.
    pub(crate) holder: Holder,
    /// The scopes that clients may request.
    pub(crate) scopes: ScopeSet,
    /// The clock of the ledger.
    pub(crate) clock: Clock,
    pub(crate) ledger: Arc<dyn Ledger>,
    pub(crate) lend: Box<LendToken>,
}

/// Returns a token for these scopes, after checking that a request may be sent that leaves this
/// number of requests; `None` for a request that is not counted. The token does not have the given
/// digest, which is of a refused one.
pub(crate) type LendToken = dyn Fn(ScopeSet, Option<u64>, Option<String>) -> BoxFuture<'static, Result<AccessToken>>
    + Send
    + Sync;

/// Granted pages without a report.
#[derive(Default)]
struct Leases {
    /// Number of tokens and pages granted since the start.
    granted: u64,
    open: HashMap<String, (Reservation, Duration)>,
}

impl Leases {
    /// Keeps a page and returns its name, which is unique across agents.
    fn grant(&mut self, page: Reservation, now: Duration) -> String {
        self.granted += 1;
        let name = uuid::Uuid::new_v4().simple().to_string();
        self.open.insert(name.clone(), (page, now));
        name
    }

    /// Removes and returns the reported pages. Drops expired grants of clients that ended without a
    /// report; their pages stay counted, as after the kill of any process.
    fn settled(
        &mut self,
        reports: &[Report],
        passed: Duration,
        now: Moment,
    ) -> Vec<(Reservation, Outcome)> {
        self.open.retain(|_, (_, since)| passed.saturating_sub(*since) <= LEASE);
        let settled = reports.iter().filter_map(|report| {
            let (reservation, _) = self.open.remove(&report.page)?;
            Some((reservation, report.outcome(now)))
        });
        settled.collect()
    }
}

pub(super) struct Routes {
    lessor: Lessor,
    leases: Mutex<Leases>,
}

impl Routes {
    pub(super) fn new(lessor: Lessor) -> Self {
        Self { lessor, leases: Mutex::default() }
    }

    /// Returns the answer to a request, as JSON.
    pub(super) async fn answer(&self, request: &[u8]) -> Result<Vec<u8>> {
        let request = serde_json::from_slice(request)
            .map_err(|_| refused("the agent does not understand the request"))?;
        let ask = match request {
            AgentRequest::State => return json(&self.state()?),
            AgentRequest::Of(holder, ask) => {
                self.check_holder(&holder)?;
                ask
            }
        };
        match ask {
            Ask::Token { scopes, must_remain, refused } => {
                json(&self.token(&scopes, must_remain, refused).await?)
            }
            Ask::Page { must_remain, reports } => json(&self.page(must_remain, &reports).await?),
            Ask::Return { reports, pause } => json(&self.take_back(&reports, pause)?),
        }
    }

    fn check_holder(&self, holder: &Holder) -> Result<()> {
        let own = &self.lessor.holder;
        if holder == own {
            return Ok(());
        }
        let message = format!(
            "The agent has tokens for {} at {}, not for {} at {}.",
            own.subject, own.base_url, holder.subject, holder.base_url
        );
        Err(refused(message).with_hint(
            "SITELINE_AGENT is the address of another agent. Use the address that `siteline agent` \
             prints for this service and subject.",
        ))
    }

    async fn token(
        &self,
        scopes: &str,
        must_remain: Option<u64>,
        refused: Option<String>,
    ) -> Result<LeasedToken> {
        let token = (self.lessor.lend)(self.scopes(scopes)?, must_remain, refused).await?;
        self.leases.lock().granted += 1;
        Ok(LeasedToken {
            token: token.secret().to_owned().into(),
            expires_in: token.expires_in().as_secs_f64(),
            age: token.age().as_secs_f64(),
        })
    }

    async fn page(&self, must_remain: u64, reports: &[Report]) -> Result<LeasedPage> {
        let Lessor { scopes, clock, ledger, lend, .. } = &self.lessor;
        let now = || clock.moment();
        self.settle(reports);
        let reserved = match ledger.reserve(now(), must_remain) {
            // Only the reply to a token request shows whether the day has ended.
            Err(_) if matches!(ledger.permit(now(), must_remain)?, Permit::Unknown { .. }) => {
                lend(scopes.clone(), Some(must_remain), None).await?;
                ledger.reserve(now(), must_remain)
            }
            reserved => reserved,
        };
        let page = self.leases.lock().grant(reserved?, clock.monotonic());
        let (allowance, service_time) = (ledger.state(now())?, ledger.service_time(now())?);
        Ok(LeasedPage { page, allowance, service_time })
    }

    /// Counts the outcomes of pages.
    fn settle(&self, reports: &[Report]) {
        let Lessor { ledger, clock, .. } = &self.lessor;
        let now = clock.moment();
        let settled = self.leases.lock().settled(reports, clock.monotonic(), now);
        for (page, outcome) in settled {
            ledger.settle(page, outcome, now);
        }
    }

    /// Parses the requested scopes and checks that the agent has them.
    fn scopes(&self, text: &str) -> Result<ScopeSet> {
        let (asked, own) = (ScopeSet::parse(text)?, &self.lessor.scopes);
        let missing = asked.missing_from(own);
        if missing.is_empty() {
            return Ok(asked);
        }
        let message = format!("the agent does not have the scope {}", missing.join(" "));
        Err(Error::new(Kind::ScopeError, message)
            .with_hint(format!("It was started for {own}. Start it with the others too (scopes=)."))
            .with(|context| context.missing = missing))
    }

    fn take_back(&self, reports: &[Report], pause: Option<f64>) -> Result<AllowanceState> {
        let Lessor { ledger, clock, .. } = &self.lessor;
        self.settle(reports);
        if let Some(pause) = pause {
            let pause = Duration::try_from_secs_f64(pause).unwrap_or_default();
            ledger.pin(pause, clock.moment())?;
        }
        ledger.state(clock.moment())
    }

    pub(super) fn state(&self) -> Result<AgentState> {
        self.settle(&[]);
        let leases = self.leases.lock();
        let Lessor { holder, scopes, clock, ledger, .. } = &self.lessor;
        Ok(AgentState {
            holder: holder.clone(),
            scopes: scopes.to_string(),
            allowance: ledger.state(clock.moment())?,
            lent: leases.open.len() as u64,
            leases: leases.granted,
            version: crate::VERSION.to_owned(),
        })
    }
}

fn json(answer: &impl Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec(&Ok::<_, AgentFailure>(answer))
        .map_err(|_| Error::new(Kind::InternalError, "the answer cannot be written as JSON"))
}

/// The answer to a failed request.
pub(super) fn refusal(error: &Error) -> Vec<u8> {
    let failure = AgentFailure { kind: error.kind(), context: error.context().clone() };
    serde_json::to_vec(&Err::<(), _>(failure)).unwrap_or_default()
}

/// The error of a peer that may not use the agent or speaks another language.
pub(super) fn refused(what: impl Into<String>) -> Error {
    Error::new(Kind::ConfigError, what)
}
