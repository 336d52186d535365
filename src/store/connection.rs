//! Connections, each owned by the process that opened it. A forked child neither uses nor closes a
//! `SQLite` connection of its parent: closing it would touch the parent's file locks and shared
//! memory. The child opens a new one.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::failure::StoreResult;
use crate::error::{Error, Kind};
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
}

impl StoreConnection {
    /// Opens the file; with `create`, creates a missing one.
    pub(super) fn open(path: &Path, create: bool, busy_timeout: Duration) -> StoreResult<Self> {
        let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        flags.set(OpenFlags::SQLITE_OPEN_CREATE, create);
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(busy_timeout)?;
        connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
        connection.pragma_update(None, "cell_size_check", true)?;
        connection.pragma_update(None, "trusted_schema", false)?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        Ok(Self { connection: Owned::new(connection) })
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

fn inherited() -> Error {
    Error::new(Kind::ForkError, "a read of a store cannot continue in a forked process")
        .with_hint("Begin the read again in this process.")
}
