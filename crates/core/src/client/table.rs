//! [`Table`]: the merged result of a read and its provenance.

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

/// The result of a read: the highest version of each point, in canonical order.
#[derive(Debug)]
pub struct Table {
    /// The points and the counts of the merge.
    pub merged: Merged,
    /// The checksum of the bookmark at which an unfinished read stopped, where only it can continue.
    pub stopped_at: Option<[u8; 32]>,
    /// Whether the read failed before its end.
    pub is_partial: bool,
    /// The origin of the points.
    pub provenance: Provenance,
}

/// The origin of the points of a table.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Provenance {
    /// The query.
    pub query: Query,
    /// The service's host.
    pub host: String,
    /// The service's time when the read began.
    pub read_at: Timestamp,
    /// Pages read.
    pub pages: u64,
    /// Pages of the chain before these, whose points are missing here; not 0 only if a read was resumed
    /// without its partial table.
    pub resumed_after_pages: u64,
    /// The page size of its requests.
    #[serde(default)]
    pub page_size: SentSize,
    /// The ids of the queries that the discovery response did not list when the read began.
    pub not_listed: Vec<String>,
    /// What the discovery responses of the client listed.
    #[serde(skip)]
    pub listed: Arc<ListedIds>,
    /// The ids that a discovery response did not list which came before the first report, perhaps after the pages.
    #[serde(skip)]
    pub late: Arc<OnceLock<Vec<String>>>,
    /// What of the range came through the feeds of a store; empty without a store.
    pub through: Vec<StoreShare>,
}

/// What of a range came through one feed of a store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreShare {
    /// The path of the store.
    pub store: String,
    /// The name of the feed.
    pub feed: String,
    /// The ranges whose points it had settled, each its start and its end.
    pub from_store: Vec<Vec<Timestamp>>,
    /// The ranges that it read from the service, and keeps.
    pub from_service: Vec<Vec<Timestamp>>,
}

/// What in a query may mean something else than it seems (K17, K19).
#[derive(Debug, Default, Serialize)]
pub struct QueryReport<'a> {
    /// The bounds at which no bucket begins: `start`, `end`.
    pub bounds_off_grid: Vec<&'static str>,
    /// The ids that the discovery response did not list.
    pub not_listed: Cow<'a, [String]>,
}

/// A read that failed: its error, its position, and the pages that were read.
#[derive(Debug)]
pub struct ReadFailure {
    /// The error.
    pub error: Error,
    /// The bookmark for `Scan::resume`; `None` if no page was read.
    pub bookmark: Option<Bookmark>,
    /// The merged table of the pages read; `None` if they were returned page by page.
    pub partial: Option<Arc<Table>>,
}

/// What was assumed, seen and counted in a complete read.
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
    /// The report of a read, or of points without one (the sandbox's truth): no pages, nothing unusual.
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
    /// The page size that was sent, and where it is from; of a read that has no page neither.
    #[must_use]
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

    /// The bounds of the query in microseconds, where both are set.
    #[must_use]
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
    /// The complete table of these points.
    #[must_use]
    pub fn whole(merged: Merged, mut provenance: Provenance) -> Self {
        // Discovery may have answered while the pages were read.
        for missing in provenance.listed.missing(&provenance.query) {
            if !provenance.not_listed.contains(&missing) {
                provenance.not_listed.push(missing);
            }
        }
        Self { merged, stopped_at: None, is_partial: false, provenance }
    }

    /// One table of these, which are dropped one by one. The later ones win.
    ///
    /// # Errors
    /// As [`Merger::push_merged`] and [`Merger::finish`].
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

    /// The buckets that its points can have: those of its query. Without a start they begin with
    /// the first point. Buckets that were not over when the read began are not read.
    ///
    /// # Errors
    /// `QueryError` for a part of a read, and without an interval.
    pub fn expected(&self) -> Result<Expected> {
        let refused = |why: &str, hint: &str| {
            let message = format!("it is not known which buckets are missing: {why}");
            Err(Error::new(Kind::QueryError, message).with_hint(hint.to_owned()))
        };
        let Provenance { query, resumed_after_pages, .. } = &self.provenance;
        if self.is_partial || *resumed_after_pages > 0 {
            return refused(
                "this table is a part of a read",
                "Read to the end: resume(…, onto=…).",
            );
        }
        let Some(interval) = query.interval_seconds() else {
            return refused("the query has no interval", "Give interval= in the read.");
        };
        let range = self.range();
        let over = self.provenance.read_at.as_microsecond() - i64::from(interval) * 1_000_000 + 1;
        let read = range.iter().map(|range| range.start..range.end.min(over)).collect();
        Ok(Expected::new(interval, range.into_iter().collect(), read))
    }

    /// How much of its time was read.
    #[must_use]
    pub fn coverage(&self) -> Coverage {
        if self.is_partial || self.provenance.resumed_after_pages > 0 {
            return Coverage::Part;
        }
        let read_at = self.provenance.read_at.as_microsecond();
        let read = || self.range().map(|range| range.start..range.end.min(read_at)).into_iter();
        let of_any_width = || Expected::of_any_width(read().collect());
        Coverage::Known(self.expected().unwrap_or_else(|_| of_any_width()))
    }

    /// The range of its query. Without a start it begins with the first point.
    fn range(&self) -> Option<Range<i64>> {
        let Provenance { query, .. } = &self.provenance;
        let first = self.merged.points.timestamps.values().iter().min().copied();
        let start = query.start().map(Timestamp::as_microsecond).or(first);
        start.zip(query.end()).map(|(start, end)| start..end.as_microsecond())
    }
}
