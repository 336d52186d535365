//! The files of a store as this process has them open.

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

/// What is no longer as it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Missing {
    /// The log or the shared memory was removed.
    Removed,
    /// Another file has the name.
    Replaced,
}

impl LogFiles {
    /// Opens both, which a connection of this process has made or opened; `None` where one is not
    /// there. On Windows nothing can remove them while they are open, and a second handle would keep
    /// `SQLite` from it too.
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

    /// Whether both still have their names.
    pub(super) fn missing(&self, store: &Path) -> io::Result<Option<Missing>> {
        let mut missing = None;
        for (file, ending) in [(&self.log, LOG), (&self.memory, MEMORY)] {
            let path: PathBuf = beside(store, ending);
            if !is_named(file, &path)? {
                let is_gone = path.symlink_metadata().is_err();
                missing =
                    missing.max(Some(if is_gone { Missing::Removed } else { Missing::Replaced }));
            }
        }
        Ok(missing)
    }
}
