//! Finds the blocks that a read needs, with their recent points.

use std::collections::BTreeSet;

use rusqlite::Connection;

use super::block::PointVersion;
use super::directory::{Directory, FeedIndex};
use super::directory_page::{BlockEntry, BlockKey};
use super::failure::StoreResult;
use super::feeds::FeedRow;
use super::history::combine;
use super::recent::RecentPoints;
use crate::data::ranges::{Range, Ranges};

/// The range of a stretch, in microseconds.
pub(super) fn times(stretch: i64, span: i64) -> Range {
    let start = stretch.saturating_mul(span);
    Range::new(start, start.saturating_add(span))
}

/// A block without an entry has only recent points.
pub(super) type FoundBlock = (BlockKey, Option<BlockEntry>);

#[derive(Debug)]
pub(super) struct FoundBlocks {
    pub(super) blocks: Vec<FoundBlock>,
    pub(super) recent: RecentPoints,
}

impl FoundBlocks {
    pub(super) fn load(
        connection: &Connection,
        known: &FeedIndex,
        feed: &FeedRow,
        ranges: &Ranges,
    ) -> StoreResult<Self> {
        let recent = recent_points(connection, feed, ranges, None)?;
        let blocks = blocks_with(connection, known, feed, ranges, None, &recent)?;
        Ok(Self { blocks, recent })
    }
}

/// `series` is ascending, or `None` for all.
pub(super) fn recent_points(
    connection: &Connection,
    feed: &FeedRow,
    ranges: &Ranges,
    series: Option<&[i64]>,
) -> StoreResult<RecentPoints> {
    let overlaps = |key: BlockKey| !ranges.overlapping(times(key.1, feed.span)).is_empty();
    RecentPoints::load(connection, feed, |key| is_picked(series, key) && overlaps(key))
}

fn is_picked(series: Option<&[i64]>, key: BlockKey) -> bool {
    series.is_none_or(|series| series.binary_search(&key.0).is_ok())
}

/// The blocks of these ascending series or of all. Includes the blocks that have only recent points.
pub(super) fn blocks_with(
    connection: &Connection,
    known: &FeedIndex,
    feed: &FeedRow,
    ranges: &Ranges,
    series: Option<&[i64]>,
    recent: &RecentPoints,
) -> StoreResult<Vec<FoundBlock>> {
    let (Some(first), Some(last)) = (ranges.iter().next(), ranges.iter().next_back()) else {
        return Ok(Vec::new());
    };
    if feed.span == 0 {
        return Ok(Vec::new());
    }
    let end = last.end.div_euclid(feed.span).saturating_add(1);
    let stretches = first.start.div_euclid(feed.span)..end;
    let mut only_recent: BTreeSet<BlockKey> =
        recent.keys().filter(|key| is_picked(series, *key)).collect();
    let mut blocks = Vec::new();
    Directory::new(connection, feed.id)?.each_block(known, &stretches, series, |key, entry| {
        if !ranges.overlapping(times(key.1, feed.span)).is_empty() {
            only_recent.remove(&key);
            blocks.push((key, Some(entry)));
        }
    })?;
    blocks.extend(only_recent.into_iter().map(|key| (key, None)));
    Ok(blocks)
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
