//! The messages between an agent and its clients: lines of JSON on a socket.
//!
//! A client sends a [`greeting`] and an [`AgentRequest`], and the agent sends the answer or an
//! [`AgentFailure`]. Unknown members are ignored, so either side may be newer.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::address::{AgentAddress, Place};
use crate::clock::{Moment, Reading};
use crate::error::{Context, Error, Kind, excerpt_of};
use crate::http::{AllowanceState, Outcome};

/// The beginning of every connection, with the version of these messages. A change that is not a
/// new member needs another version. The request of a browser does not begin so.
pub(super) const GREETING: &[u8] = b"siteline-agent 1 ";

/// The first line of a client, with its secret.
pub(super) fn greeting(secret: &str) -> Zeroizing<Vec<u8>> {
    Zeroizing::new([GREETING, secret.as_bytes(), b"\n"].concat())
}

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
#[serde(rename_all = "snake_case")]
pub(super) enum AgentRequest {
    /// The answer is the [`AgentState`].
    State,
    /// A request of a client of this holder.
    Of(Holder, Ask),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Ask {
    /// The answer is a [`LeasedToken`].
    Token {
        scopes: String,
        /// The requests that must remain of the allowance after the page that the token is for;
        /// `None` for a request that is not counted.
        must_remain: Option<u64>,
        /// The SHA-256 of a token that the service refused. The agent drops that token.
        refused: Option<String>,
    },
    /// The answer is a [`LeasedPage`].
    Page {
        /// The requests that must remain of the allowance after this page.
        must_remain: u64,
        /// The outcomes of pages that were granted before.
        reports: Vec<Report>,
    },
    /// Reports pages without requesting one. The answer is the allowance.
    Return {
        reports: Vec<Report>,
        /// The service reported the allowance as exhausted for this many seconds.
        pause: Option<f64>,
    },
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
pub(super) struct AgentFailure {
    pub kind: Kind,
    #[serde(flatten)]
    pub context: Context,
}

impl From<AgentFailure> for Error {
    /// The server may not be an agent at all, so its texts are truncated and escaped.
    fn from(AgentFailure { kind, mut context }: AgentFailure) -> Self {
        // A hint may be a list of causes, each on a line. None has 20.
        let hint = context.hint.take().map(|hint| {
            let lines = hint.lines().take(20).map(|line| excerpt_of(line, LONGEST_TEXT));
            lines.collect::<Vec<_>>().join("\n")
        });
        for text in context.texts() {
            *text = excerpt_of(text, LONGEST_TEXT);
        }
        context.hint = hint;
        context.message.push_str(" (reported by the agent)");
        Self::new(kind, String::new()).with(|own| *own = context)
    }
}

/// Maximum length of a reported text, in characters.
const LONGEST_TEXT: usize = 4_000;
