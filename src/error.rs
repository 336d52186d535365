//! What can go wrong, in one type. Every failure of the core is an [`Error`]: a [`Kind`] (which
//! Python class it becomes, see `python/siteline/errors.py`) and a context (what was asked, what
//! came, what to do now). Whether a failure is worth another attempt is decided in
//! [`Error::transience`] and nowhere else.
//!
//! No text in here may hold a key, token, assertion, passphrase, cursor, query string or more than
//! 500 characters of a body: foreign text enters through [`excerpt`].

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

/// The result of everything in the core that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Longest piece of foreign text (a body, an `error_description`) that any message carries.
pub const EXCERPT_CHARACTERS: usize = 500;

/// Which failure it is: one variant for each exception class of the Python package, of the same
/// name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// A setting is wrong; no request was made.
    ConfigError,
    /// A key, certificate or passphrase is wrong; no request was made.
    CredentialError,
    /// A query is wrong; no request was made.
    QueryError,
    /// The connection could not be made or broke.
    TransportError,
    /// A time limit of one attempt passed; see [`Phase`].
    TransportTimeout,
    /// The TLS handshake failed.
    TlsError,
    /// The proxy refused or failed.
    ProxyError,
    /// The body ended before its end.
    TruncatedBody,
    /// The service answered something that the interface does not allow.
    ProtocolError,
    /// The decoded body passed the cap.
    BodyTooLarge,
    /// A cursor came that this chain had been given before.
    CursorLoop,
    /// The service answered with a redirect; none is followed.
    RedirectRefused,
    /// The credential, assertion or access token was refused.
    AuthenticationError,
    /// The clocks differ by more than can be corrected.
    ClockSkewError,
    /// A scope was refused or not granted.
    ScopeError,
    /// The service refused the request itself.
    RequestRejected,
    /// The service refused a cursor in mid-chain.
    CursorRejected,
    /// Too many requests, for a while.
    RateLimited,
    /// The daily allowance is used up.
    AllowanceExhausted,
    /// The service failed at every attempt.
    ServiceUnavailable,
    /// The caller's own deadline passed.
    DeadlineExceeded,
    /// A store could not be opened, read or written.
    StoreError,
    /// Somebody else writes to it.
    StoreBusy,
    /// There is no room left to write.
    StoreFull,
    /// What is stored is not what was written.
    StoreCorrupt,
    /// A store knows the feed with another definition.
    FeedChanged,
    /// A bookmark was edited, or belongs to another query, host or subject.
    BookmarkError,
    /// The client, scan or sandbox was closed.
    ClosedError,
    /// A live object was carried over a fork.
    ForkError,
    /// A defect of siteline itself.
    InternalError,
}

/// The name of the Python class in `siteline.errors`, which is the variant's own.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// Where in an attempt a time limit passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Name lookup, TCP and TLS: nothing of the request was sent.
    Connect,
    /// Waiting for the status line and headers.
    Response,
    /// Reading the body.
    Body,
    /// All attempts and waits of one page together.
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
pub enum Transience {
    /// No attempt with the same request can help.
    Never,
    /// One repeat: the framing of the reply was broken.
    Once,
    /// A fault that passes.
    Transient,
    /// The service asked for a pause.
    Throttled,
}

/// One attempt of a request that was made: what came of it, and the wait that followed it.
#[derive(Debug, Clone, PartialEq)]
pub struct Attempt {
    /// `"503"`, `"timeout in response"`, `"connection reset"`: a status or a phase.
    pub outcome: String,
    /// The pause before the next attempt; `None` after the last one.
    pub wait: Option<Duration>,
}

/// What is known of a failure besides its kind. All of it may be shown to a user.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Context {
    /// What was asked and what came, in a sentence.
    pub message: String,
    /// What to do now.
    pub hint: Option<String>,
    /// The phase in which a time limit passed.
    pub phase: Option<Phase>,
    /// Where in the JSON body, as `$.series[3].points[0].value`.
    pub path: Option<String>,
    /// The HTTP status of the reply.
    pub status: Option<u16>,
    /// The member `error` of the reply (`invalid_client`, ...).
    pub code: Option<String>,
    /// What the service said about it, cut and escaped.
    pub detail: Option<String>,
    /// Scopes that were asked for and not granted.
    pub missing: Vec<String>,
    /// Service clock minus our clock, in seconds.
    pub skew_seconds: Option<f64>,
    /// When the service takes requests again.
    pub retry_at: Option<Timestamp>,
    /// The pause that the service asked for with `Retry-After`.
    pub retry_after: Option<Duration>,
    /// The service's own name for the request, if its reply had one.
    pub request_id: Option<String>,
    /// The attempts made, in order.
    pub attempts: Vec<Attempt>,
    /// From the first attempt to the failure.
    pub elapsed: Option<Duration>,
    /// True where the reply was not HTTP at all: worth one repeat.
    pub broken_framing: bool,
    /// True where no byte of the request left: it is not counted in the allowance.
    pub unsent: bool,
}

/// A failure: a kind and its context, in one word of memory.
#[derive(Clone)]
pub struct Error(Box<Inner>);

#[derive(Clone)]
struct Inner {
    kind: Kind,
    context: Context,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// A failure of this kind, with the sentence that says what was asked and what came.
    #[must_use]
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        let context = Context { message: message.into(), ..Context::default() };
        Self(Box::new(Inner { kind, context, source: None }))
    }

    /// A response body that breaks the interface at a JSON path.
    #[must_use]
    pub fn protocol_at(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Kind::ProtocolError, message).with(|context| context.path = Some(path.into()))
    }

    /// The same failure with its context changed.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Context)) -> Self {
        change(&mut self.0.context);
        self
    }

    /// The same failure with advice.
    #[must_use]
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        self.with(|context| context.hint = Some(hint.into()))
    }

    /// The same failure with the foreign error that caused it. Its text is never shown by us: it
    /// is kept so that the Python layer can hand a user's own exception back to them.
    #[must_use]
    pub fn with_source(mut self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.0.source = Some(Arc::new(source));
        self
    }

    /// The same context under another kind.
    #[must_use]
    pub fn into_kind(mut self, kind: Kind) -> Self {
        self.0.kind = kind;
        self
    }

    /// Which failure it is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// What is known of it.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.0.context
    }

    /// The foreign error behind it, if there was one.
    #[must_use]
    pub fn foreign(&self) -> Option<&(dyn std::error::Error + Send + Sync + 'static)> {
        self.0.source.as_deref()
    }

    /// Whether another attempt can help (faults.md section 5). The only place that decides it.
    #[must_use]
    pub fn transience(&self) -> Transience {
        match self.0.kind {
            Kind::TransportError | Kind::TransportTimeout | Kind::TruncatedBody => {
                if self.0.context.phase == Some(Phase::Page) {
                    Transience::Never
                } else {
                    Transience::Transient
                }
            }
            Kind::ServiceUnavailable => Transience::Transient,
            Kind::RateLimited => Transience::Throttled,
            Kind::ProtocolError if self.0.context.broken_framing => Transience::Once,
            _ => Transience::Never,
        }
    }

    /// Whether the same call may succeed later with nothing changed by the caller.
    #[must_use]
    pub fn retryable(&self) -> bool {
        self.transience() != Transience::Never
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

/// Foreign text made safe to show: at most [`EXCERPT_CHARACTERS`] characters, control characters
/// escaped, and anything that looks like a JWT replaced.
#[must_use]
pub fn excerpt(text: &str) -> String {
    let mut safe = String::with_capacity(text.len().min(EXCERPT_CHARACTERS));
    // Twice the length is looked at, so that a token that straddles the cut is still recognised.
    let head =
        text.char_indices().nth(EXCERPT_CHARACTERS * 2).map_or(text, |(end, _)| &text[..end]);
    for piece in head.split_inclusive(|c: char| !is_token_character(c)) {
        let word = piece.trim_end_matches(|c: char| !is_token_character(c));
        if looks_like_jwt(word) {
            safe.push_str("[token removed]");
            push_escaped(&mut safe, &piece[word.len()..]);
        } else {
            push_escaped(&mut safe, piece);
        }
    }
    match safe.char_indices().nth(EXCERPT_CHARACTERS) {
        Some((end, _)) => {
            safe.truncate(end);
            safe.push('…');
            safe
        }
        None => safe,
    }
}

fn is_token_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '=')
}

/// Long, and with the shape that every JWT has: base64url of `{"`, then a dot.
fn looks_like_jwt(word: &str) -> bool {
    word.len() > 40 && word.contains("eyJ") && word.contains('.')
}

fn push_escaped(safe: &mut String, text: &str) {
    for c in text.chars() {
        if c.is_control() && c != '\n' {
            safe.extend(c.escape_unicode());
        } else {
            safe.push(c);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t18_foreign_text_is_cut_escaped_and_stripped_of_tokens() {
        let token = format!("eyJhbGciOiJSUzI1NiJ9.{}.sig", "A".repeat(60));
        let text = format!("bad\u{1b}[31m assertion={token} {}", "x".repeat(1_000_000));
        let safe = excerpt(&text);
        assert!(safe.chars().count() <= EXCERPT_CHARACTERS + 1);
        assert!(!safe.contains('\u{1b}') && !safe.contains("eyJ"), "{safe}");
        assert!(safe.starts_with("bad\\u{1b}[31m "), "{safe}");
    }

    #[test]
    fn an_excerpt_keeps_text_that_is_not_ascii() {
        assert_eq!(excerpt("Zugriff verweigert: Schlüssel"), "Zugriff verweigert: Schlüssel");
    }
}
