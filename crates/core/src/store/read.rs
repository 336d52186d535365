//! Reads a feed from a snapshot on its own connection. Each block is verified when it is read.

use std::collections::TryReserveError;
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use rusqlite::Connection;

use super::block::PointVersion;
use super::connection::StoreConnection;
use super::directory::{Directory, FeedIndex};
use super::directory_page::{BlockEntry, BlockKey};
use super::failure::{StoreFailure, StoreResult};
use super::feeds::{FeedRow, Feeds};
use super::found_blocks::{FoundBlock, FoundBlocks, times};
use super::history::{Change, show};
use super::pages::{self, PageChains};
use super::series_filter::SeriesFilter;
use super::view::{Flagged, PointFilter, ShownPoints, View};
use crate::data::Identity;
use crate::data::ranges::{Range, Ranges};
use crate::error::{Error, Kind, Result};

const BATCH: usize = 65_536;
/// A batch may exceed its size by the points of the block that completes it.
const BLOCK: usize = 128;

/// A feed in one transaction.
#[derive(Debug)]
pub(crate) struct FeedSnapshot<'c> {
    pub(super) connection: &'c Connection,
    pub(super) feed: &'c FeedRow,
}

impl FeedSnapshot<'_> {
    /// The highest sequence number applied.
    pub(crate) fn sequence(&self) -> u64 {
        self.feed.sequence
    }

    pub(crate) fn kept_from(&self) -> i64 {
        self.feed.retention.kept_from
    }

    pub(crate) fn state(&self) -> StoreResult<Vec<u8>> {
        self.feed.state(self.connection)
    }

    /// The ranges of the chains up to a sequence number.
    pub(crate) fn chains_until(&self, sequence: u64) -> StoreResult<PageChains> {
        Ok(PageChains::until(sequence, &pages::all(self.connection, self.feed)?))
    }

    /// Rejects a view of a past that is not kept completely. `start` is in microseconds.
    pub(crate) fn check_history(&self, view: View, start: Option<i64>) -> StoreResult<()> {
        self.feed.retention.check(&self.feed.name, view, start.unwrap_or(i64::MIN))
    }
}

/// Reads a snapshot of a feed, ordered by series, then by time.
#[derive(Debug)]
pub struct Reader {
    path: PathBuf,
    link: StoreConnection,
    feed: FeedRow,
    known: FeedIndex,
    ranges: Ranges,
    /// Ascending, or `None` for all.
    series: Option<Vec<i64>>,
    view: View,
    flagged: Flagged,
    identities: Vec<Identity>,
    /// `None` before the first points are requested.
    found: Option<FoundBlocks>,
    /// The index of each series, by its number.
    order: Vec<usize>,
    at: usize,
}

impl Reader {
    /// Also returns what `choose` returns with the filter.
    pub(super) fn new<T>(
        path: &Path,
        link: StoreConnection,
        name: &str,
        choose: impl FnOnce(&FeedSnapshot<'_>) -> StoreResult<(PointFilter, T)>,
    ) -> StoreResult<(Self, T)> {
        let (feed, known, filter, chosen) = link.read(path, |connection| {
            let feed = Feeds::load(connection)?.known(name)?.clone();
            let (filter, chosen) = choose(&FeedSnapshot { connection, feed: &feed })?;
            let first = filter.ranges.iter().next().map_or(i64::MAX, |range| range.start);
            feed.retention.check(name, filter.view, first)?;
            let known = FeedIndex::load(connection, &feed)?;
            Ok((feed, known, filter, chosen))
        })?;
        let kept = Range::new(feed.retention.kept_from, i64::MAX);
        let ranges = filter.ranges.and(&kept.into());
        let series = pick(&filter.series, &known, name)?;
        let mut identities: Vec<Identity> = known.series.keys().cloned().collect();
        identities.sort_unstable();
        let mut order = vec![0; identities.len() + 1];
        for (index, identity) in identities.iter().enumerate() {
            order[number(known.series[identity], identities.len())] = index;
        }
        let reader = Self {
            path: path.to_owned(),
            feed,
            known,
            ranges,
            series,
            view: filter.view,
            flagged: filter.flagged,
            identities,
            found: None,
            order,
            at: 0,
            link,
        };
        Ok((reader, chosen))
    }

    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        self.view.schema()
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

    /// Returns `None` after the last points. A batch has at least `rows` points if there are
    /// enough, and ends with a block. After an error there are no more batches.
    pub fn next_batch(&mut self, rows: usize) -> Result<Option<RecordBatch>> {
        self.checked(|reader| reader.next_points(rows.max(1)))
    }

    /// Reads only blocks that the read includes partly.
    pub fn count_points(&mut self) -> Result<u64> {
        self.checked(Self::add_up)
    }

    /// Ends the read after an error, or if a writer may have changed the file meanwhile.
    fn checked<T>(&mut self, work: impl FnOnce(&mut Self) -> StoreResult<T>) -> Result<T> {
        let outcome = work(self);
        let outcome = self.link.check_unchanged(&self.path).and(outcome);
        outcome.map_err(|failure| {
            self.found = Some(FoundBlocks::default());
            self.at = 0;
            failure.into_error(&self.path)
        })
    }

    fn add_up(&mut self) -> StoreResult<u64> {
        self.load_blocks()?;
        let mut directory = Directory::new(self.link.connection()?, self.feed.id)?;
        let Some(found) = &self.found else { return Ok(0) };
        let mut count = 0_u64;
        for (key, entry) in found.blocks.iter().copied() {
            let listed = entry.filter(|_| found.recent.rows(key).is_empty() && self.is_whole(key));
            match listed.and_then(|entry| entry.summary.count(self.view, self.flagged)) {
                Some(known) => count += known,
                None => self.show(found, &mut directory, (key, entry), |_, _| count += 1)?,
            }
        }
        Ok(count)
    }

    /// Calls `give` for each point of a block that the read includes.
    fn show(
        &self,
        found: &FoundBlocks,
        directory: &mut Directory<'_>,
        block: FoundBlock,
        mut give: impl FnMut(&PointVersion, Change),
    ) -> StoreResult<()> {
        let rows = found.rows(directory, block)?;
        for range in self.ranges.overlapping(times(block.0.1, self.feed.span)) {
            show(&rows, *range, self.view, self.flagged, &mut give);
        }
        Ok(())
    }

    fn is_whole(&self, key: BlockKey) -> bool {
        let block = times(key.1, self.feed.span);
        let mut ranges = self.ranges.overlapping(block).iter();
        ranges.any(|range| range.start <= block.start && block.end <= range.end)
    }

    /// Finds the blocks that may contain points of the view.
    pub fn find_blocks(&mut self) -> Result<()> {
        self.checked(Self::load_blocks)
    }

    fn load_blocks(&mut self) -> StoreResult<()> {
        if self.found.is_some() {
            return Ok(());
        }
        let Self { known, feed, ranges, series, .. } = &*self;
        let connection = self.link.connection()?;
        let FoundBlocks { mut blocks, recent } =
            FoundBlocks::load(connection, known, feed, ranges, series.as_deref())?;
        blocks.retain(|(key, entry)| may_show(self.view, *entry, recent.rows(*key)));
        blocks.sort_unstable_by_key(|(key, _)| (self.place(key.0), key.1));
        self.found = Some(FoundBlocks { blocks, recent });
        Ok(())
    }

    /// The index of a series in [`Reader::identities`].
    fn place(&self, series: i64) -> usize {
        self.order[number(series, self.identities.len())]
    }

    fn blocks_left(&self) -> &[FoundBlock] {
        self.found.as_ref().and_then(|found| found.blocks.get(self.at..)).unwrap_or_default()
    }

    /// Allocates columns for all points that are left. Call [`Reader::find_blocks`] first.
    pub fn allocate(&self) -> Result<ShownPoints, TryReserveError> {
        ShownPoints::new(self.view, self.likely_points())
    }

    /// Estimates the number of points that are left, from the directory only.
    pub(super) fn likely_points(&self) -> usize {
        let Some(found) = &self.found else { return 0 };
        let points = |(key, entry): &FoundBlock| {
            let count = entry.map_or(0, |BlockEntry { summary, .. }| {
                let known = summary.count(self.view, self.flagged);
                known.unwrap_or(match (self.view, self.flagged) {
                    // Such a read shows only a few points of most blocks.
                    (view, flagged) if view.is_log() || flagged == Flagged::Only => 0,
                    _ => summary.points,
                })
            });
            self.share(key.1, count) + found.recent.rows(*key).len()
        };
        self.blocks_left().iter().map(points).sum()
    }

    /// The share of a block's points in the ranges, if the points are evenly spaced.
    fn share(&self, stretch: i64, points: u64) -> usize {
        let block = times(stretch, self.feed.span);
        let length = |range: Range| i128::from(range.end - range.start);
        let inside: i128 =
            self.ranges.overlapping(block).iter().map(|r| length(r.and(block))).sum();
        let share = (i128::from(points) * inside + length(block) - 1) / length(block).max(1);
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
            && let (Some(found), Some(block)) = (&self.found, self.blocks_left().first().copied())
        {
            self.show(found, &mut directory, block, |row, change| shown.push(row, change))?;
            shown.series(&self.identities[self.place(block.0.0)]);
            self.at += 1;
        }
        Ok(())
    }
}

/// Series numbers are consecutive from 1. A checksum has verified this.
fn number(series: i64, count: usize) -> usize {
    usize::try_from(series).unwrap_or_default().min(count)
}

/// `None` for all series.
fn pick(filter: &SeriesFilter, known: &FeedIndex, name: &str) -> StoreResult<Option<Vec<i64>>> {
    filter.pick(&known.series).map_err(|unknown| {
        let message = format!("feed {name:?} has no {unknown}");
        let hint = "The id or name may be misspelled, or none of its points was read yet.";
        StoreFailure::Core(Error::new(Kind::QueryError, message).with_hint(hint))
    })
}

fn may_show(view: View, entry: Option<BlockEntry>, recent: &[PointVersion]) -> bool {
    let shows = |row: &PointVersion| {
        view.since.is_none_or(|since| row.version > since)
            && view.until.is_none_or(|until| row.version <= until)
    };
    entry.is_some_and(|entry| entry.summary.count(view, Flagged::Keep) != Some(0))
        || recent.iter().any(shows)
}
