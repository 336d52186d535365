//! Connections, each owned by the process that opened it. A forked child neither uses nor closes a
//! `SQLite` connection of its parent: closing it would touch the parent's file locks and shared
//! memory. The child opens a new one.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use url::Url;

use super::access::{self, Reading, is_shared, prepare_for_reading};
use super::failure::StoreResult;
use crate::error::{Error, Kind};
use crate::files::Stamp;
use crate::fork::Owned;

/// How long a statement waits for another connection's commit; a commit takes milliseconds.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// The page cache of each connection, in KiB.
const CACHE_KIB: i64 = 8 << 10;
/// The write-ahead log is checkpointed into the file at this size.
const LOG_BYTES: i64 = 8 << 20;

/// One connection.
#[derive(Debug)]
pub(super) struct StoreConnection {
    connection: Owned<Connection>,
    /// What the file was when it was opened to be read alone, without a log.
    before: Option<Stamp>,
}

impl StoreConnection {
    /// Opens the file to read and write.
    pub(super) fn open(path: &Path, busy_timeout: Duration) -> StoreResult<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = set_up(Connection::open_with_flags(path, flags)?, busy_timeout)?;
        // The last connection to close removes the log, and who may only read could not make another.
        let keeps_log = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
        connection.set_db_config(keeps_log, is_shared(path))?;
        Ok(Self { connection: Owned::new(connection), before: None })
    }

    /// Opens the file to read only; makes no file.
    pub(super) fn open_read_only(path: &Path, busy_timeout: Duration) -> StoreResult<Self> {
        let (before, parameter) = match prepare_for_reading(path)? {
            Reading::WithLog => (None, "readonly_shm=1"),
            Reading::FileAlone(stamp) => (Some(stamp), "immutable=1"),
        };
        let name = Url::from_file_path(path).map_err(|()| inherited())?;
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_URI;
        let connection = Connection::open_with_flags(format!("{name}?{parameter}"), flags)?;
        let connection = Owned::new(set_up(connection, busy_timeout)?);
        Ok(Self { connection, before })
    }

    /// Reads in one transaction.
    pub(super) fn read<T>(
        &self,
        path: &Path,
        read: impl FnOnce(&Connection) -> StoreResult<T>,
    ) -> StoreResult<T> {
        let connection = self.connection()?;
        connection.execute_batch("BEGIN")?;
        let outcome = read(connection);
        self.check_unchanged(path)?;
        outcome
    }

    /// Refuses what was read if a writer may have changed the file meanwhile.
    pub(super) fn check_unchanged(&self, path: &Path) -> StoreResult<()> {
        self.before.as_ref().map_or(Ok(()), |before| access::check_unchanged(path, before))
    }

    /// Sets when the write-ahead log is checkpointed into the file, and its size after that.
    pub(super) fn set_log_limits(&self) -> StoreResult<()> {
        let connection = self.connection()?;
        let size: i64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
        connection.pragma_update(None, "wal_autocheckpoint", LOG_BYTES / size.max(512))?;
        connection.pragma_update(None, "journal_size_limit", LOG_BYTES)?;
        Ok(())
    }

    /// The connection, in the process that made it.
    pub(super) fn connection(&self) -> Result<&Connection, Error> {
        self.connection.get().ok_or_else(inherited)
    }

    /// [`StoreConnection::connection`], mutably.
    pub(super) fn connection_mut(&mut self) -> Result<&mut Connection, Error> {
        self.connection.get_mut().ok_or_else(inherited)
    }
}

fn set_up(connection: Connection, busy_timeout: Duration) -> StoreResult<Connection> {
    connection.busy_timeout(busy_timeout)?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    Ok(connection)
}

fn inherited() -> Error {
    Error::new(Kind::ForkError, "a read of a store cannot continue in a forked process")
        .with_hint("Begin the read again in this process.")
}
