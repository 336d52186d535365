//! Replaces the file of a store.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;

use super::byte_lock::{ByteLock, is_used, set};
use super::{MEMORY_USERS, StoreHold, TURN, USERS};
use crate::files::{self, beside, is_named};
use crate::store::access::{LOG, MEMORY};
use crate::store::failure::{StoreResult, open_elsewhere};

/// Keeps other processes from opening the store until it is dropped.
#[derive(Debug)]
pub(in crate::store) struct Replacing(StoreHold);

impl Replacing {
    /// Waits up to `timeout` for a closing process. Returns `StoreBusy` if a process still has the
    /// store open after that.
    pub(in crate::store) fn begin(store: &Path, timeout: Duration) -> StoreResult<Self> {
        let hold = StoreHold::new(store)?;
        let memory = beside(store, MEMORY);
        let has_users =
            || File::open(&memory).map_or(Ok(false), |file| is_used(&file, &MEMORY_USERS));
        let alone = || {
            Ok(is_named(&hold.file, store)?
                && set(&hold.file, ByteLock::Alone, &TURN)?
                && set(&hold.file, ByteLock::Alone, &USERS)?
                && !has_users()?)
        };
        let waited = hold.wait(timeout, alone);
        waited.map_err(|failure| failure.busy_as(|| open_elsewhere(store)))?;
        Ok(Self(hold))
    }

    /// Also removes the old log and shared memory. After a kill in between, the next process sees
    /// that the log belongs to another file.
    pub(in crate::store) fn finish(self, part: &Path) -> io::Result<()> {
        let store = &self.0.path;
        #[cfg(windows)]
        drop(self.0.file);
        files::put(part, store, true)?;
        for ending in [LOG, MEMORY] {
            match std::fs::remove_file(beside(store, ending)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}
