//! The tables of the file, and what makes them in an empty one; the steps from an older form are in
//! `migrate`.
//!
//! Everything is verified from the top: `store` has a row with the digest of `feeds`, and one with the
//! mark of the last commit (see `commit_mark`); a feed's row has the digests of its series, directory
//! pages, page log, seen points and recent points; a directory page lists blocks, each with the
//! checksum of its chunk. A digest is the sum of the rows' checksums: it detects a missing or an
//! outdated row as well as a changed one (S7).
//!
//! In the file, the table of directory pages is `shelves` and that of chunks is `contents`: these
//! names are part of format 1 and of its checksums.

use std::cmp::Ordering;

use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior};

use super::bytes::Checksum;
use super::commit_mark::{CommitMark, NOTHING, root_check};
use super::failure::{StoreFailure, StoreResult};
use crate::error::excerpt;

/// `SLST`, in the file's header.
pub(super) const APPLICATION: i32 = 0x534C_5354;
/// Measured beside 8 and 16 KiB: the smallest file, and the shortest log for a small change.
const PAGE_SIZE: i64 = 4_096;
/// `PRAGMA auto_vacuum`.
pub(super) const INCREMENTAL: i64 = 2;

/// The hint of the error for a file that is not a store.
pub(super) const OTHER_PATH: &str = "Name another file, or one that does not exist yet.";

/// The tables that schema 3 added. The id is made with the store.
macro_rules! names {
    () => {
        r#"
CREATE TABLE names (origin TEXT PRIMARY KEY, asked_at INTEGER NOT NULL, body BLOB, shape TEXT,
  refusal TEXT, "check" INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE identity (id TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
INSERT INTO identity VALUES (lower(hex(randomblob(16))));
"#
    };
}

pub(super) const NAMES: &str = names!();

pub(super) const TABLES: &str = concat!(
    r#"
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
"#,
    names!()
);

/// A schema: its number, its tables, and for each older one the step to the next.
#[derive(Debug)]
pub(super) struct Schema {
    pub(super) version: i32,
    pub(super) tables: &'static str,
    /// `steps[n]` makes schema `n + 2` of schema `n + 1`.
    pub(super) steps: &'static [Step],
}

/// Makes the next schema of an older one, with its checksums up to the first row.
pub(super) type Step = fn(&Connection) -> StoreResult<()>;

/// The first row of `store`, and the mark of the commit that wrote it, which is the second one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Root {
    version: i64,
    made_by: String,
    layout: i64,
    /// The digest of the rows of `feeds`.
    pub(super) digest: i64,
    pub(super) mark: CommitMark,
}

impl Root {
    pub(super) fn load(connection: &Connection) -> StoreResult<Self> {
        let sql = r#"SELECT version, made_by, layout, digest, "check" FROM store WHERE id = 1"#;
        let (root, check) = connection.query_row(sql, [], |row| {
            let (version, made_by) = (row.get(0)?, row.get(1)?);
            // A siteline that wrote no marks is told from one that did by the checksum.
            let mark = CommitMark { id: row.get(4)?, parent: None };
            let root = Self { version, made_by, layout: row.get(2)?, digest: row.get(3)?, mark };
            Ok((root, row.get::<_, i64>(4)?))
        })?;
        if root.check() != check {
            return Err(StoreFailure::Corrupt("its first row does not match its checksum"));
        }
        let mark = mark(connection)?.unwrap_or(root.mark);
        Ok(Self { mark, ..root })
    }

    fn check(&self) -> i64 {
        root_check(self.version, self.made_by.as_bytes(), self.layout, self.digest)
    }

    /// Writes both rows. Called once in a transaction: the mark follows that of the last commit.
    pub(super) fn save(&mut self, connection: &Connection) -> StoreResult<()> {
        let parent = self.mark.id;
        self.mark = CommitMark::after(parent);
        let id = self.mark.id;
        let sql = "INSERT OR REPLACE INTO store
            VALUES (1, ?1, ?2, ?3, ?4, ?5), (2, 0, '', ?6, ?7, ?8)";
        let row = (self.version, &self.made_by, self.layout, self.digest, self.check());
        let (version, made_by, layout, digest, check) = row;
        let mark = CommitMark::check(id, parent);
        connection.execute(sql, (version, made_by, layout, digest, check, parent, id, mark))?;
        Ok(())
    }
}

/// The mark of the last commit; `None` before the first one of a siteline that writes marks.
fn mark(connection: &Connection) -> StoreResult<Option<CommitMark>> {
    let sql = r#"SELECT layout, digest, "check" FROM store WHERE id = 2"#;
    let row =
        connection.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?, row.get::<_, i64>(2)?)));
    let Some((parent, id, check)) = row.optional()? else { return Ok(None) };
    if check != CommitMark::check(id, parent) {
        return Err(StoreFailure::Corrupt(
            "the mark of its last commit does not match its checksum",
        ));
    }
    Ok(Some(CommitMark { id, parent: Some(parent) }))
}

/// Switches to the write-ahead log, with which readers and a writer work at the same time. It needs
/// shared memory.
fn enable_log(connection: &Connection) -> StoreResult<()> {
    let mode: String =
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    if mode.eq_ignore_ascii_case("wal") {
        return Ok(());
    }
    let what = "this filesystem has no shared memory, which a write-ahead log needs";
    Err(StoreFailure::Refused(what.to_owned(), "Keep the store on a local disk."))
}

impl Schema {
    /// Makes the tables in an empty file, brings an older one up to date, and refuses all others.
    pub(super) fn prepare(&self, connection: &mut Connection) -> StoreResult<()> {
        if connection.is_readonly("main")? {
            return Err(StoreFailure::Sqlite(rusqlite::Error::SqliteFailure(
                rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_READONLY),
                None,
            )));
        }
        // One snapshot: another process may create the tables between two queries.
        let snapshot = connection.transaction()?;
        let is_current = self.file_state(&snapshot)? == FileState::Current;
        if is_current {
            self.verify(&snapshot)?;
        }
        drop(snapshot);
        if is_current {
            return enable_log(connection);
        }
        connection.pragma_update(None, "page_size", PAGE_SIZE)?;
        // Of a new file: `compact` can give free pages back, some at a time.
        connection.pragma_update(None, "auto_vacuum", INCREMENTAL)?;
        enable_log(connection)?;
        let changes = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Another process may have prepared the file meanwhile.
        match self.file_state(&changes)? {
            FileState::Current => {}
            FileState::Empty => self.create(&changes)?,
            FileState::Older(version) => self.migrate(&changes, version)?,
        }
        self.verify(&changes)?;
        Ok(changes.commit()?)
    }

    /// Refuses an empty file and an older store: neither can be made readable without writing.
    pub(super) fn check(&self, connection: &Connection) -> StoreResult<()> {
        let what = match self.file_state(connection)? {
            FileState::Current => return self.verify(connection),
            FileState::Empty => "it is empty: no sync has written to it".to_owned(),
            FileState::Older(version) => format!("it has the older schema {version}"),
        };
        Err(StoreFailure::Refused(what, "Open it once without read_only=, which prepares it."))
    }

    fn file_state(&self, connection: &Connection) -> StoreResult<FileState> {
        let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
        let (application, version) = (number("application_id")?, number("user_version")?);
        if application == 0 && version == 0 && layout(connection)?.is_none() {
            return Ok(FileState::Empty);
        }
        if application != APPLICATION {
            return Err(StoreFailure::Refused(
                "it is not a store of siteline".to_owned(),
                OTHER_PATH,
            ));
        }
        match version.cmp(&self.version) {
            Ordering::Equal => Ok(FileState::Current),
            Ordering::Greater => Err(self.newer(connection, version)),
            Ordering::Less if version > 0 => Ok(FileState::Older(version)),
            Ordering::Less => Err(StoreFailure::Corrupt("the number of its schema is damaged")),
        }
    }

    fn create(&self, connection: &Connection) -> StoreResult<()> {
        connection.execute_batch(self.tables)?;
        connection.pragma_update(None, "application_id", APPLICATION)?;
        self.finish(connection, 0, NOTHING)
    }

    fn migrate(&self, connection: &Connection, from: i32) -> StoreResult<()> {
        // The steps save the first row too.
        let last = Root::load(connection)?.mark.id;
        for step in &self.steps[usize::try_from(from - 1).unwrap_or_default()..] {
            step(connection)?;
        }
        let digest = Root::load(connection)?.digest;
        self.finish(connection, digest, last)
    }

    fn finish(&self, connection: &Connection, digest: i64, last: i64) -> StoreResult<()> {
        connection.pragma_update(None, "user_version", self.version)?;
        let layout = layout(connection)?.unwrap_or_default();
        let made_by = format!("siteline {}", crate::VERSION);
        let mark = CommitMark { id: last, parent: None };
        Root { version: i64::from(self.version), made_by, layout, digest, mark }.save(connection)
    }

    /// Verifies that the version and the tables are those that the first row records.
    fn verify(&self, connection: &Connection) -> StoreResult<()> {
        let root = Root::load(connection)?;
        if root.version != i64::from(self.version) || Some(root.layout) != layout(connection)? {
            return Err(StoreFailure::Corrupt("its tables are not those that siteline made"));
        }
        Ok(())
    }

    fn newer(&self, connection: &Connection, newer: i32) -> StoreFailure {
        let made_by = connection
            .query_row("SELECT made_by FROM store", [], |row| row.get::<_, String>(0))
            .map_or_else(|_| "a newer siteline".to_owned(), |text| excerpt(&text));
        let known = self.version;
        let what = format!("it was made by {made_by}: schema {newer}, this siteline knows {known}");
        StoreFailure::Refused(what, "Upgrade siteline.")
    }
}

#[derive(Debug, PartialEq, Eq)]
enum FileState {
    Empty,
    Older(i32),
    Current,
}

/// The checksum of the statements that created the tables; `None` where there are none.
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
