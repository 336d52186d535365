//! The merged result of a read, and its provenance.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::listed::ListedIds;
use crate::data::report::PageReport;
use crate::data::reshape::{Coverage, Expected};
use crate::data::{
    Bookmark, MergeReport, Merged, Merger, PointColumns, Query, QueryInput, SentSize,
};
use crate::error::{Error, Result};

/// The latest version of each point, in canonical order.
#[derive(Debug)]
pub struct Table {
    pub merged: Merged,
    /// Only the bookmark with this checksum continues the read.
    pub stopped_at: Option<[u8; 32]>,
    pub is_partial: bool,
    pub provenance: Provenance,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Provenance {
    pub query: Query,
    pub host: String,
    /// The service's time at the start.
    pub read_at: Timestamp,
    pub pages: u64,
    /// Earlier pages whose points are not in this table, because the read was resumed without it.
    pub resumed_after_pages: u64,
    #[serde(default)]
    pub page_size: SentSize,
    /// The ids that discovery did not list at the start.
    pub not_listed: Vec<String>,
    #[serde(skip)]
    pub listed: Arc<ListedIds>,
    /// The ids that a later discovery response did not list. Set by the first report.
    #[serde(skip)]
    pub late: Arc<OnceLock<Vec<String>>>,
    /// Empty without a store.
    pub through: Vec<StoreShare>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreShare {
    pub store: String,
    pub feed: String,
    /// Settled ranges, each with start and end.
    pub from_store: Vec<(Timestamp, Timestamp)>,
    /// Ranges that were added to the store.
    pub from_service: Vec<(Timestamp, Timestamp)>,
}

#[derive(Debug)]
pub struct ReadFailure {
    pub error: Error,
    /// `None` if no page was read.
    pub bookmark: Option<Bookmark>,
    /// `None` if the pages were returned one by one.
    pub partial: Option<Arc<Table>>,
}

#[derive(Debug, Default, Serialize)]
pub struct TableReport<'a> {
    #[serde(flatten)]
    merged: Cow<'a, MergeReport>,
    pages: u64,
    resumed_after_pages: u64,
    read_at: Option<Timestamp>,
    page_size: Option<u32>,
    page_size_reason: Option<&'static str>,
    /// The bounds inside a bucket: `start`, `end`.
    bounds_off_grid: Vec<&'static str>,
    not_listed: Cow<'a, [String]>,
    through: &'a [StoreShare],
}

impl<'a> TableReport<'a> {
    fn new(merged: Cow<'a, MergeReport>, source: &Provenance) -> Self {
        let Provenance { pages, resumed_after_pages, .. } = *source;
        let read_at = Some(source.read_at);
        let (page_size, page_size_reason) = source.page_size();
        let read = Self { read_at, page_size, page_size_reason, ..Self::default() };
        Self { merged, pages, resumed_after_pages, ..read }
    }

    /// What concerns the whole read is in the report of its table.
    #[must_use]
    pub fn of_page(page: &PageReport, source: &Provenance) -> Self {
        let PageReport { points, series, repeated, .. } = *page;
        let counts =
            MergeReport { points_read: points, points, series, repeated, ..Default::default() };
        Self::new(Cow::Owned(MergeReport { quality: page.clone(), ..counts }), source)
    }

    /// Points from another source have no pages and no findings.
    #[must_use]
    pub fn unread(points: &PointColumns) -> Self {
        let (rows, series) = (points.rows() as u64, points.series.len() as u64);
        let merged = MergeReport { points_read: rows, points: rows, series, ..Default::default() };
        Self { merged: Cow::Owned(merged), ..Self::default() }
    }
}

impl Provenance {
    /// The page size and its reason. Both are `None` before the first page.
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

    /// The range of the query in microseconds, if both bounds are set.
    pub fn bounds(&self) -> Option<(i64, i64)> {
        let (start, end) = (self.query.start()?, self.query.end()?);
        Some((start.as_microsecond(), end.as_microsecond()))
    }

    fn all_not_listed(&self) -> Cow<'_, [String]> {
        let late = self.late.get_or_init(|| self.listed.missing(&self.query));
        let mut all = Cow::Borrowed(&self.not_listed[..]);
        for missing in late.iter().filter(|one| !self.not_listed.contains(one)) {
            all.to_mut().push(missing.clone());
        }
        all
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

    pub fn report(&self) -> TableReport<'_> {
        let Provenance { query, through, .. } = &self.provenance;
        let report = TableReport::new(Cow::Borrowed(&self.merged.report), &self.provenance);
        TableReport {
            bounds_off_grid: query.bounds_off_grid(),
            not_listed: self.provenance.all_not_listed(),
            through,
            ..report
        }
    }

    /// The later tables win. Each is dropped after its merge.
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

    /// The buckets of the query's range. A bucket that was not over when the read began counts as
    /// not read.
    pub fn coverage(&self) -> Coverage {
        let Provenance { query, resumed_after_pages, read_at, .. } = &self.provenance;
        if self.is_partial || *resumed_after_pages > 0 {
            return Coverage::part(
                "this table is only a part of its read",
                "Finish the read first: scan.resume(…, onto=…).",
            );
        }
        let (range, interval) = (self.range(), query.interval_seconds());
        let width = interval.map_or(1, |seconds| i64::from(seconds) * 1_000_000);
        let over = read_at.as_microsecond() - width + 1;
        let read = range.clone().map(|range| range.start..range.end.min(over));
        Coverage::Known(Expected::new(interval, range, read))
    }

    /// Without a start it begins with the first point.
    fn range(&self) -> Option<Range<i64>> {
        let Provenance { query, .. } = &self.provenance;
        let first = self.merged.points.timestamps.values().iter().min().copied();
        let start = query.start().map(Timestamp::as_microsecond).or(first);
        start.zip(query.end()).map(|(start, end)| start..end.as_microsecond())
    }
}
