//! [`Scan`]: a query, the settings to decode its pages, and a start. It sends no request until it is
//! read. [`Scan::pages`] starts a new chain each time; a
//! [`CollectOnce`](super::collect::CollectOnce) reads one chain to its end and merges it (§4.4,
//! §4.5.3).

use std::sync::Arc;

use super::collect::Partial;
use super::page_request::Prefetch;
use super::page_stream::PageStream;
use super::send::Client;
use super::settings::ReadSettings;
use super::table::{Provenance, Table};
use crate::data::{Bookmark, Chain, DecodeSettings, Merger, Query};
use crate::error::{Error, Kind, Result};
use crate::http::Deadline;

pub const ONTO_HINT: &str = "Pass the .partial of the error that had the bookmark.";

/// A read that has not started. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Scan {
    client: Client,
    query: Query,
    decode: Arc<DecodeSettings>,
    settings: ReadSettings,
    begin: Option<Bookmark>,
    onto: Option<Arc<Table>>,
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
        Self { client, query, decode: Arc::new(decode), settings, begin: None, onto: None }
    }

    /// A scan of another query with the same settings, from its start.
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
    pub(super) fn onto(&self) -> Option<&Table> {
        self.onto.as_deref()
    }

    /// The same scan, continuing from `bookmark`. A collect merges `onto`, the table read up to there.
    /// Without it, the result contains only the rest, and [`Provenance::resumed_after_pages`] says so.
    ///
    /// # Errors
    /// `BookmarkError` if the bookmark belongs to another query, host or subject; `QueryError` if
    /// `onto` is not the table of the read that stopped at this bookmark: another table would leave a
    /// gap, or add points of another query.
    pub fn resume(&self, bookmark: Bookmark, onto: Option<Arc<Table>>) -> Result<Self> {
        bookmark.check(&self.query, &self.client.origin())?;
        if let Some(table) = &onto {
            self.check_onto(table, &bookmark)?;
        }
        Ok(Self { begin: Some(bookmark), onto, ..self.clone() })
    }

    fn check_onto(&self, onto: &Table, bookmark: &Bookmark) -> Result<()> {
        let refused = |why: &str| Err(Error::new(Kind::QueryError, why).with_hint(ONTO_HINT));
        match &onto.unfinished {
            None => refused("onto= is a complete table."),
            Some(unfinished) if unfinished.stopped_at != *bookmark => {
                refused("onto= is not the table that was read up to this bookmark.")
            }
            Some(_) if onto.merged.points.extra_columns() != self.decode.extra_columns => {
                refused("onto= has other extra columns than this scan.")
            }
            Some(_) => Ok(()),
        }
    }

    /// A new chain over the query; its pages are not merged.
    ///
    /// # Errors
    /// `BookmarkError` as in [`Scan::resume`].
    pub fn pages(&self) -> Result<Arc<PageStream>> {
        self.stream(Prefetch::AfterTake)
    }

    pub(super) fn stream(&self, prefetch: Prefetch) -> Result<Arc<PageStream>> {
        let query = self.query.clone();
        let decode = Arc::clone(&self.decode);
        let origin = self.client.origin();
        let limit = self.settings.max_pages;
        let chain = match &self.begin {
            None => Chain::new(query, decode, &origin, limit),
            Some(bookmark) => Chain::resume(query, decode, &origin, limit, bookmark)?,
        };
        let chain = chain.expecting(self.client.densities().pages(&self.query), 0);
        let provenance = self.provenance();
        Ok(PageStream::new(self.client.clone(), prefetch, &self.settings, chain, provenance))
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
        Ok(Table::restored(merged, self.provenance(), true))
    }

    /// The origin of what a read that begins now gives, before its first page.
    #[must_use]
    pub fn provenance(&self) -> Provenance {
        Provenance {
            query: self.query.clone(),
            further: Vec::new(),
            host: self.client.base_url().host().to_owned(),
            read_at: self.client.now(),
            pages: 0,
            resumed_after_pages: self.resumed_after_pages(),
            not_listed: self.client.listed().missing(&self.query),
            listed: Arc::clone(self.client.listed()),
            through: Vec::new(),
        }
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
