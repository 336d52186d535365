//! The merged result of a read, and its provenance.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::listed::ListedIds;
use crate::data::reshape::{Coverage, Expected};
use crate::data::{
    Bookmark, MergeReport, Merged, Merger, PointColumns, Query, QueryInput, SentSize,
};
use crate::error::{Error, Kind, Result};

/// The result of a read: the latest version of each point, in canonical order.
#[derive(Debug)]
pub struct Table {
    pub merged: Merged,
    /// The checksum of the bookmark of an unfinished read. Only that bookmark continues the read.
    pub stopped_at: Option<[u8; 32]>,
    pub is_partial: bool,
    pub provenance: Provenance,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Provenance {
    pub query: Query,
    pub host: String,
    /// The service's time at the start of the read.
    pub read_at: Timestamp,
    /// Number of pages read.
    pub pages: u64,
    /// Number of earlier pages of the chain, whose points are not in this table. Only a read that
    /// was resumed without its partial table has any.
    pub resumed_after_pages: u64,
    /// The page size that its requests sent.
    #[serde(default)]
    pub page_size: SentSize,
    /// The ids of the query that discovery did not list at the start of the read.
    pub not_listed: Vec<String>,
    /// The contents of the client's discovery responses.
    #[serde(skip)]
    pub listed: Arc<ListedIds>,
    /// The ids that a later discovery response did not list. Set by the first report.
    #[serde(skip)]
    pub late: Arc<OnceLock<Vec<String>>>,
    /// The parts of the range that were read through the feeds of a store; empty without a store.
    pub through: Vec<StoreShare>,
}

/// The part of a range that was read through one feed of a store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreShare {
    pub store: String,
    pub feed: String,
    /// Settled ranges read from the store, each with start and end.
    pub from_store: Vec<Vec<Timestamp>>,
    /// Ranges read from the service and added to the store.
    pub from_service: Vec<Vec<Timestamp>>,
}

/// Parts of a query that may not mean what the user intended.
#[derive(Debug, Default, Serialize)]
pub struct QueryReport<'a> {
    /// The bounds inside a bucket: `start`, `end`.
    pub bounds_off_grid: Vec<&'static str>,
    /// The ids that discovery does not list.
    pub not_listed: Cow<'a, [String]>,
}

/// A failed read, with its position and the pages read before the failure.
#[derive(Debug)]
pub struct ReadFailure {
    pub error: Error,
    /// The bookmark to resume from; `None` if no page was read.
    pub bookmark: Option<Bookmark>,
    /// The merged pages; `None` if they were returned page by page.
    pub partial: Option<Arc<Table>>,
}

/// The assumptions, findings and counts of a complete read.
#[derive(Debug, Serialize)]
pub struct TableReport<'a> {
    #[serde(flatten)]
    merged: Cow<'a, MergeReport>,
    pages: u64,
    resumed_after_pages: u64,
    #[serde(flatten)]
    query: QueryReport<'a>,
    through: &'a [StoreShare],
}

impl<'a> TableReport<'a> {
    /// The report of a read, or of points from another source, which have no pages and no findings.
    #[must_use]
    pub fn new(read: Option<&'a Table>, points: &PointColumns) -> Self {
        let Some(Table { merged, provenance, .. }) = read else {
            let (rows, series) = (points.rows() as u64, points.series.len() as u64);
            let merged =
                MergeReport { points_read: rows, points: rows, series, ..MergeReport::default() };
            let (merged, query) = (Cow::Owned(merged), QueryReport::default());
            return Self { merged, pages: 0, resumed_after_pages: 0, query, through: &[] };
        };
        let Provenance { pages, resumed_after_pages, .. } = *provenance;
        let (merged, query) = (Cow::Borrowed(&merged.report), provenance.report());
        Self { merged, pages, resumed_after_pages, query, through: &provenance.through }
    }
}

impl Provenance {
    /// The page size that was sent, and its reason. Both are `None` before the first page.
    pub fn page_size(&self) -> (Option<u32>, Option<&'static str>) {
        let given = self.query.input().page_size;
        let reason = match (given, self.page_size.get()) {
            (Some(_), _) => Some("given"),
            (None, Some(Some(_))) => Some("automatic"),
            (None, Some(None)) => Some("refused"),
            (None, None) => None,
        };
        (given.or(self.page_size.get().flatten()), reason)
    }

    /// The bounds of the query in microseconds, if both are set.
    pub fn bounds(&self) -> Option<(i64, i64)> {
        let (start, end) = (self.query.start()?, self.query.end()?);
        Some((start.as_microsecond(), end.as_microsecond()))
    }

    fn report(&self) -> QueryReport<'_> {
        let bounds_off_grid = self.query.bounds_off_grid();
        let mut not_listed = Cow::Borrowed(&self.not_listed[..]);
        let late = self.late.get_or_init(|| self.listed.missing(&self.query));
        let new: Vec<_> =
            late.iter().filter(|one| !self.not_listed.contains(one)).cloned().collect();
        if !new.is_empty() {
            not_listed.to_mut().extend(new);
        }
        QueryReport { bounds_off_grid, not_listed }
    }
}

impl Serialize for Query {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.input().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Query {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(QueryInput::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

impl From<Error> for ReadFailure {
    fn from(error: Error) -> Self {
        Self { error, bookmark: None, partial: None }
    }
}

impl Table {
    /// A complete table.
    #[must_use]
    pub fn whole(merged: Merged, mut provenance: Provenance) -> Self {
        // A discovery response may have arrived during the read.
        for missing in provenance.listed.missing(&provenance.query) {
            if !provenance.not_listed.contains(&missing) {
                provenance.not_listed.push(missing);
            }
        }
        Self { merged, stopped_at: None, is_partial: false, provenance }
    }

    /// Merges tables. The later ones win. Each is dropped after its merge.
    pub(super) fn merged(
        tables: impl IntoIterator<Item = Arc<Self>>,
        extra_columns: &[String],
        provenance: Provenance,
    ) -> Result<Self> {
        let mut merger = Merger::new(extra_columns);
        for table in tables {
            merger.push_merged(&table.merged)?;
        }
        Ok(Self::whole(merger.finish()?, provenance))
    }

    /// The buckets that the query's range can contain. Without a start the range begins with the
    /// first point. Buckets that were not over when the read began count as not read.
    pub fn expected(&self) -> Result<Expected> {
        let refused = |why: &str, hint: &str| {
            let message = format!("Missing buckets cannot be determined: {why}.");
            Err(Error::new(Kind::QueryError, message).with_hint(hint.to_owned()))
        };
        let Provenance { query, resumed_after_pages, .. } = &self.provenance;
        if self.is_partial || *resumed_after_pages > 0 {
            return refused(
                "this table is only a part of its read",
                "Finish the read first: scan.resume(…, onto=…).",
            );
        }
        let Some(interval) = query.interval_seconds() else {
            return refused("the query has no interval", "Set interval= in the read.");
        };
        let range = self.range();
        let over = self.provenance.read_at.as_microsecond() - i64::from(interval) * 1_000_000 + 1;
        let read = range.iter().map(|range| range.start..range.end.min(over)).collect();
        Ok(Expected::new(interval, range.into_iter().collect(), read))
    }

    /// The part of its range that was read.
    pub fn coverage(&self) -> Coverage {
        if self.is_partial || self.provenance.resumed_after_pages > 0 {
            return Coverage::Part;
        }
        let read_at = self.provenance.read_at.as_microsecond();
        let read = || self.range().map(|range| range.start..range.end.min(read_at)).into_iter();
        let of_any_width = || Expected::of_any_width(read().collect());
        Coverage::Known(self.expected().unwrap_or_else(|_| of_any_width()))
    }

    /// The range of the query. Without a start it begins with the first point.
    fn range(&self) -> Option<Range<i64>> {
        let Provenance { query, .. } = &self.provenance;
        let first = self.merged.points.timestamps.values().iter().min().copied();
        let start = query.start().map(Timestamp::as_microsecond).or(first);
        start.zip(query.end()).map(|(start, end)| start..end.as_microsecond())
    }
}
