//! [`RequestNote`]: what an [`Observer`] of a client is told of one request. Never a token, an assertion
//! or a cursor: of the address it has no query.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use reqwest::header::HeaderMap;

use crate::error::Kind;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RequestKind {
    /// An access token (§4.1).
    Token,
    /// The discovery document (§4.2).
    Discovery,
    /// A page (§4.3).
    Data,
}

impl RequestKind {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::Discovery => "discovery",
            Self::Data => "data",
        }
    }

    #[must_use]
    pub fn method(self) -> &'static str {
        if self == Self::Token { "POST" } else { "GET" }
    }
}

/// One request that has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestNote {
    pub kind: RequestKind,
    /// The address without its query.
    pub url: String,
    /// The status of the reply; `None` without one.
    pub status: Option<u16>,
    /// Why it failed, also with status 200: a body may be cut.
    pub error: Option<Kind>,
    /// Whether its caller gave up before the reply was complete.
    pub is_abandoned: bool,
    /// Whether a byte of it may have left: if not, it is not counted in the allowance.
    pub is_sent: bool,
    /// When it began, by the clock of the client.
    pub started: Timestamp,
    /// The time until its reply was complete, or until it failed.
    pub duration: Duration,
    /// The bytes of the reply's body, as they came.
    pub bytes: u64,
    /// The points on the page, repeats included; `None` if it brought no page.
    pub points: Option<u64>,
    /// Which attempt of its call it was, from 1.
    pub attempt: u32,
    /// How the attempt before it ended, in a few words.
    pub reason: Option<String>,
    /// The pause after that.
    pub waited: Duration,
    /// The feed of a sync that it was made for.
    pub feed: Option<Arc<str>>,
    /// The requests that are left of the allowance after it, if that is known.
    pub allowance_left: Option<u64>,
}

impl RequestNote {
    pub(super) fn new(kind: RequestKind) -> Self {
        Self {
            kind,
            url: String::new(),
            status: None,
            error: None,
            is_abandoned: false,
            is_sent: true,
            started: Timestamp::UNIX_EPOCH,
            duration: Duration::ZERO,
            bytes: 0,
            points: None,
            attempt: 1,
            reason: None,
            waited: Duration::ZERO,
            feed: None,
            allowance_left: None,
        }
    }
}

/// Is told of the requests of a client.
pub trait Observer: Send + Sync {
    /// Who gets the note of a request of the call that runs on this thread; `None` if nobody does.
    fn recipient(&self) -> Option<Recipient>;
}

/// Who gets a note.
pub struct Recipient {
    /// Headers that the request has for its caller, such as `traceparent`.
    pub headers: Option<Arc<HeaderMap>>,
    /// Gets the note, on any thread, where locks may be held.
    pub give: Box<dyn FnOnce(RequestNote) + Send + Sync>,
}

/// The points of a page, which are known after its reply, while that is read.
#[derive(Debug, Clone, Default)]
pub(crate) struct PointCount(Option<Arc<AtomicU64>>);

impl PointCount {
    /// Keeps the number.
    pub(super) fn kept() -> Self {
        Self(Some(Arc::new(AtomicU64::new(u64::MAX))))
    }

    /// The number, if points were read.
    pub(super) fn get(&self) -> Option<u64> {
        let count = self.0.as_ref()?.load(Ordering::Relaxed);
        (count < u64::MAX).then_some(count)
    }

    /// So many points were read, where somebody wants to know.
    pub(crate) fn set(&self, points: usize) {
        if let Some(count) = &self.0 {
            count.store(points as u64, Ordering::Relaxed);
        }
    }
}
