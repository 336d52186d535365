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

    /// The paths that no longer name the open files.
    pub(super) fn missing(&self, store: &Path) -> io::Result<Vec<PathBuf>> {
        let mut missing = Vec::new();
        for (file, ending) in [(&self.log, LOG), (&self.memory, MEMORY)] {
            let path = beside(store, ending);
            if !is_named(file, &path)? {
                missing.push(path);
            }
        }
        Ok(missing)
    }
}
