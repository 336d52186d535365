//! Connections, each of the process that made it. `SQLite` must not be used, nor even closed,
//! across a fork: an inherited connection is left alone, for ever, and a new one made.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::failure::Outcome;
use crate::error::{Error, Kind};

/// So long one waits for another's commit. Commits take milliseconds.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
/// Memory for pages of the file, for each connection, in KiB.
const CACHE_KIB: i64 = 8 << 10;
/// So many bytes of write-ahead log are gathered before they go into the file.
const LOG_BYTES: i64 = 8 << 20;

/// One connection.
#[derive(Debug)]
pub(super) struct Link {
    connection: Option<Connection>,
    process: u32,
}

impl Link {
    /// Opens the file; with `create` makes it where there is none.
    pub(super) fn open(path: &Path, create: bool, patience: Duration) -> Outcome<Self> {
        let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        flags.set(OpenFlags::SQLITE_OPEN_CREATE, create);
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(patience)?;
        connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
        connection.pragma_update(None, "cell_size_check", true)?;
        connection.pragma_update(None, "trusted_schema", false)?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        Ok(Self { connection: Some(connection), process: process() })
    }

    /// Sets when the log goes into the file.
    pub(super) fn gather(&self) -> Outcome<()> {
        let connection = self.get()?;
        let size: i64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
        connection.pragma_update(None, "wal_autocheckpoint", LOG_BYTES / size.max(512))?;
        connection.pragma_update(None, "journal_size_limit", LOG_BYTES)?;
        Ok(())
    }

    /// The connection, in the process that made it.
    pub(super) fn get(&self) -> Result<&Connection, Error> {
        let ours = self.process == process();
        self.connection.as_ref().filter(|_| ours).ok_or_else(inherited)
    }

    /// As [`Link::get`], to change it.
    pub(super) fn get_mut(&mut self) -> Result<&mut Connection, Error> {
        let ours = self.process == process();
        self.connection.as_mut().filter(|_| ours).ok_or_else(inherited)
    }
}

fn inherited() -> Error {
    Error::new(Kind::Fork, "a read of a store was carried over a fork")
        .with_hint("Begin the read in the process that goes on with it.")
}

impl Drop for Link {
    fn drop(&mut self) {
        if self.process != process() {
            // Closing it would touch the file's locks and shared memory, which are the parent's.
            std::mem::forget(self.connection.take());
        }
    }
}

/// The number of this process.
#[cfg(not(test))]
pub(super) fn process() -> u32 {
    std::process::id()
}

#[cfg(test)]
pub(super) use pretended::process;

/// A test pretends to be a forked child: its thread has another process number.
#[cfg(test)]
pub(super) mod pretended {
    use std::cell::Cell;

    thread_local! {
        static CHILD: Cell<u32> = const { Cell::new(0) };
    }

    pub(in crate::store) fn process() -> u32 {
        std::process::id() ^ (CHILD.get() << 24)
    }

    pub(in crate::store) fn fork(child: u32) {
        CHILD.set(child);
    }
}
