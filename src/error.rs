//! The error type. Every failure of the core is an [`Error`]: a [`Kind`], which selects the Python
//! class (see `python/siteline/errors.py`), and a [`Context`] (the request, the reply, a hint).
//! [`Error::transience`] alone decides whether a failed request is retried.
//!
//! No text of an error may contain a key, token, assertion, passphrase, cursor, query string or more
//! than 500 characters of a body: text of other origin passes through [`excerpt`].

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

/// The result of everything in the core that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Most characters of foreign text (a body, an `error_description`) in a message.
pub(crate) const EXCERPT_CHARACTERS: usize = 500;

/// The kind of a failure: one variant for each exception class of the Python package, with the same
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
    /// A timeout expired; see [`Phase`].
    TransportTimeout,
    /// The TLS handshake failed.
    TlsError,
    /// The proxy refused or failed.
    ProxyError,
    /// The body is truncated.
    TruncatedBody,
    /// The agent that holds the key and the count does not answer.
    AgentUnavailable,
    /// The reply violates the interface.
    ProtocolError,
    /// The body is larger than the cap.
    BodyTooLarge,
    /// The service repeated a cursor within a chain.
    CursorLoop,
    /// A chain has many more pages than expected, and the last of them brought nothing new.
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
    /// A store could not be opened, read or written.
    StoreError,
    /// Another process or thread is writing to the store.
    StoreBusy,
    /// No space is left for the store.
    StoreFull,
    /// The store's content differs from what was written.
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
    /// A defect of siteline itself.
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

/// The details of a failure. All of them may be shown to a user.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Context {
    /// What was requested and what failed, in a sentence.
    pub message: String,
    /// What the user can do.
    pub hint: Option<String>,
    /// The phase in which a timeout expired.
    pub phase: Option<Phase>,
    /// The path in the JSON body, such as `$.series[3].points[0].value`.
    pub path: Option<String>,
    /// The HTTP status of the reply.
    pub status: Option<u16>,
    /// The member `error` of the reply (`invalid_client`, ...).
    pub code: Option<String>,
    /// The description in the service's reply, truncated and escaped.
    pub detail: Option<String>,
    /// Scopes that were requested and not granted.
    pub missing: Vec<String>,
    /// The parts of the range that were not read.
    pub spans: Vec<(Timestamp, Timestamp)>,
    /// Service clock minus local clock, in seconds.
    pub skew_seconds: Option<f64>,
    /// When the service takes requests again.
    pub retry_at: Option<Timestamp>,
    /// The pause that the service requested with `Retry-After`.
    pub retry_after: Option<Duration>,
    /// The request id in the reply's headers.
    pub request_id: Option<String>,
    /// The attempts made, in order.
    pub attempts: Vec<Attempt>,
    /// The time from the first attempt to the failure.
    pub elapsed: Option<Duration>,
    /// True if the reply was not valid HTTP: it is retried once.
    pub broken_framing: bool,
    /// True if no byte of the request was sent: it does not count against the allowance.
    pub unsent: bool,
    /// True if the client certificate was refused, or there was none: no new token can help.
    pub certificate_refused: bool,
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
    /// A failure of this kind; `message` says what was requested and what failed.
    #[must_use]
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        let context = Context { message: message.into(), ..Context::default() };
        Self(Box::new(Inner { kind, context, source: None }))
    }

    /// A reply whose body violates the interface at a JSON path.
    #[must_use]
    pub(crate) fn protocol_at(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Kind::ProtocolError, message).with(|context| context.path = Some(path.into()))
    }

    /// Changes the context.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Context)) -> Self {
        change(&mut self.0.context);
        self
    }

    /// Adds a hint.
    #[must_use]
    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Self {
        self.with(|context| context.hint = Some(hint.into()))
    }

    /// Adds the foreign error that caused the failure. siteline never shows its text; the Python
    /// layer uses it to raise a user's own exception again.
    #[must_use]
    pub(crate) fn with_source(
        mut self,
        source: impl std::error::Error + Send + Sync + 'static,
    ) -> Self {
        self.0.source = Some(Arc::new(source));
        self
    }

    /// Changes the kind and keeps the context.
    #[must_use]
    pub(crate) fn into_kind(mut self, kind: Kind) -> Self {
        self.0.kind = kind;
        self
    }

    /// The kind of the failure.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// The details of the failure.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.0.context
    }

    /// The foreign error that caused the failure, if there is one.
    #[must_use]
    pub(crate) fn foreign(&self) -> Option<&(dyn std::error::Error + Send + Sync + 'static)> {
        self.0.source.as_deref()
    }

    /// Whether another attempt can help (faults.md section 5).
    #[must_use]
    pub(crate) fn transience(&self) -> Transience {
        match self.0.kind {
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
    #[must_use]
    pub(crate) fn retryable(&self) -> bool {
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

/// Makes foreign text safe to show: at most [`EXCERPT_CHARACTERS`] characters, control characters
/// escaped, and anything that looks like a JWT replaced.
#[must_use]
pub(crate) fn excerpt(text: &str) -> String {
    let mut safe = String::with_capacity(text.len().min(EXCERPT_CHARACTERS));
    // Reads twice the length, so that a token that crosses the limit is still recognised.
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

/// Every JWT is long and has base64url of `{"`, then a dot.
fn looks_like_jwt(word: &str) -> bool {
    word.len() > 40 && word.contains("eyJ") && word.contains('.')
}

fn push_escaped(safe: &mut String, text: &str) {
    safe.push_str(&escaped(text));
}

/// Writes each character that is not printable as Python's `repr` does: `\x1b`, `\n`, `\u202e`. Such are
/// control characters, marks that are invisible or turn the direction of text, and all spaces but one.
#[must_use]
pub(crate) fn escaped(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_printable) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        // Writing to a text does not fail.
        let _ = match (c, u32::from(c)) {
            (c, _) if is_printable(c) => safe.write_char(c),
            ('\t' | '\n' | '\r', _) => write!(safe, "{}", c.escape_default()),
            (_, code @ 0..=0xff) => write!(safe, "\\x{code:02x}"),
            (_, code @ 0..=0xffff) => write!(safe, "\\u{code:04x}"),
            (_, code) => write!(safe, "\\U{code:08x}"),
        };
    }
    Cow::Owned(safe)
}

/// As Python's `str.isprintable`. Text in debug form has the same rule; after a letter it shows accents.
fn is_printable(c: char) -> bool {
    if c.is_ascii() {
        return !c.is_ascii_control();
    }
    let mut letter_first = [b'a'; 5];
    c.encode_utf8(&mut letter_first[1..]);
    let text = str::from_utf8(&letter_first[..=c.len_utf8()]).unwrap_or_default();
    text.escape_debug().nth(1) == Some(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t18_foreign_text_is_truncated_escaped_and_stripped_of_tokens() {
        let token = format!("eyJhbGciOiJSUzI1NiJ9.{}.sig", "A".repeat(60));
        let text = format!("bad\u{1b}[31m assertion={token} {}", "x".repeat(1_000_000));
        let safe = excerpt(&text);
        assert!(safe.chars().count() <= EXCERPT_CHARACTERS + 1);
        assert!(!safe.contains('\u{1b}') && !safe.contains("eyJ"), "{safe}");
        assert!(safe.starts_with("bad\\x1b[31m "), "{safe}");
    }

    #[test]
    fn text_that_is_not_printable_is_escaped_as_in_python() {
        for (text, shown) in [
            ("a\u{0}\u{1b}\u{7}\u{7f}", r"a\x00\x1b\x07\x7f"),
            ("a\r\n\tb", r"a\r\n\tb"),
            ("\u{9b}2J\u{a0}\u{ad}", r"\x9b2J\xa0\xad"),
            ("\u{200b}\u{202e}\u{2028}\u{2069}\u{feff}", r"\u200b\u202e\u2028\u2069\ufeff"),
            ("\u{e0001}", r"\U000e0001"),
            ("m³/h °C µ 温度 e\u{301} 🙂 \\ \" '", "m³/h °C µ 温度 e\u{301} 🙂 \\ \" '"),
        ] {
            assert_eq!(escaped(text), shown);
            assert_eq!(escaped(shown), shown);
        }
    }

    #[test]
    fn an_excerpt_keeps_non_ascii_text() {
        assert_eq!(excerpt("Zugriff verweigert: Schlüssel"), "Zugriff verweigert: Schlüssel");
    }
}
