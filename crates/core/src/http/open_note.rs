//! [`OpenNote`]: the note of an attempt under way. Every attempt that begins is reported once when
//! it ends, even if its caller was cancelled. Without an observer nothing is allocated.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::HeaderMap;
use url::Url;

use super::note::{Observer, PointCount, Recipient, RequestKind, RequestNote};
use super::transport::Reply;
use crate::clock::Clock;
use crate::error::{Error, Result};

/// The note of an attempt under way. Dropping it reports the attempt, if the attempt has begun.
pub(crate) struct OpenNote(Option<Box<Open>>);

struct Open {
    note: RequestNote,
    recipient: Recipient,
    clock: Clock,
    began: Option<Duration>,
    ended: Option<Duration>,
    points: PointCount,
}

impl OpenNote {
    /// Opens the note of the next attempt, if an observer wants it. `describe` completes it.
    pub(crate) fn new(
        observer: Option<&dyn Observer>,
        clock: &Clock,
        kind: RequestKind,
        describe: impl FnOnce(&mut RequestNote),
    ) -> Self {
        Self(observer.and_then(Observer::recipient).map(|recipient| {
            let mut note =
                RequestNote { kind, is_sent: true, attempt: 1, ..RequestNote::default() };
            describe(&mut note);
            let (clock, began, ended, points) = (clock.clone(), None, None, PointCount::default());
            Box::new(Open { note, recipient, clock, began, ended, points })
        }))
    }

    pub(crate) fn for_feed(mut self, feed: Option<&Arc<str>>) -> Self {
        if let Some(open) = &mut self.0 {
            open.note.feed = feed.cloned();
        }
        self
    }

    /// Begins the attempt. Returns the headers to send with the request.
    pub(crate) fn begin(&mut self, url: &Url) -> Option<Arc<HeaderMap>> {
        let open = self.0.as_mut()?;
        let mut url = url.clone();
        url.set_query(None);
        open.note.url = url.into();
        open.note.started = open.clock.wall();
        open.began = Some(open.clock.monotonic());
        open.recipient.headers.clone()
    }

    /// Records the reply or the failure.
    pub(crate) fn replied(&mut self, outcome: &mut Result<Reply>) {
        let Some(open) = &mut self.0 else { return };
        open.ended = Some(open.clock.monotonic());
        let note = &mut open.note;
        match outcome {
            Ok(reply) => {
                (note.status, note.bytes) = (Some(reply.status), reply.received);
                note.error = reply.broken_body.as_ref().map(Error::kind);
                open.points = PointCount::kept();
                reply.points = open.points.clone();
            }
            Err(error) => open.fail(error),
        }
    }

    /// Records the remaining allowance. It is determined only for an observer.
    pub(crate) fn allowance_left(&mut self, remaining: impl FnOnce() -> Option<u64>) {
        if let Some(open) = &mut self.0 {
            open.note.allowance_left = remaining();
        }
    }

    /// Records a failure and closes the note.
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
        note.points = self.points.get().filter(|_| note.error.is_none());
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
