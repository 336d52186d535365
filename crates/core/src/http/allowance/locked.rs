//! A small file, open and locked. It is unlocked explicitly, not by closing it, because a forked
//! child may have the file open too, and Windows may take a while to unlock a closed file.
//!
//! On Windows nobody can read a file that another has locked. Everything here locks before it reads.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::time::Duration;

use crate::system;

/// At most so many bytes are read of a file; a ledger is shorter.
const MOST_BYTES: u64 = 4_096;
/// The first and the longest pause between two attempts to lock.
const PAUSES: [Duration; 2] = [Duration::from_micros(20), Duration::from_millis(2)];

/// Why a file could not be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum FileFailure {
    #[error("cannot be {action}: {}", system::reason(error))]
    System { action: &'static str, error: io::Error },
    #[error("has been locked by another process for seconds")]
    Locked,
}

impl FileFailure {
    pub(super) fn system(action: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::System { action, error }
    }

    pub(super) fn is_not_found(&self) -> bool {
        matches!(self, Self::System { error, .. } if error.kind() == ErrorKind::NotFound)
    }
}

/// A regular file, locked until it is dropped.
pub(super) struct LockedFile(File);

impl LockedFile {
    /// Opens a file and waits for its lock, at most `longest_wait`.
    pub(super) fn open(
        path: &Path,
        options: &OpenOptions,
        lock: fn(&File) -> Result<(), TryLockError>,
        longest_wait: Duration,
    ) -> Result<Self, FileFailure> {
        let mut options = options.clone();
        without_waiting(&mut options);
        let file = options.open(path).map_err(FileFailure::system("opened"))?;
        // Nor is a pipe or a device read.
        if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
            let error = io::Error::other("it is not a regular file");
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

    /// Writes the complete file.
    pub(super) fn write(&self, bytes: &[u8]) -> Result<(), FileFailure> {
        let mut file = &self.0;
        let written = file.seek(SeekFrom::Start(0)).and_then(|_| file.write_all(bytes));
        written.map_err(FileFailure::system("written"))
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

/// Opening a pipe waits for whoever writes to it, unless it is told not to.
#[cfg(unix)]
fn without_waiting(options: &mut OpenOptions) {
    use std::os::unix::fs::OpenOptionsExt as _;
    options.custom_flags(nix::fcntl::OFlag::O_NONBLOCK.bits());
}

/// Opening a pipe of Windows does not wait.
#[cfg(windows)]
fn without_waiting(_options: &mut OpenOptions) {}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        static TRIES: Cell<u32> = const { Cell::new(0) };
    }

    type Locked = Result<(), TryLockError>;

    /// Counts the attempts of this thread; the first one ends like this.
    fn first(outcome: Locked) -> Locked {
        TRIES.set(TRIES.get() + 1);
        if TRIES.get() == 1 { outcome } else { Ok(()) }
    }

    /// Opens a file that is there; returns how often its lock was tried as well.
    fn open(
        lock: fn(&File) -> Locked,
        longest_wait: Duration,
    ) -> (Result<LockedFile, FileFailure>, u32) {
        TRIES.set(0);
        let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
        let opened = LockedFile::open(path, OpenOptions::new().read(true), lock, longest_wait);
        // The file was never locked: there is nothing to unlock.
        (opened, TRIES.get())
    }

    #[test]
    fn an_attempt_that_a_signal_interrupts_is_repeated_and_another_failure_is_an_error() {
        let interrupted = |_: &File| first(Err(TryLockError::Error(ErrorKind::Interrupted.into())));
        let (opened, tries) = open(interrupted, Duration::ZERO);
        assert!(opened.is_ok() && tries == 2);
        let unsupported = |_: &File| first(Err(TryLockError::Error(ErrorKind::Unsupported.into())));
        let (opened, tries) = open(unsupported, Duration::ZERO);
        let failure = opened.err().expect("no lock").to_string();
        assert!(failure.starts_with("cannot be locked") && tries == 1, "{failure}");
    }

    #[test]
    fn who_may_not_wait_tries_once_and_nobody_waits_longer_than_allowed() {
        let held = |_: &File| {
            TRIES.set(TRIES.get() + 1);
            Err(TryLockError::WouldBlock)
        };
        for (longest_wait, expected) in [(Duration::ZERO, 1), (PAUSES[0], 2)] {
            let (opened, tries) = open(held, longest_wait);
            assert!(matches!(opened.err(), Some(FileFailure::Locked)));
            assert_eq!(tries, expected, "{longest_wait:?}");
        }
    }

    #[test]
    fn the_lock_is_released_although_a_forked_child_has_the_file_open() {
        let path = std::env::temp_dir().join(format!("siteline-locked-{}", std::process::id()));
        std::fs::write(&path, "text").expect("written");
        let mut options = OpenOptions::new();
        let locked = LockedFile::open(&path, options.read(true), File::try_lock, Duration::ZERO);
        let locked = locked.expect("the lock");
        let other = File::open(&path).expect("the file");
        assert!(other.try_lock().is_err());
        // A child has the same open file, as a duplicate does.
        let inherited = locked.0.try_clone().expect("a duplicate");
        drop(locked);
        other.try_lock().expect("released");
        drop(inherited);
        std::fs::remove_file(path).expect("removed");
    }
}
