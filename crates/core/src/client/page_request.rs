//! The request for one page. [`PageCall::fetch`] sends it and decodes the body; [`PageRequest`]
//! does so in the background, and [`PageCall::reply`] for a sync. A sync uses no page stream: it
//! may not prefetch a page that its reserve or `until=` forbids, it records the time before each
//! request, and a page counts only when it has been applied.
//!
//! The call that received a body decodes it, so that a truncated page is retried. [`Prefetch`] says
//! whether the task or the caller drives the call at that point.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use tokio::sync::oneshot;

use super::background::BackgroundTask;
use super::background_call::{BackgroundCall, Handover};
use super::page_sizes::PageSizes;
use super::send::{Client, DATA_PATH};
use super::spending::Spending;
use crate::data::{Chain, Cursor, Decoded, Decoding, PagingState, SentSize};
use crate::error::{Error, Kind, Result};
use crate::http::{Deadline, Reply};
use crate::lock::Mutex;

/// A smaller body is decoded faster than the next request is sent.
const LARGE: usize = 32 * 1024;

/// The page, and its body if it is kept.
pub(crate) type Fetched = Result<(Option<Bytes>, Decoded)>;

/// When the next page is prefetched, and who decodes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Prefetch {
    /// By [`PageStream::prefetch`](super::page_stream::PageStream::prefetch), once for each page
    /// taken, but not after the first, so that reading one page costs one request. For callers that
    /// may stop at any page. The task decodes the page.
    AfterTake,
    /// When the cursor of a large page is found at an edge of its body. The caller that takes the
    /// prefetched page decodes it. For callers that read to the end.
    AtCursor,
    /// Never, because another chain may need the last page of a limit.
    Never,
}

/// A page and the service's time when it arrived. Dropping it drops the request.
pub(crate) type PageReply = BoxFuture<'static, (Fetched, Timestamp)>;

#[derive(Clone)]
pub(crate) struct PageCall {
    client: Client,
    spending: Arc<Spending>,
    deadline: Deadline,
    /// The URL query, secret if it has a cursor.
    wire: String,
    /// This request decides the size if it is not decided yet.
    size: SentSize,
    decoding: Decoding,
}

impl PageCall {
    /// The request for a page of the chain, with this URL query.
    pub(crate) fn new(
        client: &Client,
        spending: &Arc<Spending>,
        chain: &Chain,
        wire: String,
        deadline: Deadline,
    ) -> Self {
        let (client, spending) = (client.clone(), Arc::clone(spending));
        let (size, decoding) = (chain.size().clone(), chain.decoding());
        Self { client, spending, deadline, wire, size, decoding }
    }

    /// Sends the request with its retries, and decodes the page. If the next cursor of a large body
    /// is found at an edge, it is sent to `edge` before the body is decoded, when a `handover` is
    /// also reached. The decoder finds the same cursor in a valid page.
    pub(super) async fn fetch(
        self,
        edge: oneshot::Sender<Cursor>,
        handover: Option<Handover>,
    ) -> Fetched {
        let edge = Mutex::new(Some(edge));
        if self.size.get().is_some() {
            return self.send(&self.wire, None, &edge, handover.as_ref()).await;
        }
        let (sizes, clock) = (self.client.page_sizes(), self.client.time().clock());
        // One request decides for all reads of the client.
        let turn = self.deadline.bound(clock, async { Ok(sizes.turn().await) }).await?;
        let Some((size, wire)) = self.sized(sizes) else {
            drop(turn);
            return self.send(&self.wire, None, &edge, None).await;
        };
        let first = self.send(&wire, Some(size), &edge, None).await;
        match &first {
            Ok(_) => sizes.accepted(),
            Err(error) if self.size.get().is_none() && sizes.may_blame(error) => {
                match self.send(&self.wire, None, &edge, None).await {
                    Ok(page) => {
                        sizes.refused(self.client.now());
                        return Ok(page);
                    }
                    Err(again) => return first.map_err(|first| repeated(first, &again)),
                }
            }
            Err(_) => {}
        }
        first
    }

    /// The size that another request has decided meanwhile, or else the automatic one, and the wire
    /// form with it; `None` if none is sent.
    fn sized(&self, sizes: &PageSizes) -> Option<(u32, String)> {
        let size = match self.size.get() {
            Some(decided) => decided,
            None => sizes.automatic(self.client.now()),
        }?;
        Some((
            size,
            format!("{}{}pageSize={size}", self.wire, if self.wire.is_empty() { "" } else { "&" }),
        ))
    }

    /// An accepted request decides the size.
    async fn send(
        &self,
        wire: &str,
        size: Option<u32>,
        edge: &Mutex<Option<oneshot::Sender<Cursor>>>,
        handover: Option<&Handover>,
    ) -> Fetched {
        let decoding = &self.decoding;
        let read = |reply: &Reply| {
            self.size.set(size);
            let body = reply.body.clone();
            let is_awaited = send_cursor(&body, decoding, edge);
            let (handover, points) = (handover.cloned(), reply.points.clone());
            async move {
                if let Some(handover) = &handover {
                    handover.reached().await;
                }
                if is_awaited {
                    // The caller that waits for the cursor starts the next request first: a worker
                    // thread that decodes starts no task.
                    tokio::task::yield_now().await;
                }
                let decoded = decoding.decode(&body);
                if let (Err(_), Some(handover)) = (&decoded, &handover) {
                    handover.repeat();
                }
                let decoded = decoded?;
                points.set(decoded.points.rows());
                Ok((decoding.keep_raw.then_some(body), decoded))
            }
        };
        self.client.get(DATA_PATH, wire, self.deadline, &self.spending, read).await
    }

    /// Sends the request when the reply is awaited. In the background a task sends it at once,
    /// unless the process is exiting.
    pub(crate) fn reply(self, in_background: bool) -> PageReply {
        let client = self.client.clone();
        let task = in_background
            .then(|| BackgroundTask::start(&*client.settings().spawner, self.clone().reply(false)));
        let Some(task) = task.flatten() else {
            return Box::pin(async move {
                let fetched = self.fetch(oneshot::channel().0, None).await;
                (fetched, client.now())
            });
        };
        Box::pin(async move { task.await.unwrap_or_else(|| (Err(lost()), client.now())) })
    }
}

/// Adds the attempts without the page size.
fn repeated(first: Error, again: &Error) -> Error {
    let again = again.context();
    let Some(status) = again.status else { return first };
    first.with(|context| {
        if let Some(last) = context.attempts.last_mut() {
            last.wait = Some(Duration::ZERO);
        }
        context.attempts.extend(again.attempts.iter().cloned());
        context.elapsed = context.elapsed.zip(again.elapsed).map(|(first, again)| first + again);
        let count = context.attempts.len();
        let message = context.message.trim_end_matches('.');
        context.message = format!(
            "{message}. Without pageSize it failed with status {status}, so {count} requests were made."
        );
    })
}

fn lost() -> Error {
    Error::new(Kind::InternalError, "a request ended without a result")
}

/// Sends the cursor at an edge of a large body; returns whether a receiver exists.
fn send_cursor(
    body: &Bytes,
    decoding: &Decoding,
    edge: &Mutex<Option<oneshot::Sender<Cursor>>>,
) -> bool {
    let mut edge = edge.lock();
    if body.len() < LARGE || edge.as_ref().is_none_or(oneshot::Sender::is_closed) {
        return false;
    }
    let Some(cursor) = decoding.cursor_at_an_edge(body) else { return false };
    edge.take().is_some_and(|edge| edge.send(cursor).is_ok())
}

/// Dropping it drops its connection.
pub(super) struct PageRequest {
    cursor: Cursor,
    pub(super) deadline: Deadline,
    edge: oneshot::Receiver<Cursor>,
    pub(super) call: BackgroundCall<Fetched>,
}

impl PageRequest {
    /// `None` if the process is exiting.
    pub(super) fn start(call: PageCall, cursor: Cursor, prefetch: Prefetch) -> Option<Self> {
        let (client, deadline) = (call.client.clone(), call.deadline);
        let (sender, edge) = oneshot::channel();
        let handover = Handover::default();
        let at_handover = (prefetch == Prefetch::AtCursor).then(|| handover.clone());
        let fetch = call.fetch(sender, at_handover);
        let call = BackgroundCall::start(&*client.settings().spawner, handover, fetch)?;
        Some(Self { cursor, deadline, edge, call })
    }

    pub(super) fn is_next_of(&self, chain: &Chain) -> bool {
        matches!(chain.state(), PagingState::Next(cursor) if *cursor == self.cursor)
    }

    /// Only the first call returns a receiver that gets the cursor.
    pub(super) fn take_edge(&mut self) -> oneshot::Receiver<Cursor> {
        std::mem::replace(&mut self.edge, oneshot::channel().1)
    }

    /// Whether its body has arrived, decoded or not.
    pub(super) fn has_arrived(&self) -> bool {
        self.call.is_ready()
    }

    /// For one caller at a time, which decodes the page unless the task has done so.
    pub(super) fn outcome(&self) -> impl Future<Output = Fetched> + Send + 'static + use<> {
        let outcome = self.call.outcome();
        async move { outcome.await.unwrap_or_else(|| Err(lost())) }
    }
}
