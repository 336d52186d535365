//! [`PageRequest`]: one page that was asked for. While a large page is decoded, on a thread of its own,
//! the one after it is asked for: its cursor stands at an edge of most bodies, and is seen there. At
//! most one page is asked for so, and only for somebody who reads on to the end.
//!
//! Nothing is guessed: where the decoder takes a page, its cursor is the one that was seen. Where it
//! refuses the page, one request was spent whose reply nobody sees.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{BoxFuture, MaybeDone, maybe_done};

use super::{Client, DATA_PATH, Spending};
use crate::data::{Chain, Cursor, Decoded, Decoding, Page, State};
use crate::error::{Error, Kind, Result};
use crate::http::{Deadline, Reply};

/// A body of fewer bytes is decoded before another thread would have begun.
const LARGE: usize = 128 * 1024;

/// A page's body, and what it says.
type Read = Result<(Bytes, Decoded)>;

/// Who asks, and by when the pages are to be here.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asking<'a> {
    pub(super) client: &'a Client,
    /// On the client's monotonic clock.
    pub(super) until: Option<Duration>,
    pub(super) spending: &'a Arc<Spending>,
}

/// A page that was asked for. Dropped, it drops its connection; in a forked child, whose connection
/// it is not, it touches nothing.
pub struct PageRequest {
    /// What it was asked for with; `None` for a first page.
    cursor: Option<Cursor>,
    /// By when it is to be here, as whoever asked for it wanted.
    until: Option<Duration>,
    read: MaybeDone<BoxFuture<'static, Read>>,
    seen: Arc<Seen>,
    process: u32,
}

/// The next cursor of a page that is being decoded, until somebody looks.
#[derive(Default)]
struct Seen(Mutex<Option<Cursor>>);

impl Asking<'_> {
    /// The next page of the chain; `None` after the last one. `early` holds it where it was asked for
    /// already, and afterwards the one that follows, where it was asked for meanwhile. Dropped half
    /// way, it drops both, and leaves the chain where it was.
    ///
    /// # Errors
    /// As [`Chain::next`].
    pub(super) async fn next(
        self,
        chain: &mut Chain,
        early: &mut Option<PageRequest>,
    ) -> Result<Option<Page>> {
        let mut asked = early.take().filter(|request| request.is_next_of(chain));
        loop {
            let mut request = match asked.take() {
                Some(request) => request,
                None => match chain.wire()? {
                    Some(wire) => self.ask(wire, next_cursor(chain).cloned(), chain.decoding()),
                    None => return Ok(None),
                },
            };
            let is_own = request.until == self.until;
            let mut following = None;
            let reading = self.read(&mut request, &mut following, chain);
            let read = if is_own { reading.await } else { self.within_time(reading).await };
            let out_of_time = |error: &Error| error.kind() == Kind::DeadlineExceeded;
            if !is_own && read.as_ref().is_err_and(out_of_time) && !self.is_over() {
                // Whoever asked for it had less time.
                continue;
            }
            let page = chain.take(read)?;
            *early = following.filter(|request| request.is_next_of(chain));
            return Ok(Some(page));
        }
    }

    /// Waits for a page. The one that follows is asked for as soon as its cursor is seen.
    async fn read(
        self,
        request: &mut PageRequest,
        following: &mut Option<PageRequest>,
        chain: &Chain,
    ) -> Read {
        poll_fn(|context| {
            if let Some(read) = request.go_on(context) {
                return Poll::Ready(read);
            }
            if following.is_none()
                && let Some(cursor) = request.seen.take()
                && let Some(wire) = chain.wire_after_next(&cursor)
            {
                *following = Some(self.ask(wire, Some(cursor), chain.decoding()));
            }
            if let Some(following) = following {
                let _ = Pin::new(&mut following.read).poll(context);
            }
            Poll::Pending
        })
        .await
    }

    /// Asks for a page; polled, it is sent.
    fn ask(self, wire: String, cursor: Option<Cursor>, decoding: Decoding) -> PageRequest {
        let (client, spending) = (self.client.clone(), Arc::clone(self.spending));
        let (until, seen) = (self.until, Arc::new(Seen::default()));
        let read = {
            let seen = Arc::clone(&seen);
            move |reply: &Reply| read(reply.body.clone(), decoding.clone(), Arc::clone(&seen))
        };
        let read: BoxFuture<'static, Read> = Box::pin(async move {
            let left = left(&client, until);
            client.get(DATA_PATH, &wire, left, &spending, read).await
        });
        PageRequest { cursor, until, read: maybe_done(read), seen, process: std::process::id() }
    }

    async fn within_time(self, reading: impl Future<Output = Read>) -> Read {
        let clock = self.client.time().clock();
        Deadline::after(clock, left(self.client, self.until)).bound(clock, reading).await
    }

    fn is_over(self) -> bool {
        left(self.client, self.until).is_some_and(|left| left.is_zero())
    }
}

fn left(client: &Client, until: Option<Duration>) -> Option<Duration> {
    let now = client.time().clock().monotonic();
    until.map(|until| until.saturating_sub(now))
}

fn next_cursor(chain: &Chain) -> Option<&Cursor> {
    match chain.state() {
        State::Next(cursor) => Some(cursor),
        State::Start | State::Done => None,
    }
}

/// Reads a body. A large one whose next cursor is seen is decoded on a thread of its own.
async fn read(body: Bytes, decoding: Decoding, seen: Arc<Seen>) -> Read {
    let cursor = (body.len() >= LARGE).then(|| decoding.cursor_at_an_edge(&body)).flatten();
    let Some(cursor) = cursor else {
        let decoded = decoding.decode(&body)?;
        return Ok((body, decoded));
    };
    seen.put(cursor);
    let decoded =
        tokio::task::spawn_blocking(move || decoding.decode(&body).map(|decoded| (body, decoded)));
    decoded.await.unwrap_or_else(|lost| match lost.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        Err(_) => Err(Error::new(Kind::Internal, "the runtime ended before a page was decoded")),
    })
}

impl PageRequest {
    fn is_next_of(&self, chain: &Chain) -> bool {
        self.cursor.as_ref() == next_cursor(chain) && *chain.state() != State::Done
    }

    fn go_on(&mut self, context: &mut Context<'_>) -> Option<Read> {
        let mut read = Pin::new(&mut self.read);
        read.as_mut().poll(context).is_ready().then(|| read.take_output()).flatten()
    }
}

impl Drop for PageRequest {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            std::mem::forget(std::mem::replace(&mut self.read, MaybeDone::Gone));
        }
    }
}

impl fmt::Debug for PageRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PageRequest({:?})", self.cursor)
    }
}

impl Seen {
    fn put(&self, cursor: Cursor) {
        *self.slot() = Some(cursor);
    }

    fn take(&self) -> Option<Cursor> {
        self.slot().take()
    }

    fn slot(&self) -> MutexGuard<'_, Option<Cursor>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
