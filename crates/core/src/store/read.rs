//! Reads a feed from a snapshot on its own connection. Each block is verified when it is read.

use std::collections::{BTreeMap, BTreeSet, TryReserveError};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};

use super::block::PointVersion;
use super::connection::StoreConnection;
use super::directory::{Directory, FeedIndex};
use super::directory_page::{BlockEntry, BlockKey};
use super::failure::{StoreFailure, StoreResult};
use super::feeds::{FeedRow, Feeds};
use super::found_blocks::{self, ALL_TIME, overlapping, recent_points, rows_of, times};
use super::history::show;
use super::recent::RecentPoints;
use super::series_filter::SeriesFilter;
use super::view::{Flagged, PointFilter, ShownPoints, View};
use crate::data::Identity;
use crate::error::{Error, Kind, Result};

const BATCH: usize = 65_536;
/// A batch may exceed its size by the points of the block that completes it.
const BLOCK: usize = 128;

/// The index of a series, and one of its blocks. A block without an entry has only recent points.
type ReadBlock = (usize, BlockKey, Option<BlockEntry>);

/// Reads a snapshot of a feed, ordered by series, then by time.
#[derive(Debug)]
pub struct Reader {
    path: PathBuf,
    link: StoreConnection,
    schema: SchemaRef,
    feed: FeedRow,
    known: FeedIndex,
    ranges: Vec<Range<i128>>,
    /// Ascending, or `None` for all.
    series: Option<Vec<i64>>,
    view: View,
    flagged: Flagged,
    identities: Vec<Identity>,
    recent: RecentPoints,
    /// `None` before the first points are requested.
    blocks: Option<Vec<ReadBlock>>,
    at: usize,
}

impl Reader {
    pub(super) fn new(
        path: &Path,
        link: StoreConnection,
        name: &str,
        filter: &PointFilter,
    ) -> StoreResult<Self> {
        let mut ranges = filter.ranges.as_ref().map_or_else(
            || ALL_TIME.to_vec(),
            |ranges| ranges.iter().map(|range| i128::from(range.0)..i128::from(range.1)).collect(),
        );
        let (feed, known, series, recent) = link.read(path, |connection| {
            let feed = find(&Feeds::load(connection)?, name)?.clone();
            let first = ranges.first().map_or(i128::MAX, |range| range.start);
            feed.retention.check(name, filter.view, first)?;
            leave_out(&mut ranges, feed.retention.kept_from);
            let known = FeedIndex::load(connection, &feed)?;
            let series = pick(&filter.series, &known, name)?;
            let recent = recent_points(connection, &feed, &ranges, series.as_deref())?;
            Ok((feed, known, series, recent))
        })?;
        let mut identities: Vec<Identity> = known.series.keys().cloned().collect();
        identities.sort_unstable();
        Ok(Self {
            path: path.to_owned(),
            schema: filter.view.schema(),
            feed,
            known,
            ranges,
            series,
            view: filter.view,
            flagged: filter.flagged,
            identities,
            recent,
            blocks: None,
            at: 0,
            link,
        })
    }

    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// Points before this time, in microseconds, were forgotten. `i64::MIN` if none were.
    #[must_use]
    pub fn kept_from(&self) -> i64 {
        self.feed.retention.kept_from
    }

    /// The ids of all series of the feed, in the order of the points.
    #[must_use]
    pub fn identities(&self) -> &[Identity] {
        &self.identities
    }

    /// The ids of the series that are read.
    pub fn picked(&self) -> impl Iterator<Item = &Identity> {
        let number = |ids: &&Identity| self.known.series.get(*ids).copied();
        self.identities.iter().filter(move |ids| number(ids).is_some_and(|one| self.is_picked(one)))
    }

    /// Reads only these series, given by their indices in [`Reader::identities`]. The filter still
    /// applies. Call it before the first points are read.
    pub fn keep_series(&mut self, places: &[usize]) {
        let kept = places.iter().filter_map(|place| self.identities.get(*place));
        let numbers = kept.filter_map(|ids| self.known.series.get(ids).copied());
        let mut numbers: Vec<i64> = numbers.filter(|number| self.is_picked(*number)).collect();
        numbers.sort_unstable();
        self.series = Some(numbers);
    }

    fn is_picked(&self, series: i64) -> bool {
        self.series.as_ref().is_none_or(|picked| picked.binary_search(&series).is_ok())
    }

    fn recent_keys(&self) -> impl Iterator<Item = BlockKey> {
        self.recent.keys().filter(|key| self.is_picked(key.0))
    }

    /// Returns `None` after the last points. A batch has at least `rows` points if there are
    /// enough, and ends with a block. After an error there are no more batches.
    pub fn next_batch(&mut self, rows: usize) -> Result<Option<RecordBatch>> {
        self.checked(|reader| reader.next_points(rows.max(1)))
    }

    /// Reads only blocks that the read includes partly.
    pub fn count_points(&mut self) -> Result<u64> {
        self.checked(|reader| reader.add_up())
    }

    /// Ends the read after an error, or if a writer may have changed the file meanwhile.
    fn checked<T>(&mut self, work: impl FnOnce(&mut Self) -> StoreResult<T>) -> Result<T> {
        let outcome = work(self);
        let outcome = self.link.check_unchanged(&self.path).and(outcome);
        outcome.map_err(|failure| {
            self.blocks = Some(Vec::new());
            self.at = 0;
            failure.into_error(&self.path)
        })
    }

    fn add_up(&self) -> StoreResult<u64> {
        let connection = self.link.connection()?;
        let mut parts: BTreeMap<BlockKey, Option<BlockEntry>> =
            self.recent_keys().map(|key| (key, None)).collect();
        let mut count = 0_u64;
        self.each_block(|key, entry| {
            let known = entry.summary.count(self.view, self.flagged);
            match known.filter(|_| self.is_whole(key) && !parts.contains_key(&key)) {
                Some(known) => count += known,
                None => drop(parts.insert(key, Some(entry))),
            }
        })?;
        let mut directory = Directory::new(connection, self.feed.id)?;
        for (key, entry) in parts {
            let block = rows_of(&mut directory, key, entry.as_ref(), &self.recent)?;
            for range in overlapping(&self.ranges, &times(key.1, self.feed.span)) {
                show(&block, range, self.view, self.flagged, |_, _| count += 1);
            }
        }
        Ok(count)
    }

    fn is_whole(&self, key: BlockKey) -> bool {
        let block = times(key.1, self.feed.span);
        let mut ranges = overlapping(&self.ranges, &block).iter();
        ranges.any(|range| range.start <= block.start && block.end <= range.end)
    }

    fn each_block(&self, each: impl FnMut(BlockKey, BlockEntry)) -> StoreResult<()> {
        let (connection, series) = (self.link.connection()?, self.series.as_deref());
        found_blocks::each_block(connection, &self.known, &self.feed, &self.ranges, series, each)
    }

    /// Finds the blocks that may contain points of the view.
    pub fn find_blocks(&mut self) -> Result<()> {
        self.checked(Self::load_blocks)
    }

    fn load_blocks(&mut self) -> StoreResult<()> {
        if self.blocks.is_some() {
            return Ok(());
        }
        let mut order = vec![0; self.identities.len() + 1];
        // Series numbers are consecutive from 1. A checksum has verified this.
        let number = |id: i64| usize::try_from(id).unwrap_or_default().min(self.identities.len());
        for (index, identity) in self.identities.iter().enumerate() {
            order[self.known.series.get(identity).map_or(0, |id| number(*id))] = index;
        }
        let mut only_recent: BTreeSet<BlockKey> = self.recent_keys().collect();
        let mut blocks = Vec::new();
        let mut add = |key: BlockKey, entry| {
            if may_show(self.view, entry, self.recent.rows(key)) {
                blocks.push((order[number(key.0)], key, entry));
            }
        };
        self.each_block(|key, entry| {
            only_recent.remove(&key);
            add(key, Some(entry));
        })?;
        for key in only_recent {
            add(key, None);
        }
        blocks.sort_unstable_by_key(|(index, key, _)| (*index, key.1));
        self.blocks = Some(blocks);
        Ok(())
    }

    fn blocks_left(&self) -> &[ReadBlock] {
        self.blocks.as_deref().and_then(|blocks| blocks.get(self.at..)).unwrap_or_default()
    }

    /// Allocates columns for all points that are left. Call [`Reader::find_blocks`] first.
    pub fn allocate(&self) -> Result<ShownPoints, TryReserveError> {
        ShownPoints::new(self.view, self.likely_points())
    }

    /// Estimates the number of points that are left, from the directory only.
    pub(super) fn likely_points(&self) -> usize {
        let points = |(_, key, entry): &ReadBlock| {
            let count = entry.map_or(0, |BlockEntry { summary, .. }| {
                let known = summary.count(self.view, self.flagged);
                known.unwrap_or(match (self.view, self.flagged) {
                    // Such a read shows only a few points of most blocks.
                    (view, flagged) if view.is_log() || flagged == Flagged::Only => 0,
                    _ => summary.points,
                })
            });
            self.share(key.1, count) + self.recent.rows(*key).len()
        };
        self.blocks_left().iter().map(points).sum()
    }

    /// The share of a block's points in the ranges, if the points are evenly spaced.
    fn share(&self, stretch: i64, points: u64) -> usize {
        let block = times(stretch, self.feed.span);
        let part = |range: &Range<i128>| range.end.min(block.end) - range.start.max(block.start);
        let inside: i128 = overlapping(&self.ranges, &block).iter().map(part).sum();
        let share = (i128::from(points) * inside + block.end - block.start - 1)
            / (block.end - block.start).max(1);
        usize::try_from(share).unwrap_or_default()
    }

    /// Adds as many points as [`Reader::next_batch`] returns. Returns false after the last.
    pub fn read_into(&mut self, shown: &mut ShownPoints, rows: usize) -> Result<bool> {
        self.checked(|reader| reader.add_next(shown, rows.max(1)))?;
        Ok(!self.blocks_left().is_empty())
    }

    fn next_points(&mut self, rows: usize) -> StoreResult<Option<RecordBatch>> {
        self.load_blocks()?;
        if self.blocks_left().is_empty() {
            return Ok(None);
        }
        let mut shown = ShownPoints::new(self.view, rows.min(BATCH) + BLOCK)
            .map_err(|_| Error::new(Kind::InternalError, "no memory for a batch of points"))?;
        self.add_next(&mut shown, rows)?;
        if shown.rows() == 0 {
            return Ok(None);
        }
        shown.batch(self.schema()).map(Some)
    }

    fn add_next(&mut self, shown: &mut ShownPoints, rows: usize) -> StoreResult<()> {
        self.load_blocks()?;
        let mut directory = Directory::new(self.link.connection()?, self.feed.id)?;
        let enough = shown.rows().saturating_add(rows);
        while shown.rows() < enough
            && let Some((index, key, entry)) = self.blocks_left().first().copied()
        {
            self.at += 1;
            let block = rows_of(&mut directory, key, entry.as_ref(), &self.recent)?;
            for range in overlapping(&self.ranges, &times(key.1, self.feed.span)) {
                show(&block, range, self.view, self.flagged, |row, change| shown.push(row, change));
            }
            shown.series(&self.identities[index]);
        }
        Ok(())
    }
}

impl Iterator for Reader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.next_batch(BATCH).transpose()?;
        Some(batch.map_err(|error| ArrowError::ExternalError(Box::new(error))))
    }
}

impl RecordBatchReader for Reader {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

pub(super) fn find<'f>(feeds: &'f Feeds, name: &str) -> StoreResult<&'f FeedRow> {
    feeds.find(name).ok_or_else(|| {
        let what = format!("it has no feed {name:?}");
        StoreFailure::Refused(what, "Sync the feed first.")
    })
}

/// `None` for all series.
fn pick(filter: &SeriesFilter, known: &FeedIndex, name: &str) -> StoreResult<Option<Vec<i64>>> {
    filter.pick(&known.series).map_err(|unknown| {
        let message = format!("feed {name:?} has no {unknown}");
        let hint = "The id may be misspelt, or none of its points was read yet.";
        StoreFailure::Core(Error::new(Kind::QueryError, message).with_hint(hint))
    })
}

fn leave_out(ranges: &mut Vec<Range<i128>>, before: i64) {
    for range in &mut *ranges {
        range.start = range.start.max(i128::from(before));
    }
    ranges.retain(|range| !range.is_empty());
}

fn may_show(view: View, entry: Option<BlockEntry>, recent: &[PointVersion]) -> bool {
    let shows = |version: u64| match view {
        View::Latest => true,
        View::AsOf(sequence) => version <= sequence,
        View::ChangedSince(since) => version > since,
        View::ChangedBetween(since, until) => version > since && version <= until,
    };
    entry.is_some_and(|entry| entry.summary.count(view, Flagged::Keep) != Some(0))
        || recent.iter().any(|row| shows(row.version))
}
