//! A query with its decoder and start. It sends no request until it is read. It has one chain, or
//! one for each site, line and part of the range. [`Scan::pages`] reads new chains each time. A
//! [`CollectOnce`](super::collect::CollectOnce) reads them once and merges them.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::page_request::Prefetch;
use super::page_stream::PageStream;
use super::send::Client;
use super::settings::ReadSettings;
use super::spending::Together;
use super::split::Cut;
use super::table::{Provenance, Table};
use crate::data::{
    AskedRange, Bookmark, Chain, DecodeSettings, Fixed, Ids, Levels, Link, MOST_CHAINS, Merger,
    NamedSeries, Owner, Query, QueryInput, SentSize, WholeChain, chains_fingerprint,
    form_fingerprint, origin_fingerprint,
};
use crate::error::{Error, Kind, Result};
use crate::http::Deadline;

pub const ONTO_HINT: &str = "Pass the .partial of the error that had the bookmark.";

/// The original form of the bounds, and how the range is split.
pub type Parts = (Option<AskedRange>, Option<Cut>);

/// Clones are cheap.
#[derive(Debug, Clone)]
pub struct Scan {
    client: Client,
    query: Query,
    /// The bounds as the user wrote them.
    form: Option<AskedRange>,
    cut: Option<Cut>,
    /// The ids to send, once discovery has resolved the names of the selection.
    sent: Option<Arc<Levels>>,
    /// Texts of the selection.
    not_listed: Arc<[String]>,
    chains: Arc<[Query]>,
    /// The read that its bookmarks belong to.
    pub(super) owner: Owner,
    decode: Arc<DecodeSettings>,
    settings: ReadSettings,
    begin: Option<Bookmark>,
    pub(super) onto: Option<Arc<Table>>,
    pub(super) together: Arc<Together>,
    /// Shared by the chains of a scan with `max_pages`.
    pub(super) pages_left: Option<Arc<AtomicU64>>,
}

impl Scan {
    pub fn new(
        client: Client,
        query: Query,
        decode: DecodeSettings,
        settings: ReadSettings,
        (form, cut): Parts,
    ) -> Result<Self> {
        let size = SentSize::from(query.input().page_size);
        let scan = Self {
            owner: Owner::default(),
            client,
            query,
            form,
            cut,
            sent: None,
            not_listed: Arc::default(),
            chains: Arc::default(),
            decode: Arc::new(decode),
            settings,
            begin: None,
            onto: None,
            together: Arc::new(Together { size, ..Together::default() }),
            pages_left: None,
        };
        scan.with_chains()
    }

    /// Sets the chains and the owner of their bookmarks.
    fn with_chains(self) -> Result<Self> {
        let all = || Ok(vec![self.query.clone()]);
        let ranges = self.cut.map_or_else(all, |cut| self.ranges(cut))?;
        let queries = match &self.sent {
            Some(sent) => self.query.chains_of(sent),
            None => self.query.chains(),
        };
        Query::check_selected(&queries)?;
        if queries.len().saturating_mul(ranges.len()) > MOST_CHAINS {
            let message = format!(
                "The read needs {} queries over {} parts, more than {MOST_CHAINS} chains. Each costs \
                 at least one page.",
                queries.len(),
                ranges.len()
            );
            return Err(Error::new(Kind::QueryError, message).with_hint("Use fewer ids or parts."));
        }
        let over = |query: &Query| {
            let over = |range: &Query| query.over(range.start(), range.end());
            ranges.iter().map(over).collect::<Result<Vec<_>>>()
        };
        let chains = queries.iter().map(over).collect::<Result<Vec<_>>>()?.concat();
        let (start, end) = (self.query.start(), self.query.end());
        let fixed = Fixed { form: form_fingerprint(self.form, &self.query), start, end };
        let origin = origin_fingerprint(&self.client.origin());
        let owner = Owner { origin, query: chains_fingerprint(&chains), fixed: Some(fixed) };
        Ok(Self { owner, chains: chains.into(), ..self })
    }

    /// Each incomplete chain, without `onto`. It uses the decoder of the whole scan, which counts
    /// points outside its range.
    pub(super) fn chain_scans(&self, pages_left: Option<&Arc<AtomicU64>>) -> Vec<Self> {
        let scan = |link: Link| {
            let owner = Owner { query: link.query.fingerprint(), ..self.owner };
            let begin = link.mark.map(|mark| {
                let whole = Vec::new().into();
                Bookmark { owner, marks: vec![mark], whole }
            });
            let (chains, query) = ([link.query.clone()].into(), link.query);
            let scan = Self { begin, pages_left: pages_left.cloned(), ..self.clone() };
            Self { query, form: None, cut: None, chains, owner, onto: None, ..scan }
        };
        self.links().into_iter().map(scan).collect()
    }

    fn links(&self) -> Vec<Link> {
        let whole: HashSet<_> = self.whole().iter().map(|chain| chain.query).collect();
        let is_left = |query: &&Query| whole.is_empty() || !whole.contains(&query.fingerprint());
        let left = self.chains.iter().filter(is_left);
        let link = |query: &Query| Link {
            mark: self.begin.as_ref().and_then(|at| at.mark(query)).cloned(),
            expected: self.client.densities().pages(query),
            query: query.clone(),
        };
        left.map(link).collect()
    }

    /// The chains that were read before a resumption.
    pub(super) fn whole(&self) -> Vec<WholeChain> {
        self.begin.as_ref().map(Bookmark::whole).unwrap_or_default()
    }

    pub fn chains(&self) -> &[Query] {
        &self.chains
    }

    pub fn form(&self) -> Option<AskedRange> {
        self.form
    }

    pub fn cut(&self) -> Option<Cut> {
        self.cut
    }

    pub(crate) fn most_pages(&self) -> Option<u64> {
        let left = self.pages_left.as_ref().map(|left| left.load(Ordering::SeqCst));
        left.or(self.settings.max_pages)
    }

    pub(super) fn count_page(&self) {
        if let Some(left) = &self.pages_left {
            let one_less = |left: u64| Some(left.saturating_sub(1));
            left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).ok();
        }
    }

    pub(super) fn expected_pages(&self) -> Option<u64> {
        self.chains.iter().map(|query| self.client.densities().pages(query)).sum()
    }

    /// Another query with the same settings, from its start.
    pub(super) fn over(&self, query: Query, parts: Parts) -> Result<Self> {
        let DecodeSettings { shape, extra_columns, named, .. } = (*self.decode).clone();
        let decode = DecodeSettings::for_query(&query, shape, extra_columns)?;
        let decode = DecodeSettings { named, ..decode };
        let scan = Self::new(self.client.clone(), query, decode, self.settings.clone(), parts)?;
        Self { sent: self.sent.clone(), not_listed: Arc::clone(&self.not_listed), ..scan }
            .with_chains()
    }

    /// The scan after discovery has resolved the names of its selection. It keeps `named`, the
    /// series under these names, and sends `sent` instead.
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
        let scan = scan.with_chains()?;
        match begin {
            Some(bookmark) => scan.resume(bookmark, onto),
            None => Ok(scan),
        }
    }

    /// For a scan with unresolved names, which [`Scan::selecting`] then resumes.
    #[must_use]
    pub fn resume_later(&self, bookmark: Bookmark, onto: Option<Arc<Table>>) -> Self {
        Self { begin: Some(bookmark), onto, ..self.clone() }
    }

    pub fn query(&self) -> &Query {
        &self.query
    }

    pub fn client(&self) -> &Client {
        &self.client
    }

    pub fn decode_settings(&self) -> &DecodeSettings {
        &self.decode
    }

    pub(crate) fn read_settings(&self) -> &ReadSettings {
        &self.settings
    }

    /// The bookmark to start from.
    pub fn bookmark(&self) -> Option<&Bookmark> {
        self.begin.as_ref()
    }

    pub fn has_partial(&self) -> bool {
        self.onto.is_some()
    }

    /// Continues from `bookmark`, which must have the same query, host and subject. Bounds that
    /// depend on the time in the same form may differ. A collect adds its pages to `onto`, which
    /// must be the table that stopped at this bookmark: another table would leave a gap, or add
    /// points of another query. Without `onto` the result contains only the rest, and
    /// [`Provenance::resumed_after_pages`] is set.
    pub fn resume(&self, bookmark: Bookmark, onto: Option<Arc<Table>>) -> Result<Self> {
        let scan = self.fixed_as(&bookmark)?;
        bookmark.check(scan.owner.origin, scan.owner.query)?;
        if bookmark.whole.count() >= scan.chains.len() {
            return Err(Error::new(
                Kind::BookmarkError,
                "This bookmark is at the end of its read.",
            ));
        }
        if let Some(table) = &onto {
            scan.check_onto(table, &bookmark)?;
        }
        let size = SentSize::from(scan.query.input().page_size);
        let together = Arc::new(Together { size, ..Together::default() });
        Ok(Self { begin: Some(bookmark), onto, together, ..scan })
    }

    /// Takes the bookmark's bounds, if both depend on the time in the same form.
    fn fixed_as(&self, bookmark: &Bookmark) -> Result<Self> {
        let (own, fixed) = (self.owner.fixed, bookmark.owner.fixed);
        let (Some(own), Some(fixed)) = (own, fixed) else { return Ok(self.clone()) };
        if own.form != fixed.form || own == fixed {
            return Ok(self.clone());
        }
        let Fixed { start, end, .. } = fixed;
        let query = Query::new(QueryInput { start, end, ..self.query.input().clone() })?;
        self.over(query, (self.form, self.cut))
    }

    fn check_onto(&self, onto: &Table, bookmark: &Bookmark) -> Result<()> {
        let refused = |why: &str| Err(Error::new(Kind::QueryError, why).with_hint(ONTO_HINT));
        match onto.stopped_at {
            None => refused("onto= is a complete table."),
            Some(stopped_at) if stopped_at != bookmark.digest() => {
                refused("onto= is not the table that was read up to this bookmark.")
            }
            Some(_) if onto.merged.points.extra_columns() != self.decode.extra_columns => {
                refused("onto= has different extra columns than this scan.")
            }
            Some(_) => Ok(()),
        }
    }

    /// New chains, read one after the other. Their pages are not merged.
    pub fn pages(&self) -> Result<Arc<PageStream>> {
        self.stream(Prefetch::AfterTake)
    }

    pub(super) fn stream(&self, prefetch: Prefetch) -> Result<Arc<PageStream>> {
        let start = (self.owner, self.whole(), self.together.size.clone());
        // The pages of several chains are counted together.
        let is_alone = self.pages_left.is_none();
        let limit = self.settings.max_pages.map(|limit| if is_alone { limit } else { u64::MAX });
        let chain = Chain::of_scan(self.links(), start, Arc::clone(&self.decode), limit);
        let over = || Error::new(Kind::BookmarkError, "This bookmark is at the end of its read.");
        let chain = chain.ok_or_else(over)?;
        let (chain, provenance) = ((chain, self.expected_pages()), self.provenance());
        let together = Arc::clone(&self.together);
        let client = (self.client.clone(), together);
        Ok(PageStream::new(client, prefetch, &self.settings, chain, provenance))
    }

    pub fn empty(&self) -> Result<Table> {
        let merged = Merger::new(&self.decode.extra_columns).finish()?;
        Ok(Table { is_partial: true, ..Table::whole(merged, self.provenance()) })
    }

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

    /// Empty until discovery has been read.
    pub fn not_listed(&self) -> Vec<String> {
        let mut all = self.client.listed().missing(&self.query);
        all.extend_from_slice(&self.not_listed);
        all
    }

    pub fn resumed_after_pages(&self) -> u64 {
        self.begin.as_ref().map_or(0, Bookmark::pages)
    }

    pub fn deadline(&self) -> Deadline {
        Deadline::after(self.client.time().clock(), self.settings.deadline)
    }
}
