//! The ledger file, shared by all processes of an integration: one small JSON file for each base
//! URL and subject.
//!
//! Each operation opens the file, takes an exclusive lock, and writes the count in place, in one
//! write of less than a page. Nothing stays open between operations, so forks are safe, and a
//! killed process leaves the old count or the new one. A kill between counting and sending counts
//! one request too many, never one too few. The file is synced to disk only when it is
//! created, because a sync takes longer than a request: only a power failure can lose counts.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};

use super::count::Count;
use super::locked::{FileFailure, LockedFile};
use super::text::{self, TextFault};
use crate::error::{Error, Kind};
use crate::files::{self, owner_text};

/// A process keeps the lock for microseconds, unless it was stopped. The wait has a limit because
/// Ctrl-C cannot interrupt it.
const LOCK_WAIT: Duration = Duration::from_secs(5);

/// Identifies an integration by a short hash of base URL and subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Integration(String);

impl Integration {
    #[must_use]
    pub fn new(base_url: &str, subject: &str) -> Self {
        let hash = digest(&SHA256, format!("{base_url}\n{subject}").as_bytes());
        let head = hash.as_ref().first_chunk().copied().unwrap_or_default();
        Self(format!("{:016x}", u64::from_be_bytes(head)))
    }

    /// The name of its file in the user's state folder.
    #[must_use]
    pub fn file_name(&self) -> String {
        format!("ledger-{}.txt", self.0)
    }
}

/// The file of a ledger. It does not contain the limit.
#[derive(Debug)]
pub(super) struct LedgerFile {
    path: PathBuf,
    integration: Integration,
    pub(super) lock_wait: Duration,
}

/// Why an operation failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum LedgerFailure {
    #[error(transparent)]
    File(#[from] FileFailure),
    #[error(transparent)]
    Text(#[from] TextFault),
    #[error("belongs to another base_url and subject")]
    Foreign,
}

impl LedgerFile {
    pub(super) fn new(path: &Path, integration: Integration) -> Self {
        // Absolute, because the process may change its working directory.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        Self { path, integration, lock_wait: LOCK_WAIT }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    fn open(&self) -> Result<LockedFile, FileFailure> {
        let mut options = OpenOptions::new();
        LockedFile::open(&self.path, options.read(true).write(true), File::try_lock, self.lock_wait)
    }

    /// Opens, locks and reads the file as an update does, and changes nothing. Returns whether it
    /// exists.
    pub(super) fn try_look(&self) -> Result<bool, LedgerFailure> {
        match self.open() {
            Ok(file) => self.count_in(&file.read()?).map(|_| true),
            Err(failure) if failure.is_not_found() => Ok(false),
            Err(failure) => Err(failure.into()),
        }
    }

    /// Reads, changes and writes back under an exclusive lock. Creates a missing file.
    pub(super) fn try_update<T>(
        &self,
        change: impl FnOnce(&mut Count) -> T,
    ) -> Result<T, LedgerFailure> {
        let file = match self.open() {
            Err(failure) if failure.is_not_found() => {
                create(&self.path, self.text(&Count::default())?.as_bytes())?;
                self.open()?
            }
            opened => opened?,
        };
        let before = self.count_in(&file.read()?)?;
        let mut count = before.clone();
        let outcome = change(&mut count);
        if count != before {
            file.write(self.text(&count)?.as_bytes())?;
        }
        Ok(outcome)
    }

    /// Reads under a shared lock. A missing file is read as a count of zero and not created.
    pub(super) fn try_read<T>(&self, read: impl FnOnce(&Count) -> T) -> Result<T, LedgerFailure> {
        let mut options = OpenOptions::new();
        let options = options.read(true);
        match LockedFile::open(&self.path, options, File::try_lock_shared, self.lock_wait) {
            Ok(file) => Ok(read(&self.count_in(&file.read()?)?)),
            Err(failure) if failure.is_not_found() => Ok(read(&Count::default())),
            Err(failure) => Err(failure.into()),
        }
    }

    fn text(&self, count: &Count) -> Result<String, FileFailure> {
        let written = text::write(count, &self.integration.0).map_err(io::Error::from);
        written.map_err(FileFailure::system("written"))
    }

    /// Parses a count. An empty file is damaged, because a new ledger is created with its content.
    fn count_in(&self, bytes: &[u8]) -> Result<Count, LedgerFailure> {
        let contents = text::read(bytes)?;
        if contents.integration != self.integration.0 {
            return Err(LedgerFailure::Foreign);
        }
        Ok(contents.count)
    }

    pub(super) fn error(&self, failure: &LedgerFailure) -> Error {
        let (kind, hint) = advice(failure);
        let message =
            format!("the ledger {} {failure}{}", self.path.display(), self.owner(failure));
        let error = Error::new(kind, message).with_hint(hint).with(|context| context.unsent = true);
        match failure {
            LedgerFailure::File(FileFailure::System { error: system, .. }) => {
                error.passing_as(system)
            }
            _ => error,
        }
    }

    /// The owner of the file or its folder, if that is why the file cannot be used.
    fn owner(&self, failure: &LedgerFailure) -> String {
        let LedgerFailure::File(FileFailure::System { error, .. }) = failure else {
            return String::new();
        };
        if error.kind() != ErrorKind::PermissionDenied {
            return String::new();
        }
        // A folder that may not be entered hides its content.
        let mut places = self.path.ancestors();
        match places.find(|place| place.symlink_metadata().is_ok()) {
            Some(place) if place == self.path => format!(": {}", owner_text(place)),
            Some(place) => format!(" at {}: {}", place.display(), owner_text(place)),
            None => String::new(),
        }
    }
}

fn advice(failure: &LedgerFailure) -> (Kind, &'static str) {
    match failure {
        LedgerFailure::File(FileFailure::Locked) => (
            Kind::StoreBusy,
            "A process usually keeps the lock for microseconds. Check for a stopped process.",
        ),
        LedgerFailure::File(FileFailure::System { error, .. }) => {
            let full = matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded);
            (
                if full { Kind::StoreFull } else { Kind::StoreError },
                "No request was sent, because it could not be counted. Use ledger= to name a file \
                 that this user may write, or ledger=\"memory\" to count in memory for this \
                 client only.",
            )
        }
        LedgerFailure::Text(TextFault::Damaged) => (
            Kind::StoreCorrupt,
            "No request is sent until this is fixed. If the file is a ledger, delete it and lower \
             daily_allowance= for today: the count restarts at zero. Otherwise name another path.",
        ),
        LedgerFailure::Text(TextFault::Newer(_)) => {
            (Kind::StoreError, "Update siteline, or name another path.")
        }
        LedgerFailure::Foreign => {
            (Kind::StoreError, "Each integration needs its own ledger. Name another path.")
        }
    }
}

/// Creates the file of a new ledger, unless another process is faster. It is written under another
/// name, synced, and renamed, so a killed process leaves no partial file. A file that root creates
/// belongs to the owner of its folder.
fn create(path: &Path, bytes: &[u8]) -> Result<(), FileFailure> {
    let path = &target(path);
    let error = match files::write_whole(path, bytes, false) {
        Ok(()) => return Ok(()),
        Err(error) => error,
    };
    let error = match error.kind() {
        // Another process was faster.
        ErrorKind::AlreadyExists => return Ok(()),
        ErrorKind::NotFound => {
            let folder = files::folder_of(path).display();
            io::Error::new(ErrorKind::NotFound, format!("its folder {folder} does not exist"))
        }
        _ => error,
    };
    Err(FileFailure::System { action: "created", error })
}

/// Follows a link at the path.
fn target(path: &Path) -> PathBuf {
    match fs::read_link(path) {
        Ok(target) => path.parent().unwrap_or(Path::new("")).join(target),
        Err(_) => path.to_owned(),
    }
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
