//! One page asked for. [`PageCall::fetch`] sends the request and decodes the body, in place;
//! [`PageRequest`] does the same in the background.
//!
//! A page is decoded within the call that brought its body, so that one that was cut is asked for
//! again. Who drives that call then, decodes: see [`Prefetch`].

use std::future::ready;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::oneshot;

use super::background_call::{BackgroundCall, Handover};
use super::send::{Client, DATA_PATH};
use super::spending::Spending;
use crate::data::{Chain, Cursor, Decoded, Decoding, Fetch, PagingState};
use crate::error::{Error, Kind, Result};
use crate::http::{Deadline, Reply};
use crate::lock::Mutex;

/// A body of fewer bytes is decoded before the next request would have left.
const LARGE: usize = 128 * 1024;

/// A page's body, where it is kept, and what it says.
pub(super) type Fetched = Result<(Bytes, Decoded)>;

/// What starts the request for a page that nobody waits for yet, and who decodes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prefetch {
    /// [`PageStream::prefetch`](super::page_stream::PageStream::prefetch), once for each page that was
    /// taken. Not after the first, so that a look at one page costs one request. The task decodes it.
    /// For whoever may stop at any page, and is at something else meanwhile.
    AfterTake,
    /// A large page whose cursor is seen at an edge of its body, before it is decoded. The body waits
    /// for whoever wants the page, who decodes it. For whoever reads on to the end.
    AtCursor,
}

/// What one page is asked for with.
pub(super) struct PageCall {
    pub(super) client: Client,
    pub(super) spending: Arc<Spending>,
    pub(super) deadline: Deadline,
    /// The URL query: secret where it has a cursor.
    pub(super) wire: String,
    pub(super) decoding: Decoding,
    /// Whether the body is wanted beside what it says.
    pub(super) keep_raw: bool,
}

impl PageCall {
    /// Sends the request, with whatever repeats it takes, and decodes the page. Where the body is
    /// large and shows the next cursor at an edge, that is sent to `edge` before the body is decoded.
    /// Nothing is guessed: where the decoder takes the page, its cursor is the one that was seen.
    /// With a `handover`, that is reached before the body is decoded.
    ///
    /// # Errors
    /// As [`Client::get`], and those of the decoder.
    pub(super) async fn fetch(
        self,
        edge: oneshot::Sender<Cursor>,
        handover: Option<Handover>,
    ) -> Fetched {
        let (edge, decoding, keep_raw) = (Mutex::new(Some(edge)), &self.decoding, self.keep_raw);
        let read = |reply: &Reply| {
            let body = reply.body.clone();
            let is_awaited = show_cursor(&body, decoding, &edge);
            let handover = handover.clone();
            async move {
                if let Some(handover) = &handover {
                    handover.reached().await;
                }
                if is_awaited {
                    // Whoever waits for it starts the next request first: a worker that decodes
                    // starts no task.
                    tokio::task::yield_now().await;
                }
                let decoded = decoding.decode(&body);
                if let (Err(_), Some(handover)) = (&decoded, &handover) {
                    handover.repeat();
                }
                Ok((if keep_raw { body } else { Bytes::new() }, decoded?))
            }
        };
        self.client.get(DATA_PATH, &self.wire, self.deadline, &self.spending, read).await
    }
}

/// Sends on the cursor that is seen at an edge of a large body, once; whether somebody awaits it.
fn show_cursor(
    body: &Bytes,
    decoding: &Decoding,
    edge: &Mutex<Option<oneshot::Sender<Cursor>>>,
) -> bool {
    let mut edge = edge.lock();
    if body.len() < LARGE || edge.is_none() {
        return false;
    }
    let Some(cursor) = decoding.cursor_at_an_edge(body) else { return false };
    edge.take().is_some_and(|edge| edge.send(cursor).is_ok())
}

/// A page that was asked for in the background. Dropped, it drops its connection.
pub(super) struct PageRequest {
    cursor: Cursor,
    deadline: Deadline,
    edge: oneshot::Receiver<Cursor>,
    call: BackgroundCall<Fetched>,
}

impl PageRequest {
    /// Asks for the page of this cursor; `None` where no task is started any more.
    pub(super) fn start(call: PageCall, cursor: Cursor, prefetch: Prefetch) -> Option<Self> {
        let (client, deadline) = (call.client.clone(), call.deadline);
        let (sender, edge) = oneshot::channel();
        let handover = Handover::default();
        let at_handover = (prefetch == Prefetch::AtCursor).then(|| handover.clone());
        let fetch = call.fetch(sender, at_handover);
        let call = BackgroundCall::start(&*client.settings().spawner, handover, fetch)?;
        Some(Self { cursor, deadline, edge, call })
    }

    /// Whether it asks for the next page of the chain.
    pub(super) fn is_next_of(&self, chain: &Chain) -> bool {
        matches!(chain.state(), PagingState::Next(cursor) if *cursor == self.cursor)
    }

    /// When it is to be here, as whoever asked for it wanted.
    pub(super) fn deadline(&self) -> Deadline {
        self.deadline
    }

    /// The cursor at the edge of its body, once that is here. For the first who asks.
    pub(super) fn take_edge(&mut self) -> oneshot::Receiver<Cursor> {
        std::mem::replace(&mut self.edge, oneshot::channel().1)
    }

    /// Whether its page is here, decoded or not.
    pub(super) fn has_arrived(&self) -> bool {
        self.call.is_ready()
    }

    /// Whether its outcome is here.
    pub(super) fn is_finished(&self) -> bool {
        self.call.is_finished()
    }

    /// Its outcome, where that is here.
    pub(super) fn finished(&self) -> Option<Fetched> {
        self.call.finished()
    }

    /// Its outcome. Waited for by one at a time, who decodes the page where that is left to do.
    pub(super) fn outcome(&self) -> impl Future<Output = Fetched> + Send + 'static + use<> {
        let lost = || Err(Error::new(Kind::InternalError, "a request ended without an outcome"));
        let outcome = self.call.outcome();
        async move { outcome.await.unwrap_or_else(lost) }
    }
}

/// Sends the requests of one read in place, all within its deadline: for a sync. That reads no page
/// stream, because nothing may be prefetched that its reserve or `until=` forbids, it notes the moment
/// before each request, and what it has read counts once it has been applied.
#[derive(Debug, Clone, Copy)]
pub struct Sender<'a> {
    /// Who sends them.
    pub client: &'a Client,
    /// When the read is to be over.
    pub deadline: Deadline,
    /// What the read spends.
    pub spending: &'a Spending,
}

impl Fetch for Sender<'_> {
    async fn fetch<T: Send>(
        &self,
        wire_query: &str,
        read: impl Fn(&Bytes) -> Result<T> + Send + Sync,
    ) -> Result<T> {
        let read = |reply: &Reply| ready(read(&reply.body));
        self.client.get(DATA_PATH, wire_query, self.deadline, self.spending, read).await
    }
}
