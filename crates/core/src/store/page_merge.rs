//! Merges one page into the blocks of a feed. If a page has only a few points in each of many
//! blocks, they become one row of recent points instead.

use std::collections::{BTreeMap, BTreeSet};

use super::block::PointVersion;
use super::directory_page::BlockKey;
use super::failure::StoreResult;
use super::history::{MergeCounts, combine, merge, successor};
use super::pages::PageRow;
use super::recent::SeriesPoint;
use super::seen::SeenPoints;
use super::seen_log::LaterPages;
use super::writer_cache::FeedChange;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RecentLimits {
    /// A page has *a few* points of a block if it has fewer than this.
    pub(super) few: usize,
    /// If a page has a few points of at least this many blocks, they become recent points.
    pub(super) many: usize,
    /// The recent points of a stretch move into its blocks if there are this many per block. With a
    /// lower limit, blocks would be rewritten too often.
    pub(super) dense: usize,
    /// With more recent points than this, all that the page does not touch move into their blocks.
    /// A writer keeps them in memory, 64 bytes each.
    pub(super) most: usize,
}

impl Default for RecentLimits {
    fn default() -> Self {
        Self { few: 16, many: 64, dense: 32, most: 1 << 20 }
    }
}

pub(super) struct PageMerge<'c, 'k> {
    change: FeedChange<'c, 'k>,
    log: PageRow,
    limits: RecentLimits,
    counts: MergeCounts,
    /// New rows of blocks with a few points.
    few: Vec<(BlockKey, PointVersion)>,
}

impl<'c, 'k> PageMerge<'c, 'k> {
    pub(super) fn new(change: FeedChange<'c, 'k>, log: PageRow, limits: RecentLimits) -> Self {
        Self { change, log, limits, counts: MergeCounts::default(), few: Vec::new() }
    }

    /// `later` is set if the page is not the newest. `brought` is set for the last page of a chain:
    /// the points seen since the chain began.
    pub(super) fn run(
        mut self,
        mut incoming: Vec<(BlockKey, Vec<PointVersion>)>,
        later: Option<&LaterPages>,
        brought: Option<&SeenPoints>,
    ) -> StoreResult<MergeCounts> {
        if later.is_some() {
            // The page changes histories, and some of their rows are still recent.
            let all = self.change.known.recent.stretches().map(|(stretch, _)| stretch).collect();
            self.change.move_recent(&all)?;
        }
        if brought.is_some() && self.change.feed.span > 0 {
            let mut blocks: BTreeMap<_, _> = incoming.into_iter().collect();
            for key in self.blocks_of_chain()? {
                blocks.entry(key).or_default();
            }
            incoming = blocks.into_iter().collect();
        }
        for (key, incoming) in incoming {
            self.merge_block(key, incoming, later, brought)?;
        }
        self.save_few()?;
        let due = self.due();
        self.change.move_recent(&due)?;
        self.change.finish()?;
        Ok(self.counts)
    }

    /// The blocks that may have a point in the range of the page's chain.
    fn blocks_of_chain(&mut self) -> StoreResult<Vec<BlockKey>> {
        let FeedChange { directory, known, feed, .. } = &mut self.change;
        let PageRow { start, end, .. } = self.log;
        let stretches = start.div_euclid(feed.span)..end.div_euclid(feed.span) + 1;
        let mut blocks = Vec::new();
        directory.each_block(&known.index, &stretches, None, |key, _| blocks.push(key))?;
        blocks.extend(known.recent.keys().filter(|key| stretches.contains(&key.1)));
        Ok(blocks)
    }

    fn merge_block(
        &mut self,
        key: BlockKey,
        mut incoming: Vec<PointVersion>,
        later: Option<&LaterPages>,
        brought: Option<&SeenPoints>,
    ) -> StoreResult<()> {
        let mut all = None;
        if let Some(brought) = brought {
            let rows = all.insert(self.change.rows_of(key)?);
            add_absent(&self.log, key, rows, brought, &mut incoming);
        }
        if incoming.is_empty() {
            return Ok(());
        }
        if later.is_none() && incoming.len() < self.limits.few {
            let (rows, recent) = match &all {
                Some(rows) => (rows.as_slice(), &[][..]),
                None => self.change.cached_rows(key, self.limits.most)?,
            };
            let few = newer(rows, recent, &incoming, &mut self.counts);
            self.few.extend(few.map(|row| (key, row)));
            return Ok(());
        }
        let rows = all.map_or_else(|| self.change.rows_of(key), Ok)?;
        let events = |timestamp| later.map_or_else(Vec::new, |l| l.events(key.0, timestamp));
        let merged = merge(&rows, &incoming, events, &mut self.counts);
        merged.map_or(Ok(()), |rows| self.change.store(key, rows))
    }

    /// Writes the collected rows, as recent points or into their blocks.
    fn save_few(&mut self) -> StoreResult<()> {
        let few = std::mem::take(&mut self.few);
        if few.is_empty() {
            return Ok(());
        }
        let blocks = || few.chunk_by(|one, next| one.0 == next.0);
        if blocks().count() >= self.limits.many {
            let points: Vec<SeriesPoint> = few.iter().map(|(key, row)| (key.0, *row)).collect();
            let sequence = self.log.sequence;
            let FeedChange { connection, known, feed, .. } = &mut self.change;
            return known.recent.save(connection, feed, sequence, points);
        }
        for few in blocks() {
            let key = few[0].0;
            let rows: Vec<PointVersion> = few.iter().map(|(_, row)| *row).collect();
            let (block, recent) = self.change.cached_rows(key, self.limits.most)?;
            let block = combine(block.to_vec(), recent);
            self.change.store(key, combine(block, &rows))?;
        }
        Ok(())
    }

    /// The stretches with recent points that move into their blocks now.
    fn due(&self) -> BTreeSet<i64> {
        let RecentLimits { dense, most, .. } = self.limits;
        let recent = &self.change.known.recent;
        let Some(touched) = recent.stretches_of(self.log.sequence) else { return BTreeSet::new() };
        let is_full = recent.len() > most;
        let (mut due, mut left) = (BTreeSet::new(), 0);
        for (stretch, count) in recent.stretches() {
            let is_due = is_full || count.rows >= count.blocks * dense;
            if is_due && !touched.contains(&stretch) {
                due.insert(stretch);
            } else {
                left += count.rows;
            }
        }
        if left > most { recent.stretches().map(|(stretch, _)| stretch).collect() } else { due }
    }
}

/// The rows that the newest page adds to a block.
fn newer<'r>(
    rows: &'r [PointVersion],
    recent: &'r [PointVersion],
    incoming: &'r [PointVersion],
    counts: &'r mut MergeCounts,
) -> impl Iterator<Item = PointVersion> {
    let last = |rows: &[PointVersion], timestamp| {
        // Most pages have later points than the block. Checking one row avoids a search.
        if rows.last().is_none_or(|row| row.timestamp < timestamp) {
            return None;
        }
        let end = rows.partition_point(|row| row.timestamp <= timestamp);
        rows[..end].last().copied().filter(|row| row.timestamp == timestamp)
    };
    incoming.iter().filter_map(move |new| {
        let known = [last(rows, new.timestamp), last(recent, new.timestamp)];
        let before = known.into_iter().flatten().max_by_key(|row| row.version);
        successor(before.as_ref(), new, counts)
    })
}

/// Adds an absent row for each stored point in the chain's range that is not in `brought`.
fn add_absent(
    log: &PageRow,
    key: BlockKey,
    rows: &[PointVersion],
    brought: &SeenPoints,
    incoming: &mut Vec<PointVersion>,
) {
    let PageRow { sequence, start, end, .. } = *log;
    let mut finder = brought.finder(key.0);
    for row in rows.chunk_by(|one, next| one.timestamp == next.timestamp).map(|all| all[0]) {
        if (start..end).contains(&row.timestamp) && !finder.holds(row.timestamp) {
            incoming.push(PointVersion { version: sequence, absent: true, ..row });
        }
    }
    incoming.sort_unstable_by_key(|row| row.timestamp);
}
