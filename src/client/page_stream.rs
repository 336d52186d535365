//! [`PageStream`]: the pages of one chain (§4.4), in order, each given once, whoever asks. The one
//! place where a page is read before it is wanted.
//!
//! At most one page is prefetched: asked for as a background task, whose outcome waits in one slot
//! until that page is wanted. Reads differ in what starts it, see [`Prefetch`]. The chain goes on where
//! a page is received, never in a task: a request that is given up, or whose page is refused, leaves
//! the chain where it was.
//!
//! A slot for one request, not a channel that one task for each chain sends to: those who share a read
//! have deadlines and log buffers of their own, a small page is decoded by the thread that waits for it,
//! and at the end of the process, where no task is started any more, every page is read in place.

use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, MutexGuard};
use std::task::Poll;
use std::time::Duration;

use tokio::sync::{Mutex as AsyncMutex, oneshot};

use super::page_request::{Fetched, PageCall, PageRequest, Prefetch};
use super::progress::{Meter, Progress};
use super::send::Client;
use super::settings::ReadSettings;
use super::spending::Spending;
use super::table::{Provenance, ReadFailure};
use crate::data::{Bookmark, Chain, Cursor, Decoding, Page, PagingState};
use crate::error::{Error, Kind, Result};
use crate::http::Deadline;
use crate::lock::Mutex;

/// So many pages are taken before one is prefetched.
const PREFETCH_FROM: u64 = 2;

/// The pages of one chain. Shared by whoever asks.
///
/// Reading a page and taking it are two steps, so that a page which was read for somebody who gave up
/// is there for the next one, and can be reported before it is given.
pub struct PageStream {
    client: Client,
    prefetch: Prefetch,
    keep_raw: bool,
    /// When the read is to be over, where whoever asks has no deadline of its own.
    deadline: Deadline,
    spending: Arc<Spending>,
    provenance: Provenance,
    /// The process that follows the chain.
    process: u32,
    /// How many wait for the next page.
    waiting: AtomicUsize,
    /// Held by the one of them that reads it.
    reading: AsyncMutex<()>,
    position: Mutex<Position>,
}

/// Where the stream stands. Locked for moments only.
struct Position {
    chain: Chain,
    meter: Meter,
    /// The next page, where it was asked for already.
    prefetched: Option<PageRequest>,
    /// The page that was read last, until it is taken.
    unread: Option<Unread>,
    /// Pages that were taken, and how many had been when one was last prefetched.
    taken: u64,
    prefetched_after: u64,
}

struct Unread {
    page: Page,
    progress: Progress,
    is_reported: bool,
}

impl Position {
    fn may_prefetch(&self) -> bool {
        self.prefetched.is_none()
            && self.unread.is_none()
            && self.taken >= PREFETCH_FROM
            && self.taken > self.prefetched_after
    }
}

impl PageStream {
    pub(super) fn new(
        client: Client,
        prefetch: Prefetch,
        settings: &ReadSettings,
        chain: Chain,
        provenance: Provenance,
    ) -> Arc<Self> {
        let position = Position {
            chain: chain.keep_raw(settings.keep_raw),
            meter: Meter::new(&provenance.query),
            prefetched: None,
            unread: None,
            taken: 0,
            prefetched_after: 0,
        };
        Arc::new(Self {
            deadline: Deadline::after(client.time().clock(), settings.deadline),
            client,
            prefetch,
            keep_raw: settings.keep_raw,
            spending: Arc::default(),
            provenance,
            process: std::process::id(),
            waiting: AtomicUsize::new(0),
            reading: AsyncMutex::new(()),
            position: Mutex::new(position),
        })
    }

    /// The next page, and how far it has brought the read; `None` after the last one. Dropped half
    /// way, it loses no page.
    ///
    /// # Errors
    /// As [`PageStream::fill`].
    pub async fn next(
        self: &Arc<Self>,
        deadline: Deadline,
    ) -> Result<Option<(Page, Progress)>, ReadFailure> {
        loop {
            self.fill_until(deadline).await?;
            if let Poll::Ready(next) = self.take_if(|_| true) {
                return Ok(next.map(|unread| (unread.page, unread.progress)));
            }
        }
    }

    /// Reads the next page, within the stream's deadline, unless one is there to be taken or the chain
    /// has ended. Counts as waiting from this call on. Dropped half way, it leaves the chain where it
    /// was; the last one who waits drops what is prefetched too, unless its page is here.
    ///
    /// # Errors
    /// [`ReadFailure`] with a bookmark; the chain stays where it was. `ForkError` in a forked child:
    /// the chain belongs to the parent.
    pub fn fill(
        self: &Arc<Self>,
    ) -> impl Future<Output = Result<(), ReadFailure>> + Send + 'static + use<> {
        self.fill_until(self.deadline)
    }

    fn fill_until(
        self: &Arc<Self>,
        deadline: Deadline,
    ) -> impl Future<Output = Result<(), ReadFailure>> + Send + 'static + use<> {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let waiter = Waiter { stream: Arc::clone(self), is_over: false };
        async move {
            let mut waiter = waiter;
            let read = waiter.stream.read(deadline).await;
            waiter.is_over = true;
            read.map_err(|error| waiter.stream.failure(error))
        }
    }

    /// As [`PageStream::fill`] where the prefetched page is here: without waiting. `None` where it is
    /// not.
    ///
    /// # Errors
    /// As [`PageStream::fill`].
    pub fn fill_at_once(&self) -> Option<Result<(), ReadFailure>> {
        self.check_process().ok()?;
        let _reading = self.reading.try_lock().ok()?;
        let fetched = self.position().prefetched.as_ref()?.finished()?;
        Some(self.receive(fetched, None).map_err(|error| self.failure(error)))
    }

    /// Whether [`PageStream::fill_at_once`] finds a page. Never in a forked child.
    pub fn is_here(&self) -> bool {
        self.check_process().is_ok()
            && self.position().prefetched.as_ref().is_some_and(PageRequest::is_finished)
    }

    /// Whether [`PageStream::prefetch`] would ask for a page.
    pub fn may_prefetch(&self) -> bool {
        self.prefetch == Prefetch::AfterTake
            && self.check_process().is_ok()
            && self.position().may_prefetch()
    }

    /// After a page was taken: asks for the next one, before anybody wants it. Not after the first
    /// page, nor the last; and not while somebody waits, who asks for it. Called within the runtime.
    pub fn prefetch(&self) {
        let Ok(_reading) = self.reading.try_lock() else { return };
        if !self.may_prefetch() {
            return;
        }
        let (wire, decoding, cursor) = {
            let position = &mut *self.position();
            position.prefetched_after = position.taken;
            let chain = &position.chain;
            // An error is for whoever asks for that page.
            let (PagingState::Next(cursor), Ok(Some(wire))) = (chain.state(), chain.wire()) else {
                return;
            };
            (wire, chain.decoding(), cursor.clone())
        };
        let request =
            PageRequest::start(self.call(wire, decoding, self.deadline), cursor, self.prefetch);
        self.position().prefetched = request;
    }

    /// Drops what is prefetched, and its connection, unless its page is here.
    pub fn stop_prefetch(&self) {
        drop(self.position().prefetched.take_if(|request| !request.has_arrived()));
    }

    /// Whether the next page was asked for already.
    pub(super) fn has_prefetched(&self) -> bool {
        self.position().prefetched.is_some()
    }

    /// The page that was read last, where [`PageStream::pending`] has given its progress; `None` after
    /// the last page; `Pending` where [`PageStream::fill`] is to be called first. Does not wait.
    pub fn take(&self) -> Poll<Option<Page>> {
        self.take_if(|unread| unread.is_reported).map(|unread| unread.map(|unread| unread.page))
    }

    fn take_if(&self, may: impl FnOnce(&Unread) -> bool) -> Poll<Option<Unread>> {
        if self.check_process().is_err() {
            return Poll::Pending;
        }
        let position = &mut *self.position();
        if let Some(unread) = position.unread.take_if(|unread| may(unread)) {
            position.taken += 1;
            return Poll::Ready(Some(unread));
        }
        if position.unread.is_none() && position.chain.is_done() {
            return Poll::Ready(None);
        }
        Poll::Pending
    }

    /// How far the page that was read last has brought the read: once for each page, for the first who
    /// asks. Never in a forked child, which gets no page.
    pub fn pending(&self) -> Option<Progress> {
        self.check_process().ok()?;
        let position = &mut *self.position();
        let unread = position.unread.as_mut().filter(|unread| !unread.is_reported)?;
        unread.is_reported = true;
        Some(unread.progress)
    }

    /// Whether [`PageStream::pending`] would give it. Never in a forked child.
    pub fn has_pending(&self) -> bool {
        self.check_process().is_ok()
            && self.position().unread.as_ref().is_some_and(|unread| !unread.is_reported)
    }

    /// Whether this process follows the chain: two that did would ask for the same pages.
    ///
    /// # Errors
    /// `ForkError` in a forked child.
    pub fn check_process(&self) -> Result<()> {
        if self.process == std::process::id() {
            return Ok(());
        }
        let message = "this iterator was begun by the parent, before the process forked";
        let hint = "begin a new one in the child: scan.pages(), scan.records()";
        Err(Error::new(Kind::ForkError, message).with_hint(hint))
    }

    /// Where the chain goes on. `None` before the first page and after the last one.
    pub(super) fn bookmark(&self) -> Option<Bookmark> {
        self.position().chain.bookmark()
    }

    /// Whether the last page was read.
    pub(super) fn is_done(&self) -> bool {
        self.position().chain.is_done()
    }

    /// Where the pages come from.
    #[must_use]
    pub fn provenance(&self) -> &Provenance {
        &self.provenance
    }

    async fn read(&self, deadline: Deadline) -> Result<()> {
        self.check_process()?;
        let _reading = self.reading.lock().await;
        if self.position().unread.is_some() {
            return Ok(());
        }
        let mut next = None;
        if let Some(fetched) = self.fetch_prefetched(deadline, &mut next).await {
            return self.receive(fetched, next);
        }
        let (wire, decoding) = {
            let chain = &self.position().chain;
            (chain.wire(), chain.decoding())
        };
        let fetched = match wire {
            Ok(Some(wire)) => {
                let (edge, cursor) = oneshot::channel();
                let fetch = self.call(wire, decoding, deadline).fetch(edge, None);
                self.fetch(fetch, cursor, deadline, &mut next).await
            }
            Ok(None) => return Ok(()),
            Err(error) => Err(error),
        };
        self.receive(fetched, next)
    }

    /// Waits for the page that was asked for already. Whoever wants it now has a deadline of its own:
    /// `None` where there is no such page, or only the one who asked for it is out of time.
    async fn fetch_prefetched(
        &self,
        deadline: Deadline,
        next: &mut Option<PageRequest>,
    ) -> Option<Fetched> {
        let (theirs, cursor, outcome) = {
            let mut position = self.position();
            let request = position.prefetched.as_mut()?;
            (request.deadline(), request.take_edge(), request.outcome())
        };
        let clock = self.client.time().clock();
        let fetch = self.fetch(outcome, cursor, deadline, next);
        let fetched =
            if theirs == deadline { fetch.await } else { deadline.bound(clock, fetch).await };
        let out_of_time = |error: &Error| error.kind() == Kind::DeadlineExceeded;
        let is_over = deadline.left(clock) == Some(Duration::ZERO);
        if theirs.is_before(deadline) && fetched.as_ref().is_err_and(out_of_time) && !is_over {
            *next = None;
            self.position().prefetched = None;
            return None;
        }
        Some(fetched)
    }

    /// Waits for a page. As soon as its cursor is seen, the page after it is asked for, where that is
    /// to be prefetched: `next`.
    async fn fetch(
        &self,
        fetch: impl Future<Output = Fetched>,
        cursor: oneshot::Receiver<Cursor>,
        deadline: Deadline,
        next: &mut Option<PageRequest>,
    ) -> Fetched {
        if self.prefetch == Prefetch::AfterTake {
            drop(cursor);
            return fetch.await;
        }
        let mut fetch = pin!(fetch);
        tokio::select! {
            biased;
            Ok(cursor) = cursor => {
                *next = self.ask_after(cursor, deadline);
                // The task that was started last is left to no other worker than this one, which may
                // be about to decode.
                tokio::task::yield_now().await;
            }
            fetched = &mut fetch => return fetched,
        }
        fetch.await
    }

    /// Asks for the page after the next one, where the chain will ask for it.
    fn ask_after(&self, cursor: Cursor, deadline: Deadline) -> Option<PageRequest> {
        let (wire, decoding) = {
            let chain = &self.position().chain;
            (chain.wire_after_next(&cursor)?, chain.decoding())
        };
        PageRequest::start(self.call(wire, decoding, deadline), cursor, self.prefetch)
    }

    fn call(&self, wire: String, decoding: Decoding, deadline: Deadline) -> PageCall {
        let (client, spending) = (self.client.clone(), Arc::clone(&self.spending));
        PageCall { client, spending, deadline, wire, decoding, keep_raw: self.keep_raw }
    }

    /// Goes on by what was fetched: keeps the page, until it is taken, and what was asked for after it.
    fn receive(&self, fetched: Fetched, next: Option<PageRequest>) -> Result<()> {
        let requests = self.spending.requests.load(Ordering::Relaxed);
        // A page that is here and paid for is not lost to a ledger that fails now.
        let allowance_left = self.client.allowance().ok().and_then(|state| state.left);
        let position = &mut *self.position();
        position.prefetched = None;
        let page = position.chain.take(fetched)?;
        let progress = position.meter.count(&page, requests, allowance_left);
        if page.is_last && self.provenance.resumed_after_pages == 0 {
            let (pages, points) = (progress.pages, progress.points);
            self.client.learn(&self.provenance.query, pages, points, page.rows() as u64);
        }
        position.prefetched = next.filter(|request| request.is_next_of(&position.chain));
        position.unread = Some(Unread { page, progress, is_reported: false });
        Ok(())
    }

    fn failure(&self, error: Error) -> ReadFailure {
        // In a forked child the chain is the parent's.
        let bookmark = self.check_process().ok().and_then(|()| self.bookmark());
        ReadFailure { error, bookmark, partial: None }
    }

    fn position(&self) -> MutexGuard<'_, Position> {
        self.position.lock()
    }
}

impl std::fmt::Debug for PageStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PageStream({}, {:?})", self.provenance.query, self.prefetch)
    }
}

/// Somebody waits for the next page. Dropped before that is here, the last one who waits drops what is
/// prefetched too.
struct Waiter {
    stream: Arc<PageStream>,
    is_over: bool,
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let others = self.stream.waiting.fetch_sub(1, Ordering::SeqCst) > 1;
        if !self.is_over && !others && self.stream.check_process().is_ok() {
            self.stream.stop_prefetch();
        }
    }
}

#[cfg(test)]
impl PageStream {
    /// Whether the prefetched page is here, decoded or not.
    pub(super) fn has_arrived(&self) -> bool {
        self.position().prefetched.as_ref().is_some_and(PageRequest::has_arrived)
    }

    /// What a fork leaves: the same chain in another process.
    pub(super) fn inherit(self: &mut Arc<Self>) {
        Arc::get_mut(self).expect("nobody shares it").process = 0;
    }
}
