//! Paginates a query: a state machine with three states. Only an explicit null ends a chain. A
//! repeated cursor is a `CursorLoop`. An error does not change the state. Chains of other queries
//! may follow, one at a time.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use bytes::Bytes;

use super::bookmark::{Bookmark, Log, Mark, Owner, WholeChain};
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

/// In a URL that is too long, a shorter cursor is not the cause.
const LONG_CURSOR: usize = 20_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PagingState {
    Start,
    Next(Cursor),
    Done,
}

#[derive(Debug)]
pub struct Chain {
    query: Query,
    size: SentSize,
    settings: Arc<DecodeSettings>,
    owner: Owner,
    /// The chains that follow are in `next`.
    whole: Log<WholeChain>,
    next: VecDeque<Link>,
    max_pages: Option<u64>,
    keep_raw: bool,
    state: PagingState,
    /// The number of the next page.
    sequence: u64,
    /// Includes the pages before a resumption.
    pages: u64,
    /// Number of pages that count for `max_pages`.
    counted: u64,
    /// The cursors in order, and as a set to detect repeats.
    seen: Log<CursorHash>,
    known: HashSet<CursorHash>,
    novelty: Novelty,
    earlier: Arc<Mutex<EarlierPages>>,
}

/// A chain that has not been entered.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) query: Query,
    /// The position, if it has begun.
    pub(crate) mark: Option<Mark>,
    pub(crate) expected: Option<u64>,
}

impl Chain {
    /// `origin` is the base URL and subject. `max_pages` does not count pages before a resumption.
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
            whole: Vec::new().into(),
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
            seen: Vec::new().into(),
            known: HashSet::new(),
            earlier: Arc::default(),
        }
    }

    /// Continues from a bookmark. Returns `BookmarkError` for a bookmark of another query, host or
    /// subject.
    pub fn resumed(mut self, bookmark: &Bookmark) -> Result<Self> {
        bookmark.check(self.owner.origin, self.owner.query)?;
        self.resume_at(bookmark.mark(&self.query));
        Ok(self)
    }

    /// The chains of a scan, one after the other. `whole` contains the completed ones.
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
        (chain.owner, chain.next, chain.whole) = (owner, next, whole.into());
        chain.size = size;
        chain.enter(first);
        Some(chain)
    }

    fn enter(&mut self, link: Link) {
        self.novelty = Novelty::new(link.query.microseconds());
        self.novelty.expected = link.expected;
        self.query = link.query;
        (self.state, self.pages) = (PagingState::Start, 0);
        (self.seen, self.known) = (Vec::new().into(), HashSet::new());
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
        self.seen = seen.into();
    }

    /// Restarts the count for `max_pages`.
    pub(crate) fn renew_limit(&mut self) {
        self.counted = 0;
    }

    /// Whether it is the only chain of its read.
    pub(crate) fn is_alone(&self) -> bool {
        self.next.is_empty() && self.whole.count() == 0
    }

    /// Keeps bodies in [`Page::raw`].
    #[must_use]
    pub fn keep_raw(mut self, keep: bool) -> Self {
        self.keep_raw = keep;
        self
    }

    /// The number of the first page, 1 by default. In a merge, the higher number wins.
    #[must_use]
    pub(crate) fn starting_at(mut self, sequence: u64) -> Self {
        self.sequence = sequence;
        self
    }

    /// `idle` is [`Chain::idle`] of the pages before a resumption.
    #[must_use]
    pub(crate) fn expecting(mut self, pages: Option<u64>, idle: u64) -> Self {
        self.novelty.expected = pages;
        self.novelty.resume(idle);
        self
    }

    /// Number of pages since the last one with a new point.
    pub(crate) fn idle(&self) -> u64 {
        self.novelty.idle
    }

    pub fn state(&self) -> &PagingState {
        &self.state
    }

    pub fn is_done(&self) -> bool {
        self.state == PagingState::Done
    }

    /// Also set after an error. `None` before the first and after the last page.
    pub fn bookmark(&self) -> Option<Bookmark> {
        let later = self.next.iter().filter_map(|link| link.mark.clone());
        let marks: Vec<Mark> = self.mark().into_iter().chain(later).collect();
        let is_begun = !marks.is_empty() || self.whole.count() > 0;
        (is_begun && !self.is_done()).then(|| Bookmark {
            owner: self.owner,
            marks,
            whole: self.whole.clone(),
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
            seen: self.seen.clone(),
        })
    }

    /// Secret if it has a cursor. `None` after the last page. Returns `PageLimitReached` at
    /// `max_pages`, otherwise `EndlessChain` when the pages contain nothing new.
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
            Some(limit) if self.counted >= limit => Err(page_limit_reached(limit)),
            None if self.novelty.is_endless(self.pages, 0) => Err(self.endless()),
            _ => Ok(Some(wire)),
        }
    }

    /// The URL query of the page after the next, whose cursor this is. `None` if it will not be
    /// requested.
    pub(crate) fn wire_after_next(&self, cursor: &Cursor) -> Option<String> {
        let limit = self.max_pages.unwrap_or(u64::MAX);
        let may_end = self.max_pages.is_none() && self.novelty.is_endless(self.pages, 1);
        let continues =
            self.counted + 1 < limit && !may_end && !self.known.contains(&cursor.hash());
        continues.then(|| self.query.wire_with(self.sent_size(), cursor))
    }

    /// The first request decides the page size.
    pub(crate) fn size(&self) -> &SentSize {
        &self.size
    }

    fn sent_size(&self) -> Option<u32> {
        self.size.get().flatten()
    }

    pub fn decoding(&self) -> Decoding {
        let (settings, earlier) = (Arc::clone(&self.settings), Arc::clone(&self.earlier));
        Decoding { settings, earlier, keep_raw: self.keep_raw }
    }

    /// Advances the chain by the reply to [`Chain::wire`]. An empty page with a cursor does not end
    /// the chain. An error does not change the state: `CursorRejected` if the service no longer
    /// accepts the cursor, `CursorLoop` for a repeated one.
    pub(crate) fn accept(&mut self, reply: Result<(Option<Bytes>, Decoded)>) -> Result<Page> {
        let (raw, decoded) = reply.map_err(|error| self.explain(error))?;
        if let Some(cursor) = &decoded.next_cursor
            && self.known.contains(&cursor.hash())
        {
            return Err(self.cursor_loop(cursor));
        }
        self.advance(raw, decoded)
    }

    fn advance(&mut self, raw: Option<Bytes>, mut decoded: Decoded) -> Result<Page> {
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
                self.seen.push(hash);
                PagingState::Next(cursor)
            }
        };
        self.log_page(&decoded.report);
        if self.is_done()
            && let Some(link) = self.next.pop_front()
        {
            let chain = WholeChain { query: self.query.fingerprint(), pages: self.pages };
            self.whole.push(chain);
            self.enter(link);
        }
        Ok(Page {
            points: Arc::new(decoded.points),
            report: decoded.report,
            sequence,
            raw,
            bookmark: self.bookmark(),
            is_last: self.state == PagingState::Done,
        })
    }

    fn log_page(&self, report: &PageReport) {
        let (page, points, series) = (self.pages, report.points, report.series);
        match &self.state {
            PagingState::Next(cursor) => log::debug!(
                target: "siteline::data", page, points;
                "page {page}: {points} points of {series} series; next {cursor}"
            ),
            _ => log::info!(
                target: "siteline::data", page, points;
                "page {page}: {points} points of {series} series; the last page of {}", self.query
            ),
        }
    }

    fn cursor_loop(&self, cursor: &Cursor) -> Error {
        let message = format!(
            "The service sent {cursor} again after {} page{}, so the chain would never end",
            self.pages,
            if self.pages == 1 { "" } else { "s" }
        );
        Error::new(Kind::CursorLoop, message)
            .with(|context| context.path = Some(format!("$.{}", self.settings.shape.next_cursor)))
    }

    fn endless(&self) -> Error {
        let (pages, idle) = (self.pages, self.novelty.idle);
        let expected = match self.novelty.expected {
            None => "no estimate".to_owned(),
            Some(expected) => format!("{expected} expected"),
        };
        let message = format!(
            "The chain does not end: {pages} pages were read ({expected}), each counted against the \
             allowance, and the last {idle} contained no new point of the range"
        );
        Error::new(Kind::EndlessChain, message)
            .with(|context| context.path = Some(format!("$.{}", self.settings.shape.next_cursor)))
            .with_hint(
                "Report the chain to the service, which must end it with a null cursor. If the range \
                 needs more pages, set max_pages=.",
            )
    }

    /// A request rejected after the first page: its cursor is probably no longer valid, or too
    /// long.
    fn explain(&self, error: Error) -> Error {
        let PagingState::Next(cursor) = &self.state else { return error };
        let (length, context) = (cursor.len(), error.context());
        let is_too_long = match context.status {
            Some(414 | 431) => context.hint.is_none(),
            None => context.unsent && length >= LONG_CURSOR,
            _ => false,
        };
        match (error.kind(), context.status) {
            (Kind::RequestRejected, Some(400 | 404 | 410)) => error
                .into_kind(Kind::CursorRejected)
                .with_hint("The service probably no longer accepts the cursor."),
            (Kind::RequestRejected, _) if is_too_long => error.with_hint(format!(
                "The service sent a cursor of {length} bytes, which is too long for a URL."
            )),
            _ => error,
        }
    }
}

/// Whether a chain cannot continue at its cursor: the service rejects or repeats it, it is too long
/// to send, or the chain is endless.
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

pub(crate) fn page_limit_reached(limit: u64) -> Error {
    let message = format!("max_pages={limit} was reached before the end of the read.");
    let hint = "In another process, continue with scan.resume(error.bookmark, onto=error.partial).";
    Error::new(Kind::PageLimitReached, message).with_hint(hint)
}

/// Decodes pages without borrowing the chain, so that another thread can do it.
#[derive(Debug, Clone)]
pub struct Decoding {
    settings: Arc<DecodeSettings>,
    earlier: Arc<Mutex<EarlierPages>>,
    /// Whether the body is kept in [`Page::raw`].
    pub(crate) keep_raw: bool,
}

impl Decoding {
    pub fn decode(&self, body: &[u8]) -> Result<Decoded> {
        match self.earlier.try_lock() {
            Some(mut earlier) => decode_after(body, &self.settings, &mut earlier),
            // Another thread is decoding a page of this chain.
            None => decode(body, &self.settings),
        }
    }

    /// Equals the cursor of [`Decoding::decode`] for a valid body. `None` does not mean that the
    /// body has no cursor.
    pub fn cursor_at_an_edge(&self, body: &[u8]) -> Option<Cursor> {
        cursor_at_an_edge(body, &self.settings.shape.next_cursor)
    }
}

#[cfg(test)]
mod tests;
