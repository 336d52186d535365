//! Reads a scan once for all callers, and caches the complete table. After an error or interrupt, the
//! next call resumes with the kept pages.

use std::sync::{Arc, OnceLock};

use futures_util::future::BoxFuture;

use super::chains::ReadChains;
use super::page_request::Prefetch;
use super::page_stream::PageStream;
use super::progress::Progress;
use super::scan::Scan;
use super::table::{Provenance, ReadFailure, Table};
use crate::data::{Bookmark, Merger, Page, ends_chain};
use crate::error::{Error, Kind, Result};
use crate::fork::Owned;
use crate::http::Deadline;
use crate::lock::Mutex;

/// Concurrent callers share one read, page by page. After a failure or a cancelled caller, the
/// pages read so far are kept, because they are already counted in the allowance. The next caller
/// continues with the same cursor, or restarts if that cursor cannot be used again
/// ([`ends_chain`]).
pub struct CollectOnce {
    scan: Scan,
    /// Reads the scan, unless one chain does.
    reader: Option<Arc<dyn WholeRead>>,
    table: OnceLock<Arc<Table>>,
    /// A forked child has its own, because a fork may leave the locks locked.
    reading: Owned<ActiveRead>,
}

pub trait WholeRead: Send + Sync {
    /// Like [`CollectOnce::step`], with one caller at a time.
    fn step(&self, deadline: Deadline, pace: Pace) -> BoxFuture<'_, Result<Step, ReadFailure>>;

    /// Drops the requests in progress after a caller's last step. Called within the runtime.
    fn pause(&self);

    /// The pages read so far, if another process can continue from them.
    fn partial(&self) -> Result<Partial> {
        Ok(Partial::default())
    }

    fn kept(&self) -> (u64, u64) {
        let each = self.chains().into_iter().map(|chain| chain.kept());
        each.fold((0, 0), |(pages, points), (more, other)| (pages + more, points + other))
    }

    fn head(&self, _count: usize) -> Result<Option<Arc<Table>>> {
        Ok(None)
    }

    fn chains(&self) -> Vec<Arc<CollectOnce>> {
        Vec::new()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// As many chains as the settings allow.
    All,
    /// Only the first incomplete chain.
    First,
}

#[derive(Debug)]
pub enum Step {
    Page(Progress),
    Whole(Arc<Table>),
}

#[derive(Debug, Clone, Default)]
pub struct Partial {
    /// `None` if nothing or everything was read.
    pub bookmark: Option<Bookmark>,
    pub table: Option<Arc<Table>>,
}

#[derive(Default)]
pub(super) struct ActiveRead {
    /// Locked during a step.
    pub(super) stream: tokio::sync::Mutex<Option<Arc<PageStream>>>,
    /// Locked only briefly, so that a caller can get the pages during a step.
    kept: Mutex<Option<Kept>>,
}

#[derive(Debug, Clone)]
struct Kept {
    /// Shared with a caller that builds a table from it outside the lock.
    merger: Arc<Merger>,
    provenance: Provenance,
    bookmark: Option<Bookmark>,
    is_done: bool,
}

impl CollectOnce {
    #[must_use]
    pub fn new(scan: Scan) -> Self {
        let is_wide = scan.chains().len() > 1;
        let reader = is_wide.then(|| Arc::new(ReadChains::new(&scan)) as Arc<dyn WholeRead>);
        Self { scan, reader, table: OnceLock::new(), reading: Owned::empty() }
    }

    #[must_use]
    pub fn read_by(self, reader: Arc<dyn WholeRead>) -> Self {
        Self { reader: Some(reader), ..self }
    }

    pub fn scan(&self) -> &Scan {
        &self.scan
    }

    /// Does not wait for a step in progress.
    pub fn complete(&self) -> Option<&Arc<Table>> {
        self.table.get()
    }

    pub async fn table(&self) -> Result<Arc<Table>, ReadFailure> {
        let deadline = self.scan.deadline();
        loop {
            if let Step::Whole(table) = self.step(deadline).await? {
                return Ok(table);
            }
        }
    }

    /// Reads and merges the next page, or returns the complete table. Cancelling a step loses no
    /// page. After a [`ReadFailure`] the next step continues, or restarts if [`ends_chain`].
    pub async fn step(&self, deadline: Deadline) -> Result<Step, ReadFailure> {
        self.paced_step(deadline, Pace::All).await
    }

    /// Like [`CollectOnce::step`], for as many chains as `chains` allows.
    pub async fn paced_step(&self, deadline: Deadline, chains: Pace) -> Result<Step, ReadFailure> {
        let ActiveRead { stream, kept } = self.reading();
        let mut slot = stream.lock().await;
        if let Some(table) = self.complete() {
            return Ok(Step::Whole(Arc::clone(table)));
        }
        if let Some(reader) = &self.reader {
            return Ok(match reader.step(deadline, chains).await? {
                Step::Whole(table) => Step::Whole(Arc::clone(self.table.get_or_init(|| table))),
                step @ Step::Page(_) => {
                    self.scan.count_page();
                    step
                }
            });
        }
        let stream = if let Some(stream) = &*slot {
            Arc::clone(stream)
        } else {
            let (stream, begun) = Kept::begin(&self.scan)?;
            *kept.lock() = Some(begun);
            Arc::clone(slot.insert(stream))
        };
        let end = |slot: &mut Option<Arc<PageStream>>| {
            *slot = None;
            kept.lock().take()
        };
        match stream.next(deadline).await {
            Ok(Some((page, progress))) => {
                let pushed = kept.lock().as_mut().map_or(Ok(()), |kept| kept.push(&page));
                self.scan.count_page();
                // The page was taken, so a read that continued after it would have a gap.
                pushed.inspect_err(|_| drop(end(&mut slot)))?;
                Ok(Step::Page(progress))
            }
            Ok(None) => {
                let table = end(&mut slot).map(Kept::finish).transpose()?;
                let lost = || Error::new(Kind::InternalError, "the pages of a read are lost");
                let table = Arc::new(table.ok_or_else(lost)?);
                Ok(Step::Whole(Arc::clone(self.table.get_or_init(|| table))))
            }
            Err(mut failure) => {
                if failure.bookmark.is_some() {
                    failure.partial = self.partial()?.table;
                }
                match failure.error.kind() {
                    Kind::PageLimitReached => stream.renew_limit(),
                    _ if ends_chain(&failure.error) => drop(end(&mut slot)),
                    _ => {}
                }
                Err(failure)
            }
        }
    }

    /// Stops the prefetch after a caller's last step, unless another caller is in a step. Called
    /// within the runtime.
    pub fn stop_prefetch(&self) {
        if let Ok(slot) = self.reading().stream.try_lock() {
            if let Some(stream) = &*slot {
                stream.stop_prefetch();
            }
            if let Some(reader) = &self.reader {
                reader.pause();
            }
        }
    }

    pub(super) fn has_prefetched(&self) -> bool {
        let slot = self.reading().stream.try_lock();
        slot.is_ok_and(|slot| slot.as_ref().is_some_and(|stream| stream.has_prefetched()))
    }

    /// Whether the next step counts for `max_pages`. The last one only merges.
    pub(super) fn needs_page(&self) -> bool {
        let has_all = || self.reading().kept.lock().as_ref().is_some_and(|kept| kept.is_done);
        self.reader.is_none() && self.complete().is_none() && !has_all()
    }

    pub fn partial(&self) -> Result<Partial> {
        if let Some(table) = self.complete().cloned() {
            return Ok(Partial { bookmark: None, table: Some(table) });
        }
        if let Some(reader) = &self.reader {
            return reader.partial();
        }
        // Not locked while the pages are merged.
        let kept = self.reading().kept.lock().clone();
        if let Some(kept) = kept {
            return kept.partial();
        }
        let (bookmark, table) = (self.scan.bookmark().cloned(), self.scan.onto.clone());
        Ok(Partial { bookmark, table })
    }

    /// Pages, and their points with repeats.
    pub fn kept(&self) -> (u64, u64) {
        let of = |table: &Table| (table.merged.report.pages, table.merged.report.points_read);
        if let Some(table) = self.complete() {
            return of(table);
        }
        let onto = self.scan.onto.as_ref().map_or((0, 0), |onto| of(onto));
        if let Some(reader) = &self.reader {
            let (pages, points) = reader.kept();
            return (pages + onto.0, points + onto.1);
        }
        let reading = self.reading();
        let kept = reading.kept.lock();
        let report = kept.as_ref().map(|kept| &kept.merger.report);
        report.map_or(onto, |report| (report.pages, report.points_read))
    }

    /// The first `count` points in order of arrival, with repeats, or all points of a complete
    /// read. `None` if fewer have been read.
    pub fn head(&self, count: usize) -> Result<Option<Arc<Table>>> {
        if let Some(table) = self.complete() {
            return Ok(Some(Arc::clone(table)));
        }
        if let Some(reader) = &self.reader {
            return reader.head(count);
        }
        let kept = self.reading().kept.lock().clone();
        kept.map_or(Ok(None), |kept| kept.head(count))
    }

    /// The pages left, if the complete chain has `expected`: zero if the table is complete,
    /// otherwise at least one.
    pub(crate) fn pages_left(&self, expected: Option<u64>) -> Option<u64> {
        if self.complete().is_some() {
            return Some(0);
        }
        let read = match &*self.reading().kept.lock() {
            Some(kept) if kept.is_done => return Some(0),
            Some(kept) => kept.merger.report.pages + kept.provenance.resumed_after_pages,
            None => self.scan.resumed_after_pages(),
        };
        expected.map(|pages| pages.saturating_sub(read).max(1))
    }

    /// The incomplete chains. Empty if there is only one chain.
    pub(crate) fn chains(&self) -> Vec<Arc<Self>> {
        self.reader.as_ref().map(|reader| reader.chains()).unwrap_or_default()
    }

    pub(super) fn reading(&self) -> &ActiveRead {
        self.reading.get_or_init(ActiveRead::default)
    }
}

impl Kept {
    fn begin(scan: &Scan) -> Result<(Arc<PageStream>, Self)> {
        // Another chain may need the last page of a limit.
        let is_shared = scan.pages_left.is_some();
        let prefetch = if is_shared { Prefetch::AfterTake } else { Prefetch::AtCursor };
        let stream = scan.stream(prefetch)?;
        let mut provenance = stream.provenance().clone();
        let mut merger = Merger::new(&scan.decode_settings().extra_columns);
        if let Some(onto) = &scan.onto {
            merger.push_merged(&onto.merged)?;
            provenance.read_at = onto.provenance.read_at;
            provenance.resumed_after_pages = onto.provenance.resumed_after_pages;
        }
        let (merger, bookmark) = (Arc::new(merger), scan.bookmark().cloned());
        Ok((stream, Self { merger, provenance, bookmark, is_done: false }))
    }

    fn push(&mut self, page: &Page) -> Result<()> {
        Arc::make_mut(&mut self.merger).push(page)?;
        self.bookmark.clone_from(&page.bookmark);
        self.is_done = page.is_last;
        Ok(())
    }

    fn partial(self) -> Result<Partial> {
        let bookmark = self.bookmark.clone();
        if self.merger.report.pages == 0 {
            return Ok(Partial { bookmark, table: None });
        }
        let stopped_at = bookmark.as_ref().map(Bookmark::digest);
        let table = Table { stopped_at, is_partial: true, ..self.finish()? };
        Ok(Partial { bookmark, table: Some(Arc::new(table)) })
    }

    fn head(self, count: usize) -> Result<Option<Arc<Table>>> {
        if self.merger.rows() < count && !self.is_done {
            return Ok(None);
        }
        let provenance = Provenance { pages: self.merger.report.pages, ..self.provenance };
        let table = Table::whole(Arc::unwrap_or_clone(self.merger).first(count)?, provenance);
        Ok(Some(Arc::new(Table { is_partial: true, ..table })))
    }

    fn finish(self) -> Result<Table> {
        let merger = Arc::unwrap_or_clone(self.merger);
        let provenance = Provenance { pages: merger.report.pages, ..self.provenance };
        Ok(Table::whole(merger.finish()?, provenance))
    }
}
