//! [`CollectOnce`]: the whole of a scan, read once and remembered, however many ask for it.

use std::sync::{Arc, Mutex, PoisonError};

use super::page_request::Prefetch;
use super::page_stream::PageStream;
use super::progress::Progress;
use super::scan::Scan;
use super::table::{Provenance, ReadFailure, Table, Unfinished};
use crate::data::{Bookmark, Merger};
use crate::error::Result;
use crate::http::Deadline;

/// The whole of a scan. Those who ask while it is being read take part in that read, page by page.
/// A failure is not remembered. A read that all who asked have given up stays where it is, and goes
/// on when somebody asks again: its pages are paid for.
#[derive(Debug)]
pub struct CollectOnce {
    scan: Scan,
    slot: Mutex<Slot>,
}

/// What a step gave.
#[derive(Debug)]
pub enum Step {
    /// One more page was read and merged.
    Page(Progress),
    /// There is no further page: the whole.
    Whole(Arc<Table>),
}

/// What has been read so far.
#[derive(Debug, Clone, Default)]
pub struct Partial {
    /// Where it goes on; `None` where nothing was read, and for what was read to its end.
    pub bookmark: Option<Bookmark>,
    /// What was read, merged.
    pub table: Option<Arc<Table>>,
    /// True where that is the whole, remembered.
    pub is_whole: bool,
    /// True where the read failed: what it had read is here only, and its [`CollectOnce`] begins anew.
    pub failed: bool,
}

/// One for each process, because a fork may leave the collect locked for ever.
#[derive(Debug)]
struct Slot {
    process: u32,
    collect: Arc<tokio::sync::Mutex<Collect>>,
}

/// Locked while a step is taken.
#[derive(Debug, Default)]
pub(super) struct Collect {
    reading: Option<Reading>,
    /// The whole, once it was read.
    table: Option<Arc<Table>>,
}

/// A whole that is being read, page by page.
#[derive(Debug)]
struct Reading {
    stream: Arc<PageStream>,
    merger: Merger,
    provenance: Provenance,
}

impl CollectOnce {
    /// Nothing is read yet.
    #[must_use]
    pub fn new(scan: Scan) -> Self {
        let slot = Slot { process: std::process::id(), collect: Arc::default() };
        Self { scan, slot: Mutex::new(slot) }
    }

    /// The scan whose whole it is.
    #[must_use]
    pub fn scan(&self) -> &Scan {
        &self.scan
    }

    /// The whole, merged: read now, or remembered.
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

    /// One step towards the whole: a page more, or the table, which is remembered. Dropped half way,
    /// it leaves the read where it was.
    ///
    /// # Errors
    /// [`ReadFailure`] with whatever ended the chain, and with what was read before; the next step
    /// begins anew. `BookmarkError` as in [`Scan::resume`].
    pub async fn step(&self, deadline: Deadline) -> Result<Step, ReadFailure> {
        let collect = self.collect();
        let mut collect = collect.lock().await;
        if let Some(table) = &collect.table {
            return Ok(Step::Whole(Arc::clone(table)));
        }
        let reading = match &mut collect.reading {
            Some(reading) => reading,
            none => none.insert(Reading::begin(&self.scan)?),
        };
        match reading.stream.next(deadline).await {
            Ok(Some((page, progress))) => {
                reading.merger.push(&page)?;
                Ok(Step::Page(progress))
            }
            Ok(None) => {
                let table = Arc::new(reading.finish(None)?);
                *collect = Collect { reading: None, table: Some(Arc::clone(&table)) };
                Ok(Step::Whole(table))
            }
            Err(failure) => {
                let failure = reading.failed(failure);
                collect.reading = None;
                Err(failure?)
            }
        }
    }

    /// After the last step that somebody takes: drops the request for the next page, unless another
    /// caller goes on with it.
    pub fn stop_prefetch(&self) {
        if let Ok(collect) = self.collect().try_lock()
            && let Some(reading) = &collect.reading
        {
            reading.stream.stop_prefetch();
        }
    }

    /// Whether the page that the next step takes was asked for already.
    pub(super) fn has_prefetched(&self) -> bool {
        self.collect().try_lock().is_ok_and(|collect| {
            collect.reading.as_ref().is_some_and(|reading| reading.stream.has_prefetched())
        })
    }

    /// What has been read so far. What another caller is reading just now is not seen.
    ///
    /// # Errors
    /// As [`Merger::finish`].
    pub fn partial(&self) -> Result<Partial> {
        let collect = self.collect();
        let Ok(collect) = collect.try_lock() else { return Ok(Partial::default()) };
        if let Some(reading) = &collect.reading {
            return reading.partial();
        }
        let table = collect.table.clone();
        Ok(Partial { is_whole: table.is_some(), table, ..Partial::default() })
    }

    /// Pages that are still to be read, where the whole chain is expected to have so many: none of
    /// what is remembered, and one at least of all else.
    #[must_use]
    pub fn pages_left(&self, expected: Option<u64>) -> Option<u64> {
        let collect = self.collect();
        let read = match collect.try_lock().as_deref() {
            Ok(Collect { table: Some(_), .. }) => return Some(0),
            Ok(Collect { reading: Some(reading), .. }) if reading.stream.is_done() => {
                return Some(0);
            }
            Ok(Collect { reading: Some(reading), .. }) => reading.pages(),
            _ => self.scan.resumed_after_pages(),
        };
        expected.map(|pages| pages.saturating_sub(read).max(1))
    }

    fn collect(&self) -> Arc<tokio::sync::Mutex<Collect>> {
        let process = std::process::id();
        let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        if slot.process != process {
            // What the parent had read is there; what it was reading, it reads for itself.
            let table = slot.collect.try_lock().ok().and_then(|collect| collect.table.clone());
            let known = Collect { reading: None, table };
            *slot = Slot { process, collect: Arc::new(tokio::sync::Mutex::new(known)) };
        }
        Arc::clone(&slot.collect)
    }
}

impl Reading {
    /// Begins to read the whole, on a new chain. Nothing is sent yet.
    fn begin(scan: &Scan) -> Result<Self> {
        let stream = scan.stream(Prefetch::AtCursor)?;
        let mut provenance = stream.provenance().clone();
        let mut merger = Merger::new(&scan.decode_settings().extra_columns);
        if let Some(onto) = scan.onto()
            && let Some(before) = &onto.unfinished
        {
            merger = before.merger.clone();
            provenance.read_at = onto.provenance.read_at;
            provenance.resumed_after_pages = onto.provenance.resumed_after_pages;
        }
        Ok(Self { stream, merger, provenance })
    }

    /// The failure, with what was read before it.
    fn failed(&mut self, mut failure: ReadFailure) -> Result<ReadFailure> {
        if self.merger.pages() > 0
            && let Some(stopped_at) = failure.bookmark.clone()
        {
            let unfinished = Unfinished { merger: self.merger.clone(), stopped_at };
            failure.partial = Some(Arc::new(self.finish(Some(unfinished))?));
        }
        Ok(failure)
    }

    /// How far it has come. The read stays as it is.
    fn partial(&self) -> Result<Partial> {
        let bookmark = self.stream.bookmark();
        if self.merger.pages() == 0 {
            return Ok(Partial { bookmark, ..Partial::default() });
        }
        let merger = self.merger.clone();
        let unfinished = bookmark.clone().map(|stopped_at| Unfinished { merger, stopped_at });
        let table = Self::table(self.merger.clone(), &self.provenance, unfinished)?;
        Ok(Partial { bookmark, table: Some(Arc::new(table)), ..Partial::default() })
    }

    /// What was read. The read is over.
    fn finish(&mut self, unfinished: Option<Unfinished>) -> Result<Table> {
        let merger = std::mem::replace(&mut self.merger, Merger::new(&[]));
        Self::table(merger, &self.provenance, unfinished)
    }

    fn table(
        merger: Merger,
        provenance: &Provenance,
        unfinished: Option<Unfinished>,
    ) -> Result<Table> {
        let provenance = Provenance { pages: merger.pages(), ..provenance.clone() };
        Ok(Table { merged: merger.finish()?, unfinished, provenance })
    }

    /// Pages that it has read, and of those before a resumption.
    fn pages(&self) -> u64 {
        self.merger.pages() + self.provenance.resumed_after_pages
    }
}

#[cfg(test)]
impl CollectOnce {
    /// What a fork leaves: a lock that may be held for ever, and another process number.
    pub(super) fn inherit(&self) -> Arc<tokio::sync::Mutex<Collect>> {
        let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        slot.process = 0;
        Arc::clone(&slot.collect)
    }
}
