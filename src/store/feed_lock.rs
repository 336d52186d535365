//! The lock of a feed: one writer at a time.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;

use aws_lc_rs::digest;

use super::failure::{feed_locked, system};
use crate::error::Result;
use crate::fork::Process;

/// Locks a feed for writing until it is dropped.
#[derive(Debug)]
pub(super) struct FeedLock {
    file: File,
    process: Process,
}

impl FeedLock {
    /// Locks a file beside the store. The file is never removed: if it were, two processes could
    /// each lock a file of that name.
    pub(super) fn take(store: &Path, feed: &str) -> Result<Self> {
        let name = digest::digest(&digest::SHA256, feed.as_bytes());
        let (short, _) = name.as_ref().split_first_chunk().unwrap_or((&[0; 8], &[]));
        let mut path = store.as_os_str().to_owned();
        path.push(format!("-{:016x}.lock", u64::from_be_bytes(*short)));
        let file =
            OpenOptions::new().create(true).truncate(false).write(true).open(&path).map_err(
                |error| system(store, "the lock file of a feed cannot be opened", &error),
            )?;
        match file.try_lock() {
            Ok(()) => Ok(Self { file, process: Process::current() }),
            Err(TryLockError::WouldBlock) => Err(feed_locked(store, feed)),
            Err(TryLockError::Error(error)) => {
                Err(system(store, "a feed cannot be locked", &error))
            }
        }
    }
}

impl Drop for FeedLock {
    fn drop(&mut self) {
        if self.process.is_current() {
            // Closing the file would not unlock it while a forked child has it open.
            let _unlocked = self.file.unlock();
        }
    }
}
