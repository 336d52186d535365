//! [`RequestNote`]: what an [`Observer`] of a client is told of one request. Never a token, an assertion
//! or a cursor: of the address it has no query.
//!
//! Each attempt that begins is noted once, when it ends, also one whose caller gave up. Without an
//! observer there is no note, and nothing is allocated.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use reqwest::header::HeaderMap;
use url::Url;

use super::transport::Reply;
use crate::clock::Clock;
use crate::error::{Error, Kind, Result};

/// What was requested.
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
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::Discovery => "discovery",
            Self::Data => "data",
        }
    }

    /// The HTTP method.
    #[must_use]
    pub fn method(self) -> &'static str {
        if self == Self::Token { "POST" } else { "GET" }
    }
}

/// One request that has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestNote {
    /// What was requested.
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
    fn new(kind: RequestKind) -> Self {
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
    /// So many points were read, where somebody wants to know.
    pub(crate) fn set(&self, points: usize) {
        if let Some(count) = &self.0 {
            count.store(points as u64, Ordering::Relaxed);
        }
    }
}

/// The note of an attempt under way: given when it is dropped, if the attempt has begun.
pub(crate) struct OpenNote(Option<Box<Open>>);

struct Open {
    note: RequestNote,
    recipient: Recipient,
    clock: Clock,
    began: Option<Duration>,
    ended: Option<Duration>,
    points: Option<Arc<AtomicU64>>,
}

impl OpenNote {
    /// The note of the next attempt, if an observer wants it. `describe` completes it.
    pub(crate) fn new(
        observer: Option<&dyn Observer>,
        clock: &Clock,
        kind: RequestKind,
        describe: impl FnOnce(&mut RequestNote),
    ) -> Self {
        Self(observer.and_then(Observer::recipient).map(|recipient| {
            let mut note = RequestNote::new(kind);
            describe(&mut note);
            let (clock, began, ended, points) = (clock.clone(), None, None, None);
            Box::new(Open { note, recipient, clock, began, ended, points })
        }))
    }

    /// As a request of a feed.
    pub(crate) fn for_feed(mut self, feed: Option<&Arc<str>>) -> Self {
        if let Some(open) = &mut self.0 {
            open.note.feed = feed.cloned();
        }
        self
    }

    /// Before the request is sent: the headers that it has for its caller.
    pub(crate) fn begin(&mut self, url: &Url) -> Option<Arc<HeaderMap>> {
        let open = self.0.as_mut()?;
        let mut url = url.clone();
        url.set_query(None);
        open.note.url = url.into();
        open.note.started = open.clock.wall();
        open.began = Some(open.clock.monotonic());
        open.recipient.headers.clone()
    }

    /// After its reply, or its failure.
    pub(crate) fn replied(&mut self, outcome: &mut Result<Reply>) {
        let Some(open) = &mut self.0 else { return };
        open.ended = Some(open.clock.monotonic());
        let note = &mut open.note;
        match outcome {
            Ok(reply) => {
                (note.status, note.bytes) = (Some(reply.status), reply.received);
                note.error = reply.broken_body.as_ref().map(Error::kind);
                let points = Arc::new(AtomicU64::new(u64::MAX));
                reply.points = PointCount(Some(Arc::clone(&points)));
                open.points = Some(points);
            }
            Err(error) => open.fail(error),
        }
    }

    /// What is left of the allowance, which is asked for only if somebody gets the note.
    pub(crate) fn allowance_left(&mut self, left: impl FnOnce() -> Option<u64>) {
        if let Some(open) = &mut self.0 {
            open.note.allowance_left = left();
        }
    }

    /// The attempt has failed.
    pub(crate) fn failed(mut self, error: &Error) {
        if let Some(open) = &mut self.0 {
            open.fail(error);
        }
    }
}

impl Open {
    fn fail(&mut self, error: &Error) {
        let context = error.context();
        self.note.error = Some(error.kind());
        self.note.status = self.note.status.or(context.status);
        self.note.is_sent = !context.unsent;
    }

    fn finish(mut self) {
        let Some(began) = self.began else { return };
        let ended = self.ended.unwrap_or_else(|| self.clock.monotonic());
        let note = &mut self.note;
        note.duration = ended.saturating_sub(began);
        note.is_abandoned = self.ended.is_none() && note.error.is_none();
        let points = self.points.map(|points| points.load(Ordering::Relaxed));
        note.points = points.filter(|points| *points < u64::MAX && note.error.is_none());
        (self.recipient.give)(self.note);
    }
}

impl Drop for OpenNote {
    fn drop(&mut self) {
        if let Some(open) = self.0.take() {
            open.finish();
        }
    }
}
