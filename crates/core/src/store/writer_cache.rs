//! The cache of a writer. Pages of many series change a few points of the same thousands of blocks,
//! page after page.

use std::collections::HashMap;

use rusqlite::Connection;

use super::block::PointVersion;
use super::directory::FeedIndex;
use super::directory_page::BlockKey;
use super::failure::StoreResult;
use super::feeds::FeedRow;
use super::recent::RecentPoints;

#[derive(Debug, Default)]
pub(super) struct KnownFeed {
    pub(super) index: FeedIndex,
    pub(super) recent: RecentPoints,
    pub(super) blocks: BlockCache,
}

impl KnownFeed {
    /// Loads the feed if the cache is not current.
    pub(super) fn current(
        connection: &Connection,
        feed: &FeedRow,
        known: Option<Self>,
    ) -> StoreResult<Self> {
        if let Some(known) = known.filter(|known| known.index.generation == feed.generation) {
            return Ok(known);
        }
        let index = FeedIndex::load(connection, feed)?;
        let recent = RecentPoints::load(connection, feed, |_| true)?;
        Ok(Self { index, recent, blocks: BlockCache::default() })
    }

    pub(super) fn points(&self) -> usize {
        self.recent.len() + self.blocks.rows
    }
}

#[derive(Debug, Default)]
pub(super) struct BlockCache {
    blocks: HashMap<BlockKey, Vec<PointVersion>>,
    /// A block without rows counts as one.
    rows: usize,
    /// The last block that was not cached.
    other: Vec<PointVersion>,
}

impl BlockCache {
    /// Caches about `most` rows. Pages arrive in chronological order, so the blocks of other
    /// stretches are dropped first.
    pub(super) fn rows(
        &mut self,
        key: BlockKey,
        most: usize,
        load: impl FnOnce() -> StoreResult<Vec<PointVersion>>,
    ) -> StoreResult<&[PointVersion]> {
        if !self.blocks.contains_key(&key) {
            let rows = load()?;
            let more = rows.len().max(1);
            if self.rows + more > most {
                self.blocks.retain(|known, _| known.1 == key.1);
                self.rows = self.blocks.values().map(|rows| rows.len().max(1)).sum();
            }
            if self.rows + more > most {
                self.other = rows;
                return Ok(&self.other);
            }
            self.rows += more;
            self.blocks.insert(key, rows);
        }
        Ok(self.blocks.get(&key).map_or(&[], Vec::as_slice))
    }

    pub(super) fn replace(&mut self, key: BlockKey, rows: Vec<PointVersion>) {
        if let Some(known) = self.blocks.get_mut(&key) {
            self.rows = self.rows - known.len().max(1) + rows.len().max(1);
            *known = rows;
        }
    }
}
