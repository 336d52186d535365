//! Finds the blocks that a read needs, with their recent points.

use std::ops::Range;

use rusqlite::Connection;

use super::block::PointVersion;
use super::directory::{Directory, FeedIndex};
use super::directory_page::{BlockEntry, BlockKey};
use super::failure::StoreResult;
use super::feeds::FeedRow;
use super::history::combine;
use super::recent::RecentPoints;

pub(super) const ALL_TIME: &[Range<i128>] = std::slice::from_ref(&(i128::MIN..i128::MAX));

pub(super) fn times(stretch: i64, span: i64) -> Range<i128> {
    let start = i128::from(stretch) * i128::from(span);
    start..start + i128::from(span)
}

pub(super) fn overlapping<'r>(ranges: &'r [Range<i128>], times: &Range<i128>) -> &'r [Range<i128>] {
    let first = ranges.partition_point(|range| range.end <= times.start);
    let end = ranges.partition_point(|range| range.start < times.end);
    &ranges[first..end.max(first)]
}

#[derive(Debug)]
pub(super) struct FoundBlocks {
    /// Ascending. A block without an entry has only recent points.
    pub(super) blocks: Vec<(BlockKey, Option<BlockEntry>)>,
    pub(super) recent: RecentPoints,
}

impl FoundBlocks {
    pub(super) fn load(
        connection: &Connection,
        known: &FeedIndex,
        feed: &FeedRow,
        ranges: &[Range<i128>],
    ) -> StoreResult<Self> {
        let recent = recent_points(connection, feed, ranges, None)?;
        let mut blocks = Vec::new();
        let add = |key, entry| blocks.push((key, Some(entry)));
        each_block(connection, known, feed, ranges, None, add)?;
        blocks.sort_unstable_by_key(|(key, _)| *key);
        let listed = blocks.len();
        for key in recent.keys() {
            if blocks[..listed].binary_search_by_key(&key, |(key, _)| *key).is_err() {
                blocks.push((key, None));
            }
        }
        if blocks.len() > listed {
            blocks.sort_unstable_by_key(|(key, _)| *key);
        }
        Ok(Self { blocks, recent })
    }
}

/// `series` is ascending, or `None` for all.
pub(super) fn recent_points(
    connection: &Connection,
    feed: &FeedRow,
    ranges: &[Range<i128>],
    series: Option<&[i64]>,
) -> StoreResult<RecentPoints> {
    let overlaps = |key: BlockKey| !overlapping(ranges, &times(key.1, feed.span)).is_empty();
    let is_picked =
        |key: BlockKey| series.is_none_or(|series| series.binary_search(&key.0).is_ok());
    RecentPoints::load(connection, feed, |key| is_picked(key) && overlaps(key))
}

/// Visits the listed blocks of these ascending series or of all.
pub(super) fn each_block(
    connection: &Connection,
    known: &FeedIndex,
    feed: &FeedRow,
    ranges: &[Range<i128>],
    series: Option<&[i64]>,
    mut each: impl FnMut(BlockKey, BlockEntry),
) -> StoreResult<()> {
    let (Some(first), Some(last)) = (ranges.first(), ranges.last()) else { return Ok(()) };
    if feed.span == 0 {
        return Ok(());
    }
    let stretch = |time: i128| {
        let near = time.clamp(i128::from(i64::MIN), i128::from(i64::MAX));
        i64::try_from(near.div_euclid(i128::from(feed.span))).unwrap_or_default()
    };
    let stretches = stretch(first.start)..stretch(last.end).saturating_add(1);
    Directory::new(connection, feed.id)?.each_block(known, &stretches, series, |key, entry| {
        if !overlapping(ranges, &times(key.1, feed.span)).is_empty() {
            each(key, entry);
        }
    })
}

/// Reads all versions of the points of a block.
pub(super) fn rows_of(
    directory: &mut Directory<'_>,
    key: BlockKey,
    entry: Option<&BlockEntry>,
    recent: &RecentPoints,
) -> StoreResult<Vec<PointVersion>> {
    let rows = entry.map_or(Ok(Vec::new()), |entry| directory.rows(key, entry))?;
    Ok(combine(rows, recent.rows(key)))
}
