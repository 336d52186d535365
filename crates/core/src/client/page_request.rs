//! The request for one page. [`PageCall::fetch`] sends it and decodes the body; [`PageRequest`]
//! does so in the background, and [`PageCall::reply`] for a sync. A sync uses no page stream: it
//! may not prefetch a page that its reserve or `until=` forbids, it records the time before each
//! request, and a page counts only when it has been applied.
//!
//! Decoding is a part of an attempt, so that a truncated page is retried. A task sends a request
//! early. [`Prefetch`] says whether it also decodes the body, or hands it to the caller that takes
//! the page: columns written by another core are slow to read.

use std::convert::Infallible;
use std::future::ready;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use tokio::sync::watch;

use super::background::BackgroundTask;
use super::page_sizes::PageSizes;
use super::send::{Client, DATA_PATH};
use super::spending::Spending;
use crate::data::{Chain, Cursor, Decoded, Decoding, PagingState, SentSize};
use crate::error::{Error, Kind, Result};
use crate::http::{Deadline, Reply};

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
    pub(super) decoding: Decoding,
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

    /// Sends the request with its retries. `decode` is a part of each attempt.
    pub(super) async fn fetch<D: Future<Output = Result<Decoded>> + Send>(
        self,
        decode: impl Fn(Bytes) -> D + Send + Sync,
    ) -> Fetched {
        if self.size.get().is_some() {
            return self.send(&self.wire, None, &decode).await;
        }
        let (sizes, clock) = (self.client.page_sizes(), self.client.time().clock());
        // One request decides for all reads of the client.
        let turn = self.deadline.bound(clock, async { Ok(sizes.turn().await) }).await?;
        let Some((size, wire)) = self.sized(sizes) else {
            drop(turn);
            return self.send(&self.wire, None, &decode).await;
        };
        let first = self.send(&wire, Some(size), &decode).await;
        match &first {
            Ok(_) => sizes.accepted(),
            Err(error) if self.size.get().is_none() && sizes.may_blame(error) => {
                match self.send(&self.wire, None, &decode).await {
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

    /// Decodes the page where the request is sent.
    async fn fetch_decoded(self) -> Fetched {
        let decoding = self.decoding.clone();
        self.fetch(|body| ready(decoding.decode(&body))).await
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
    async fn send<D: Future<Output = Result<Decoded>> + Send>(
        &self,
        wire: &str,
        size: Option<u32>,
        decode: &(impl Fn(Bytes) -> D + Send + Sync),
    ) -> Fetched {
        let read = |reply: &Reply| {
            self.size.set(size);
            let (body, points) = (reply.body.clone(), reply.points.clone());
            let decoded = decode(body.clone());
            async move {
                let decoded = decoded.await?;
                points.set(decoded.points.rows());
                Ok((self.decoding.keep_raw.then_some(body), decoded))
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
            return Box::pin(async move { (self.fetch_decoded().await, client.now()) });
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

pub(super) fn lost() -> Error {
    Error::new(Kind::InternalError, "a request ended without a result")
}

/// A body on its way from the task that received it to the caller that decodes it.
#[derive(Default)]
enum Handover {
    #[default]
    NoBody,
    Body(Bytes),
    Decoded(Box<Result<Decoded>>),
}

/// Dropping it drops its connection.
pub(super) struct PageRequest {
    cursor: Cursor,
    pub(super) deadline: Deadline,
    pub(super) bodies: Bodies,
    pub(super) task: BackgroundTask<Fetched>,
}

/// The bodies of the attempts of one request.
#[derive(Clone, Default)]
pub(super) struct Bodies(Arc<watch::Sender<Handover>>);

impl Bodies {
    /// Waits until a caller has decoded the body.
    async fn hand_over(&self, body: Bytes) -> Result<Decoded> {
        self.0.send_replace(Handover::Body(body));
        let is_decoded = |state: &Handover| matches!(state, Handover::Decoded(_));
        drop(self.0.subscribe().wait_for(is_decoded).await);
        match self.0.send_replace(Handover::NoBody) {
            Handover::Decoded(decoded) => *decoded,
            _ => Err(lost()),
        }
    }

    /// Decodes each body that arrives. If it is cancelled, the next caller gets the same body.
    pub(super) async fn decode<D: Future<Output = Result<Decoded>>>(
        &self,
        decode: impl Fn(Bytes) -> D,
    ) -> Infallible {
        let mut arrived = self.0.subscribe();
        loop {
            let is_body = |state: &Handover| matches!(state, Handover::Body(_));
            let body = match arrived.wait_for(is_body).await.as_deref() {
                Ok(Handover::Body(body)) => body.clone(),
                _ => continue,
            };
            self.0.send_replace(Handover::Decoded(Box::new(decode(body).await)));
        }
    }
}

impl PageRequest {
    /// `None` if the process is exiting.
    pub(super) fn start(call: PageCall, cursor: Cursor, prefetch: Prefetch) -> Option<Self> {
        let (client, deadline) = (call.client.clone(), call.deadline);
        let bodies = Bodies::default();
        let handed = bodies.clone();
        let fetch = async move {
            if prefetch == Prefetch::AfterTake {
                return call.fetch_decoded().await;
            }
            call.fetch(|body| handed.hand_over(body)).await
        };
        let task = BackgroundTask::start(&*client.settings().spawner, fetch)?;
        Some(Self { cursor, deadline, bodies, task })
    }

    pub(super) fn is_next_of(&self, chain: &Chain) -> bool {
        matches!(chain.state(), PagingState::Next(cursor) if *cursor == self.cursor)
    }

    /// Whether its body has arrived, decoded or not.
    pub(super) fn has_arrived(&self) -> bool {
        self.task.is_finished() || !matches!(*self.bodies.0.borrow(), Handover::NoBody)
    }

    /// For one caller at a time.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Fetched> {
        self.task.poll_unpin(context).map(|fetched| fetched.unwrap_or_else(|| Err(lost())))
    }
}
