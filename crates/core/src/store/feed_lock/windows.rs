//! Each feed has a lock file, because the standard library locks whole files. The lock belongs to
//! the open file, so it also excludes other threads, and it ends with the process.

use std::fs::{File, TryLockError};
use std::path::Path;

use super::{number_of, open_or_create};
use crate::error::Result;
use crate::files::beside;
use crate::store::access::LOCK;
use crate::store::failure::{feed_locked, system};

/// Locks a feed for writing until it is dropped.
#[derive(Debug)]
pub(in crate::store) struct FeedLock(File);

impl FeedLock {
    /// Does not wait.
    pub(in crate::store) fn take(store: &Path, feed: &str) -> Result<Self> {
        let path = beside(store, &format!("{LOCK}-{:016x}", number_of(feed)));
        let file = open_or_create(&path, store)?;
        match file.try_lock() {
            Ok(()) => Ok(Self(file)),
            Err(TryLockError::WouldBlock) => Err(feed_locked(store, feed)),
            Err(TryLockError::Error(error)) => {
                Err(system(store, "a feed cannot be locked", &error))
            }
        }
    }
}

impl Drop for FeedLock {
    fn drop(&mut self) {
        // After closing a file, Windows may unlock it with a delay.
        let _ = self.0.unlock();
    }
}
