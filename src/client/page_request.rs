//! One page asked for. [`PageCall::fetch`] sends the request and decodes the body, in place;
//! [`PageRequest`] does the same in the background.
//!
//! A page is decoded within the call that brought its body, so that one that was cut is asked for
//! again.

use std::future::ready;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::FutureExt as _;
use tokio::sync::oneshot;

use super::background::BackgroundTask;
use super::send::{Client, DATA_PATH};
use super::spending::Spending;
use crate::data::{Chain, Cursor, Decoded, Decoding, Fetch, PagingState};
use crate::error::{Error, Kind, Result};
use crate::http::{Deadline, Reply};

/// A body of fewer bytes is decoded before the next request would have left.
const LARGE: usize = 128 * 1024;

/// A page's body, where it is kept, and what it says.
pub(super) type Fetched = Result<(Bytes, Decoded)>;

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
    ///
    /// # Errors
    /// As [`Client::get`], and those of the decoder.
    pub(super) async fn fetch(self, edge: oneshot::Sender<Cursor>) -> Fetched {
        let (edge, decoding, keep_raw) = (Mutex::new(Some(edge)), &self.decoding, self.keep_raw);
        let read = |reply: &Reply| {
            let body = reply.body.clone();
            let is_awaited = show_cursor(&body, decoding, &edge);
            async move {
                if is_awaited {
                    // Whoever waits for it starts the next request first: a worker that decodes
                    // starts no task.
                    tokio::task::yield_now().await;
                }
                let decoded = decoding.decode(&body)?;
                Ok((if keep_raw { body } else { Bytes::new() }, decoded))
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
    let mut edge = edge.lock().unwrap_or_else(PoisonError::into_inner);
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
    task: BackgroundTask<Fetched>,
}

impl PageRequest {
    /// Asks for the page of this cursor; `None` where no task is started any more.
    pub(super) fn start(call: PageCall, cursor: Cursor) -> Option<Self> {
        let (client, deadline) = (call.client.clone(), call.deadline);
        let (sender, edge) = oneshot::channel();
        let task = BackgroundTask::start(&*client.settings().spawner, call.fetch(sender))?;
        Some(Self { cursor, deadline, edge, task })
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

    /// Whether its outcome is here.
    pub(super) fn is_finished(&self) -> bool {
        self.task.is_finished()
    }

    /// Its outcome.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Fetched> {
        let lost = || Error::new(Kind::InternalError, "a request ended without an outcome");
        self.task.poll_unpin(context).map(|fetched| fetched.unwrap_or_else(|| Err(lost())))
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
