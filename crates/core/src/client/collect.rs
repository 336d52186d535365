//! [`CollectOnce`]: the complete table of a scan, read once for all callers and remembered.

use std::fmt::Debug;
use std::sync::{Arc, OnceLock};

use futures_util::future::BoxFuture;

use super::page_request::Prefetch;
use super::page_stream::PageStream;
use super::progress::Progress;
use super::scan::Scan;
use super::table::{Provenance, ReadFailure, Table, Unfinished};
use crate::data::{Bookmark, Merger, ends_chain};
use crate::error::{Kind, Result};
use crate::http::Deadline;
use crate::lock::Mutex;

/// The complete table of a scan. Concurrent callers share one read, page by page. A failure is not
/// remembered. If all callers give up, or a request fails, the read keeps its pages, which are already
/// counted in the allowance, and the next caller continues it with the same cursor. Only where that
/// cursor cannot be used again does the next caller restart it ([`ends_chain`]).
#[derive(Debug)]
pub struct CollectOnce {
    scan: Scan,
    /// What reads it, if that is not one chain.
    reader: Option<Arc<dyn WholeRead>>,
    /// The complete table, once it has been read.
    table: OnceLock<Arc<Table>>,
    slot: Mutex<Slot>,
}

/// Reads the whole of a scan, step by step, in another way than by one chain.
pub trait WholeRead: Debug + Send + Sync {
    /// As [`CollectOnce::step`]; it is called by one caller at a time. Where it is dropped, or fails, the
    /// next step goes on with what was read.
    ///
    /// # Errors
    /// [`ReadFailure`].
    fn step(&self, deadline: Deadline) -> BoxFuture<'_, Result<Step, ReadFailure>>;

    /// After a caller's last step: drops what is under way. Called within the runtime.
    fn pause(&self);
}

/// The result of a step.
#[derive(Debug)]
pub enum Step {
    /// A page was read and merged.
    Page(Progress),
    /// There is no other page: the complete table.
    Whole(Arc<Table>),
}

/// The part of a scan that has been read so far.
#[derive(Debug, Clone, Default)]
pub struct Partial {
    /// The position from which to continue; `None` if nothing or everything was read.
    pub bookmark: Option<Bookmark>,
    /// The merged table of the pages read.
    pub table: Option<Arc<Table>>,
    /// Whether the table is complete.
    pub is_whole: bool,
    /// Whether `max_pages` ended the read: only a resumed scan continues it.
    pub at_limit: bool,
}

/// One for each process, because a fork may leave the lock locked.
#[derive(Debug)]
struct Slot {
    process: u32,
    /// Locked during a step.
    reading: Arc<tokio::sync::Mutex<Option<Reading>>>,
}

/// A read in progress.
#[derive(Debug)]
pub(super) struct Reading {
    stream: Arc<PageStream>,
    /// Shared with the partial tables of its failures, so that they need no copy.
    merger: Arc<Merger>,
    provenance: Provenance,
}

impl CollectOnce {
    /// Reads nothing yet.
    #[must_use]
    pub fn new(scan: Scan) -> Self {
        let slot = Slot { process: std::process::id(), reading: Arc::default() };
        Self { scan, reader: None, table: OnceLock::new(), slot: Mutex::new(slot) }
    }

    /// The same scan, read by this.
    #[must_use]
    pub fn read_by(self, reader: Arc<dyn WholeRead>) -> Self {
        Self { reader: Some(reader), ..self }
    }

    /// The scan.
    #[must_use]
    pub fn scan(&self) -> &Scan {
        &self.scan
    }

    /// The complete table if it has been read, also while another caller is in a step.
    #[must_use]
    pub fn complete(&self) -> Option<&Arc<Table>> {
        self.table.get()
    }

    /// The complete table: read now, or remembered.
    ///
    /// # Errors
    /// As [`CollectOnce::step`].
    pub async fn table(&self) -> Result<Arc<Table>, ReadFailure> {
        let deadline = self.scan.deadline();
        loop {
            if let Step::Whole(table) = self.step(deadline).await? {
                return Ok(table);
            }
        }
    }

    /// Reads and merges the next page, or returns the complete table and remembers it. Cancelling a
    /// step loses no page.
    ///
    /// # Errors
    /// [`ReadFailure`] with the error of the chain and the pages read before. The next step continues
    /// after those pages, or restarts the read if [`ends_chain`]. `BookmarkError` as in
    /// [`Scan::resume`].
    pub async fn step(&self, deadline: Deadline) -> Result<Step, ReadFailure> {
        let slot = self.reading();
        let mut slot = slot.lock().await;
        if let Some(table) = self.complete() {
            return Ok(Step::Whole(Arc::clone(table)));
        }
        if let Some(reader) = &self.reader {
            return Ok(match reader.step(deadline).await? {
                Step::Whole(table) => Step::Whole(Arc::clone(self.table.get_or_init(|| table))),
                page @ Step::Page(_) => page,
            });
        }
        let reading = match &mut *slot {
            Some(reading) => reading,
            empty => empty.insert(Reading::begin(&self.scan)?),
        };
        match reading.stream.next(deadline).await {
            Ok(Some((page, progress))) => match Arc::make_mut(&mut reading.merger).push(&page) {
                Ok(()) => Ok(Step::Page(progress)),
                Err(error) => {
                    // The page was taken: a read that continued after it would have a gap.
                    *slot = None;
                    Err(error.into())
                }
            },
            Ok(None) => {
                let table = reading.finish();
                *slot = None;
                let table = Arc::new(table?);
                Ok(Step::Whole(Arc::clone(self.table.get_or_init(|| table))))
            }
            Err(failure) => {
                let is_over = ends_chain(&failure.error);
                if failure.error.kind() == Kind::PageLimitReached {
                    reading.stream.renew_limit();
                }
                let failure = reading.failed(failure);
                if is_over {
                    *slot = None;
                }
                Err(failure?)
            }
        }
    }

    /// After a caller's last step: drops the request for the next page, unless another caller is in a
    /// step. Called within the runtime.
    pub fn stop_prefetch(&self) {
        if let Ok(slot) = self.reading().try_lock() {
            if let Some(reading) = &*slot {
                reading.stream.stop_prefetch();
            }
            if let Some(reader) = &self.reader {
                reader.pause();
            }
        }
    }

    /// Whether the page of the next step was already requested.
    pub(super) fn has_prefetched(&self) -> bool {
        self.reading()
            .try_lock()
            .is_ok_and(|slot| slot.as_ref().is_some_and(|reading| reading.stream.has_prefetched()))
    }

    /// The part that has been read so far; empty while another caller is in a step.
    ///
    /// # Errors
    /// As [`Merger::finish`].
    pub fn partial(&self) -> Result<Partial> {
        if let Some(table) = self.complete().cloned() {
            return Ok(Partial { is_whole: true, table: Some(table), ..Partial::default() });
        }
        let slot = self.reading();
        let Ok(slot) = slot.try_lock() else { return Ok(Partial::default()) };
        match &*slot {
            Some(reading) => reading.partial(),
            None => Ok(self.scan.beginning()),
        }
    }

    /// The first points in order of arrival, repeats included, if so many were read, or all; `None` before
    /// that, and after the table is complete.
    ///
    /// # Errors
    /// As [`Merger::finish`].
    pub fn head(&self, count: usize) -> Result<Option<Table>> {
        let slot = self.reading();
        let Ok(slot) = slot.try_lock() else { return Ok(None) };
        slot.as_ref().map_or(Ok(None), |reading| reading.head(count))
    }

    /// The number of pages still to read, if the complete chain is expected to have `expected` pages:
    /// zero if the table is remembered, else at least one.
    #[must_use]
    pub(crate) fn pages_left(&self, expected: Option<u64>) -> Option<u64> {
        if self.complete().is_some() {
            return Some(0);
        }
        let slot = self.reading();
        let read = match slot.try_lock().as_deref() {
            Ok(Some(reading)) if reading.stream.is_done() => return Some(0),
            Ok(Some(reading)) => reading.pages(),
            _ => self.scan.resumed_after_pages(),
        };
        expected.map(|pages| pages.saturating_sub(read).max(1))
    }

    fn reading(&self) -> Arc<tokio::sync::Mutex<Option<Reading>>> {
        let process = std::process::id();
        let mut slot = self.slot.lock();
        if slot.process != process {
            // The child keeps a complete table, but not the parent's read in progress.
            *slot = Slot { process, reading: Arc::default() };
        }
        Arc::clone(&slot.reading)
    }
}

impl Reading {
    /// Starts a read on a new chain. Sends no request yet.
    fn begin(scan: &Scan) -> Result<Self> {
        let stream = scan.stream(Prefetch::AtCursor)?;
        let mut provenance = stream.provenance().clone();
        let mut merger = Arc::new(Merger::new(&scan.decode_settings().extra_columns));
        if let Some(onto) = scan.onto()
            && let Some(before) = &onto.unfinished
        {
            merger = Arc::clone(&before.merger);
            provenance.read_at = onto.provenance.read_at;
            provenance.resumed_after_pages = onto.provenance.resumed_after_pages;
        }
        Ok(Self { stream, merger, provenance })
    }

    /// Adds the pages read before the failure.
    fn failed(&self, mut failure: ReadFailure) -> Result<ReadFailure> {
        if failure.bookmark.is_some() {
            failure.partial = self.partial()?.table;
        }
        Ok(failure)
    }

    /// The part read so far. The read continues.
    fn partial(&self) -> Result<Partial> {
        let bookmark = self.stream.bookmark();
        if self.merger.pages() == 0 {
            return Ok(Partial { bookmark, ..Partial::default() });
        }
        let merger = Arc::clone(&self.merger);
        let unfinished = bookmark.clone().map(|stopped_at| Unfinished { merger, stopped_at });
        let part = Self::table(Merger::clone(&self.merger), self.so_far())?;
        let table = Table { unfinished, is_partial: true, ..part };
        Ok(Partial { bookmark, table: Some(Arc::new(table)), ..Partial::default() })
    }

    fn head(&self, count: usize) -> Result<Option<Table>> {
        let is_enough = self.merger.rows() >= count || self.stream.is_done();
        let table = |merged| Table::restored(merged, self.so_far(), true);
        is_enough.then(|| self.merger.first(count).map(table)).transpose()
    }

    /// The complete table. Ends the read.
    fn finish(&mut self) -> Result<Table> {
        let provenance = self.so_far();
        let merger = std::mem::replace(&mut self.merger, Arc::new(Merger::new(&[])));
        Self::table(Arc::unwrap_or_clone(merger), provenance)
    }

    fn so_far(&self) -> Provenance {
        Provenance { pages: self.merger.pages(), ..self.provenance.clone() }
    }

    fn table(merger: Merger, provenance: Provenance) -> Result<Table> {
        Ok(Table { merged: merger.finish()?, unfinished: None, is_partial: false, provenance })
    }

    /// Pages read so far, including those before a resumption.
    fn pages(&self) -> u64 {
        self.merger.pages() + self.provenance.resumed_after_pages
    }
}

#[cfg(test)]
impl CollectOnce {
    /// Simulates a fork: returns the inherited lock, and sets another process id.
    pub(super) fn inherit(&self) -> Arc<tokio::sync::Mutex<Option<Reading>>> {
        let mut slot = self.slot.lock();
        slot.process = 0;
        Arc::clone(&slot.reading)
    }
}
