//! The files of a store that this process has open.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::files::{beside, is_named};
use crate::store::access::{LOG, MEMORY};

/// The log and the shared memory that the connections of this process use.
#[derive(Debug)]
pub(super) struct LogFiles {
    pub(super) memory: File,
    log: File,
}

/// A change to the log or the shared memory since this process opened them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LogChange {
    /// One of the files was removed.
    Removed,
    /// Another file has the name of one of the files.
    Replaced,
}

impl LogFiles {
    /// Opens the log and the shared memory after a connection of this process has opened them.
    /// Returns `None` if one of them does not exist, and always on Windows. There, nothing can
    /// remove an open file, and a second handle would keep `SQLite` itself from removing it.
    pub(super) fn open(store: &Path, writes: bool) -> io::Result<Option<Self>> {
        if cfg!(windows) {
            return Ok(None);
        }
        let open = |ending| File::options().read(true).write(writes).open(beside(store, ending));
        match (open(LOG), open(MEMORY)) {
            (Ok(log), Ok(memory)) => Ok(Some(Self { memory, log })),
            (Err(error), _) | (_, Err(error)) if error.kind() == io::ErrorKind::NotFound => {
                Ok(None)
            }
            (Err(error), _) | (_, Err(error)) => Err(error),
        }
    }

    /// Returns the change if a path no longer names its open file, or `None` if both still do.
    pub(super) fn missing(&self, store: &Path) -> io::Result<Option<LogChange>> {
        let mut missing = None;
        for (file, ending) in [(&self.log, LOG), (&self.memory, MEMORY)] {
            let path: PathBuf = beside(store, ending);
            if !is_named(file, &path)? {
                let is_gone = path.symlink_metadata().is_err();
                missing = missing.max(Some(if is_gone {
                    LogChange::Removed
                } else {
                    LogChange::Replaced
                }));
            }
        }
        Ok(missing)
    }
}
