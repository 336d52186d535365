//! The error type. Every failure of the core is an [`Error`]: a [`Kind`], which selects the Python
//! class (see `python/siteline/errors.py`), and a [`Context`] (the request, the reply, a hint).
//! Only [`Error::transience`] decides whether a failed request is retried.
//!
//! No text of an error may contain a key, token, assertion, passphrase, cursor, query string or
//! more than 500 characters of a body: text of other origin passes through [`excerpt`].

mod foreign;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub(crate) use self::foreign::{
    Secret, descriptions, displayable, excerpt_of, less_opaque, redacted,
};
pub use self::foreign::{escaped, excerpt};
use crate::system;

/// The result of everything in the core that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Runs blocking work on another thread, as [`system::on_thread`] does.
pub(crate) async fn on_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    system::on_thread(work).await.map_err(|refused| Error::no_thread(&refused))?
}

/// The kind of a failure: one variant for each exception class of the Python package, with the same
/// name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Kind {
    /// A setting is wrong; no request was made.
    ConfigError,
    /// A key, certificate or passphrase is wrong; no request was made.
    CredentialError,
    /// A query is wrong; no request was made.
    QueryError,
    /// The connection failed or broke.
    TransportError,
    /// A timeout expired; see [`Phase`].
    TransportTimeout,
    /// The TLS handshake failed.
    TlsError,
    /// The proxy refused or failed.
    ProxyError,
    /// The body is truncated.
    TruncatedBody,
    /// The agent that holds the key and the count does not respond.
    AgentUnavailable,
    /// The reply violates the interface.
    ProtocolError,
    /// The body is larger than the cap.
    BodyTooLarge,
    /// The service repeated a cursor within a chain.
    CursorLoop,
    /// A chain has many more pages than expected, and the last pages contain nothing new.
    EndlessChain,
    /// The service answered with a redirect; none is followed.
    RedirectRefused,
    /// The credential, assertion or access token was refused.
    AuthenticationError,
    /// The clocks differ by more than siteline corrects.
    ClockSkewError,
    /// A scope was refused or not granted.
    ScopeError,
    /// The service refused the request itself.
    RequestRejected,
    /// The service refused a cursor in the middle of a chain.
    CursorRejected,
    /// Too many requests in a period.
    RateLimited,
    /// The daily allowance is used up.
    AllowanceExhausted,
    /// The service failed at every attempt.
    ServiceUnavailable,
    /// The caller's deadline passed.
    DeadlineExceeded,
    /// The read has more pages than `max_pages`.
    PageLimitReached,
    /// A store could not be opened, read or written.
    StoreError,
    /// Another process or thread is writing to the store.
    StoreBusy,
    /// No space is left for the store.
    StoreFull,
    /// The store is damaged.
    StoreCorrupt,
    /// The store has the feed with another definition.
    FeedChanged,
    /// A part of the range was never read from the service.
    UnreadRange,
    /// A bookmark was edited, or belongs to another query, host or subject.
    BookmarkError,
    /// The client, scan or sandbox was closed.
    ClosedError,
    /// An object of the parent process was used after a fork.
    ForkError,
    /// A defect of siteline itself, or a kind of a newer agent.
    #[serde(other)]
    InternalError,
}

/// The name of the Python class in `siteline.errors`, which equals the variant's name.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// The phase in which a timeout expired.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Name lookup, TCP and TLS: no byte of the request was sent.
    Connect,
    /// Waiting for the status line and headers.
    Response,
    /// Reading the body.
    Body,
    /// All attempts and waits of one page in total.
    Page,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect => "connect",
            Self::Response => "response",
            Self::Body => "body",
            Self::Page => "page",
        })
    }
}

/// Whether another attempt can help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transience {
    /// No attempt with the same request can help.
    Never,
    /// One retry: the framing of the reply was broken.
    Once,
    /// A transient fault.
    Transient,
    /// The service requested a pause.
    Throttled,
}

/// One attempt of a request: its outcome, and the wait after it.
#[derive(Debug, Clone, PartialEq)]
pub struct Attempt {
    /// `"503"`, `"timeout in response"`, `"connection reset"`: a status or a phase.
    pub outcome: String,
    /// The pause before the next attempt; `None` after the last one.
    pub wait: Option<Duration>,
}

/// The details of a failure. All of them may be shown to a user. An agent sends them to its client,
/// except those of a page or an attempt.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[non_exhaustive]
pub struct Context {
    /// The request and the failure, in a sentence.
    pub message: String,
    /// Advice for the user.
    pub hint: Option<String>,
    /// The phase in which a timeout expired.
    #[serde(skip)]
    pub phase: Option<Phase>,
    /// The path in the JSON body, such as `$.series[3].points[0].value`.
    #[serde(skip)]
    pub path: Option<String>,
    pub status: Option<u16>,
    /// The member `error` of the reply (`invalid_client`, ...).
    pub code: Option<String>,
    /// The description in the service's reply, truncated and escaped.
    pub detail: Option<String>,
    /// Scopes that were requested and not granted.
    pub missing: Vec<String>,
    /// The parts of the range that were not read.
    #[serde(skip)]
    pub spans: Vec<(Timestamp, Timestamp)>,
    /// Service clock minus local clock, in seconds.
    pub skew_seconds: Option<f64>,
    /// When the service accepts requests again.
    pub retry_at: Option<Timestamp>,
    /// The pause that the service requested with `Retry-After`.
    pub retry_after: Option<Duration>,
    /// The request id in the reply's headers.
    pub request_id: Option<String>,
    /// The attempts made, in order.
    #[serde(skip)]
    pub attempts: Vec<Attempt>,
    /// The time from the first attempt to the failure.
    #[serde(skip)]
    pub elapsed: Option<Duration>,
    /// True if the reply was not valid HTTP. It is retried once.
    #[serde(skip)]
    pub broken_framing: bool,
    /// True if no byte of the request was sent. It does not count against the allowance.
    pub unsent: bool,
    /// True if the system was short of a resource (threads, open files, space), or a disk failed.
    #[serde(skip)]
    pub passing: bool,
    /// True if the client certificate was refused or missing. A new token cannot help.
    #[serde(skip)]
    pub certificate_refused: bool,
    /// True if a target cannot store the values of a page. The sync sets its range aside and
    /// continues.
    #[serde(skip)]
    pub unstorable: bool,
}

impl Context {
    /// All texts that a service, an agent or a user wrote or that may quote one.
    pub(crate) fn texts(&mut self) -> impl Iterator<Item = &mut String> {
        let Self { message, hint, path, code, detail, request_id, missing, .. } = self;
        let others = [hint, path, code, detail, request_id].into_iter().flatten();
        others.chain(missing).chain([message])
    }
}

/// A failure: a kind and its context, boxed so that a `Result` stays small.
#[derive(Clone)]
pub struct Error(Box<Inner>);

#[derive(Clone)]
struct Inner {
    kind: Kind,
    context: Context,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    #[must_use]
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        let context = Context { message: message.into(), ..Context::default() };
        Self(Box::new(Inner { kind, context, source: None }))
    }

    /// An operation that the operating system refused. `what` describes the operation. The message
    /// adds the reason, and a hint if the system is short of a resource.
    #[must_use]
    pub fn system(kind: Kind, what: impl fmt::Display, error: &io::Error) -> Self {
        Self::new(kind, format!("{what}: {}.", system::reason(error))).passing_as(error)
    }

    /// Marks a failure as temporary if the system's error is, and adds a hint after the present
    /// one. The call fails at once; the caller may call again.
    pub(crate) fn passing_as(self, error: &io::Error) -> Self {
        let Some(advice) = system::advice(error) else { return self };
        self.with(|context| {
            context.passing = true;
            let hint = context.hint.take().map_or(String::new(), |hint| format!("{hint} "));
            context.hint = Some(format!("{hint}{advice}"));
        })
    }

    /// A call that needs a thread, which the system refused. It is not retried.
    #[must_use]
    pub fn no_thread(error: &io::Error) -> Self {
        Self::system(Kind::TransportError, "The call needs another thread", error)
            .with(|context| context.unsent = true)
    }

    /// A reply that violates the interface at a JSON path.
    pub(crate) fn protocol_at(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Kind::ProtocolError, message).with(|context| context.path = Some(path.into()))
    }

    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Context)) -> Self {
        change(&mut self.0.context);
        self
    }

    #[must_use]
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        self.with(|context| context.hint = Some(hint.into()))
    }

    /// Adds the foreign error that caused the failure. siteline never shows its text; the Python
    /// layer uses it to raise a user's own exception again.
    #[must_use]
    pub fn with_source(mut self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.0.source = Some(Arc::new(source));
        self
    }

    /// Changes the kind and keeps the context.
    #[must_use]
    pub fn into_kind(mut self, kind: Kind) -> Self {
        self.0.kind = kind;
        self
    }

    /// Removes the secrets from all texts of the error.
    pub(crate) fn without(self, secrets: &[Secret<'_>]) -> Self {
        self.with(|context| context.texts().for_each(|text| *text = redacted(text, secrets)))
    }

    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    pub fn context(&self) -> &Context {
        &self.0.context
    }

    /// The foreign error that caused the failure, if there is one.
    pub fn foreign(&self) -> Option<&(dyn std::error::Error + Send + Sync + 'static)> {
        self.0.source.as_deref()
    }

    /// Whether another attempt can help.
    pub(crate) fn transience(&self) -> Transience {
        match self.0.kind {
            _ if self.0.context.passing => Transience::Never,
            Kind::TransportError | Kind::TransportTimeout | Kind::TruncatedBody => {
                if self.0.context.phase == Some(Phase::Page) {
                    Transience::Never
                } else {
                    Transience::Transient
                }
            }
            Kind::ServiceUnavailable | Kind::AgentUnavailable => Transience::Transient,
            Kind::RateLimited => Transience::Throttled,
            Kind::ProtocolError if self.0.context.broken_framing => Transience::Once,
            _ => Transience::Never,
        }
    }

    /// Whether the same call, unchanged, may succeed later.
    pub fn retryable(&self) -> bool {
        self.0.context.passing
            || self.transience() != Transience::Never
            || matches!(
                self.0.kind,
                Kind::AllowanceExhausted | Kind::TransportTimeout | Kind::DeadlineExceeded
            )
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let context = &self.0.context;
        f.write_str(&context.message)?;
        if let Some(path) = &context.path {
            write!(f, " (at {path})")?;
        }
        if let Some(hint) = &context.hint {
            write!(f, "\n{hint}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {self}", self.0.kind)
    }
}

impl std::error::Error for Error {}
