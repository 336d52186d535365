//! Each feed has a row with the digests of its other tables.

use std::collections::BTreeMap;

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension as _, params_from_iter};

use super::bytes::Checksum;
use super::failure::{StoreFailure, StoreResult};
use super::retention::Retention;
use super::schema::{Root, check_digest, sum_rows};

/// No feed has this many pages. A forged number must not make a count overflow.
pub(super) const LARGEST: u64 = 1 << 62;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FeedRow {
    pub(super) id: i64,
    pub(super) name: String,
    /// The highest sequence number applied.
    pub(super) sequence: u64,
    /// Incremented with each page. A [`super::directory::FeedIndex`] is valid for one generation.
    pub(super) generation: i64,
    /// In microseconds, or 0 before the first point.
    pub(super) span: i64,
    /// Seen points up to this sequence number were deleted, so older pages cannot be merged.
    pub(super) pruned: u64,
    pub(super) retention: Retention,
    pub(super) state_sum: i64,
    /// Digests of the tables with these names.
    pub(super) series: i64,
    pub(super) directory: i64,
    pub(super) pages: i64,
    pub(super) seen: i64,
    pub(super) recent: i64,
}

impl FeedRow {
    const COLUMNS: &str = r#"id, name, sequence, generation, span, pruned, kept_from,
        history_before, history_from, state_sum, series, shelves, pages, seen, recent, "check""#;

    /// Without the name and the checksum.
    fn numbers(&self) -> [i64; 13] {
        let Retention { kept_from, history_before: before, history_from } = self.retention;
        let [sequence, pruned, from] =
            [self.sequence, self.pruned, history_from].map(u64::cast_signed);
        let (generation, span, state_sum) = (self.generation, self.span, self.state_sum);
        let Self { series, directory, pages, seen, recent, .. } = *self;
        [
            sequence, generation, span, pruned, kept_from, before, from, state_sum, series,
            directory, pages, seen, recent,
        ]
    }

    fn check(&self) -> i64 {
        let sum = Checksum::new("feeds").number(self.id).bytes(self.name.as_bytes());
        sum.numbers(&self.numbers()).value()
    }

    /// Returns the checksum.
    pub(super) fn save(&self, connection: &Connection) -> StoreResult<i64> {
        let (check, columns) = (self.check(), Self::COLUMNS);
        let sql = format!(
            "INSERT OR REPLACE INTO feeds ({columns})
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)"
        );
        let numbers = self.numbers().into_iter().chain([check]).map(Value::from);
        let row = [self.id.into(), self.name.clone().into()].into_iter().chain(numbers);
        connection.execute(&sql, params_from_iter(row))?;
        Ok(check)
    }

    pub(super) fn state(&self, connection: &Connection) -> StoreResult<Vec<u8>> {
        let sql = "SELECT bytes FROM states WHERE feed = ?1";
        let state: Option<Vec<u8>> =
            connection.query_row(sql, [self.id], |row| row.get(0)).optional()?;
        state
            .filter(|state| state_sum(self.id, state) == self.state_sum)
            .ok_or(StoreFailure::Corrupt("the state of a feed does not match its checksum"))
    }
}

fn state_sum(feed: i64, state: &[u8]) -> i64 {
    Checksum::new("states").number(feed).bytes(state).value()
}

#[derive(Debug)]
pub(super) struct Feeds {
    root: Root,
    /// By name.
    rows: BTreeMap<String, FeedRow>,
}

impl Feeds {
    /// The digest in the first row covers all feeds. So the cost of a write does not depend on
    /// their number.
    pub(super) fn load_changed(connection: &Connection, known: Option<Self>) -> StoreResult<Self> {
        match known {
            Some(known) if Root::load(connection)? == known.root => Ok(known),
            _ => Self::load(connection),
        }
    }

    pub(super) fn load(connection: &Connection) -> StoreResult<Self> {
        let root = Root::load(connection)?;
        let sql = format!("SELECT {} FROM feeds", FeedRow::COLUMNS);
        let mut rows = BTreeMap::new();
        let sum = sum_rows(connection, &sql, [], |row| {
            let feed = FeedRow {
                id: row.get(0)?,
                name: row.get(1)?,
                sequence: row.get::<_, i64>(2)?.cast_unsigned(),
                generation: row.get(3)?,
                span: row.get(4)?,
                pruned: row.get::<_, i64>(5)?.cast_unsigned(),
                retention: Retention {
                    kept_from: row.get(6)?,
                    history_before: row.get(7)?,
                    history_from: row.get::<_, i64>(8)?.cast_unsigned(),
                },
                state_sum: row.get(9)?,
                series: row.get(10)?,
                directory: row.get(11)?,
                pages: row.get(12)?,
                seen: row.get(13)?,
                recent: row.get(14)?,
            };
            if feed.check() != row.get::<_, i64>(15)? {
                return Err(StoreFailure::Corrupt("the row of a feed does not match its checksum"));
            }
            let numbers = [feed.sequence, feed.pruned, feed.retention.history_from];
            if feed.span < 0 || numbers.iter().any(|n| *n > LARGEST) {
                return Err(StoreFailure::Corrupt("the row of a feed has a number out of range"));
            }
            let check = feed.check();
            rows.insert(feed.name.clone(), feed);
            Ok(check)
        })?;
        check_digest(sum, root.digest, "a feed is missing")?;
        Ok(Self { root, rows })
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = &FeedRow> {
        self.rows.values()
    }

    /// Sorted.
    pub(super) fn names(&self) -> Vec<String> {
        self.rows.keys().cloned().collect()
    }

    pub(super) fn find(&self, name: &str) -> Option<&FeedRow> {
        self.rows.get(name)
    }

    /// Fails for an unknown feed.
    pub(super) fn known(&self, name: &str) -> StoreResult<&FeedRow> {
        let unknown = || StoreFailure::UnknownFeed { name: name.to_owned(), known: self.names() };
        self.find(name).ok_or_else(unknown)
    }

    pub(super) fn find_or_new(&self, name: &str) -> FeedRow {
        let id = || self.rows().map(|feed| feed.id).max().unwrap_or(0) + 1;
        let new = || FeedRow { id: id(), name: name.to_owned(), ..FeedRow::default() };
        self.find(name).cloned().unwrap_or_else(new)
    }

    /// Also writes the digest of all feeds.
    pub(super) fn save(
        &mut self,
        connection: &Connection,
        mut feed: FeedRow,
        state: &[u8],
    ) -> StoreResult<()> {
        let sum = state_sum(feed.id, state);
        let before = self.find(&feed.name);
        if before.is_none_or(|before| before.state_sum != sum) {
            let sql = "INSERT OR REPLACE INTO states VALUES (?1, ?2)";
            connection.execute(sql, (feed.id, state))?;
        }
        feed.state_sum = sum;
        if before == Some(&feed) {
            return Ok(());
        }
        let check = feed.save(connection)?;
        let old = before.map_or(0, FeedRow::check);
        self.root.digest = self.root.digest.wrapping_sub(old).wrapping_add(check);
        self.rows.insert(feed.name.clone(), feed);
        self.root.save(connection)
    }
}
