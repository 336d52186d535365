//! [`FoundBlocks`]: the blocks that a read needs, with the recent points that belong to them.

use std::ops::Range;

use super::block::PointVersion;
use super::directory::{BlockEntry, BlockKey, Directory, FeedIndex};
use super::failure::StoreResult;
use super::feeds::FeedRow;
use super::history::combine;
use super::recent::RecentPoints;

/// All of time.
pub(super) const ALL_TIME: &[Range<i128>] = std::slice::from_ref(&(i128::MIN..i128::MAX));

/// The timestamps of a stretch.
pub(super) fn times(stretch: i64, span: i64) -> Range<i128> {
    let start = i128::from(stretch) * i128::from(span);
    start..start + i128::from(span)
}

/// The ranges that overlap this one.
pub(super) fn overlapping<'r>(ranges: &'r [Range<i128>], times: &Range<i128>) -> &'r [Range<i128>] {
    let first = ranges.partition_point(|range| range.end <= times.start);
    let end = ranges.partition_point(|range| range.start < times.end);
    &ranges[first..end.max(first)]
}

/// The blocks of a feed that a read needs.
#[derive(Debug)]
pub(super) struct FoundBlocks {
    /// Ascending; without an entry, all points of the block are recent.
    pub(super) blocks: Vec<(BlockKey, Option<BlockEntry>)>,
    /// The recent points of these blocks.
    pub(super) recent: RecentPoints,
}

impl FoundBlocks {
    /// The blocks that overlap these ranges, of these series, which are ascending; `None` for all.
    pub(super) fn load(
        connection: &rusqlite::Connection,
        known: &FeedIndex,
        feed: &FeedRow,
        ranges: &[Range<i128>],
        series: Option<&[i64]>,
    ) -> StoreResult<Self> {
        let overlaps = |key: BlockKey| !overlapping(ranges, &times(key.1, feed.span)).is_empty();
        let is_picked =
            |key: BlockKey| series.is_none_or(|series| series.binary_search(&key.0).is_ok());
        let recent = RecentPoints::load(connection, feed, |key| is_picked(key) && overlaps(key))?;
        let mut blocks = Vec::new();
        if let (Some(first), Some(last)) = (ranges.first(), ranges.last())
            && feed.span != 0
        {
            let stretch = |time: i128| {
                let near = time.clamp(i128::from(i64::MIN), i128::from(i64::MAX));
                i64::try_from(near.div_euclid(i128::from(feed.span))).unwrap_or_default()
            };
            let stretches = stretch(first.start)..stretch(last.end).saturating_add(1);
            let found = Directory::new(connection, feed.id)?.blocks(known, &stretches, series)?;
            let found = found.into_iter().filter(|(key, _)| overlaps(*key));
            blocks.extend(found.map(|(key, entry)| (key, Some(entry))));
        }
        let listed = blocks.len();
        for key in recent.keys() {
            if blocks[..listed].binary_search_by_key(&key, |(key, _)| *key).is_err() {
                blocks.push((key, None));
            }
        }
        blocks.sort_by_key(|(key, _)| *key);
        Ok(Self { blocks, recent })
    }
}

/// All versions of the points of a block.
pub(super) fn rows_of(
    directory: &mut Directory<'_>,
    key: BlockKey,
    entry: Option<&BlockEntry>,
    recent: &RecentPoints,
) -> StoreResult<Vec<PointVersion>> {
    let rows = entry.map_or(Ok(Vec::new()), |entry| directory.rows(key, entry))?;
    Ok(combine(rows, recent.rows(key)))
}
