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

#[derive(Debug, Default)]
pub(super) struct FoundBlocks {
    pub(super) blocks: Vec<FoundBlock>,
    pub(super) recent: RecentPoints,
}

impl FoundBlocks {
    /// The blocks of these ascending series or of all. Includes the blocks that have only recent
    /// points.
    pub(super) fn load(
        connection: &Connection,
        known: &FeedIndex,
        feed: &FeedRow,
        ranges: &Ranges,
        series: Option<&[i64]>,
    ) -> StoreResult<Self> {
        let overlaps = |key: BlockKey| !ranges.overlapping(times(key.1, feed.span)).is_empty();
        let recent = RecentPoints::load(connection, feed, |key| {
            series.is_none_or(|series| series.binary_search(&key.0).is_ok()) && overlaps(key)
        })?;
        let mut blocks = Vec::new();
        if let (Some(first), Some(last)) = (ranges.iter().next(), ranges.iter().next_back())
            && feed.span > 0
        {
            let end = last.end.div_euclid(feed.span).saturating_add(1);
            let stretches = first.start.div_euclid(feed.span)..end;
            let mut only_recent: BTreeSet<BlockKey> = recent.keys().collect();
            let mut directory = Directory::new(connection, feed.id)?;
            directory.each_block(known, &stretches, series, |key, entry| {
                if overlaps(key) {
                    only_recent.remove(&key);
                    blocks.push((key, Some(entry)));
                }
            })?;
            blocks.extend(only_recent.into_iter().map(|key| (key, None)));
        }
        Ok(Self { blocks, recent })
    }

    /// Reads all versions of the points of a block.
    pub(super) fn rows(
        &self,
        directory: &mut Directory<'_>,
        (key, entry): FoundBlock,
    ) -> StoreResult<Vec<PointVersion>> {
        let rows = entry.map_or(Ok(Vec::new()), |entry| directory.rows(key, &entry))?;
        Ok(combine(rows, self.recent.rows(key)))
    }
}
