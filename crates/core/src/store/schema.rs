//! The tables of the file. A file with another schema is rejected.
//!
//! Everything is verified from the top. `store` has a row with the digest of `feeds`, and a row
//! with the mark of the last commit (`commit_mark`). A feed's row has the digests of its tables. A
//! directory page has the checksums of the chunks of its blocks. A digest is the sum of the rows'
//! checksums, so it detects missing and outdated rows too.
//!
//! In the file, the table of directory pages is called `shelves` and the table of chunks
//! `contents`. These names are part of the format.

use rusqlite::{Connection, Params, Row, Transaction, TransactionBehavior};

use super::bytes::Checksum;
use super::commit_mark::{CommitMark, NOTHING};
use super::failure::{StoreFailure, StoreResult};
use crate::error::excerpt;

/// `SLST`, in the file's header.
pub(super) const APPLICATION: i32 = 0x534C_5354;
/// Compared with 8 and 16 KiB: the smallest file, and the shortest log for a small change.
const PAGE_SIZE: i64 = 4_096;
/// Value of `PRAGMA auto_vacuum`.
pub(super) const INCREMENTAL: i64 = 2;
pub(super) const OTHER_PATH: &str = "Name another file, or one that does not exist yet.";

const VERSION: i32 = 3;
const TABLES: &str = r#"
CREATE TABLE store (id INTEGER PRIMARY KEY, version INTEGER NOT NULL, made_by TEXT NOT NULL,
  layout INTEGER NOT NULL, digest INTEGER NOT NULL, "check" INTEGER NOT NULL) STRICT;
CREATE TABLE feeds (id INTEGER PRIMARY KEY, name TEXT NOT NULL, sequence INTEGER NOT NULL,
  generation INTEGER NOT NULL, span INTEGER NOT NULL, pruned INTEGER NOT NULL,
  kept_from INTEGER NOT NULL, history_before INTEGER NOT NULL, history_from INTEGER NOT NULL,
  state_sum INTEGER NOT NULL, series INTEGER NOT NULL, shelves INTEGER NOT NULL,
  pages INTEGER NOT NULL, seen INTEGER NOT NULL, recent INTEGER NOT NULL,
  "check" INTEGER NOT NULL) STRICT;
CREATE TABLE states (feed INTEGER PRIMARY KEY, bytes BLOB NOT NULL) STRICT;
CREATE TABLE series (feed INTEGER NOT NULL, id INTEGER NOT NULL, identity BLOB NOT NULL,
  "check" INTEGER NOT NULL, PRIMARY KEY (feed, id)) STRICT, WITHOUT ROWID;
CREATE TABLE shelves (feed INTEGER NOT NULL, rack INTEGER NOT NULL, shelf INTEGER NOT NULL,
  "check" INTEGER NOT NULL, entries BLOB NOT NULL,
  PRIMARY KEY (feed, rack, shelf)) STRICT, WITHOUT ROWID;
CREATE TABLE contents (id INTEGER PRIMARY KEY, bytes BLOB NOT NULL) STRICT;
CREATE TABLE recent (feed INTEGER NOT NULL, sequence INTEGER NOT NULL, "check" INTEGER NOT NULL,
  points BLOB NOT NULL, PRIMARY KEY (feed, sequence)) STRICT, WITHOUT ROWID;
CREATE TABLE pages (feed INTEGER NOT NULL, sequence INTEGER NOT NULL, chain INTEGER NOT NULL,
  "start" INTEGER NOT NULL, "end" INTEGER NOT NULL, read_at INTEGER NOT NULL,
  is_last INTEGER NOT NULL, points INTEGER NOT NULL, inserted INTEGER NOT NULL,
  revised INTEGER NOT NULL, unchanged INTEGER NOT NULL, flagged INTEGER NOT NULL,
  "check" INTEGER NOT NULL, arrivals BLOB NOT NULL,
  PRIMARY KEY (feed, sequence)) STRICT, WITHOUT ROWID;
CREATE TABLE seen (feed INTEGER NOT NULL, chain INTEGER NOT NULL, sequence INTEGER NOT NULL,
  finished INTEGER NOT NULL, "check" INTEGER NOT NULL, runs BLOB NOT NULL,
  PRIMARY KEY (feed, chain, sequence)) STRICT, WITHOUT ROWID;
CREATE TABLE names (origin TEXT PRIMARY KEY, asked_at INTEGER NOT NULL, body BLOB, shape TEXT,
  refusal TEXT, "check" INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE identity (id TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
INSERT INTO identity VALUES (lower(hex(randomblob(16))));
"#;

/// Visits the rows of a query. Returns the sum of the checksums that `each` returns.
pub(super) fn sum_rows(
    connection: &Connection,
    sql: &str,
    parameters: impl Params,
    mut each: impl FnMut(&Row<'_>) -> StoreResult<i64>,
) -> StoreResult<i64> {
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query(parameters)?;
    let mut sum = 0_i64;
    while let Some(row) = rows.next()? {
        sum = sum.wrapping_add(each(row)?);
    }
    Ok(sum)
}

pub(super) fn check_digest(sum: i64, digest: i64, missing: &'static str) -> StoreResult<()> {
    if sum == digest { Ok(()) } else { Err(StoreFailure::Corrupt(missing)) }
}

/// The first row of `store`. `mark` is the second row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Root {
    version: i64,
    made_by: String,
    layout: i64,
    /// Covers the rows of `feeds`.
    pub(super) digest: i64,
    pub(super) mark: CommitMark,
}

impl Root {
    pub(super) fn load(connection: &Connection) -> StoreResult<Self> {
        let sql = r#"SELECT version, made_by, layout, digest, "check" FROM store WHERE id = 1"#;
        let mark = last_commit(connection)?;
        let (root, check) = connection.query_row(sql, [], |row| {
            let (version, made_by) = (row.get(0)?, row.get(1)?);
            let root = Self { version, made_by, layout: row.get(2)?, digest: row.get(3)?, mark };
            Ok((root, row.get::<_, i64>(4)?))
        })?;
        if root.check() != check {
            return Err(StoreFailure::Corrupt("its first row does not match its checksum"));
        }
        Ok(root)
    }

    fn check(&self) -> i64 {
        let sum = Checksum::new("store").number(self.version).bytes(self.made_by.as_bytes());
        sum.numbers(&[self.layout, self.digest]).value()
    }

    /// Call it once per transaction, because it advances the mark.
    pub(super) fn save(&mut self, connection: &Connection) -> StoreResult<()> {
        let parent = self.mark.id;
        self.mark = CommitMark::after(parent);
        let id = self.mark.id;
        let sql = "INSERT OR REPLACE INTO store
            VALUES (1, ?1, ?2, ?3, ?4, ?5), (2, 0, '', ?6, ?7, ?8)";
        let (check, mark) = (self.check(), CommitMark::check(id, parent));
        let Self { version, made_by, layout, digest, .. } = &*self;
        connection.execute(sql, (version, made_by, layout, digest, check, parent, id, mark))?;
        Ok(())
    }
}

/// Changes tables other than `feeds` in one transaction. Every commit writes its mark.
pub(super) fn commit(
    connection: &Connection,
    change: impl FnOnce(&Connection) -> StoreResult<()>,
) -> StoreResult<()> {
    let changes = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    change(&changes)?;
    Root::load(&changes)?.save(&changes)?;
    Ok(changes.commit()?)
}

fn last_commit(connection: &Connection) -> StoreResult<CommitMark> {
    let sql = r#"SELECT layout, digest, "check" FROM store WHERE id = 2"#;
    let (parent, id, check) = connection
        .query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?, row.get::<_, i64>(2)?)))?;
    if check != CommitMark::check(id, parent) {
        return Err(StoreFailure::Corrupt(
            "the mark of its last commit does not match its checksum",
        ));
    }
    Ok(CommitMark { id, parent })
}

/// Readers and a writer can then work at the same time.
fn enable_log(connection: &Connection) -> StoreResult<()> {
    let mode: String =
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    if mode.eq_ignore_ascii_case("wal") {
        return Ok(());
    }
    let what = "this filesystem has no shared memory, but a write-ahead log needs it";
    Err(StoreFailure::Refused(what.to_owned(), "Keep the store on a local disk."))
}

/// Creates the tables in an empty file, and rejects a file with another schema.
pub(super) fn prepare(connection: &mut Connection) -> StoreResult<()> {
    if connection.is_readonly("main")? {
        return Err(StoreFailure::Sqlite(rusqlite::Error::SqliteFailure(
            rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_READONLY),
            None,
        )));
    }
    // Another process may create the tables between two queries.
    let snapshot = connection.transaction()?;
    let is_empty = is_empty(&snapshot)?;
    if !is_empty {
        verify(&snapshot)?;
    }
    drop(snapshot);
    if !is_empty {
        return enable_log(connection);
    }
    connection.pragma_update(None, "page_size", PAGE_SIZE)?;
    // Allows `compact` to return free pages in steps.
    connection.pragma_update(None, "auto_vacuum", INCREMENTAL)?;
    enable_log(connection)?;
    let changes = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have prepared the file in the meantime.
    if self::is_empty(&changes)? {
        create(&changes)?;
    }
    verify(&changes)?;
    Ok(changes.commit()?)
}

/// Rejects an empty file, because preparing it would write to it.
pub(super) fn check(connection: &Connection) -> StoreResult<()> {
    if !is_empty(connection)? {
        return verify(connection);
    }
    let what = "it is empty: no sync has written to it".to_owned();
    Err(StoreFailure::Refused(what, "Open it once without read_only=, which prepares it."))
}

/// Rejects any file that is not a store of this schema.
fn is_empty(connection: &Connection) -> StoreResult<bool> {
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    let (application, version) = (number("application_id")?, number("user_version")?);
    if application == 0 && version == 0 && layout(connection)?.is_none() {
        return Ok(true);
    }
    if application != APPLICATION {
        return Err(StoreFailure::Refused("it is not a store of siteline".to_owned(), OTHER_PATH));
    }
    match version {
        VERSION => Ok(false),
        ..=0 => Err(StoreFailure::Corrupt("the number of its schema is damaged")),
        other => Err(other_schema(connection, other)),
    }
}

fn create(connection: &Connection) -> StoreResult<()> {
    connection.execute_batch(TABLES)?;
    connection.pragma_update(None, "application_id", APPLICATION)?;
    connection.pragma_update(None, "user_version", VERSION)?;
    let layout = layout(connection)?.unwrap_or_default();
    let made_by = format!("siteline {}", crate::VERSION);
    let mark = CommitMark { id: NOTHING, parent: NOTHING };
    Root { version: i64::from(VERSION), made_by, layout, digest: 0, mark }.save(connection)
}

fn verify(connection: &Connection) -> StoreResult<()> {
    let root = Root::load(connection)?;
    if root.version != i64::from(VERSION) || Some(root.layout) != layout(connection)? {
        return Err(StoreFailure::Corrupt("its tables differ from the tables of siteline"));
    }
    Ok(())
}

fn other_schema(connection: &Connection, other: i32) -> StoreFailure {
    let made_by = connection
        .query_row("SELECT made_by FROM store", [], |row| row.get::<_, String>(0))
        .map_or_else(|_| "another siteline".to_owned(), |text| excerpt(&text));
    let what = format!("it was made by {made_by}: schema {other}, this siteline reads {VERSION}");
    let hint = if other > VERSION {
        "Upgrade siteline."
    } else {
        "Sync into a new store, or read this one with the siteline that made it."
    };
    StoreFailure::Refused(what, hint)
}

/// The checksum of the statements that created the tables.
fn layout(connection: &Connection) -> StoreResult<Option<i64>> {
    let mut statement =
        connection.prepare("SELECT type || ' ' || name || ' ' || sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY 1")?;
    let mut sum = None;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let text: String = row.get(0)?;
        sum = Some(sum.unwrap_or_else(|| Checksum::new("layout")).bytes(text.as_bytes()));
    }
    Ok(sum.map(Checksum::value))
}
