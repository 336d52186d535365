//! The pages of one chain, in order. Each page is returned once, to one caller.
//!
//! At most one page is prefetched, by a background task; [`Prefetch`] defines when. Only a caller
//! that receives a page advances the chain. A cancelled request or a rejected page does not change
//! it.
//!
//! No task sends pages to a channel: callers that share a read have their own deadlines and log
//! buffers, the waiting thread decodes small pages, and a process that is exiting starts no tasks.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use tokio::sync::Mutex as AsyncMutex;

use super::page_request::{Fetched, PageCall, PageRequest, Prefetch, lost};
use super::progress::{Meter, Progress};
use super::send::Client;
use super::settings::ReadSettings;
use super::spending::{Spending, Together};
use super::table::{Provenance, ReadFailure};
use crate::data::{Chain, Cursor, Decoded, Decoding, Page, PagingState};
use crate::error::{Error, Kind, Result};
use crate::fork::Process;
use crate::http::Deadline;
use crate::lock::Mutex;

/// Number of pages taken before the first prefetch.
const PREFETCH_FROM: u64 = 2;
/// A smaller body is decoded faster than the next request is sent.
const LARGE: usize = 32 * 1024;

/// Reading and taking a page are two steps. So a page that was read for a cancelled caller is kept
/// for the next one, and its progress is reported first.
pub struct PageStream {
    client: Client,
    prefetch: Prefetch,
    /// The default deadline of callers.
    deadline: Deadline,
    spending: Arc<Spending>,
    together: Arc<Together>,
    provenance: Provenance,
    /// The process that owns the chain.
    process: Process,
    waiting: AtomicUsize,
    /// Locked by the caller that reads.
    reading: AsyncMutex<()>,
    pub(super) position: Mutex<Position>,
}

/// Locked only briefly.
pub(super) struct Position {
    chain: Chain,
    meter: Meter,
    pub(super) prefetched: Option<PageRequest>,
    /// The last page read, until it is taken.
    unread: Option<Unread>,
    /// The number of pages taken, and the number at the last prefetch.
    taken: u64,
    prefetched_after: u64,
}

struct Unread {
    page: Page,
    progress: Progress,
    is_reported: bool,
}

impl PageStream {
    pub(super) fn new(
        (client, together): (Client, Arc<Together>),
        prefetch: Prefetch,
        settings: &ReadSettings,
        (chain, expected): (Chain, Option<u64>),
        provenance: Provenance,
    ) -> Arc<Self> {
        let before = provenance.resumed_after_pages;
        let position = Position {
            chain: chain.keep_raw(settings.keep_raw),
            meter: Meter::new(&provenance.query, expected.map(|all| all.saturating_sub(before))),
            prefetched: None,
            unread: None,
            taken: 0,
            prefetched_after: 0,
        };
        Arc::new(Self {
            deadline: Deadline::after(client.time().clock(), settings.deadline),
            client,
            prefetch,
            spending: Arc::new(Spending {
                pause: Arc::clone(&together.pause),
                ..Spending::default()
            }),
            together,
            provenance,
            process: Process::current(),
            waiting: AtomicUsize::new(0),
            reading: AsyncMutex::new(()),
            position: Mutex::new(position),
        })
    }

    /// Returns the next page and the progress after it; `None` after the last page. Cancelling it
    /// loses no page.
    pub async fn next(
        self: &Arc<Self>,
        deadline: Deadline,
    ) -> Result<Option<(Page, Progress)>, ReadFailure> {
        loop {
            self.read_next_until(deadline).await?;
            if let Poll::Ready(next) = self.take_if(|_| true) {
                return Ok(next.map(|unread| (unread.page, unread.progress)));
            }
        }
    }

    /// Reads the next page within the stream's deadline, unless a page is waiting to be taken or
    /// the chain has ended. The caller counts as waiting from this call on. Cancelling the last one
    /// drops the prefetch, unless the body has arrived. A failure contains a bookmark.
    pub fn read_next(
        self: &Arc<Self>,
    ) -> impl Future<Output = Result<(), ReadFailure>> + Send + 'static + use<> {
        self.read_next_until(self.deadline)
    }

    fn read_next_until(
        self: &Arc<Self>,
        deadline: Deadline,
    ) -> impl Future<Output = Result<(), ReadFailure>> + Send + 'static + use<> {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let waiter = Waiter { stream: Arc::clone(self), is_finished: false };
        async move {
            let mut waiter = waiter;
            let read = waiter.stream.read(deadline).await;
            waiter.is_finished = true;
            read.map_err(|error| waiter.stream.failure(error))
        }
    }

    /// Does not wait. `None` if no prefetched page is finished.
    pub fn receive_finished(&self) -> Option<Result<(), ReadFailure>> {
        let _reading = self.reading.try_lock().ok().filter(|_| self.has_finished_prefetch())?;
        let fetched = poll_fn(|context| self.poll_prefetched(context)).now_or_never()?;
        Some(self.receive(fetched, None).map_err(|error| self.failure(error)))
    }

    /// Whether a prefetched page is finished. Always false in a forked child.
    pub fn has_finished_prefetch(&self) -> bool {
        self.check_process().is_ok()
            && self.position.lock().prefetched.as_ref().is_some_and(|next| next.task.is_finished())
    }

    /// Whether [`PageStream::prefetch`] would send a request.
    pub fn may_prefetch(&self) -> bool {
        if self.prefetch != Prefetch::AfterTake || self.check_process().is_err() {
            return false;
        }
        let position = self.position.lock();
        position.prefetched.is_none()
            && position.unread.is_none()
            && position.taken >= PREFETCH_FROM
            && position.taken > position.prefetched_after
    }

    /// Prefetches the next page after one was taken, but not after the first or the last page, or
    /// while a caller is reading. Called within the runtime.
    pub fn prefetch(&self) {
        let Ok(_reading) = self.reading.try_lock() else { return };
        if !self.may_prefetch() {
            return;
        }
        let (call, cursor) = {
            let position = &mut *self.position.lock();
            position.prefetched_after = position.taken;
            let chain = &position.chain;
            // The caller that reads the page gets the error.
            let (PagingState::Next(cursor), Ok(Some(wire))) = (chain.state(), chain.wire()) else {
                return;
            };
            (self.call(chain, wire, self.deadline), cursor.clone())
        };
        self.position.lock().prefetched = PageRequest::start(call, cursor, self.prefetch);
    }

    /// Drops the prefetch and its connection, unless its body has arrived or a caller waits for it.
    pub fn stop_prefetch(&self) {
        let position = &mut *self.position.lock();
        // A caller counts as waiting before it looks at the prefetch.
        let is_wanted = self.waiting.load(Ordering::SeqCst) > 0;
        drop(position.prefetched.take_if(|request| !is_wanted && !request.has_arrived()));
    }

    pub(super) fn has_prefetched(&self) -> bool {
        self.position.lock().prefetched.is_some()
    }

    /// Takes the last page read, once [`PageStream::take_progress`] has returned its progress.
    /// `None` after the last page; `Pending` if [`PageStream::read_next`] must be called first.
    pub fn take_page(&self) -> Poll<Option<Page>> {
        self.take_if(|unread| unread.is_reported).map(|unread| unread.map(|unread| unread.page))
    }

    fn take_if(&self, predicate: impl FnOnce(&Unread) -> bool) -> Poll<Option<Unread>> {
        if self.check_process().is_err() {
            return Poll::Pending;
        }
        let position = &mut *self.position.lock();
        if let Some(unread) = position.unread.take_if(|unread| predicate(unread)) {
            position.taken += 1;
            return Poll::Ready(Some(unread));
        }
        if position.unread.is_none() && position.chain.is_done() {
            return Poll::Ready(None);
        }
        Poll::Pending
    }

    /// The progress after the last page read, once for each page.
    pub fn take_progress(&self) -> Option<Progress> {
        self.check_process().ok()?;
        let position = &mut *self.position.lock();
        let unread = position.unread.as_mut().filter(|unread| !unread.is_reported)?;
        unread.is_reported = true;
        Some(unread.progress)
    }

    /// Returns `ForkError` in a forked child: parent and child would request the same pages.
    pub fn check_process(&self) -> Result<()> {
        if self.process.is_current() {
            return Ok(());
        }
        let message = "This iterator was created by the parent process before the fork.";
        let hint = "Create a new one in the child with scan.pages() or scan.records().";
        Err(Error::new(Kind::ForkError, message).with_hint(hint))
    }

    /// Restarts the count for `max_pages`.
    pub(super) fn renew_limit(&self) {
        self.position.lock().chain.renew_limit();
    }

    pub fn deadline_in(&self, limit: Duration) -> Deadline {
        Deadline::after(self.client.time().clock(), Some(limit))
    }

    pub fn provenance(&self) -> &Provenance {
        &self.provenance
    }

    async fn read(&self, deadline: Deadline) -> Result<()> {
        self.check_process()?;
        let _reading = self.reading.lock().await;
        if self.position.lock().unread.is_some() {
            return Ok(());
        }
        let next = Mutex::new(None);
        let mut fetched = self.fetch_prefetched(deadline, &next).await;
        if fetched.is_none() {
            fetched = self.fetch(deadline, &next).await;
        }
        let Some(fetched) = fetched else { return Ok(()) };
        let next = next.lock().take();
        self.receive(fetched, next)
    }

    /// Requests the next page. `None` after the last one.
    async fn fetch(
        &self,
        deadline: Deadline,
        next: &Mutex<Option<PageRequest>>,
    ) -> Option<Fetched> {
        let call = {
            let chain = &self.position.lock().chain;
            chain.wire().map(|wire| wire.map(|wire| self.call(chain, wire, deadline)))
        };
        let call = match call.transpose()? {
            Ok(call) => call,
            Err(error) => return Some(Err(error)),
        };
        let decoding = call.decoding.clone();
        Some(call.fetch(|body| self.decode(&decoding, body, deadline, next)).await)
    }

    /// Waits for the prefetched page. `None` without a prefetch, or if only the deadline of the
    /// prefetch has passed.
    async fn fetch_prefetched(
        &self,
        deadline: Deadline,
        next: &Mutex<Option<PageRequest>>,
    ) -> Option<Fetched> {
        let (prefetch_deadline, bodies, decoding) = {
            let position = self.position.lock();
            let request = position.prefetched.as_ref()?;
            (request.deadline, request.bodies.clone(), position.chain.decoding())
        };
        let clock = self.client.time().clock();
        let fetch = async {
            tokio::select! {
                biased;
                fetched = poll_fn(|context| self.poll_prefetched(context)) => fetched,
                never = bodies.decode(|body| self.decode(&decoding, body, deadline, next)) => {
                    match never {}
                }
            }
        };
        let bound = if prefetch_deadline == deadline { Deadline::NEVER } else { deadline };
        let fetched = bound.bound(clock, pin!(fetch)).await;
        let out_of_time = |error: &Error| error.kind() == Kind::DeadlineExceeded;
        let has_passed = deadline.remaining(clock) == Some(Duration::ZERO);
        if prefetch_deadline.is_before(deadline)
            && fetched.as_ref().is_err_and(out_of_time)
            && !has_passed
        {
            *next.lock() = None;
            self.position.lock().prefetched = None;
            return None;
        }
        Some(fetched)
    }

    fn poll_prefetched(&self, context: &mut Context<'_>) -> Poll<Fetched> {
        let mut position = self.position.lock();
        let request = position.prefetched.as_mut();
        request.map_or_else(|| Poll::Ready(Err(lost())), |request| request.poll(context))
    }

    /// Decodes a page. If the prefetch mode allows it, first requests the page after it, whose
    /// cursor is at an edge of a large body. The decoder finds the same cursor in a valid page.
    async fn decode(
        &self,
        decoding: &Decoding,
        body: Bytes,
        deadline: Deadline,
        next: &Mutex<Option<PageRequest>>,
    ) -> Result<Decoded> {
        let may_prefetch =
            self.prefetch == Prefetch::AtCursor && body.len() >= LARGE && next.lock().is_none();
        if may_prefetch && let Some(cursor) = decoding.cursor_at_an_edge(&body) {
            *next.lock() = self.prefetch_after_next(cursor, deadline);
            // Other worker threads do not steal the newest task of this thread, which is about to
            // decode. Yielding lets the task start.
            tokio::task::yield_now().await;
        }
        decoding.decode(&body)
    }

    /// Requests the page after the next one, if the chain needs it.
    fn prefetch_after_next(&self, cursor: Cursor, deadline: Deadline) -> Option<PageRequest> {
        if self.together.is_ending.load(Ordering::SeqCst) {
            return None;
        }
        let call = {
            let chain = &self.position.lock().chain;
            self.call(chain, chain.wire_after_next(&cursor)?, deadline)
        };
        PageRequest::start(call, cursor, self.prefetch)
    }

    fn call(&self, chain: &Chain, wire: String, deadline: Deadline) -> PageCall {
        PageCall::new(&self.client, &self.spending, chain, wire, deadline)
    }

    /// Advances the chain, and stores the page and the request for the next one.
    fn receive(&self, fetched: Fetched, next: Option<PageRequest>) -> Result<()> {
        let requests = self.spending.requests.load(Ordering::Relaxed);
        // Reads the ledger before the chain advances, so its failure cannot lose the page.
        let allowance_left = self.client.allowance_left();
        let position = &mut *self.position.lock();
        position.prefetched = None;
        let page = position.chain.accept(fetched)?;
        self.client.seen().learn(&page.points.series);
        let progress = position.meter.count(&page, requests, allowance_left);
        if page.is_last && position.chain.is_alone() && self.provenance.resumed_after_pages == 0 {
            let (pages, points) = (progress.pages, progress.points);
            self.client.densities().learn(
                &self.provenance.query,
                pages,
                points,
                page.report.points,
            );
        }
        position.prefetched = next.filter(|request| request.is_next_of(&position.chain));
        position.unread = Some(Unread { page, progress, is_reported: false });
        Ok(())
    }

    fn failure(&self, error: Error) -> ReadFailure {
        // In a forked child the chain belongs to the parent.
        let is_own = self.check_process().is_ok();
        let bookmark = if is_own { self.position.lock().chain.bookmark() } else { None };
        ReadFailure { error, bookmark, partial: None }
    }
}

/// If the last waiting caller is cancelled, the prefetch is dropped.
struct Waiter {
    stream: Arc<PageStream>,
    is_finished: bool,
}

impl Drop for Waiter {
    fn drop(&mut self) {
        self.stream.waiting.fetch_sub(1, Ordering::SeqCst);
        if !self.is_finished && self.stream.check_process().is_ok() {
            self.stream.stop_prefetch();
        }
    }
}
