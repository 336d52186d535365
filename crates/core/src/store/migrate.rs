//! The schema of this version, and the steps that bring a file of an older siteline up to date. What
//! they read is verified as the older siteline did it: the code of that stays here as it was.

use std::collections::{BTreeMap, HashMap};

use rusqlite::Connection;

use super::arrivals::{Arrivals, arriving};
use super::block;
use super::bytes::{Checksum, Source};
use super::directory_page::{
    BlockEntry, BlockKey, BlockSummary, PageKey, chunk_sum, entry_bytes, page_check,
};
use super::failure::{StoreFailure, StoreResult};
use super::feeds::FeedRow;
use super::pages::{self, PageNumbers};
use super::retention::Retention;
use super::schema::{NAMES, Root, Schema, TABLES};

/// The schema of this version.
pub(super) const SCHEMA: Schema =
    Schema { version: 3, tables: TABLES, steps: &[add_recent_points, add_names] };

/// Schema 3 has the names of series, and an id of the store.
fn add_names(connection: &Connection) -> StoreResult<()> {
    Ok(connection.execute_batch(NAMES)?)
}

/// Schema 2 has recent points, the directory says what is in each block, the page log has the arrivals of
/// each page, and a feed's row what of its past is not kept.
fn add_recent_points(connection: &Connection) -> StoreResult<()> {
    let mut root = Root::load(connection)?;
    let mut feeds = first_feeds(connection, root.digest)?;
    connection.execute_batch(
        r#"ALTER TABLE pages RENAME TO first_pages;
CREATE TABLE pages (feed INTEGER NOT NULL, sequence INTEGER NOT NULL, chain INTEGER NOT NULL,
  "start" INTEGER NOT NULL, "end" INTEGER NOT NULL, read_at INTEGER NOT NULL,
  is_last INTEGER NOT NULL, points INTEGER NOT NULL, inserted INTEGER NOT NULL,
  revised INTEGER NOT NULL, unchanged INTEGER NOT NULL, flagged INTEGER NOT NULL,
  "check" INTEGER NOT NULL, arrivals BLOB NOT NULL,
  PRIMARY KEY (feed, sequence)) STRICT, WITHOUT ROWID;
DROP TABLE feeds;
CREATE TABLE feeds (id INTEGER PRIMARY KEY, name TEXT NOT NULL, sequence INTEGER NOT NULL,
  generation INTEGER NOT NULL, span INTEGER NOT NULL, pruned INTEGER NOT NULL,
  kept_from INTEGER NOT NULL, history_before INTEGER NOT NULL, history_from INTEGER NOT NULL,
  state_sum INTEGER NOT NULL, series INTEGER NOT NULL, shelves INTEGER NOT NULL,
  pages INTEGER NOT NULL, seen INTEGER NOT NULL, recent INTEGER NOT NULL,
  "check" INTEGER NOT NULL) STRICT;
CREATE TABLE recent (feed INTEGER NOT NULL, sequence INTEGER NOT NULL, "check" INTEGER NOT NULL,
  points BLOB NOT NULL, PRIMARY KEY (feed, sequence)) STRICT, WITHOUT ROWID;"#,
    )?;
    root.digest = 0;
    for feed in &mut feeds {
        let arrivals = summarise_blocks(connection, feed)?;
        add_arrivals(connection, feed, arrivals)?;
        root.digest = root.digest.wrapping_add(feed.save(connection)?);
    }
    connection.execute_batch("DROP TABLE first_pages")?;
    root.save(connection)
}

/// The feeds of schema 1.
fn first_feeds(connection: &Connection, digest: i64) -> StoreResult<Vec<FeedRow>> {
    let sql = r#"SELECT id, name, sequence, generation, span, forgotten, state_sum, series, shelves,
        pages, seen, "check" FROM feeds ORDER BY id"#;
    let mut statement = connection.prepare(sql)?;
    let mut found = statement.query([])?;
    let (mut feeds, mut sum) = (Vec::new(), 0_i64);
    while let Some(row) = found.next()? {
        let feed = FeedRow {
            id: row.get(0)?,
            name: row.get(1)?,
            sequence: row.get::<_, i64>(2)?.cast_unsigned(),
            generation: row.get(3)?,
            span: row.get(4)?,
            pruned: row.get::<_, i64>(5)?.cast_unsigned(),
            retention: Retention::default(),
            state_sum: row.get(6)?,
            series: row.get(7)?,
            directory: row.get(8)?,
            pages: row.get(9)?,
            seen: row.get(10)?,
            recent: 0,
        };
        let numbers = [feed.sequence.cast_signed(), feed.generation, feed.span];
        let check = Checksum::new("feeds")
            .number(feed.id)
            .bytes(feed.name.as_bytes())
            .numbers(&numbers)
            .numbers(&[feed.pruned.cast_signed(), feed.state_sum])
            .numbers(&[feed.series, feed.directory, feed.pages, feed.seen])
            .value();
        if check != row.get::<_, i64>(11)? {
            return Err(StoreFailure::Corrupt("the row of a feed does not match its checksum"));
        }
        sum = sum.wrapping_add(check);
        feeds.push(feed);
    }
    if sum == digest { Ok(feeds) } else { Err(StoreFailure::Corrupt("a feed is missing")) }
}

/// Writes the directory pages of a feed anew, with what is in each block. Gives the arrivals of its pages.
fn summarise_blocks(
    connection: &Connection,
    feed: &mut FeedRow,
) -> StoreResult<HashMap<u64, Arrivals>> {
    let sql = r#"SELECT rack, shelf, "check", entries FROM shelves WHERE feed = ?1"#;
    let mut statement = connection.prepare(sql)?;
    let mut found = statement.query([feed.id])?;
    let (mut pages, mut sum) = (Vec::new(), 0_i64);
    while let Some(row) = found.next()? {
        let (number, bytes): (PageKey, Vec<u8>) = ((row.get(0)?, row.get(1)?), row.get(3)?);
        let check = page_check(feed.id, number, &bytes);
        let entries = first_entries(&bytes).filter(|_| row.get(2) == Ok(check));
        let damaged = "a part of its directory does not match its checksum";
        pages.push((number, entries.ok_or(StoreFailure::Corrupt(damaged))?));
        sum = sum.wrapping_add(check);
    }
    if sum != feed.directory {
        return Err(StoreFailure::Corrupt("a part of its directory is missing"));
    }
    feed.directory = 0;
    let mut chunks = connection.prepare("SELECT bytes FROM contents WHERE id = ?1")?;
    let sql = r#"UPDATE shelves SET "check" = ?4, entries = ?5
        WHERE feed = ?1 AND rack = ?2 AND shelf = ?3"#;
    let mut update = connection.prepare(sql)?;
    let mut arrivals: HashMap<u64, Arrivals> = HashMap::new();
    for (number, mut entries) in pages {
        for (key, entry) in &mut entries {
            let bytes: Vec<u8> = chunks.query_row([entry.chunk], |row| row.get(0))?;
            let intact = chunk_sum(feed.id, *key, &bytes) == entry.sum;
            let rows = intact.then(|| block::decode(&bytes)).flatten();
            let damaged = StoreFailure::Corrupt("points do not match their checksum");
            let rows = rows.ok_or(damaged)?;
            entry.summary = BlockSummary::new(&rows);
            for history in rows.chunk_by(|one, next| one.timestamp == next.timestamp) {
                for (row, is_revision) in arriving(history) {
                    arrivals.entry(row.version).or_default().change(row.timestamp, is_revision, 1);
                }
            }
        }
        let bytes = entry_bytes(&entries);
        let check = page_check(feed.id, number, &bytes);
        update.execute((feed.id, number.0, number.1, check, bytes))?;
        feed.directory = feed.directory.wrapping_add(check);
    }
    Ok(arrivals)
}

/// Writes the page log of a feed anew, with the arrivals of each page.
fn add_arrivals(
    connection: &Connection,
    feed: &mut FeedRow,
    mut arrivals: HashMap<u64, Arrivals>,
) -> StoreResult<()> {
    let sql = r#"SELECT sequence, chain, "start", "end", read_at, is_last, points,
        inserted, revised, unchanged, flagged, "check" FROM first_pages WHERE feed = ?1"#;
    let mut statement = connection.prepare(sql)?;
    let mut found = statement.query([feed.id])?;
    let (digest, mut sum) = (std::mem::take(&mut feed.pages), 0_i64);
    while let Some(row) = found.next()? {
        let mut numbers: PageNumbers = Default::default();
        for (index, number) in numbers.iter_mut().enumerate() {
            *number = row.get(index)?;
        }
        let check = Checksum::new("pages").number(feed.id).numbers(&numbers).value();
        if row.get::<_, i64>(11)? != check {
            return Err(StoreFailure::Corrupt("the row of a page does not match its checksum"));
        }
        sum = sum.wrapping_add(check);
        let of_page = arrivals.remove(&numbers[0].cast_unsigned()).unwrap_or_default();
        pages::save_row(connection, feed, &numbers, of_page)?;
    }
    if sum != digest {
        return Err(StoreFailure::Corrupt("a row of the page log is missing"));
    }
    if arrivals.is_empty() {
        return Ok(());
    }
    Err(StoreFailure::Corrupt("the page log lacks the page of a stored point"))
}

/// The entries of a directory page of schema 1.
fn first_entries(bytes: &[u8]) -> Option<BTreeMap<BlockKey, BlockEntry>> {
    let mut source = Source(bytes);
    let mut entries = BTreeMap::new();
    let mut last: BlockKey = (0, 0);
    for _ in 0..source.length()? {
        last.0 = last.0.wrapping_add(source.signed()?);
        last.1 = last.1.wrapping_add(source.signed()?);
        let _changed = source.number()?;
        let (chunk, sum) = (source.signed()?, source.signed()?);
        entries.insert(last, BlockEntry { summary: BlockSummary::default(), chunk, sum });
    }
    source.0.is_empty().then_some(entries)
}
