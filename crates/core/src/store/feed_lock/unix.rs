//! A store has one lock file, with one byte per feed. A process opens it once for all feeds.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;

use super::{number_of, open_or_create};
use crate::error::Result;
use crate::files::beside;
use crate::fork::{Owned, Process};
use crate::lock::Mutex;
use crate::store::access::LOCK;
use crate::store::failure::{feed_locked, system};

/// By the path of the store.
static OPEN: Owned<Mutex<HashMap<PathBuf, Weak<LockFile>>>> = Owned::empty();

/// The system would lock a byte twice for the same open file, so `locked` has the bytes of this
/// process.
#[derive(Debug)]
struct LockFile {
    file: File,
    locked: Mutex<HashSet<i64>>,
}

/// Locks a feed for writing until it is dropped.
#[derive(Debug)]
pub(in crate::store) struct FeedLock {
    lock_file: Arc<LockFile>,
    byte: i64,
    process: Process,
}

impl FeedLock {
    /// Does not wait.
    pub(in crate::store) fn take(store: &Path, feed: &str) -> Result<Self> {
        let (lock_file, byte) = (LockFile::open(store)?, number_of(feed));
        if !lock_file.locked.lock().insert(byte) {
            return Err(feed_locked(store, feed));
        }
        if let Err(error) = set_lock(&lock_file.file, libc::F_WRLCK, byte) {
            lock_file.locked.lock().remove(&byte);
            return Err(match error {
                Errno::EAGAIN | Errno::EACCES => feed_locked(store, feed),
                error => system(store, "a feed cannot be locked", &error.into()),
            });
        }
        Ok(Self { lock_file, byte, process: Process::current() })
    }
}

impl Drop for FeedLock {
    fn drop(&mut self) {
        if self.process.is_current() {
            // Closing the file would not unlock the byte while a forked child has the file open.
            let _unlocked = set_lock(&self.lock_file.file, libc::F_UNLCK, self.byte);
            self.lock_file.locked.lock().remove(&self.byte);
        }
    }
}

impl LockFile {
    fn open(store: &Path) -> Result<Arc<Self>> {
        let mut files = OPEN.get_or_init(Mutex::default).lock();
        if let Some(known) = files.get(store).and_then(Weak::upgrade) {
            return Ok(known);
        }
        files.retain(|_, known| known.strong_count() > 0);
        let file = open_or_create(&beside(store, LOCK), store)?;
        let new = Arc::new(Self { file, locked: Mutex::default() });
        files.insert(store.to_owned(), Arc::downgrade(&new));
        Ok(new)
    }
}

/// The lock belongs to the open file if possible. On other systems it belongs to the process, which
/// loses it by closing any handle of the file.
fn set_lock(file: &File, kind: impl Into<i32>, byte: i64) -> nix::Result<()> {
    let kind = libc::c_short::try_from(kind.into()).unwrap_or_default();
    let whence = libc::c_short::try_from(libc::SEEK_SET).unwrap_or_default();
    let range = libc::flock { l_type: kind, l_whence: whence, l_start: byte, l_len: 1, l_pid: 0 };
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let lock = FcntlArg::F_OFD_SETLK(&range);
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let lock = FcntlArg::F_SETLK(&range);
    fcntl(file, lock).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;
    use crate::store::tests::Folder;

    #[test]
    fn unused_lock_files_are_closed() {
        let folders = [Folder::new(), Folder::new(), Folder::new()];
        let stores = folders.each_ref().map(Folder::store);
        let take = |store: &Store| FeedLock::take(store.path(), "line").unwrap();
        let _held = take(&stores[0]);
        drop(take(&stores[1]));
        let _also_held = take(&stores[2]);
        let known =
            |store: &Store| OPEN.get_or_init(Mutex::default).lock().contains_key(store.path());
        assert_eq!(stores.each_ref().map(known), [true, false, true]);
    }
}
