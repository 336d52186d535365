//! The cache of a writer, and the changes to a feed that keep it current. Pages of many series
//! change a few points of the same thousands of blocks, page after page.

use std::collections::{BTreeSet, HashMap};

use rusqlite::Connection;

use super::block::PointVersion;
use super::directory::{Directory, FeedIndex};
use super::directory_page::BlockKey;
use super::failure::StoreResult;
use super::feeds::FeedRow;
use super::history::combine;
use super::recent::RecentPoints;

#[derive(Debug, Default)]
pub(super) struct KnownFeed {
    pub(super) index: FeedIndex,
    pub(super) recent: RecentPoints,
    pub(super) blocks: BlockCache,
}

impl KnownFeed {
    /// Loads the feed if the cache is not current.
    pub(super) fn current<'k>(
        connection: &Connection,
        feed: &FeedRow,
        known: &'k mut Option<Self>,
    ) -> StoreResult<&'k mut Self> {
        if known.as_ref().is_none_or(|known| known.index.generation != feed.generation) {
            let index = FeedIndex::load(connection, feed)?;
            let recent = RecentPoints::load(connection, feed, |_| true)?;
            *known = Some(Self { index, recent, blocks: BlockCache::default() });
        }
        Ok(known.get_or_insert_default())
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

/// A feed in the transaction that changes it.
pub(super) struct FeedChange<'c, 'k> {
    pub(super) connection: &'c Connection,
    pub(super) directory: Directory<'c>,
    pub(super) known: &'k mut KnownFeed,
    pub(super) feed: &'k mut FeedRow,
}

impl<'c, 'k> FeedChange<'c, 'k> {
    pub(super) fn new(
        connection: &'c Connection,
        known: &'k mut KnownFeed,
        feed: &'k mut FeedRow,
    ) -> StoreResult<Self> {
        let directory = Directory::new(connection, feed.id)?;
        Ok(Self { connection, directory, known, feed })
    }

    /// Includes recent points.
    pub(super) fn rows_of(&mut self, key: BlockKey) -> StoreResult<Vec<PointVersion>> {
        let rows = self.directory.rows_of(&self.known.index, key)?;
        Ok(combine(rows, self.known.recent.rows(key)))
    }

    /// The cached rows and the recent points of a block. Caches about `most` rows.
    pub(super) fn cached_rows(
        &mut self,
        key: BlockKey,
        most: usize,
    ) -> StoreResult<(&[PointVersion], &[PointVersion])> {
        let KnownFeed { index, recent, blocks } = &mut *self.known;
        let rows = blocks.rows(key, most, || self.directory.rows_of(index, key))?;
        Ok((rows, recent.rows(key)))
    }

    pub(super) fn store(&mut self, key: BlockKey, rows: Vec<PointVersion>) -> StoreResult<()> {
        self.directory.store(&self.known.index, key, &rows)?;
        self.known.blocks.replace(key, rows);
        Ok(())
    }

    /// Moves the recent points of these stretches into their blocks.
    pub(super) fn move_recent(&mut self, stretches: &BTreeSet<i64>) -> StoreResult<()> {
        if stretches.is_empty() {
            return Ok(());
        }
        for (key, recent) in self.known.recent.take(self.connection, self.feed, stretches)? {
            let rows = self.directory.rows_of(&self.known.index, key)?;
            self.store(key, combine(rows, &recent))?;
        }
        Ok(())
    }

    /// Writes the changed directory pages.
    pub(super) fn finish(&mut self) -> StoreResult<()> {
        self.directory.finish(&mut self.known.index, self.feed)
    }
}
