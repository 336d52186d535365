//! A small file, open and locked. The lock is released by a call, not by closing the file: a child
//! that was forked meanwhile has the file open too.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::time::Duration;

/// No more is read of a file: none of ours is longer.
const MOST_BYTES: u64 = 4_096;
/// The first and the longest pause between two tries for a lock that another process holds.
const PAUSES: [Duration; 2] = [Duration::from_micros(20), Duration::from_millis(2)];

/// Why a file could not be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum FileFailure {
    /// The operating system refused.
    #[error("cannot be {action}: {}", in_words(error))]
    System { action: &'static str, error: io::Error },
    /// Another process held the lock all the time.
    #[error("is held by another process, for seconds")]
    Locked,
}

impl FileFailure {
    pub(super) fn system(action: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::System { action, error }
    }
}

/// Our own words, or the kind of the system's: its text may hold anything.
fn in_words(error: &io::Error) -> String {
    error.get_ref().map_or(error.kind().to_string(), ToString::to_string)
}

/// A plain file, locked until it is dropped.
pub(super) struct LockedFile(File);

impl LockedFile {
    /// Opens a file and waits for its lock, at most for so long.
    pub(super) fn open(
        path: &Path,
        options: &OpenOptions,
        lock: fn(&File) -> Result<(), TryLockError>,
        longest_wait: Duration,
    ) -> Result<Self, FileFailure> {
        let file = options.open(path).map_err(FileFailure::system("opened"))?;
        // A pipe or a device would keep us waiting.
        if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
            let error = io::Error::other("it is no plain file");
            return Err(FileFailure::System { action: "used", error });
        }
        let [mut pause, longest_pause] = PAUSES;
        let mut waited = Duration::ZERO;
        loop {
            match lock(&file) {
                Ok(()) => return Ok(Self(file)),
                Err(TryLockError::WouldBlock) if waited < longest_wait => {
                    std::thread::sleep(pause);
                    waited += pause;
                    pause = (2 * pause).min(longest_pause);
                }
                Err(TryLockError::WouldBlock) => return Err(FileFailure::Locked),
                Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Interrupted => {}
                Err(TryLockError::Error(error)) => {
                    return Err(FileFailure::System { action: "locked", error });
                }
            }
        }
    }

    pub(super) fn read(&self) -> Result<Vec<u8>, FileFailure> {
        let mut bytes = Vec::new();
        let read = (&self.0).take(MOST_BYTES).read_to_end(&mut bytes);
        read.map(|_| bytes).map_err(FileFailure::system("read"))
    }

    /// Writes the whole file; a new one is flushed to the disk.
    pub(super) fn write(&self, bytes: &[u8], is_new: bool) -> Result<(), FileFailure> {
        let mut file = &self.0;
        let written = file.seek(SeekFrom::Start(0)).and_then(|_| file.write_all(bytes));
        let written = written.and_then(|()| if is_new { self.0.sync_all() } else { Ok(()) });
        written.map_err(|error| {
            if is_new {
                // A part of a ledger would be taken for a damaged one.
                let _ = self.0.set_len(0);
            }
            FileFailure::System { action: "written", error }
        })
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}
