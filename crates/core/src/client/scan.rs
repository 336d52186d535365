//! [`Scan`]: a query, the settings to decode its pages, and a start. It sends no request until it is
//! read. One chain reads it, or one for each site, line and part of the range. [`Scan::pages`] follows new
//! chains each time; a [`CollectOnce`](super::collect::CollectOnce) reads them to their end and merges
//! them (§4.4, §4.5.3).

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::collect::Partial;
use super::page_request::Prefetch;
use super::page_stream::PageStream;
use super::send::Client;
use super::settings::ReadSettings;
use super::spending::Together;
use super::split::Cut;
use super::table::{Provenance, Table};
use crate::data::{
    Bookmark, Chain, DecodeSettings, Fixed, Ids, Levels, Link, Log, MOST_CHAINS, Merger,
    NamedSeries, Owner, Query, QueryInput, RangeForm, SentSize, WholeChain, chains_fingerprint,
    origin_fingerprint,
};
use crate::error::{Error, Kind, Result};
use crate::http::Deadline;

pub const ONTO_HINT: &str = "Pass the .partial of the error that had the bookmark.";

/// A read that has not started. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Scan {
    client: Client,
    query: Query,
    /// How its bounds were asked for, if they depend on the time.
    form: RangeForm,
    cut: Option<Cut>,
    /// The ids that are sent for the selection, once its names are known.
    sent: Option<Arc<Levels>>,
    /// Texts of the selection that discovery does not list.
    not_listed: Arc<[String]>,
    /// The queries of its chains.
    chains: Arc<[Query]>,
    owner: Owner,
    decode: Arc<DecodeSettings>,
    settings: ReadSettings,
    begin: Option<Bookmark>,
    onto: Option<Arc<Table>>,
    /// Shared with the other chains of its read.
    together: Arc<Together>,
    /// The pages that it may still read, if it is a chain of a scan with `max_pages`.
    pages_left: Option<Arc<AtomicU64>>,
}

impl Scan {
    /// A scan of `query` with `client`.
    #[must_use]
    pub fn new(
        client: Client,
        query: Query,
        decode: DecodeSettings,
        settings: ReadSettings,
    ) -> Self {
        let chains: Arc<[Query]> = query.chains().into();
        let size = SentSize::from(query.input().page_size);
        Self {
            owner: owner(&client, &query, &chains, &RangeForm::default()),
            client,
            query,
            form: RangeForm::default(),
            cut: None,
            sent: None,
            not_listed: Arc::default(),
            chains,
            decode: Arc::new(decode),
            settings,
            begin: None,
            onto: None,
            together: Arc::new(Together { size, ..Together::default() }),
            pages_left: None,
        }
    }

    /// The same scan, whose bounds were asked for in this form, and whose range is read in parts.
    ///
    /// # Errors
    /// As [`Scan::split`], and `QueryError` for too many chains.
    pub fn with_parts(self, form: RangeForm, cut: Option<Cut>) -> Result<Self> {
        let ranges = cut.map_or_else(|| Ok(vec![self.query.clone()]), |cut| self.ranges(cut))?;
        let queries = match &self.sent {
            Some(sent) => self.query.chains_of(sent),
            None => self.query.chains(),
        };
        Query::check_selected(&queries)?;
        if queries.len().saturating_mul(ranges.len()) > MOST_CHAINS {
            let message = format!(
                "{} queries over {} parts are more than {MOST_CHAINS} chains: each of them costs at least \
                 one page",
                queries.len(),
                ranges.len()
            );
            return Err(Error::new(Kind::QueryError, message).with_hint("Give fewer ids or parts."));
        }
        let over = |query: &Query| {
            let over = |range: &Query| query.over(range.start(), range.end());
            ranges.iter().map(over).collect::<Result<Vec<_>>>()
        };
        let chains = queries.iter().map(over).collect::<Result<Vec<_>>>()?.concat();
        let owner = owner(&self.client, &self.query, &chains, &form);
        Ok(Self { owner, form, cut, chains: chains.into(), ..self })
    }

    /// The scan of each chain, without `onto`; of a resumed scan those that are not whole. All have the
    /// decoder of the whole, which counts what is outside of its range.
    pub(super) fn chain_scans(&self, pages_left: Option<&Arc<AtomicU64>>) -> Vec<Self> {
        let scan = |link: Link| {
            let owner = Owner { query: link.query.fingerprint(), ..self.owner };
            let begin = link.mark.map(|mark| Bookmark {
                owner,
                marks: vec![mark],
                whole: Log::default(),
                whole_count: 0,
            });
            let (chains, query) = ([link.query.clone()].into(), link.query);
            let (form, pages_left) = (RangeForm::default(), pages_left.cloned());
            let scan = Self { form, begin, pages_left, ..self.clone() };
            Self { query, cut: None, chains, owner, onto: None, ..scan }
        };
        self.links().into_iter().map(scan).collect()
    }

    /// The chains that are not whole.
    fn links(&self) -> Vec<Link> {
        let whole: HashSet<_> = self.whole().iter().map(|chain| chain.query).collect();
        let left = self.chains.iter().filter(|query| !whole.contains(&query.fingerprint()));
        let link = |query: &Query| Link {
            mark: self.begin.as_ref().and_then(|at| at.mark(query)).cloned(),
            expected: self.client.densities().pages(query),
            query: query.clone(),
        };
        left.map(link).collect()
    }

    /// The chains that a resumed scan does not read again.
    pub(super) fn whole(&self) -> Vec<WholeChain> {
        self.begin.as_ref().map(Bookmark::whole).unwrap_or_default()
    }

    /// The queries of its chains.
    #[must_use]
    pub fn chains(&self) -> &[Query] {
        &self.chains
    }

    /// How its bounds were asked for.
    #[must_use]
    pub fn form(&self) -> &RangeForm {
        &self.form
    }

    /// How its range is read in parts.
    #[must_use]
    pub fn cut(&self) -> Option<Cut> {
        self.cut
    }

    /// The most pages that a read that begins now may have.
    #[must_use]
    pub(crate) fn most_pages(&self) -> Option<u64> {
        let left = self.pages_left.as_ref().map(|left| left.load(Ordering::SeqCst));
        left.or(self.settings.max_pages)
    }

    /// Counts a page that was read.
    pub(super) fn count_page(&self) {
        if let Some(left) = &self.pages_left {
            let one_less = |left: u64| Some(left.saturating_sub(1));
            left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).ok();
        }
    }

    /// Whether pages of other chains count for its limit.
    pub(super) fn shares_limit(&self) -> bool {
        self.pages_left.is_some()
    }

    /// What its chains share.
    pub(super) fn together(&self) -> &Together {
        &self.together
    }

    /// To which read its bookmarks belong.
    pub(super) fn owner(&self) -> Owner {
        self.owner
    }

    /// The number of pages that all its chains are expected to have.
    pub(super) fn expected_pages(&self) -> Option<u64> {
        self.chains.iter().map(|query| self.client.densities().pages(query)).sum()
    }

    /// A scan of another query with the same settings, from its start.
    pub(super) fn over(&self, query: Query) -> Result<Self> {
        let DecodeSettings { shape, extra_columns, named, .. } = (*self.decode).clone();
        let decode = DecodeSettings::for_query(&query, shape, extra_columns)?;
        let decode = DecodeSettings { named, ..decode };
        let scan = Self::new(self.client.clone(), query, decode, self.settings.clone());
        Ok(Self { sent: self.sent.clone(), not_listed: Arc::clone(&self.not_listed), ..scan })
    }

    /// The same scan, once discovery is known: it also keeps the series that are listed under the names of its
    /// selection, and sends these ids for the texts of the selection, if they are sent.
    ///
    /// # Errors
    /// As [`Scan::with_parts`] and [`Scan::resume`].
    pub fn selecting(
        &self,
        named: Vec<Ids>,
        sent: Levels,
        not_listed: Vec<String>,
    ) -> Result<Self> {
        let named = Some(Arc::new(NamedSeries::new(named)));
        let decode = Arc::new(DecodeSettings { named, ..(*self.decode).clone() });
        let (sent, begin, onto) = (Some(Arc::new(sent)), self.begin.clone(), self.onto.clone());
        let not_listed = not_listed.into();
        let scan = Self { decode, sent, not_listed, begin: None, onto: None, ..self.clone() };
        let scan = scan.with_parts(self.form.clone(), self.cut)?;
        match begin {
            Some(bookmark) => scan.resume(bookmark, onto),
            None => Ok(scan),
        }
    }

    /// As [`Scan::resume`], which [`Scan::selecting`] calls once the chains are known.
    #[must_use]
    pub fn resume_later(&self, bookmark: Bookmark, onto: Option<Arc<Table>>) -> Self {
        Self { begin: Some(bookmark), onto, ..self.clone() }
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

    /// The settings of its read.
    #[must_use]
    pub(crate) fn read_settings(&self) -> &ReadSettings {
        &self.settings
    }

    /// The bookmark from which it continues, if any.
    #[must_use]
    pub fn bookmark(&self) -> Option<&Bookmark> {
        self.begin.as_ref()
    }

    /// Whether it continues a partial table.
    #[must_use]
    pub fn has_partial(&self) -> bool {
        self.onto.is_some()
    }

    /// The partial table that it continues.
    pub(super) fn onto(&self) -> Option<&Arc<Table>> {
        self.onto.as_ref()
    }

    /// The same scan, continuing from `bookmark`. A collect merges `onto`, the table read up to there.
    /// Without it, the result contains only the rest, and [`Provenance::resumed_after_pages`] says so.
    ///
    /// # Errors
    /// `BookmarkError` if the bookmark belongs to another query, host or subject, where the bounds of a
    /// bookmark replace those that were asked for in the same form; `QueryError` if `onto` is not the table of the read that stopped at this bookmark: another table would leave a
    /// gap, or add points of another query.
    pub fn resume(&self, bookmark: Bookmark, onto: Option<Arc<Table>>) -> Result<Self> {
        let scan = self.fixed_as(&bookmark)?;
        bookmark.check(scan.owner.origin, scan.owner.query)?;
        if bookmark.whole_count >= scan.chains.len() {
            return Err(Error::new(Kind::BookmarkError, "this bookmark is at the end of its read"));
        }
        if let Some(table) = &onto {
            scan.check_onto(table, &bookmark)?;
        }
        // The bookmark has the page size.
        let size = SentSize::from(scan.query.input().page_size);
        let together = Arc::new(Together { size, ..Together::default() });
        Ok(Self { begin: Some(bookmark), onto, together, ..scan })
    }

    /// The same scan with the bounds of the bookmark, if its own depend on the time and were
    /// asked for in the same form.
    fn fixed_as(&self, bookmark: &Bookmark) -> Result<Self> {
        let (own, fixed) = (self.owner.fixed, bookmark.owner.fixed);
        let (Some(own), Some(fixed)) = (own, fixed) else { return Ok(self.clone()) };
        if own.form != fixed.form || own == fixed {
            return Ok(self.clone());
        }
        let Fixed { start, end, .. } = fixed;
        let query = Query::new(QueryInput { start, end, ..self.query.input().clone() })?;
        self.over(query)?.with_parts(self.form.clone(), self.cut)
    }

    fn check_onto(&self, onto: &Table, bookmark: &Bookmark) -> Result<()> {
        let refused = |why: &str| Err(Error::new(Kind::QueryError, why).with_hint(ONTO_HINT));
        match onto.stopped_at {
            None => refused("onto= is a complete table."),
            Some(stopped_at) if stopped_at != bookmark.digest() => {
                refused("onto= is not the table that was read up to this bookmark.")
            }
            Some(_) if onto.merged.points.extra_columns() != self.decode.extra_columns => {
                refused("onto= has other extra columns than this scan.")
            }
            Some(_) => Ok(()),
        }
    }

    /// New chains over the query, followed one after the other; their pages are not merged.
    ///
    /// # Errors
    /// `BookmarkError` as in [`Scan::resume`].
    pub fn pages(&self) -> Result<Arc<PageStream>> {
        self.stream(Prefetch::AfterTake)
    }

    pub(super) fn stream(&self, prefetch: Prefetch) -> Result<Arc<PageStream>> {
        let start = (self.owner, self.whole(), self.together.size.clone());
        // The pages of several chains are counted together.
        let is_alone = !self.shares_limit();
        let limit = self.settings.max_pages.map(|limit| if is_alone { limit } else { u64::MAX });
        let chain = Chain::of_scan(self.links(), start, Arc::clone(&self.decode), limit);
        let over = || Error::new(Kind::BookmarkError, "this bookmark is at the end of its read");
        let chain = chain.ok_or_else(over)?;
        let (chain, provenance) = ((chain, self.expected_pages()), self.provenance());
        let together = Arc::clone(&self.together);
        let client = (self.client.clone(), together);
        Ok(PageStream::new(client, prefetch, &self.settings, chain, provenance))
    }

    /// What a read that has not begun has: the bookmark and the table that it continues.
    pub(super) fn beginning(&self) -> Partial {
        Partial { bookmark: self.begin.clone(), table: self.onto.clone(), ..Partial::default() }
    }

    /// A table without points: of a read before its first page.
    ///
    /// # Errors
    /// As `Merger::finish`.
    pub fn empty(&self) -> Result<Table> {
        let merged = Merger::new(&self.decode.extra_columns).finish()?;
        Ok(Table { is_partial: true, ..Table::whole(merged, self.provenance()) })
    }

    /// The origin of what a read that begins now gives, before its first page.
    #[must_use]
    pub fn provenance(&self) -> Provenance {
        Provenance {
            query: self.query.clone(),
            host: self.client.base_url().host().to_owned(),
            read_at: self.client.now(),
            pages: 0,
            resumed_after_pages: self.resumed_after_pages(),
            page_size: self.together.size.clone(),
            not_listed: self.not_listed(),
            listed: Arc::clone(self.client.listed()),
            late: Arc::default(),
            through: Vec::new(),
        }
    }

    /// The ids and names that discovery does not list, as far as it is known.
    #[must_use]
    pub fn not_listed(&self) -> Vec<String> {
        let mut all = self.client.listed().missing(&self.query);
        all.extend_from_slice(&self.not_listed);
        all
    }

    /// The number of pages read before the bookmark; 0 without a bookmark.
    #[must_use]
    pub fn resumed_after_pages(&self) -> u64 {
        self.begin.as_ref().map_or(0, Bookmark::pages)
    }

    /// The deadline of a read that begins now.
    #[must_use]
    pub fn deadline(&self) -> Deadline {
        Deadline::after(self.client.time().clock(), self.settings.deadline)
    }
}

/// To which read the bookmarks of a scan belong.
fn owner(client: &Client, query: &Query, chains: &[Query], form: &RangeForm) -> Owner {
    let fixed = Fixed { form: form.fingerprint(query), start: query.start(), end: query.end() };
    let (origin, query) = (origin_fingerprint(&client.origin()), chains_fingerprint(chains));
    Owner { origin, query, fixed: Some(fixed) }
}
