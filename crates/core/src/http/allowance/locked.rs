//! A small file, open and locked. It is unlocked explicitly: a forked child may have the file open
//! too, and Windows may take a while to unlock a closed file.
//!
//! On Windows nobody can read a file that another process has locked, so every access locks first.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::time::Duration;

use super::file::LedgerFailure;

/// Maximum number of bytes read. A ledger is shorter.
const MOST_BYTES: u64 = 4_096;
/// The first and the longest pause between two attempts to lock.
const PAUSES: [Duration; 2] = [Duration::from_micros(20), Duration::from_millis(2)];

pub(super) struct LockedFile(File);

impl LockedFile {
    /// Opens a file and waits for its lock, at most `longest_wait`.
    pub(super) fn open(
        path: &Path,
        options: &OpenOptions,
        lock: fn(&File) -> Result<(), TryLockError>,
        longest_wait: Duration,
    ) -> Result<Self, LedgerFailure> {
        let mut options = options.clone();
        without_waiting(&mut options);
        let file = options.open(path)?;
        // Pipes and devices are refused.
        if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
            return Err(io::Error::other("it is not a regular file").into());
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
                Err(TryLockError::WouldBlock) => return Err(LedgerFailure::Locked),
                Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Interrupted => {}
                Err(TryLockError::Error(error)) => return Err(error.into()),
            }
        }
    }

    pub(super) fn read(&self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        (&self.0).take(MOST_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    pub(super) fn write(&self, bytes: &[u8]) -> io::Result<()> {
        (&self.0).seek(SeekFrom::Start(0))?;
        (&self.0).write_all(bytes)
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

/// Prevents that opening a pipe waits for its writer.
#[cfg(unix)]
fn without_waiting(options: &mut OpenOptions) {
    use std::os::unix::fs::OpenOptionsExt as _;
    options.custom_flags(nix::fcntl::OFlag::O_NONBLOCK.bits());
}

/// Opening a pipe does not wait on Windows.
#[cfg(windows)]
fn without_waiting(_options: &mut OpenOptions) {}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::http::test_server::TestFolder;

    thread_local! {
        static TRIES: Cell<u32> = const { Cell::new(0) };
    }

    type Locked = Result<(), TryLockError>;

    /// Counts the attempts of this thread. The first one has this outcome.
    fn first(outcome: Locked) -> Locked {
        TRIES.set(TRIES.get() + 1);
        if TRIES.get() == 1 { outcome } else { Ok(()) }
    }

    /// Opens an existing file; returns the number of attempts to lock it too.
    fn open(
        lock: fn(&File) -> Locked,
        longest_wait: Duration,
    ) -> (Result<LockedFile, LedgerFailure>, u32) {
        TRIES.set(0);
        let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
        let opened = LockedFile::open(path, OpenOptions::new().read(true), lock, longest_wait);
        // The file was never locked, so there is nothing to unlock.
        (opened, TRIES.get())
    }

    #[test]
    fn an_interrupted_attempt_to_lock_is_repeated() {
        let interrupted = |_: &File| first(Err(TryLockError::Error(ErrorKind::Interrupted.into())));
        let (opened, tries) = open(interrupted, Duration::ZERO);
        assert!(opened.is_ok() && tries == 2);
        let unsupported = |_: &File| first(Err(TryLockError::Error(ErrorKind::Unsupported.into())));
        let (opened, tries) = open(unsupported, Duration::ZERO);
        let failure = opened.err().expect("no lock").to_string();
        assert!(failure.starts_with("cannot be used") && tries == 1, "{failure}");
    }

    #[test]
    fn the_lock_is_released_despite_a_forked_child() {
        let folder = TestFolder::new();
        let path = folder.join("ledger.txt");
        std::fs::write(&path, "text").expect("written");
        let mut options = OpenOptions::new();
        let locked = LockedFile::open(&path, options.read(true), File::try_lock, Duration::ZERO);
        let locked = locked.expect("the lock");
        let other = File::open(&path).expect("the file");
        assert!(other.try_lock().is_err());
        // A duplicate shares the open file, as a child does.
        let inherited = locked.0.try_clone().expect("a duplicate");
        drop(locked);
        other.try_lock().expect("released");
        drop(inherited);
    }
}
