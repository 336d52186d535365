//! The directory of a feed's blocks. A directory page lists the blocks of some series in some
//! stretches of time. The encoded bytes of a block are a chunk. Series and chunks are numbered.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use rusqlite::{Connection, Statement};

use super::block::{self, PointVersion};
use super::bytes::{Checksum, Sink, Source};
use super::directory_page::{
    BlockEntry, BlockKey, BlockSummary, DirectoryPage, PageKey, SERIES, STRETCHES, chunk_sum,
    entry_bytes, page_check, page_key,
};
use super::failure::{StoreFailure, StoreResult};
use super::feeds::FeedRow;
use super::schema::{check_digest, sum_rows};
use crate::data::Identity;

/// The series and the directory of a feed, verified.
#[derive(Debug, Default)]
pub(super) struct FeedIndex {
    pub(super) generation: i64,
    pub(super) series: HashMap<Identity, i64>,
    pub(super) checks: HashMap<PageKey, i64>,
    /// Whether the digest of the seen points was verified.
    pub(super) seen: bool,
}

impl FeedIndex {
    pub(super) fn load(connection: &Connection, feed: &FeedRow) -> StoreResult<Self> {
        let mut known = Self::default();
        let sql = r#"SELECT id, identity, "check" FROM series WHERE feed = ?1"#;
        let sum = sum_rows(connection, sql, [feed.id], |row| {
            let (id, bytes): (i64, Vec<u8>) = (row.get(0)?, row.get(1)?);
            let check = series_check(feed.id, id, &bytes);
            let identity = read_identity(&bytes).filter(|_| row.get(2) == Ok(check));
            let damaged = StoreFailure::Corrupt("the row of a series does not match its checksum");
            known.series.insert(identity.ok_or(damaged)?, id);
            Ok(check)
        })?;
        check_digest(sum, feed.series, "a series is missing")?;
        let sql = r#"SELECT rack, shelf, "check" FROM shelves WHERE feed = ?1"#;
        let sum = sum_rows(connection, sql, [feed.id], |row| {
            let check = row.get(2)?;
            known.checks.insert((row.get(0)?, row.get(1)?), check);
            Ok(check)
        })?;
        check_digest(sum, feed.directory, "a part of its directory is missing")?;
        Ok(known)
    }

    /// Ordered by time.
    pub(super) fn pages_until(&self, stretch: i64) -> Vec<PageKey> {
        let last = stretch.div_euclid(STRETCHES);
        let mut numbers: Vec<PageKey> =
            self.checks.keys().filter(|number| number.1 <= last).copied().collect();
        numbers.sort_unstable_by_key(|number| (number.1, number.0));
        numbers
    }

    /// A new series gets the next number.
    pub(super) fn series(
        &mut self,
        connection: &Connection,
        feed: &mut FeedRow,
        identity: &Identity,
    ) -> StoreResult<i64> {
        if let Some(id) = self.series.get(identity) {
            return Ok(*id);
        }
        let id = i64::try_from(self.series.len()).unwrap_or(i64::MAX) + 1;
        let bytes = identity_bytes(identity);
        let check = series_check(feed.id, id, &bytes);
        let row = (feed.id, id, bytes, check);
        connection.execute("INSERT INTO series VALUES (?1, ?2, ?3, ?4)", row)?;
        feed.series = feed.series.wrapping_add(check);
        self.series.insert(identity.clone(), id);
        Ok(id)
    }
}

fn series_check(feed: i64, id: i64, identity: &[u8]) -> i64 {
    Checksum::new("series").numbers(&[feed, id]).bytes(identity).value()
}

fn identity_bytes(identity: &Identity) -> Vec<u8> {
    let mut sink = Sink::default();
    for id in identity.0.iter() {
        sink.0.push(u8::from(id.is_some()));
        sink.bytes(id.as_deref().unwrap_or_default().as_bytes());
    }
    sink.0
}

fn read_identity(bytes: &[u8]) -> Option<Identity> {
    let mut source = Source(bytes);
    let mut ids: [Option<Arc<str>>; 5] = Default::default();
    for id in &mut ids {
        let known = source.take(1)? == [1];
        let text = std::str::from_utf8(source.bytes()?).ok()?;
        *id = known.then(|| Arc::from(text));
    }
    source.0.is_empty().then(|| Identity::from(ids))
}

#[derive(Debug)]
pub(super) struct Directory<'c> {
    connection: &'c Connection,
    feed: i64,
    loaded: HashMap<PageKey, DirectoryPage>,
    chunk: Statement<'c>,
    insert: Statement<'c>,
    update: Statement<'c>,
    delete: Statement<'c>,
}

impl<'c> Directory<'c> {
    pub(super) fn new(connection: &'c Connection, feed: i64) -> StoreResult<Self> {
        let chunk = connection.prepare("SELECT bytes FROM contents WHERE id = ?1")?;
        let insert = connection.prepare("INSERT INTO contents (bytes) VALUES (?1)")?;
        let update = connection.prepare("UPDATE contents SET bytes = ?2 WHERE id = ?1")?;
        let delete =
            connection.prepare("DELETE FROM contents WHERE id = ?1 RETURNING length(bytes)")?;
        Ok(Self { connection, feed, loaded: HashMap::new(), chunk, insert, update, delete })
    }

    fn page(&mut self, known: &FeedIndex, number: PageKey) -> StoreResult<&mut DirectoryPage> {
        if !self.loaded.contains_key(&number) {
            let loaded = match known.checks.get(&number) {
                Some(check) => DirectoryPage::load(self.connection, self.feed, number, *check)?,
                None => DirectoryPage::default(),
            };
            self.loaded.insert(number, loaded);
        }
        Ok(self.loaded.entry(number).or_default())
    }

    /// Visits the blocks in a range of stretches, of these ascending series or of all.
    pub(super) fn each_block(
        &mut self,
        known: &FeedIndex,
        stretches: &Range<i64>,
        series: Option<&[i64]>,
        mut each: impl FnMut(BlockKey, BlockEntry),
    ) -> StoreResult<()> {
        let (first, last) = (stretches.start, stretches.end.saturating_sub(1));
        let pages = first.div_euclid(STRETCHES)..=last.div_euclid(STRETCHES);
        let groups: Option<HashSet<i64>> =
            series.map(|series| series.iter().map(|id| id.div_euclid(SERIES)).collect());
        let is_wanted = |number: &PageKey| {
            pages.contains(&number.1) && groups.as_ref().is_none_or(|all| all.contains(&number.0))
        };
        // Loaded pages may be new.
        let pages = known.checks.keys().chain(self.loaded.keys());
        let mut numbers: Vec<PageKey> = pages.filter(|number| is_wanted(number)).copied().collect();
        numbers.sort_unstable();
        numbers.dedup();
        for number in numbers {
            for (key, entry) in &self.page(known, number)?.entries {
                let is_wanted = series.is_none_or(|series| series.binary_search(&key.0).is_ok());
                if is_wanted && stretches.contains(&key.1) {
                    each(*key, *entry);
                }
            }
        }
        Ok(())
    }

    pub(super) fn entries(
        &mut self,
        known: &FeedIndex,
        number: PageKey,
    ) -> StoreResult<Vec<(BlockKey, BlockEntry)>> {
        let entries = &self.page(known, number)?.entries;
        Ok(entries.iter().map(|(key, entry)| (*key, *entry)).collect())
    }

    pub(super) fn rows(
        &mut self,
        key: BlockKey,
        entry: &BlockEntry,
    ) -> StoreResult<Vec<PointVersion>> {
        let rows = self.chunk.query_row([entry.chunk], |row| {
            let bytes = row.get_ref(0)?.as_blob().unwrap_or_default();
            let intact = chunk_sum(self.feed, key, bytes) == entry.sum;
            Ok(intact.then(|| block::decode(bytes)).flatten())
        })?;
        rows.ok_or(StoreFailure::Corrupt("points do not match their checksum"))
    }

    /// Returns no rows for a block that the directory does not list.
    pub(super) fn rows_of(
        &mut self,
        known: &FeedIndex,
        key: BlockKey,
    ) -> StoreResult<Vec<PointVersion>> {
        let entry = self.page(known, page_key(key))?.entries.get(&key).copied();
        entry.map_or(Ok(Vec::new()), |entry| self.rows(key, &entry))
    }

    /// Returns the size of the chunk in bytes.
    pub(super) fn store(
        &mut self,
        known: &FeedIndex,
        key: BlockKey,
        rows: &[PointVersion],
    ) -> StoreResult<u64> {
        let bytes = block::encode(rows);
        let length = bytes.len() as u64;
        if !block::is_plausible(rows.len(), bytes.len()) {
            let what = format!("{} versions of points in one stretch of time", rows.len());
            return Err(StoreFailure::Refused(what, "No plausible data contain so much."));
        }
        let sum = chunk_sum(self.feed, key, &bytes);
        let summary = BlockSummary::new(rows);
        let page = self.page(known, page_key(key))?;
        let chunk = page.entries.get(&key).map(|entry| entry.chunk);
        let chunk = if let Some(chunk) = chunk {
            if self.update.execute((chunk, bytes))? != 1 {
                return Err(StoreFailure::Corrupt("the chunk of a block is missing"));
            }
            chunk
        } else {
            self.insert.execute([bytes])?;
            self.connection.last_insert_rowid()
        };
        let page = self.page(known, page_key(key))?;
        page.changed = true;
        page.entries.insert(key, BlockEntry { summary, chunk, sum });
        Ok(length)
    }

    /// Returns the size of the chunk in bytes.
    pub(super) fn remove(
        &mut self,
        known: &FeedIndex,
        key: BlockKey,
        entry: &BlockEntry,
    ) -> StoreResult<u64> {
        let length: i64 = self.delete.query_row([entry.chunk], |row| row.get(0))?;
        let page = self.page(known, page_key(key))?;
        page.changed = true;
        page.entries.remove(&key);
        Ok(length.unsigned_abs())
    }

    /// Writes the changed pages.
    pub(super) fn finish(&mut self, known: &mut FeedIndex, feed: &mut FeedRow) -> StoreResult<()> {
        let sql = "INSERT OR REPLACE INTO shelves VALUES (?1, ?2, ?3, ?4, ?5)";
        let mut statement = self.connection.prepare(sql)?;
        let mut delete = self
            .connection
            .prepare("DELETE FROM shelves WHERE feed = ?1 AND rack = ?2 AND shelf = ?3")?;
        let loaded = std::mem::take(&mut self.loaded);
        for (number, page) in loaded.into_iter().filter(|(_, page)| page.changed) {
            if page.entries.is_empty() {
                delete.execute((feed.id, number.0, number.1))?;
                let old = known.checks.remove(&number).unwrap_or_default();
                feed.directory = feed.directory.wrapping_sub(old);
                continue;
            }
            let bytes = entry_bytes(&page.entries);
            let check = page_check(feed.id, number, &bytes);
            statement.execute((feed.id, number.0, number.1, check, bytes))?;
            let old = known.checks.insert(number, check).unwrap_or_default();
            feed.directory = feed.directory.wrapping_sub(old).wrapping_add(check);
        }
        Ok(())
    }
}
