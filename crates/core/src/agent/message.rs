//! What an agent and its clients say to each other: JSON, in four routes.
//!
//! | route | says |
//! |---|---|
//! | `POST /v1/token` | [`TokenRequest`]; [`LeasedToken`] |
//! | `POST /v1/page` | [`LeaseRequest`]; [`LeasedPage`] |
//! | `POST /v1/return` | [`Return`]; the allowance |
//! | `GET /v1/state` | [`AgentState`] |
//!
//! A failure is the member `error` alone: [`AgentFailure`]. Unknown members are ignored, so that either side
//! may be newer.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::clock::{Moment, Reading};
use crate::error::{Error, Kind, excerpt, excerpt_of};
use crate::http::{AllowanceState, Outcome};

/// The header that every request has, with the version of these messages. A browser sends no such
/// header to another site without asking first.
pub(super) const HEADER: &str = "siteline-agent";
pub(super) const VERSION: &str = "1";
/// The header of the secret, over TLS without client certificates.
pub(super) const SECRET_HEADER: &str = "siteline-agent-secret";
/// The `Host` of requests over a socket of this machine.
pub(super) const LOCAL_HOST: &str = "siteline-agent";

/// Whose tokens and allowance are meant: the agent refuses another's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    pub base_url: String,
    pub subject: String,
}

/// Asks for a token.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct TokenRequest {
    #[serde(flatten)]
    pub holder: Holder,
    pub scopes: String,
    /// The requests that must be left of the allowance after the page that it is for; `None` for a
    /// request that is not counted.
    pub(crate) must_remain: Option<u64>,
    /// The SHA-256 of a token that the service refused, and that the agent drops.
    pub(crate) refused: Option<String>,
}

/// Asks for a page.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct LeaseRequest {
    #[serde(flatten)]
    pub holder: Holder,
    /// The requests that must be left of the allowance after it.
    pub(crate) must_remain: u64,
    /// What became of pages that were granted before.
    pub(crate) reports: Vec<Report>,
}

/// A page that may be requested. It is counted before it is granted.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct LeasedPage {
    /// Its name in a later report.
    pub page: String,
    /// The allowance after it.
    pub allowance: AllowanceState,
    /// The service's time, as well as the agent knows it.
    pub(crate) service_time: Timestamp,
}

/// An access token. It cannot be printed.
#[derive(Serialize, Deserialize)]
pub(crate) struct LeasedToken {
    pub(crate) token: Zeroizing<String>,
    /// Seconds until it expires, and since it was requested.
    pub(crate) expires_in: f64,
    pub(crate) age: f64,
}

impl fmt::Debug for LeasedToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LeasedToken(expires in {:.0} s)", self.expires_in)
    }
}

/// What became of one page.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Report {
    pub page: String,
    pub outcome: PageOutcome,
}

/// As [`Outcome`], with a reading that another machine understands.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PageOutcome {
    Unsent,
    Lost,
    Replied { granted: bool, seen: Option<Seen> },
}

/// The service's time by a reply, and how many seconds ago that was.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Seen {
    service: Timestamp,
    ago: f64,
}

impl PageOutcome {
    /// What is said now of an outcome.
    pub(super) fn new(outcome: Outcome, now: Moment) -> Self {
        match outcome {
            Outcome::Unsent => Self::Unsent,
            Outcome::Lost => Self::Lost,
            Outcome::Replied { reading, granted } => {
                let seen = reading.and_then(|reading| {
                    let ago = reading.age(now)?.as_secs_f64();
                    Some(Seen { service: reading.service, ago })
                });
                Self::Replied { granted, seen }
            }
        }
    }

    /// The same as heard now. The message took its time: so the reading is not too late.
    pub(super) fn outcome(self, now: Moment) -> Outcome {
        match self {
            Self::Unsent => Outcome::Unsent,
            Self::Lost => Outcome::Lost,
            Self::Replied { granted, seen } => {
                let reading = seen.map(|seen| {
                    let ago = Duration::try_from_secs_f64(seen.ago).unwrap_or_default();
                    Reading::seen_before(seen.service, ago, now)
                });
                Outcome::Replied { reading, granted }
            }
        }
    }
}

/// Reports pages without asking for one.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Return {
    #[serde(flatten)]
    pub holder: Holder,
    pub(crate) reports: Vec<Report>,
    /// The service reported the allowance as used up for so many seconds.
    pub(crate) pause: Option<f64>,
}

/// What an agent tells of itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AgentState {
    #[serde(flatten)]
    pub holder: Holder,
    /// The scopes that may be asked for.
    pub scopes: String,
    pub allowance: AllowanceState,
    /// Pages that were granted and are not reported yet.
    pub(crate) lent: u64,
    /// Tokens and pages that were granted since the start.
    pub(crate) leases: u64,
    pub version: String,
}

/// An error of the agent, for its client to raise.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct AgentFailure {
    pub error: FailureText,
}

/// The parts of an error that a user sees.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FailureText {
    kind: String,
    message: String,
    hint: Option<String>,
    status: Option<u16>,
    code: Option<String>,
    detail: Option<String>,
    missing: Vec<String>,
    skew_seconds: Option<f64>,
    retry_at: Option<Timestamp>,
    retry_after: Option<f64>,
    request_id: Option<String>,
    unsent: bool,
}

impl From<&Error> for AgentFailure {
    fn from(error: &Error) -> Self {
        let context = error.context();
        Self {
            error: FailureText {
                kind: error.kind().to_string(),
                message: context.message.clone(),
                hint: context.hint.clone(),
                status: context.status,
                code: context.code.clone(),
                detail: context.detail.clone(),
                missing: context.missing.clone(),
                skew_seconds: context.skew_seconds,
                retry_at: context.retry_at,
                retry_after: context.retry_after.map(|pause| pause.as_secs_f64()),
                request_id: context.request_id.clone(),
                unsent: context.unsent,
            },
        }
    }
}

/// Longest text of an agent in an error, and longest name in one.
const LONGEST_TEXT: usize = 4_000;
const LONGEST_NAME: usize = 100;
/// Most scopes that an agent's error names.
const MOST_MISSING: usize = 100;

impl From<FailureText> for Error {
    /// What answers may be no agent at all: its texts are cut and escaped.
    fn from(text: FailureText) -> Self {
        let kind = TOLD.iter().find(|kind| kind.to_string() == text.kind);
        let kind = kind.copied().unwrap_or(Kind::InternalError);
        let long = |text: String| excerpt_of(&text, LONGEST_TEXT);
        let short = |text: String| excerpt_of(&text, LONGEST_NAME);
        let message = long(text.message);
        Self::new(kind, format!("{message} (told by the agent)")).with(|context| {
            context.hint = text.hint.map(long);
            context.status = text.status;
            context.code = text.code.map(short);
            context.detail = text.detail.map(|detail| excerpt(&detail));
            context.missing = text.missing.into_iter().take(MOST_MISSING).map(short).collect();
            context.skew_seconds = text.skew_seconds;
            context.retry_at = text.retry_at;
            context.retry_after =
                text.retry_after.and_then(|pause| Duration::try_from_secs_f64(pause).ok());
            context.request_id = text.request_id.map(short);
            context.unsent = text.unsent;
        })
    }
}

/// The kinds of errors that an agent tells.
const TOLD: [Kind; 24] = [
    Kind::ConfigError,
    Kind::CredentialError,
    Kind::TransportError,
    Kind::TransportTimeout,
    Kind::TlsError,
    Kind::ProxyError,
    Kind::TruncatedBody,
    Kind::ProtocolError,
    Kind::BodyTooLarge,
    Kind::RedirectRefused,
    Kind::AuthenticationError,
    Kind::ClockSkewError,
    Kind::ScopeError,
    Kind::RequestRejected,
    Kind::RateLimited,
    Kind::AllowanceExhausted,
    Kind::ServiceUnavailable,
    Kind::DeadlineExceeded,
    Kind::StoreError,
    Kind::StoreBusy,
    Kind::StoreFull,
    Kind::StoreCorrupt,
    Kind::ClosedError,
    Kind::AgentUnavailable,
];
