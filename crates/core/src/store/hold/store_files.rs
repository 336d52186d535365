//! The files of a store that this process has open.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::files::{beside, is_named};
use crate::store::access::{LOG, MEMORY};

#[derive(Debug)]
pub(super) struct LogFiles {
    pub(super) memory: File,
    log: File,
}

/// A change since this process opened the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LogChange {
    Removed,
    /// Another file has the name of one of the files.
    Replaced,
}

impl LogFiles {
    /// Returns `None` if one of the files does not exist, and always on Windows. There, nothing can
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

    /// Compares the paths with the open files.
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
