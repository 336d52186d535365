//! [`Chain`]: the pages of a query (§4.4), a state machine with three states. Only an explicit null
//! ends a chain; an error does not change its state. Chains of other queries may follow, one at a time.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use bytes::Bytes;

use super::bookmark::{Bookmark, CursorLog, Log, Mark, Owner, WholeChain};
use super::cursor::{Cursor, CursorHash};
use super::decode::edge::cursor_at_an_edge;
use super::decode::{DecodeSettings, Decoded, EarlierPages, decode, decode_after};
use super::novelty::Novelty;
use super::page::Page;
use super::query::{Query, origin_fingerprint};
use super::report::PageReport;
use super::sent_size::SentSize;
use crate::error::{Error, Kind, Result};
use crate::lock::Mutex;

/// In a URL that is too long a shorter cursor is not the longest part.
const LONG_CURSOR: usize = 20_000;

/// The state of a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PagingState {
    /// No page was read.
    Start,
    /// The next page is requested with this cursor.
    Next(Cursor),
    /// The last page was read.
    Done,
}

/// The pages of one query, in order. Dropping it sends no request (P9).
#[derive(Debug)]
pub struct Chain {
    query: Query,
    /// The page size that its requests send.
    size: SentSize,
    settings: Arc<DecodeSettings>,
    /// To which read its bookmarks belong.
    owner: Owner,
    /// The chains before it that are whole, and those that follow.
    whole: Log<WholeChain>,
    whole_count: usize,
    next: VecDeque<Link>,
    max_pages: Option<u64>,
    keep_raw: bool,
    state: PagingState,
    /// Sequence number of the next page.
    sequence: u64,
    /// Pages read by this chain and by those from which it was resumed.
    pages: u64,
    /// Pages that count for `max_pages`.
    counted: u64,
    /// Every cursor received, in order, and as a set that detects a repeated one (P1).
    seen: CursorLog,
    known: HashSet<CursorHash>,
    /// Whether its pages still bring something new (P14).
    novelty: Novelty,
    /// What its pages were like so far.
    earlier: Arc<Mutex<EarlierPages>>,
}

/// A chain that is not followed yet.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) query: Query,
    /// Its position, if it was begun.
    pub(crate) mark: Option<Mark>,
    /// How many pages it is expected to have.
    pub(crate) expected: Option<u64>,
}

impl Chain {
    /// A chain at its start. `origin` is the base URL and subject. `max_pages` limits the pages that
    /// this chain reads, not counting those before a resumption.
    #[must_use]
    pub fn new(
        query: Query,
        settings: Arc<DecodeSettings>,
        origin: &str,
        max_pages: Option<u64>,
    ) -> Self {
        let (origin, own) = (origin_fingerprint(origin), query.fingerprint());
        Self {
            owner: Owner { origin, query: own, fixed: None },
            whole: Log::default(),
            whole_count: 0,
            next: VecDeque::new(),
            novelty: Novelty::new(query.microseconds()),
            size: SentSize::from(query.input().page_size),
            query,
            settings,
            max_pages,
            keep_raw: false,
            state: PagingState::Start,
            sequence: 1,
            pages: 0,
            counted: 0,
            seen: CursorLog::default(),
            known: HashSet::new(),
            earlier: Arc::default(),
        }
    }

    /// A chain that continues from a bookmark.
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
        let mut chain = Self::new(query, settings, origin, max_pages);
        bookmark.check(chain.owner.origin, chain.owner.query)?;
        chain.resume_at(bookmark.mark(&chain.query));
        Ok(chain)
    }

    /// The chains of a scan, one after the other; `None` for no chain. `whole` are those before.
    #[must_use]
    pub(crate) fn of_scan(
        links: impl IntoIterator<Item = Link>,
        (owner, whole, size): (Owner, Vec<WholeChain>, SentSize),
        settings: Arc<DecodeSettings>,
        max_pages: Option<u64>,
    ) -> Option<Self> {
        let mut next: VecDeque<Link> = links.into_iter().collect();
        let first = next.pop_front()?;
        let mut chain = Self::new(first.query.clone(), settings, "", max_pages);
        (chain.owner, chain.next, chain.whole_count) = (owner, next, whole.len());
        chain.size = size;
        chain.whole = Arc::new(Mutex::new(whole));
        chain.enter(first);
        Some(chain)
    }

    /// Follows another chain from now on.
    fn enter(&mut self, link: Link) {
        self.novelty = Novelty::new(link.query.microseconds());
        self.novelty.expected = link.expected;
        self.query = link.query;
        (self.state, self.pages) = (PagingState::Start, 0);
        (self.seen, self.known) = (CursorLog::default(), HashSet::new());
        self.resume_at(link.mark.as_ref());
    }

    fn resume_at(&mut self, mark: Option<&Mark>) {
        let Some(mark) = mark else { return };
        let seen = mark.seen_hashes();
        self.state = PagingState::Next(mark.cursor.clone());
        self.sequence = self.sequence.max(mark.sequence);
        self.pages = mark.pages;
        self.size.set(mark.page_size);
        self.known = seen.iter().copied().collect();
        self.seen = Arc::new(Mutex::new(seen));
    }

    /// From now on `max_pages` counts anew.
    pub(crate) fn renew_limit(&mut self) {
        self.counted = 0;
    }

    /// Whether it is the only chain of its read.
    pub(crate) fn is_alone(&self) -> bool {
        self.next.is_empty() && self.whole_count == 0
    }

    /// Keeps the body of each page in [`Page::raw`].
    #[must_use]
    pub fn keep_raw(mut self, keep: bool) -> Self {
        self.keep_raw = keep;
        self
    }

    /// Sets the sequence number of the first page, 1 by default, so that the pages of several chains
    /// can be merged: the higher number wins.
    #[must_use]
    pub(crate) fn starting_at(mut self, sequence: u64) -> Self {
        self.sequence = sequence;
        self
    }

    /// Sets how many pages the chain is expected to have, and how many of those before a resumption
    /// were [`Chain::idle`].
    #[must_use]
    pub(crate) fn expecting(mut self, pages: Option<u64>, idle: u64) -> Self {
        self.novelty.expected = pages;
        self.novelty.resume(idle);
        self
    }

    /// The number of pages since the last one with a point that the chain had not brought before.
    #[must_use]
    pub(crate) fn idle(&self) -> u64 {
        self.novelty.idle
    }

    /// The state of the chain.
    #[must_use]
    pub fn state(&self) -> &PagingState {
        &self.state
    }

    /// Whether the last page was read.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.state == PagingState::Done
    }

    /// The position from which to continue, also after an error. `None` before the first page and
    /// after the last one.
    #[must_use]
    pub fn bookmark(&self) -> Option<Bookmark> {
        let later = self.next.iter().filter_map(|link| link.mark.clone());
        let marks: Vec<Mark> = self.mark().into_iter().chain(later).collect();
        let is_begun = !marks.is_empty() || self.whole_count > 0;
        (is_begun && !self.is_done()).then(|| Bookmark {
            owner: self.owner,
            marks,
            whole: Arc::clone(&self.whole),
            whole_count: self.whole_count,
        })
    }

    fn mark(&self) -> Option<Mark> {
        let PagingState::Next(cursor) = &self.state else { return None };
        Some(Mark {
            query: self.query.fingerprint(),
            sequence: self.sequence,
            pages: self.pages,
            page_size: self.sent_size(),
            cursor: cursor.clone(),
            seen: Arc::clone(&self.seen),
            seen_count: self.seen.lock().len(),
        })
    }

    /// The URL query of the next page, secret if it has a cursor. `None` after the last page.
    ///
    /// # Errors
    /// `Kind::PageLimitReached` at `max_pages` (P2); without it `Kind::EndlessChain` (P14).
    pub fn wire(&self) -> Result<Option<String>> {
        if self.pages == 0 {
            log::debug!(target: "siteline::data", "reading {}", self.query);
        }
        let wire = match &self.state {
            PagingState::Done => return Ok(None),
            PagingState::Start => self.query.wire_sized(self.sent_size()),
            PagingState::Next(cursor) => self.query.wire_with(self.sent_size(), cursor),
        };
        match self.max_pages {
            Some(limit) if self.counted >= limit => {
                let message =
                    format!("max_pages={limit} was reached and the chain is not at its end");
                let hint = "In another process continue with scan.resume(error.bookmark, onto=error.partial).";
                Err(Error::new(Kind::PageLimitReached, message).with_hint(hint))
            }
            None if self.novelty.is_endless(self.pages) => Err(self.endless()),
            _ => Ok(Some(wire)),
        }
    }

    /// The URL query of the page after the next, if the next page has this cursor. `None` if that page
    /// will not be requested.
    #[must_use]
    pub(crate) fn wire_after_next(&self, cursor: &Cursor) -> Option<String> {
        let limit = self.max_pages.unwrap_or(u64::MAX);
        let may_end = self.max_pages.is_none() && self.novelty.may_become_endless(self.pages);
        let continues =
            self.counted + 1 < limit && !may_end && !self.known.contains(&cursor.hash());
        continues.then(|| self.query.wire_with(self.sent_size(), cursor))
    }

    /// The page size of its requests, which the first one decides.
    #[must_use]
    pub(crate) fn size(&self) -> &SentSize {
        &self.size
    }

    fn sent_size(&self) -> Option<u32> {
        self.size.get().flatten()
    }

    /// The decoder of the next page's body.
    #[must_use]
    pub fn decoding(&self) -> Decoding {
        Decoding { settings: Arc::clone(&self.settings), earlier: Arc::clone(&self.earlier) }
    }

    /// Advances the chain by the reply to [`Chain::wire`] and returns its page. An empty page with a
    /// cursor does not end the chain (P5).
    ///
    /// # Errors
    /// The error of the reply, as `Kind::CursorRejected` if the service no longer accepts the cursor (P6);
    /// `Kind::CursorLoop` for a repeated cursor (P1). An error does not change the state.
    pub(crate) fn accept(&mut self, reply: Result<(Bytes, Decoded)>) -> Result<Page> {
        let (body, decoded) = reply.map_err(|error| self.explain(error))?;
        if let Some(cursor) = &decoded.next_cursor
            && self.known.contains(&cursor.hash())
        {
            return Err(self.cursor_loop(cursor));
        }
        self.advance(body, decoded)
    }

    fn advance(&mut self, body: Bytes, mut decoded: Decoded) -> Result<Page> {
        let selection = &self.query.input().selection;
        let kept = if selection.is_empty() {
            None
        } else {
            let named = self.settings.named.as_deref();
            Some(decoded.points.kept(|series| selection.keeps(series, named))?)
        };
        decoded.report.page_size = self.size.clone();
        let sequence = self.sequence;
        self.sequence += 1;
        self.pages += 1;
        self.counted += 1;
        if self.max_pages.is_none() {
            self.novelty.add(&decoded.points, self.pages);
        }
        if let Some((points, filtered)) = kept {
            decoded.points = points;
            decoded.report.filtered = filtered;
        }
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
        if self.is_done()
            && let Some(link) = self.next.pop_front()
        {
            let chain = WholeChain { query: self.query.fingerprint(), pages: self.pages };
            self.whole.lock().push(chain);
            self.whole_count += 1;
            self.enter(link);
        }
        Ok(Page {
            points: Arc::new(decoded.points),
            report: decoded.report,
            sequence,
            raw: self.keep_raw.then_some(body),
            bookmark: self.bookmark(),
            is_last: self.state == PagingState::Done,
        })
    }

    fn log_page(&self, report: &PageReport) {
        let (page, points, series) = (self.pages, report.points, report.series);
        match &self.state {
            PagingState::Next(cursor) => log::debug!(
                target: "siteline::data", page, points;
                "page {page}: {points} points of {series} series; goes on at {cursor}"
            ),
            _ => log::info!(
                target: "siteline::data", page, points;
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
    }

    fn endless(&self) -> Error {
        let (pages, idle) = (self.pages, self.novelty.idle);
        let expected = match self.novelty.expected {
            None => "how many to expect was not known".to_owned(),
            Some(1) => "1 was expected".to_owned(),
            Some(expected) => format!("{expected} were expected"),
        };
        let message = format!(
            "the chain does not end: {pages} pages were read ({expected}), each counted against the \
             allowance, and the last {idle} brought no point of the range that had not come before"
        );
        Error::new(Kind::EndlessChain, message)
            .with(|context| context.path = Some(format!("$.{}", self.settings.shape.next_cursor)))
            .with_hint(
                "Report the chain to the service, which must end it with a null cursor, or give the number \
                 of pages in max_pages= if the range needs so many.",
            )
    }

    /// Explains a rejected request after the first page: the service no longer accepts the cursor (P6),
    /// or it is too long (P4).
    fn explain(&self, error: Error) -> Error {
        let PagingState::Next(cursor) = &self.state else { return error };
        let length = cursor.len();
        match (error.kind(), error.context().status) {
            (Kind::RequestRejected, Some(400 | 404 | 410)) => error
                .into_kind(Kind::CursorRejected)
                .with_hint("The cursor is no longer valid."),
            (Kind::RequestRejected, Some(414 | 431)) if error.context().hint.is_none() => error
                .with_hint(format!(
                    "The service sent a cursor of {length} bytes, which is longer than it accepts."
                )),
            (Kind::RequestRejected, None)
                if error.context().unsent && length >= LONG_CURSOR => error.with_hint(format!(
                "The service sent a cursor of {length} bytes, which is longer than a URL can be."
            )),
            _ => error,
        }
    }
}

/// Whether a chain that failed like this cannot continue at its cursor: the service refuses the cursor
/// or repeats it, it is too long to be sent (P4), or the chain has no end.
#[must_use]
pub(crate) fn ends_chain(error: &Error) -> bool {
    match error.kind() {
        Kind::CursorRejected | Kind::CursorLoop | Kind::EndlessChain => true,
        Kind::RequestRejected => {
            let context = error.context();
            matches!(context.status, Some(414 | 431)) || context.unsent
        }
        _ => false,
    }
}

/// Decodes the next page's body. It does not borrow the chain, so another thread can use it.
#[derive(Debug, Clone)]
pub struct Decoding {
    settings: Arc<DecodeSettings>,
    earlier: Arc<Mutex<EarlierPages>>,
}

impl Decoding {
    /// Decodes the body.
    ///
    /// # Errors
    /// As [`super::decode()`].
    pub fn decode(&self, body: &[u8]) -> Result<Decoded> {
        match self.earlier.try_lock() {
            Some(mut earlier) => decode_after(body, &self.settings, &mut earlier),
            // Another thread decodes a page of this chain.
            None => decode(body, &self.settings),
        }
    }

    /// The next cursor, if it is found without decoding: the one that [`Decoding::decode`] finds in a
    /// valid body. `None` does not mean that the body has none.
    #[must_use]
    pub fn cursor_at_an_edge(&self, body: &[u8]) -> Option<Cursor> {
        cursor_at_an_edge(body, &self.settings.shape.next_cursor)
    }
}

#[cfg(test)]
mod tests;
