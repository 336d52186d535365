//! Merges one page into the blocks of a feed. If a page has only a few points in each of many
//! blocks, they become one row of recent points instead.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::Connection;

use super::block::PointVersion;
use super::directory::Directory;
use super::directory_page::{BlockKey, PageKey};
use super::failure::StoreResult;
use super::feeds::FeedRow;
use super::history::{MergeCounts, combine, merge, successor};
use super::pages::PageRow;
use super::recent::SeriesPoint;
use super::seen::SeenPoints;
use super::seen_log::LaterPages;
use super::writer_cache::KnownFeed;

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
    connection: &'c Connection,
    directory: Directory<'c>,
    known: &'k mut KnownFeed,
    feed: &'k mut FeedRow,
    log: PageRow,
    limits: RecentLimits,
    counts: MergeCounts,
    /// New rows of blocks with a few points.
    few: Vec<(BlockKey, PointVersion)>,
}

impl<'c, 'k> PageMerge<'c, 'k> {
    pub(super) fn new(
        connection: &'c Connection,
        known: &'k mut KnownFeed,
        feed: &'k mut FeedRow,
        log: PageRow,
        limits: RecentLimits,
    ) -> StoreResult<Self> {
        let directory = Directory::new(connection, feed.id)?;
        let (counts, few) = (MergeCounts::default(), Vec::new());
        Ok(Self { connection, directory, known, feed, log, limits, counts, few })
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
            let all = self.known.recent.stretches().map(|(stretch, _)| stretch).collect();
            self.move_recent(&all)?;
        }
        if brought.is_some() && self.feed.span > 0 {
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
        self.move_recent(&due)?;
        self.directory.finish(&mut self.known.index, self.feed)?;
        Ok(self.counts)
    }

    /// The blocks that may have a point in the range of the page's chain.
    fn blocks_of_chain(&self) -> StoreResult<Vec<BlockKey>> {
        let PageRow { start, end, .. } = self.log;
        let stretches = start.div_euclid(self.feed.span)..end.div_euclid(self.feed.span) + 1;
        let mut blocks = Vec::new();
        let add = |key, _| blocks.push(key);
        self.directory.each_block(&self.known.index, &stretches, None, add)?;
        blocks.extend(self.known.recent.keys().filter(|key| stretches.contains(&key.1)));
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
            let rows = all.insert(self.rows_of(key)?);
            add_absent(&self.log, key, rows, brought, &mut incoming);
        }
        if incoming.is_empty() {
            return Ok(());
        }
        if later.is_none() && incoming.len() < self.limits.few {
            return match all {
                Some(rows) => {
                    let few = newer(&rows, &[], &incoming, &mut self.counts);
                    self.few.extend(few.map(|row| (key, row)));
                    Ok(())
                }
                None => self.add_few(key, &incoming),
            };
        }
        let rows = all.map_or_else(|| self.rows_of(key), Ok)?;
        let events = |timestamp| later.map_or_else(Vec::new, |l| l.events(key.0, timestamp));
        let merged = merge(&rows, &incoming, events, &mut self.counts);
        merged.map_or(Ok(()), |rows| self.store(key, rows))
    }

    /// Includes recent points.
    fn rows_of(&mut self, key: BlockKey) -> StoreResult<Vec<PointVersion>> {
        let rows = self.directory.rows_of(&self.known.index, key)?;
        Ok(combine(rows, self.known.recent.rows(key)))
    }

    /// Collects the rows that the newest page adds to a block.
    fn add_few(&mut self, key: BlockKey, incoming: &[PointVersion]) -> StoreResult<()> {
        let KnownFeed { index, recent, blocks } = &mut *self.known;
        let load = || self.directory.rows_of(index, key);
        let rows = blocks.rows(key, self.limits.most, load)?;
        let few = newer(rows, recent.rows(key), incoming, &mut self.counts);
        self.few.extend(few.map(|row| (key, row)));
        Ok(())
    }

    fn store(&mut self, key: BlockKey, rows: Vec<PointVersion>) -> StoreResult<()> {
        self.directory.store(&self.known.index, key, &rows)?;
        self.known.blocks.replace(key, rows);
        Ok(())
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
            return self.known.recent.save(self.connection, self.feed, sequence, points);
        }
        for few in blocks() {
            let key = few[0].0;
            let rows: Vec<PointVersion> = few.iter().map(|(_, row)| *row).collect();
            let KnownFeed { index, recent, blocks } = &mut *self.known;
            let load = || self.directory.rows_of(index, key);
            let block = blocks.rows(key, self.limits.most, load)?.to_vec();
            let block = combine(block, recent.rows(key));
            self.store(key, combine(block, &rows))?;
        }
        Ok(())
    }

    /// The stretches with recent points that move into their blocks now.
    fn due(&self) -> BTreeSet<i64> {
        let RecentLimits { dense, most, .. } = self.limits;
        let recent = &self.known.recent;
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

    fn move_recent(&mut self, stretches: &BTreeSet<i64>) -> StoreResult<()> {
        let Self { connection, directory, known, feed, .. } = self;
        move_into_blocks(connection, directory, known, feed, stretches)
    }
}

fn move_into_blocks(
    connection: &Connection,
    directory: &mut Directory<'_>,
    known: &mut KnownFeed,
    feed: &mut FeedRow,
    stretches: &BTreeSet<i64>,
) -> StoreResult<()> {
    if stretches.is_empty() {
        return Ok(());
    }
    for (key, recent) in known.recent.take(connection, feed, stretches)? {
        let rows = combine(directory.rows_of(&known.index, key)?, &recent);
        directory.store(&known.index, key, &rows)?;
        known.blocks.replace(key, rows);
    }
    Ok(())
}

/// Moves recent points before `end` into their blocks. Returns the directory pages up to there.
pub(super) fn move_recent(
    connection: &Connection,
    known: &mut KnownFeed,
    feed: &mut FeedRow,
    end: i64,
) -> StoreResult<Vec<PageKey>> {
    if feed.span == 0 {
        return Ok(Vec::new());
    }
    let last = (end - 1).div_euclid(feed.span);
    let mut directory = Directory::new(connection, feed.id)?;
    let stretches = known.recent.stretches().map(|(stretch, _)| stretch);
    let stretches: BTreeSet<i64> = stretches.filter(|stretch| *stretch <= last).collect();
    move_into_blocks(connection, &mut directory, known, feed, &stretches)?;
    directory.finish(&mut known.index, feed)?;
    Ok(known.index.pages_until(last))
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
