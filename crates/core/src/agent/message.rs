//! The messages between an agent and its clients: JSON on four routes.
//!
//! | route | request | response |
//! |---|---|---|
//! | `POST /v1/token` | [`TokenRequest`] | [`LeasedToken`] |
//! | `POST /v1/page` | [`LeaseRequest`] | [`LeasedPage`] |
//! | `POST /v1/return` | [`Return`] | the allowance |
//! | `GET /v1/state` | | [`AgentState`] |
//!
//! A failure is an [`AgentFailure`]. Unknown members are ignored, so either side may be newer. Any other change
//! needs another [`VERSION`].

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::address::{AgentAddress, Place};
use crate::clock::{Moment, Reading};
use crate::error::{Context, Error, Kind, excerpt_of};
use crate::http::{AllowanceState, Outcome};

/// The header of every request, with the version of these messages. A browser cannot send it to
/// another site without a preflight request.
pub(super) const HEADER: &str = "siteline-agent";
pub(super) const VERSION: &str = "2";
/// The header for the secret, used over TLS without client certificates.
pub(super) const SECRET_HEADER: &str = "siteline-agent-secret";
/// The `Host` of requests over a Unix socket.
pub(super) const LOCAL_HOST: &str = "siteline-agent";

/// The owner of the tokens and the allowance. The agent refuses requests for any other holder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    pub base_url: String,
    pub subject: String,
}

impl Holder {
    /// The address of its agent at this place.
    pub(super) fn address(self, place: Place) -> AgentAddress {
        AgentAddress { place, base_url: Some(self.base_url), subject: Some(self.subject) }
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct TokenRequest {
    #[serde(flatten)]
    pub holder: Holder,
    pub scopes: String,
    /// The requests that must remain of the allowance after the page that the token is for; `None`
    /// for a request that is not counted.
    pub(crate) must_remain: Option<u64>,
    /// The SHA-256 of a token that the service refused. The agent drops that token.
    pub(crate) refused: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct LeaseRequest {
    #[serde(flatten)]
    pub holder: Holder,
    /// The requests that must remain of the allowance after this page.
    pub(crate) must_remain: u64,
    /// The outcomes of pages that were granted before.
    pub(crate) reports: Vec<Report>,
}

/// A page that the client may request. The agent counts it before it grants it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct LeasedPage {
    /// The page's name in a later report.
    pub page: String,
    /// The allowance after this page.
    pub allowance: AllowanceState,
    /// The agent's best estimate of the service's time.
    pub(crate) service_time: Timestamp,
}

/// An access token. It has no `Debug`, so it cannot be logged.
#[derive(Serialize, Deserialize)]
pub(crate) struct LeasedToken {
    pub(crate) token: Zeroizing<String>,
    /// Seconds until it expires.
    pub(crate) expires_in: f64,
    /// Seconds since it was requested.
    pub(crate) age: f64,
}

/// The outcome of one page.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Report {
    pub page: String,
    pub outcome: Outcome<Seen>,
}

/// The service's time in a reply, and the age of that reply in seconds: another machine does not
/// understand a clock reading.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Seen {
    service: Timestamp,
    ago: f64,
}

impl Report {
    /// A report that is sent at `now`.
    pub(super) fn new(page: String, outcome: Outcome, now: Moment) -> Self {
        let outcome = outcome.with_reading(|reading| {
            Some(Seen { service: reading.service, ago: reading.age(now)?.as_secs_f64() })
        });
        Self { page, outcome }
    }

    /// The outcome in a report that is received at `now`. Its transmission took time, so the reading
    /// errs on the early side.
    pub(super) fn outcome(&self, now: Moment) -> Outcome {
        self.outcome.with_reading(|seen| {
            let ago = Duration::try_from_secs_f64(seen.ago).unwrap_or_default();
            Some(Reading::seen_before(seen.service, ago, now))
        })
    }
}

/// Reports pages without requesting one.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Return {
    #[serde(flatten)]
    pub holder: Holder,
    pub(crate) reports: Vec<Report>,
    /// The service reported the allowance as exhausted for this many seconds.
    pub(crate) pause: Option<f64>,
}

/// The state of an agent.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AgentState {
    #[serde(flatten)]
    pub holder: Holder,
    /// The scopes that clients may request.
    pub scopes: String,
    pub allowance: AllowanceState,
    /// Granted pages without a report.
    pub(crate) lent: u64,
    /// Tokens and pages granted since the start.
    pub(crate) leases: u64,
    pub version: String,
}

/// An error of the agent that its client raises.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct AgentFailure {
    error: FailureText,
}

#[derive(Debug, Serialize, Deserialize)]
struct FailureText {
    kind: Kind,
    #[serde(flatten)]
    context: Context,
}

impl From<&Error> for AgentFailure {
    fn from(error: &Error) -> Self {
        Self { error: FailureText { kind: error.kind(), context: error.context().clone() } }
    }
}

impl From<AgentFailure> for Error {
    /// The server may not be an agent at all, so its texts are truncated and escaped.
    fn from(failure: AgentFailure) -> Self {
        let FailureText { kind, mut context } = failure.error;
        for text in context.texts() {
            *text = excerpt_of(text, LONGEST_TEXT);
        }
        context.message.push_str(" (reported by the agent)");
        Self::new(kind, String::new()).with(|own| *own = context)
    }
}

/// Maximum length of a reported text, in characters.
const LONGEST_TEXT: usize = 4_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_belongs_to_the_form_of_a_failure() {
        let error = Error::new(Kind::RateLimited, "slow down").with(|context| {
            context.status = Some(429);
            context.retry_after = Some(Duration::from_millis(1_500));
        });
        let text = serde_json::to_string(&AgentFailure::from(&error)).expect("JSON");
        let form = concat!(
            r#"{"error":{"kind":"RateLimited","message":"slow down","hint":null,"status":429,"#,
            r#""code":null,"detail":null,"missing":[],"skew_seconds":null,"retry_at":null,"#,
            r#""retry_after":{"secs":1,"nanos":500000000},"request_id":null,"unsent":false}}"#,
        );
        assert_eq!((VERSION, text.as_str()), ("2", form), "another form needs another version");
    }
}
