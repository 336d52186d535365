//! Pages that follow each other (§4.4): a machine of three states. It ends at an explicit null and
//! nowhere else; an error leaves it where it was.

use std::collections::HashSet;
use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;

use super::bookmark::{Bookmark, CursorLog};
use super::cursor::{Cursor, CursorHash};
use super::decode::edge::cursor_at_an_edge;
use super::decode::{DecodeSettings, Decoded, decode_sized};
use super::page::Page;
use super::query::{Query, origin_fingerprint};
use super::report::PageReport;
use crate::error::{Error, Kind, Result};
use crate::lock::Mutex;

/// Sends one data request, authorised, counted and retried. The client does it; tests do it without
/// a network.
pub trait Fetch: Send + Sync {
    /// What `read` makes of the reply to this URL query (secret where it has a cursor). `read` is
    /// called within the attempt: its `Kind::TruncatedBody` (H8) is one more reason to try again.
    fn fetch<T: Send>(
        &self,
        wire_query: &str,
        read: impl Fn(&Bytes) -> Result<T> + Send + Sync,
    ) -> impl Future<Output = Result<T>> + Send;
}

/// Where a chain stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PagingState {
    /// No page was read.
    Start,
    /// The next page is asked for with this cursor.
    Next(Cursor),
    /// The last page was read.
    Done,
}

/// The pages of one query, one after the other. Dropping it makes no request (P9).
#[derive(Debug)]
pub struct Chain {
    query: Query,
    settings: Arc<DecodeSettings>,
    origin: [u8; 32],
    max_pages: Option<u64>,
    keep_raw: bool,
    state: PagingState,
    /// Sequence number of the next page.
    sequence: u64,
    /// Pages read by this chain, and by those that it was resumed from.
    pages: u64,
    pages_before: u64,
    /// Every cursor that came, in its order, and as a set that finds a repeated one (P1).
    seen: CursorLog,
    known: HashSet<CursorHash>,
    /// Points of the last page: room for the next.
    rows: usize,
}

impl Chain {
    /// A chain at its start. `origin` says where the query is asked: base URL and subject.
    /// `max_pages` bounds the pages read by this chain, resumed ones not counted.
    #[must_use]
    pub fn new(
        query: Query,
        settings: Arc<DecodeSettings>,
        origin: &str,
        max_pages: Option<u64>,
    ) -> Self {
        Self {
            query,
            settings,
            origin: origin_fingerprint(origin),
            max_pages,
            keep_raw: false,
            state: PagingState::Start,
            sequence: 1,
            pages: 0,
            pages_before: 0,
            seen: CursorLog::default(),
            known: HashSet::new(),
            rows: 0,
        }
    }

    /// A chain that goes on where the bookmark was made.
    ///
    /// # Errors
    /// `Kind::BookmarkError` for a bookmark of another query, host or subject (P12).
    pub fn resume(
        query: Query,
        settings: Arc<DecodeSettings>,
        origin: &str,
        max_pages: Option<u64>,
        bookmark: &Bookmark,
    ) -> Result<Self> {
        bookmark.check(&query, origin)?;
        let seen = bookmark.seen_hashes();
        let mut chain = Self::new(query, settings, origin, max_pages);
        chain.state = PagingState::Next(bookmark.cursor.clone());
        chain.sequence = bookmark.sequence;
        chain.pages = bookmark.pages;
        chain.pages_before = bookmark.pages;
        chain.known = seen.iter().copied().collect();
        chain.seen = Arc::new(Mutex::new(seen));
        Ok(chain)
    }

    /// Keeps the body of each page in [`Page::raw`].
    #[must_use]
    pub fn keep_raw(mut self, keep: bool) -> Self {
        self.keep_raw = keep;
        self
    }

    /// Gives the first page this sequence number instead of 1, so that the pages of several chains
    /// can be merged: the higher number wins.
    #[must_use]
    pub fn starting_at(mut self, sequence: u64) -> Self {
        self.sequence = sequence;
        self
    }

    /// What is asked.
    #[must_use]
    pub fn query(&self) -> &Query {
        &self.query
    }

    /// Where the chain stands.
    #[must_use]
    pub fn state(&self) -> &PagingState {
        &self.state
    }

    /// Pages read so far, those before a resumption included.
    #[must_use]
    pub fn pages_read(&self) -> u64 {
        self.pages
    }

    /// Whether the last page was read.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.state == PagingState::Done
    }

    /// Where to go on: after an error exactly where it happened. `None` before the first page and
    /// after the last one.
    #[must_use]
    pub fn bookmark(&self) -> Option<Bookmark> {
        let PagingState::Next(cursor) = &self.state else { return None };
        Some(Bookmark {
            origin: self.origin,
            query: self.query.own_fingerprint(),
            sequence: self.sequence,
            pages: self.pages,
            cursor: cursor.clone(),
            seen: Arc::clone(&self.seen),
            seen_count: self.seen.lock().len(),
        })
    }

    /// Reads the next page; `None` after the last one. An empty page with a cursor is a page like
    /// any other (P5).
    ///
    /// # Errors
    /// Whatever the sender or the decoder reports; `Kind::CursorLoop` for a cursor that came
    /// before (P1); `Kind::CursorRejected` when the service no longer takes the cursor (P6);
    /// `Kind::QueryError` at `max_pages` (P2). The chain stays where it was: calling again repeats the
    /// same request.
    pub async fn next<F: Fetch>(&mut self, fetch: &F) -> Result<Option<Page>> {
        let Some(wire) = self.wire()? else { return Ok(None) };
        let decoding = self.decoding();
        let read = |body: &Bytes| Ok((body.clone(), decoding.decode(body)?));
        let reply = fetch.fetch(&wire, read).await;
        self.take(reply).map(Some)
    }

    /// What the next page is asked for with: a URL query, secret where it has a cursor. `None` after
    /// the last page.
    ///
    /// # Errors
    /// `Kind::QueryError` at `max_pages` (P2).
    pub fn wire(&self) -> Result<Option<String>> {
        if self.pages == 0 {
            log::debug!(target: "siteline::data", "reading {}", self.query);
        }
        let wire = match &self.state {
            PagingState::Done => return Ok(None),
            PagingState::Start => self.query.wire().to_owned(),
            PagingState::Next(cursor) => self.query.wire_with(cursor),
        };
        if let Some(limit) = self.max_pages
            && self.pages_of_this_chain() >= limit
        {
            let message = format!("max_pages={limit} was reached and the chain is not at its end");
            return Err(Error::new(Kind::QueryError, message)
                .with_hint("Go on with scan.resume(error.bookmark), or ask for more pages."));
        }
        Ok(Some(wire))
    }

    /// What the page after the next is asked for with, where the next one gives this cursor. `None`
    /// where it will not be asked for.
    #[must_use]
    pub fn wire_after_next(&self, cursor: &Cursor) -> Option<String> {
        let limit = self.max_pages.unwrap_or(u64::MAX);
        let goes_on =
            self.pages_of_this_chain() + 1 < limit && !self.known.contains(&cursor.hash());
        goes_on.then(|| self.query.wire_with(cursor))
    }

    /// How the body of the next page is read.
    #[must_use]
    pub fn decoding(&self) -> Decoding {
        Decoding { settings: Arc::clone(&self.settings), rows: self.rows }
    }

    /// Goes on by the reply to [`Chain::wire`]: its page.
    ///
    /// # Errors
    /// As [`Chain::next`].
    pub fn take(&mut self, reply: Result<(Bytes, Decoded)>) -> Result<Page> {
        let (body, decoded) = reply.map_err(|error| self.explain(error))?;
        if let Some(cursor) = &decoded.next_cursor
            && self.known.contains(&cursor.hash())
        {
            return Err(self.cursor_loop(cursor));
        }
        Ok(self.advance(body, decoded))
    }

    /// Pages that this chain has read itself.
    fn pages_of_this_chain(&self) -> u64 {
        self.pages - self.pages_before
    }

    fn advance(&mut self, body: Bytes, decoded: Decoded) -> Page {
        let sequence = self.sequence;
        self.sequence += 1;
        self.pages += 1;
        self.rows = decoded.points.rows();
        self.state = match decoded.next_cursor {
            None => PagingState::Done,
            Some(cursor) => {
                let hash = cursor.hash();
                self.known.insert(hash);
                self.seen.lock().push(hash);
                PagingState::Next(cursor)
            }
        };
        self.log_page(&decoded.report);
        Page {
            points: Arc::new(decoded.points),
            report: decoded.report,
            sequence,
            raw: self.keep_raw.then_some(body),
            bookmark: self.bookmark(),
            is_last: self.state == PagingState::Done,
        }
    }

    fn log_page(&self, report: &PageReport) {
        let (page, points, series) = (self.pages, report.points, report.series);
        match &self.state {
            PagingState::Next(cursor) => log::debug!(
                target: "siteline::data",
                "page {page}: {points} points of {series} series; goes on at {cursor}"
            ),
            _ => log::info!(
                target: "siteline::data",
                "page {page}: {points} points of {series} series; the last of {}", self.query
            ),
        }
    }

    fn cursor_loop(&self, cursor: &Cursor) -> Error {
        let message = format!(
            "the service sent {cursor} again after {} page{}: the chain would never end",
            self.pages,
            if self.pages == 1 { "" } else { "s" }
        );
        Error::new(Kind::CursorLoop, message)
            .with(|context| context.path = Some(format!("$.{}", self.settings.shape.next_cursor)))
            .with_hint("Nothing is lost up to here. Read the range again from its start.")
    }

    /// Says what a rejected request means after the first page: the cursor is no longer taken (P6), or
    /// is too long (P4).
    fn explain(&self, error: Error) -> Error {
        let PagingState::Next(cursor) = &self.state else { return error };
        let length = cursor.len();
        match (error.kind(), error.context().status) {
            (Kind::RequestRejected, Some(400 | 404 | 410)) => error
                .into_kind(Kind::CursorRejected)
                .with_hint("The cursor is no longer taken. Read the range again from its start."),
            (Kind::RequestRejected, Some(414 | 431)) => error.with_hint(format!(
                "The cursor that the service gave is {length} bytes long, more than it takes back."
            )),
            _ => error,
        }
    }
}

/// Decodes the next page's body. It does not borrow the chain, so another thread can run it.
#[derive(Debug, Clone)]
pub struct Decoding {
    settings: Arc<DecodeSettings>,
    rows: usize,
}

impl Decoding {
    /// Decodes the body.
    ///
    /// # Errors
    /// As [`super::decode()`].
    pub fn decode(&self, body: &[u8]) -> Result<Decoded> {
        decode_sized(body, &self.settings, self.rows)
    }

    /// The next cursor, where it is found without decoding: the one that [`Decoding::decode`] finds in a
    /// valid body. `None` does not mean that there is none.
    #[must_use]
    pub fn cursor_at_an_edge(&self, body: &[u8]) -> Option<Cursor> {
        cursor_at_an_edge(body, &self.settings.shape.next_cursor)
    }
}

#[cfg(test)]
mod tests;
