//! The lock of a feed: one writer at a time.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;

use aws_lc_rs::digest;

use super::failure::{system, taken};
use crate::error::Result;
use crate::fork::Process;

/// A feed that is locked for writing until this is dropped.
#[derive(Debug)]
pub(super) struct FeedLock {
    file: File,
    process: Process,
}

impl FeedLock {
    /// Locks a file beside the store. The file stays: removing it would let two processes hold it.
    pub(super) fn take(store: &Path, feed: &str) -> Result<Self> {
        let name = digest::digest(&digest::SHA256, feed.as_bytes());
        let (short, _) = name.as_ref().split_first_chunk().unwrap_or((&[0; 8], &[]));
        let mut path = store.as_os_str().to_owned();
        path.push(format!("-{:016x}.lock", u64::from_be_bytes(*short)));
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(|error| system(store, "the lock of a feed cannot be made", &error))?;
        match file.try_lock() {
            Ok(()) => Ok(Self { file, process: Process::current() }),
            Err(TryLockError::WouldBlock) => Err(taken(store, feed)),
            Err(TryLockError::Error(error)) => {
                Err(system(store, "the lock of a feed cannot be taken", &error))
            }
        }
    }
}

impl Drop for FeedLock {
    fn drop(&mut self) {
        if self.process.is_current() {
            // By a call, not by closing the file: a forked child has the file open too.
            let _unlocked = self.file.unlock();
        }
    }
}
