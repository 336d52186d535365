//! [`RequestNote`]: the facts about one request for an [`Observer`]. It contains no token,
//! assertion, cursor or query.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use reqwest::header::HeaderMap;

use crate::error::Kind;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum RequestKind {
    Token,
    Discovery,
    #[default]
    Data,
}

impl RequestKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::Discovery => "discovery",
            Self::Data => "data",
        }
    }

    pub fn method(self) -> &'static str {
        if self == Self::Token { "POST" } else { "GET" }
    }
}

/// One request that has ended.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RequestNote {
    pub kind: RequestKind,
    /// The address without its query.
    pub url: String,
    /// The status of the reply; `None` without one.
    pub status: Option<u16>,
    /// Why it failed. A reply with status 200 may fail too if its body is truncated.
    pub error: Option<Kind>,
    /// Whether its caller gave up before the reply was complete.
    pub is_abandoned: bool,
    /// Whether any byte may have been sent. Otherwise the allowance does not count it.
    pub is_sent: bool,
    /// When it began, by the client's clock.
    pub started: Timestamp,
    /// The time until the reply was complete or the request failed.
    pub duration: Duration,
    /// The bytes of the reply's body, before decompression.
    pub bytes: u64,
    /// The points on the page, including repeats; `None` without a page.
    pub points: Option<u64>,
    /// The number of the attempt within its call, starting at 1.
    pub attempt: u32,
    /// How the previous attempt ended, in a few words.
    pub reason: Option<String>,
    /// The pause after the previous attempt.
    pub waited: Duration,
    /// The feed of a sync that the request belongs to.
    pub feed: Option<Arc<str>>,
    /// The remaining requests of the allowance, if known.
    pub allowance_left: Option<u64>,
}

/// Is notified of the requests of a client.
pub trait Observer: Send + Sync {
    /// The recipient of the notes of the call on this thread; `None` if there is none.
    fn recipient(&self) -> Option<Recipient>;
}

/// The recipient of a note.
pub struct Recipient {
    /// Headers to send with the request, such as `traceparent`.
    pub headers: Option<Arc<HeaderMap>>,
    /// Receives the note on any thread. Locks may be held.
    pub give: Box<dyn FnOnce(RequestNote) + Send + Sync>,
}

/// The number of points on a page. It becomes known while the reply is parsed.
#[derive(Debug, Clone, Default)]
pub(crate) struct PointCount(Option<Arc<AtomicU64>>);

impl PointCount {
    /// A count that is kept for an observer.
    pub(super) fn kept() -> Self {
        Self(Some(Arc::new(AtomicU64::new(u64::MAX))))
    }

    /// The count, if points were read.
    pub(super) fn get(&self) -> Option<u64> {
        let count = self.0.as_ref()?.load(Ordering::Relaxed);
        (count < u64::MAX).then_some(count)
    }

    /// Stores the count if an observer needs it.
    pub(crate) fn set(&self, points: usize) {
        if let Some(count) = &self.0 {
            count.store(points as u64, Ordering::Relaxed);
        }
    }
}
