//! Where the blocks of a feed are: series have numbers, shelves list the blocks of some series in
//! some stretches of time, and each block's content stands under a number of its own.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension as _, Statement};

use super::block::{self, Row};
use super::bytes::{Checksum, Sink, Source};
use super::failure::{Outcome, Trouble};
use super::feeds::FeedRow;
use crate::data::Identity;

/// So many series, and so many stretches of time, stand on one shelf.
const SERIES: i64 = 32;
const STRETCHES: i64 = 16;

/// Series, stretch: the timestamps of a block divided by the feed's span.
pub(super) type Place = (i64, i64);
/// Which shelf: series and stretches in groups.
type Number = (i64, i64);

/// A block as its shelf knows it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    /// The highest version in it.
    pub(super) changed: u64,
    content: i64,
    sum: i64,
}

/// What a connection knows of a feed, verified, while the feed's generation stays.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) generation: i64,
    pub(super) series: HashMap<Identity, i64>,
    /// The checksums of the shelves.
    checks: HashMap<Number, i64>,
    /// The digest of what pages brought was found right.
    pub(super) seen: bool,
}

impl Known {
    pub(super) fn load(connection: &Connection, feed: &FeedRow) -> Outcome<Self> {
        let mut known = Self { generation: feed.generation, ..Self::default() };
        let (mut statement, mut digest) = (
            connection.prepare(r#"SELECT id, identity, "check" FROM series WHERE feed = ?1"#)?,
            0_i64,
        );
        let mut rows = statement.query([feed.id])?;
        while let Some(row) = rows.next()? {
            let (id, bytes): (i64, Vec<u8>) = (row.get(0)?, row.get(1)?);
            let check = series_check(feed.id, id, &bytes);
            let identity = read_identity(&bytes).filter(|_| row.get(2) == Ok(check));
            let damaged = Trouble::Corrupt("the row of a series does not match its checksum");
            known.series.insert(identity.ok_or(damaged)?, id);
            digest = digest.wrapping_add(check);
        }
        if digest != feed.series {
            return Err(Trouble::Corrupt("a series is gone"));
        }
        let sql = r#"SELECT rack, shelf, "check" FROM shelves WHERE feed = ?1"#;
        let (mut statement, mut digest) = (connection.prepare(sql)?, 0_i64);
        let mut rows = statement.query([feed.id])?;
        while let Some(row) = rows.next()? {
            let check: i64 = row.get(2)?;
            known.checks.insert((row.get(0)?, row.get(1)?), check);
            digest = digest.wrapping_add(check);
        }
        if digest != feed.shelves {
            return Err(Trouble::Corrupt("a part of its directory is gone"));
        }
        Ok(known)
    }

    /// The number of a series; a new one gets the next.
    pub(super) fn series(
        &mut self,
        connection: &Connection,
        feed: &mut FeedRow,
        identity: &Identity,
    ) -> Outcome<i64> {
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
    for id in &identity.0 {
        sink.0.push(u8::from(id.is_some()));
        sink.bytes(id.as_deref().unwrap_or_default().as_bytes());
    }
    sink.0
}

fn read_identity(bytes: &[u8]) -> Option<Identity> {
    let mut source = Source(bytes);
    let mut identity = Identity::default();
    for id in &mut identity.0 {
        let known = source.take(1)? == [1];
        let text = std::str::from_utf8(source.bytes()?).ok()?;
        *id = known.then(|| Arc::from(text));
    }
    source.0.is_empty().then_some(identity)
}

#[derive(Debug, Default)]
struct Shelf {
    entries: BTreeMap<Place, Entry>,
    changed: bool,
}

/// The blocks of a feed in one transaction.
#[derive(Debug)]
pub(super) struct Directory<'c> {
    connection: &'c Connection,
    feed: i64,
    loaded: HashMap<Number, Shelf>,
    content: Statement<'c>,
}

impl<'c> Directory<'c> {
    pub(super) fn new(connection: &'c Connection, feed: i64) -> Outcome<Self> {
        let content = connection.prepare("SELECT bytes FROM contents WHERE id = ?1")?;
        Ok(Self { connection, feed, loaded: HashMap::new(), content })
    }

    fn shelf(&mut self, known: &Known, number: Number) -> Outcome<&mut Shelf> {
        if !self.loaded.contains_key(&number) {
            let loaded = match known.checks.get(&number) {
                Some(check) => self.load_shelf(number, *check)?,
                None => Shelf::default(),
            };
            self.loaded.insert(number, loaded);
        }
        Ok(self.loaded.entry(number).or_default())
    }

    fn load_shelf(&self, number: Number, check: i64) -> Outcome<Shelf> {
        let sql = "SELECT entries FROM shelves WHERE feed = ?1 AND rack = ?2 AND shelf = ?3";
        let bytes: Option<Vec<u8>> = self
            .connection
            .query_row(sql, (self.feed, number.0, number.1), |row| row.get(0))
            .optional()?;
        let entries = bytes
            .filter(|bytes| shelf_check(self.feed, number, bytes) == check)
            .and_then(|bytes| read_entries(&bytes))
            .ok_or(Trouble::Corrupt("a part of its directory does not match its checksum"))?;
        Ok(Shelf { entries, changed: false })
    }

    /// The blocks whose stretch is in this range, by place.
    pub(super) fn blocks(
        &mut self,
        known: &Known,
        stretches: &Range<i64>,
    ) -> Outcome<Vec<(Place, Entry)>> {
        let (first, last) = (stretches.start, stretches.end.saturating_sub(1));
        let shelves = first.div_euclid(STRETCHES)..=last.div_euclid(STRETCHES);
        let mut numbers: Vec<Number> =
            known.checks.keys().filter(|number| shelves.contains(&number.1)).copied().collect();
        numbers.sort_unstable();
        let mut found = Vec::new();
        for number in numbers {
            let entries = &self.shelf(known, number)?.entries;
            let blocks = entries.iter().filter(|(place, _)| stretches.contains(&place.1));
            found.extend(blocks.map(|(place, entry)| (*place, *entry)));
        }
        found.sort_unstable_by_key(|(place, _)| *place);
        Ok(found)
    }

    /// The rows of a block that is listed.
    pub(super) fn rows(&mut self, place: Place, entry: &Entry) -> Outcome<Vec<Row>> {
        let mut found = self.content.query([entry.content])?;
        let rows = match found.next()? {
            Some(row) => {
                let bytes = row.get_ref(0)?.as_blob().unwrap_or_default();
                let whole = content_sum(self.feed, place, bytes) == entry.sum;
                whole.then(|| block::decode(bytes)).flatten()
            }
            None => None,
        };
        rows.ok_or(Trouble::Corrupt("points do not match their checksum"))
    }

    /// The rows of a block, none where there is no block.
    pub(super) fn rows_at(&mut self, known: &Known, place: Place) -> Outcome<Vec<Row>> {
        let entry = self.shelf(known, number_of(place))?.entries.get(&place).copied();
        entry.map_or(Ok(Vec::new()), |entry| self.rows(place, &entry))
    }

    /// Writes a block.
    pub(super) fn store(&mut self, known: &Known, place: Place, rows: &[Row]) -> Outcome<()> {
        let (feed, connection) = (self.feed, self.connection);
        let bytes = block::encode(rows);
        let sum = content_sum(feed, place, &bytes);
        let changed = rows.iter().map(|row| row.version).max().unwrap_or_default();
        let home = self.shelf(known, number_of(place))?;
        home.changed = true;
        let content = home.entries.get(&place).map(|entry| entry.content);
        if let Some(content) = content {
            let sql = "UPDATE contents SET bytes = ?2 WHERE id = ?1";
            if connection.execute(sql, (content, bytes))? != 1 {
                return Err(Trouble::Corrupt("the content of a block is gone"));
            }
            home.entries.insert(place, Entry { changed, content, sum });
        } else {
            connection.execute("INSERT INTO contents (bytes) VALUES (?1)", [bytes])?;
            let content = connection.last_insert_rowid();
            home.entries.insert(place, Entry { changed, content, sum });
        }
        Ok(())
    }

    /// Writes the shelves that changed, and the digest above.
    pub(super) fn finish(self, known: &mut Known, feed: &mut FeedRow) -> Outcome<()> {
        let sql = "INSERT OR REPLACE INTO shelves VALUES (?1, ?2, ?3, ?4, ?5)";
        let mut statement = self.connection.prepare(sql)?;
        for (number, shelf) in self.loaded.into_iter().filter(|(_, shelf)| shelf.changed) {
            let bytes = entry_bytes(&shelf.entries);
            let check = shelf_check(feed.id, number, &bytes);
            statement.execute((feed.id, number.0, number.1, check, bytes))?;
            let old = known.checks.insert(number, check).unwrap_or_default();
            feed.shelves = feed.shelves.wrapping_sub(old).wrapping_add(check);
        }
        Ok(())
    }
}

fn number_of(place: Place) -> Number {
    (place.0.div_euclid(SERIES), place.1.div_euclid(STRETCHES))
}

fn content_sum(feed: i64, place: Place, bytes: &[u8]) -> i64 {
    Checksum::new("contents").numbers(&[feed, place.0, place.1]).bytes(bytes).value()
}

fn shelf_check(feed: i64, number: Number, entries: &[u8]) -> i64 {
    Checksum::new("shelves").numbers(&[feed, number.0, number.1]).bytes(entries).value()
}

fn entry_bytes(entries: &BTreeMap<Place, Entry>) -> Vec<u8> {
    let mut sink = Sink(Vec::with_capacity(entries.len() * 16));
    sink.length(entries.len());
    let mut last = (0, 0);
    for (place, entry) in entries {
        sink.signed(place.0.wrapping_sub(last.0));
        sink.signed(place.1.wrapping_sub(last.1));
        sink.number(entry.changed);
        sink.signed(entry.content);
        sink.signed(entry.sum);
        last = *place;
    }
    sink.0
}

fn read_entries(bytes: &[u8]) -> Option<BTreeMap<Place, Entry>> {
    let mut source = Source(bytes);
    let mut entries = BTreeMap::new();
    let mut last: Place = (0, 0);
    for _ in 0..source.length()? {
        last.0 = last.0.wrapping_add(source.signed()?);
        last.1 = last.1.wrapping_add(source.signed()?);
        let changed = source.number()?;
        let entry = Entry { changed, content: source.signed()?, sum: source.signed()? };
        entries.insert(last, entry);
    }
    source.0.is_empty().then_some(entries)
}
