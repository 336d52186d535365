//! Connections, each owned by the process that opened it. A forked child opens its own, because
//! closing its parent's would affect the parent's locks.

use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use url::Url;

use super::access::{self, ReadMode, check_readable, is_shared, prepare_for_reading};
use super::failure::StoreResult;
use super::hold::{ReadPass, StoreHold, WriteTurn};
use super::schema;
use crate::error::{Error, Kind};
use crate::files::Stamp;
use crate::fork::Owned;

/// A commit takes milliseconds.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
const CACHE_KIB: i64 = 8 << 10;
const LOG_BYTES: i64 = 8 << 20;

#[derive(Debug)]
pub(super) struct StoreConnection {
    opened: Owned<Opened>,
    timeout: Duration,
    /// Taken when a file without a log was opened.
    before: Option<Stamp>,
}

/// A file without a log needs no hold.
#[derive(Debug)]
struct Opened {
    connection: Option<Connection>,
    pass: RefCell<Option<ReadPass>>,
    hold: Option<Arc<StoreHold>>,
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.pass.take();
        if let (Some(hold), Some(connection)) = (self.hold.take(), self.connection.take()) {
            hold.close(connection);
        }
    }
}

impl StoreConnection {
    pub(super) fn open(path: &Path, timeout: Duration) -> StoreResult<Self> {
        Self::open_with(path, timeout, touch)
    }

    /// Also creates or verifies the tables.
    pub(super) fn open_prepared(path: &Path, timeout: Duration) -> StoreResult<Self> {
        let link = Self::open_with(path, timeout, schema::prepare)?;
        link.connection()?.pragma_update(None, "journal_size_limit", LOG_BYTES)?;
        Ok(link)
    }

    fn open_with(
        path: &Path,
        timeout: Duration,
        begin: impl FnOnce(&mut Connection) -> StoreResult<()>,
    ) -> StoreResult<Self> {
        let (hold, connection) = StoreHold::connect(path, timeout, false, || {
            let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            let mut connection = set_up(Connection::open_with_flags(path, flags)?, timeout)?;
            // Closing the last connection would remove the log, and a reader could not create
            // another.
            let keeps_log = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
            connection.set_db_config(keeps_log, is_shared(path))?;
            begin(&mut connection)?;
            Ok(connection)
        })?;
        Ok(Self::new(connection, Some(hold), None, timeout))
    }

    pub(super) fn open_read_only(path: &Path, timeout: Duration) -> StoreResult<Self> {
        check_readable(path)?;
        let name = Url::from_file_path(path).map_err(|()| inherited())?;
        let mut before = None;
        let (hold, connection) = StoreHold::connect(path, timeout, true, || {
            let parameter = match prepare_for_reading(path)? {
                ReadMode::WithLog => "readonly_shm=1",
                ReadMode::FileAlone(stamp) => {
                    before = Some(stamp);
                    "immutable=1"
                }
            };
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
                | OpenFlags::SQLITE_OPEN_NO_MUTEX
                | OpenFlags::SQLITE_OPEN_URI;
            let connection = Connection::open_with_flags(format!("{name}?{parameter}"), flags)?;
            let mut connection = set_up(connection, timeout)?;
            touch(&mut connection)?;
            Ok(connection)
        })?;
        // `check_unchanged` detects a writer instead.
        let hold = before.is_none().then_some(hold);
        Ok(Self::new(connection, hold, before, timeout))
    }

    fn new(
        connection: Connection,
        hold: Option<Arc<StoreHold>>,
        before: Option<Stamp>,
        timeout: Duration,
    ) -> Self {
        let opened = Opened { connection: Some(connection), pass: RefCell::default(), hold };
        Self { opened: Owned::new(opened), timeout, before }
    }

    /// The transaction lasts until the connection closes.
    pub(super) fn read<T>(
        &self,
        path: &Path,
        read: impl FnOnce(&Connection) -> StoreResult<T>,
    ) -> StoreResult<T> {
        let connection = self.connection()?;
        if let Some(opened) = self.opened.get()
            && let Some(hold) = &opened.hold
        {
            let pass = hold.pass(self.timeout)?;
            opened.pass.replace(Some(pass));
        }
        connection.execute_batch("BEGIN")?;
        let outcome = read(connection);
        self.check_unchanged(path)?;
        outcome
    }

    /// Also returns an error if the files of the store were replaced.
    pub(super) fn turn(&self) -> StoreResult<WriteTurn> {
        let turn = self.hold()?.turn(self.timeout)?;
        self.hold()?.verify()?;
        Ok(turn)
    }

    pub(super) fn check_names(&self) -> StoreResult<()> {
        self.hold()?.check_names()
    }

    pub(super) fn copy_long_log(&self, turn: &WriteTurn) -> StoreResult<()> {
        let connection = self.connection()?;
        let sql = "PRAGMA wal_checkpoint(NOOP)";
        let pages: i64 = connection.query_row(sql, [], |row| row.get(1))?;
        let size: i64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
        if pages >= LOG_BYTES / size.max(512) {
            self.copy_log(turn)?;
        }
        Ok(())
    }

    /// Does nothing while somebody reads.
    pub(super) fn copy_log(&self, turn: &WriteTurn) -> StoreResult<()> {
        let connection = self.connection()?;
        let sql = "PRAGMA wal_checkpoint(PASSIVE)";
        turn.without_readers(|| connection.query_row(sql, [], |_| Ok(()))).transpose()?;
        Ok(())
    }

    pub(super) fn save_removed_log(&self) -> StoreResult<()> {
        let hold = self.hold()?;
        let turn = hold.turn(self.timeout)?;
        if hold.is_log_removed() { self.copy_log(&turn) } else { Ok(()) }
    }

    fn hold(&self) -> Result<&Arc<StoreHold>, Error> {
        self.opened.get().and_then(|opened| opened.hold.as_ref()).ok_or_else(inherited)
    }

    pub(super) fn check_unchanged(&self, path: &Path) -> StoreResult<()> {
        self.before.as_ref().map_or(Ok(()), |before| access::check_unchanged(path, before))
    }

    pub(super) fn connection(&self) -> Result<&Connection, Error> {
        self.opened.get().and_then(|opened| opened.connection.as_ref()).ok_or_else(inherited)
    }
}

/// `SQLite` opens the log and the shared memory with the first read.
fn touch(connection: &mut Connection) -> StoreResult<()> {
    connection.pragma_query_value(None, "schema_version", |_| Ok(()))?;
    Ok(())
}

fn set_up(connection: Connection, busy_timeout: Duration) -> StoreResult<Connection> {
    connection.busy_timeout(busy_timeout)?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    // `copy_long_log` does it while nobody reads.
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    Ok(connection)
}

fn inherited() -> Error {
    Error::new(Kind::ForkError, "a read of a store cannot continue in a forked process")
        .with_hint("Begin the read again in this process.")
}
