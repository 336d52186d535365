//! A [`Scan`] is a recipe: a query, how to decode its pages, and where to begin. It makes no
//! request until it is read. [`Scan::pages`] starts a new chain each time; [`Scan::collect`] reads
//! one chain to its end and merges it (§4.4, §4.5.3).

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::Client;
use super::page_request::PageRequest;
use super::pages::Pages;
use super::progress::Progress;
use crate::data::{Bookmark, Chain, DecodeSettings, Merged, Merger, Query};
use crate::error::{Error, Kind, Result};
use crate::http::Deadline;

pub(crate) const ONTO_HINT: &str = "Give the .partial of the error that carried the bookmark.";

/// How a scan is read, besides its query.
#[derive(Debug, Clone, Default)]
pub struct ReadSettings {
    /// Stop with an error after so many pages of one chain; never quietly.
    pub max_pages: Option<u64>,
    /// Bounds one read from its first request to its last, waits and token exchange included.
    pub deadline: Option<Duration>,
    /// Keep each page's body as it came.
    pub keep_raw: bool,
}

/// A read that has not happened yet. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Scan {
    client: Client,
    query: Query,
    decode: Arc<DecodeSettings>,
    settings: ReadSettings,
    begin: Option<Bookmark>,
    onto: Option<Arc<Table>>,
}

/// What one whole read gave: every point once, by its highest version, in canonical order.
#[derive(Debug)]
pub struct Table {
    /// The points and what was merged on the way.
    pub merged: Merged,
    /// The pages themselves, where the read is to go on: [`Scan::resume`] merges onto them.
    pub(super) unfinished: Option<Unfinished>,
    /// Where the points come from.
    pub provenance: Provenance,
}

/// What a failed read had read, and where exactly it stopped: what follows fits nowhere else.
#[derive(Debug, Clone)]
pub(super) struct Unfinished {
    merger: Merger,
    stopped_at: Bookmark,
}

/// Where numbers come from.
#[derive(Debug, Clone)]
pub struct Provenance {
    /// The query, printable. Of several that were gathered: the first, or one over all of their
    /// range where they adjoin.
    pub query: Query,
    /// The queries after it, where several were gathered that do not adjoin.
    pub further: Vec<Query>,
    /// The service's host.
    pub host: String,
    /// The service's time when the read began.
    pub read_at: Timestamp,
    /// Pages read.
    pub pages: u64,
    /// Pages of the chain before these, whose points are not here: 0 for the whole. Other than 0
    /// where a read was resumed without what had been read.
    pub resumed_after_pages: u64,
}

/// A read that failed half way: why, where to go on, and what had been read and paid for.
#[derive(Debug)]
pub struct ReadFailure {
    /// Why.
    pub error: Error,
    /// Where [`Scan::resume`] goes on; `None` where nothing had been read.
    pub bookmark: Option<Bookmark>,
    /// What had been read, merged; `None` where it was handed out page by page.
    pub partial: Option<Table>,
}

impl From<Error> for ReadFailure {
    fn from(error: Error) -> Self {
        Self { error, bookmark: None, partial: None }
    }
}

impl Scan {
    /// A recipe for reading `query` through `client`.
    #[must_use]
    pub fn new(
        client: Client,
        query: Query,
        decode: DecodeSettings,
        settings: ReadSettings,
    ) -> Self {
        Self { client, query, decode: Arc::new(decode), settings, begin: None, onto: None }
    }

    /// The same scan of another query, from its start.
    pub(super) fn over(&self, query: Query) -> Result<Self> {
        let DecodeSettings { shape, extra_columns, .. } = (*self.decode).clone();
        let decode = DecodeSettings::for_query(&query, shape, extra_columns)?;
        Ok(Self::new(self.client.clone(), query, decode, self.settings.clone()))
    }

    /// The query, immutable.
    #[must_use]
    pub fn query(&self) -> &Query {
        &self.query
    }

    /// The client that reads it.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// How its pages are decoded.
    #[must_use]
    pub fn decode_settings(&self) -> &DecodeSettings {
        &self.decode
    }

    /// How it is read, besides its query.
    #[must_use]
    pub fn read_settings(&self) -> &ReadSettings {
        &self.settings
    }

    /// Where it begins, if not at the start.
    #[must_use]
    pub fn bookmark(&self) -> Option<&Bookmark> {
        self.begin.as_ref()
    }

    /// True where it goes on from what had been read.
    #[must_use]
    pub fn has_partial(&self) -> bool {
        self.onto.is_some()
    }

    /// The same scan going on from `bookmark`; `onto` is what had been read up to there, and is
    /// merged in by [`Scan::collect`]. Without it the result is the rest only, and says so in
    /// [`Provenance::resumed_after_pages`].
    ///
    /// # Errors
    /// `BookmarkError` if the bookmark belongs to another query, host or subject; `QueryError` if
    /// `onto` is not what the read had read that stopped at this bookmark: anything else would
    /// leave a gap, or bring in points of another query.
    pub fn resume(&self, bookmark: Bookmark, onto: Option<Arc<Table>>) -> Result<Self> {
        bookmark.check(&self.query, &self.client.origin())?;
        if let Some(table) = &onto {
            self.check_onto(table, &bookmark)?;
        }
        Ok(Self { begin: Some(bookmark), onto, ..self.clone() })
    }

    fn check_onto(&self, onto: &Table, bookmark: &Bookmark) -> Result<()> {
        let refused = |why: &str| Err(Error::new(Kind::Query, why).with_hint(ONTO_HINT));
        match &onto.unfinished {
            None => refused("onto= is a table that was read to its end."),
            Some(unfinished) if unfinished.stopped_at != *bookmark => {
                refused("onto= is not what had been read up to this bookmark.")
            }
            Some(_) if onto.merged.points.extra_columns() != self.decode.extra_columns => {
                refused("onto= has other extra columns than this scan.")
            }
            Some(_) => Ok(()),
        }
    }

    /// A new chain over the query, page by page as they were read.
    ///
    /// # Errors
    /// `BookmarkError` as in [`Scan::resume`].
    pub fn pages(&self) -> Result<Pages> {
        let query = self.query.clone();
        let decode = Arc::clone(&self.decode);
        let origin = self.client.origin();
        let limit = self.settings.max_pages;
        let chain = match &self.begin {
            None => Chain::new(query, decode, &origin, limit),
            Some(bookmark) => Chain::resume(query, decode, &origin, limit, bookmark)?,
        };
        let provenance = Provenance {
            query: self.query.clone(),
            further: Vec::new(),
            host: self.client.base_url().host().to_owned(),
            read_at: self.client.time().now(),
            pages: 0,
            resumed_after_pages: self.resumed_after_pages(),
        };
        let chain = chain.keep_raw(self.settings.keep_raw);
        Ok(Pages::new(self.client.clone(), self.deadline(), chain, provenance))
    }

    /// Pages that had been read where this scan goes on: 0 for one that begins at the start.
    #[must_use]
    pub fn resumed_after_pages(&self) -> u64 {
        self.begin.as_ref().map_or(0, Bookmark::pages)
    }

    /// When a read that begins now is to be over.
    #[must_use]
    pub fn deadline(&self) -> Deadline {
        Deadline::after(self.client.time().clock(), self.settings.deadline)
    }

    /// Begins to read the whole, on a new chain. Nothing is sent yet.
    ///
    /// # Errors
    /// `BookmarkError` as in [`Scan::resume`].
    pub fn read(&self) -> Result<Reading> {
        let pages = self.pages()?;
        let mut provenance = pages.provenance().clone();
        let mut merger = Merger::new(&self.decode.extra_columns);
        if let Some(onto) = &self.onto
            && let Some(before) = &onto.unfinished
        {
            merger = before.merger.clone();
            provenance.read_at = onto.provenance.read_at;
            provenance.resumed_after_pages = onto.provenance.resumed_after_pages;
        }
        Ok(Reading { pages, merger, provenance, early: None })
    }
}

/// A whole that is being read, page by page.
#[derive(Debug)]
pub struct Reading {
    pages: Pages,
    merger: Merger,
    provenance: Provenance,
    /// The next page, where it is asked for already.
    early: Option<PageRequest>,
}

/// What a step of a [`Reading`] gave.
#[derive(Debug)]
pub enum Step<T> {
    /// One more page was read and merged.
    Page(Progress),
    /// There is no further page: the whole.
    Whole(T),
}

impl Reading {
    /// Reads one more page, or gives the whole after the last one. Dropped half way, it leaves the
    /// read where it was.
    ///
    /// # Errors
    /// [`ReadFailure`] with whatever ended the chain, and with what was read before.
    pub async fn step(&mut self, deadline: Deadline) -> Result<Step<Table>, ReadFailure> {
        loop {
            // Owned by this step until it is done: dropped half way, it leaves no request behind.
            let mut early = self.early.take();
            match self.pages.next_early(deadline, &mut early).await {
                Ok(Some(page)) => {
                    self.early = early;
                    self.merger.push(&page)?;
                }
                Ok(None) => return Ok(Step::Whole(self.table(None)?)),
                Err(mut failure) => {
                    if self.merger.pages() > 0
                        && let Some(stopped_at) = failure.bookmark.clone()
                    {
                        let unfinished = Unfinished { merger: self.merger.clone(), stopped_at };
                        failure.partial = Some(self.table(Some(unfinished))?);
                    }
                    return Err(failure);
                }
            }
            if let Some(news) = self.pages.news() {
                return Ok(Step::Page(news));
            }
        }
    }

    /// Gives up what is asked for already: to be dropped where a connection may be. Whoever takes
    /// steps and takes no further one asks for this.
    pub(super) fn rest(&mut self) -> Option<PageRequest> {
        self.early.take()
    }

    /// Whether the next page is asked for already.
    pub(super) fn is_ahead(&self) -> bool {
        self.early.is_some()
    }

    /// How far it has come: where it goes on, and what it has read. The read stays as it is.
    ///
    /// # Errors
    /// As [`Merger::finish`].
    pub(super) fn so_far(&self) -> Result<(Option<Bookmark>, Option<Table>)> {
        let stopped_at = self.pages.bookmark();
        if self.merger.pages() == 0 {
            return Ok((stopped_at, None));
        }
        let merger = self.merger.clone();
        let unfinished = stopped_at.clone().map(|stopped_at| Unfinished { merger, stopped_at });
        Ok((stopped_at, Some(Self::made(self.merger.clone(), &self.provenance, unfinished)?)))
    }

    /// Whether it has read all pages: the step that gives the whole costs nothing.
    pub(super) fn is_done(&self) -> bool {
        self.pages.is_done()
    }

    /// Pages that it has read, and of those before a resumption.
    pub(super) fn pages(&self) -> u64 {
        self.merger.pages() + self.provenance.resumed_after_pages
    }

    /// What was read. The read is over.
    fn table(&mut self, unfinished: Option<Unfinished>) -> Result<Table> {
        let merger = std::mem::replace(&mut self.merger, Merger::new(&[]));
        Self::made(merger, &self.provenance, unfinished)
    }

    fn made(
        merger: Merger,
        provenance: &Provenance,
        unfinished: Option<Unfinished>,
    ) -> Result<Table> {
        let provenance = Provenance { pages: merger.pages(), ..provenance.clone() };
        Ok(Table { merged: merger.finish()?, unfinished, provenance })
    }
}
