//! The ledger in a file, shared by all processes of an integration (§8, §5.4). One small text file
//! for each base URL and subject.
//!
//! Each operation opens the file, takes an exclusive lock, and writes the count in place, in one
//! write of less than a page. Nothing stays open between operations, so forks are safe, and a
//! process that is killed leaves the old count or the new one. A kill between counting and sending
//! counts one request too many, never one too few. The file is synced to disk only when it is
//! created (see `new_file`), because a sync takes longer than a request: only a power failure can lose
//! counts.

use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use jiff::Timestamp;

use super::count::{Count, Terms};
use super::ledger::Ledger;
use super::lend::{Lent, Wish};
use super::locked::{FileFailure, LockedFile};
use super::new_file;
use super::outcome::{Outcome, Permit, Reservation};
use super::state::AllowanceState;
use super::text::{self, TextFault};
use crate::clock::{Moment, Reading};
use crate::error::{Error, Kind, Result};
use crate::files::owner_text;
use crate::system::lacks_files;

/// A process keeps the lock for microseconds, unless it was stopped. The wait is limited, because
/// Ctrl-C cannot interrupt it.
const LOCK_WAIT: Duration = Duration::from_secs(5);

/// Which integration a ledger belongs to: a short hash of base URL and subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Integration(String);

impl Integration {
    /// The integration of this subject at this service.
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

/// Counts in a file, for all processes that use it. The limit is not stored in the file.
#[derive(Debug)]
pub struct FileLedger {
    path: PathBuf,
    integration: Integration,
    terms: Terms,
    lock_wait: Duration,
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

impl LedgerFailure {
    /// True if the process, or the system, has too many open files.
    pub(super) fn is_of_open_files(&self) -> bool {
        matches!(self, Self::File(FileFailure::System { error, .. }) if lacks_files(error))
    }
}

impl FileLedger {
    /// Opens the ledger in this file, or creates it. Its folder must exist.
    ///
    /// # Errors
    /// `StoreError` with the path if the file cannot be created or opened, has a newer version, or
    /// belongs to another integration; `StoreCorrupt` if it is damaged.
    pub fn open(path: &Path, integration: Integration, terms: Terms) -> Result<Self> {
        let ledger = Self::unopened(path, integration, terms);
        ledger.update(|_| ())?;
        Ok(ledger)
    }

    /// In this file, which the first count opens or creates.
    pub(crate) fn unopened(path: &Path, integration: Integration, terms: Terms) -> Self {
        // Absolute, because the process may change its working directory.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        Self { path, integration, terms, lock_wait: LOCK_WAIT }
    }

    /// The path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens, locks and reads it as a count does, and changes nothing. Returns whether it is there: it is
    /// not made.
    ///
    /// # Errors
    /// As [`FileLedger::open`].
    pub(crate) fn look(&self) -> Result<bool> {
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true);
        let look = || match LockedFile::open(&self.path, options, File::try_lock, self.lock_wait) {
            Ok(file) => self.count_in(&file.read()?).map(|_| true),
            Err(failure) if failure.is_not_found() => Ok(false),
            Err(failure) => Err(failure.into()),
        };
        look().map_err(|failure| self.error(&failure))
    }

    fn update<T>(&self, change: impl FnOnce(&mut Count) -> T) -> Result<T> {
        self.try_update(change).map_err(|failure| self.error(&failure))
    }

    /// Reads, changes and writes back under an exclusive lock. A missing file is made.
    pub(super) fn try_update<T>(
        &self,
        change: impl FnOnce(&mut Count) -> T,
    ) -> Result<T, LedgerFailure> {
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true);
        let open = || LockedFile::open(&self.path, options, File::try_lock, self.lock_wait);
        let file = match open() {
            Err(failure) if failure.is_not_found() => {
                let text = text::write(&Count::default(), &self.integration.0);
                new_file::create(&self.path, text.as_bytes())?;
                open()?
            }
            opened => opened?,
        };
        let before = self.count_in(&file.read()?)?;
        let mut count = before.clone();
        let outcome = change(&mut count);
        if count != before {
            file.write(text::write(&count, &self.integration.0).as_bytes())?;
        }
        Ok(outcome)
    }

    fn read<T>(&self, read: impl FnOnce(&Count) -> T) -> Result<T> {
        self.try_read(read).map_err(|failure| self.error(&failure))
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

    /// Parses a count. An empty file is damaged: a ledger is made whole.
    fn count_in(&self, bytes: &[u8]) -> Result<Count, LedgerFailure> {
        let contents = text::read(bytes)?;
        if contents.integration != self.integration.0 {
            return Err(LedgerFailure::Foreign);
        }
        Ok(contents.count)
    }

    /// The error for the user.
    pub(super) fn error(&self, failure: &LedgerFailure) -> Error {
        let (kind, hint) = advice(failure);
        let message =
            format!("the ledger {} {failure}{}", self.path.display(), self.owner(failure));
        let error = Error::new(kind, message).with_hint(hint).with(|context| context.unsent = true);
        match failure {
            LedgerFailure::File(FileFailure::System { error: system, .. }) => {
                error.passing_with(system)
            }
            _ => error,
        }
    }
}

impl FileLedger {
    /// Whose the file is, or its folder, where that is why it cannot be used.
    fn owner(&self, failure: &LedgerFailure) -> String {
        let LedgerFailure::File(FileFailure::System { error, .. }) = failure else {
            return String::new();
        };
        if error.kind() != ErrorKind::PermissionDenied {
            return String::new();
        }
        // A folder that may not be entered hides what is in it.
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
            "A process keeps the lock for microseconds only: perhaps one was stopped while it had it.",
        ),
        LedgerFailure::File(FileFailure::System { error, .. }) => {
            let full = matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded);
            (
                if full { Kind::StoreFull } else { Kind::StoreError },
                "Requests are counted before they are sent, so none is sent. Name a file that this user \
                 may write with ledger=, or count in memory, by this client alone, with \
                 ledger=\"memory\".",
            )
        }
        LedgerFailure::Text(TextFault::Damaged) => (
            Kind::StoreCorrupt,
            "No request is counted or sent until this is fixed. If the file is a ledger, delete it: \
             siteline then counts today's requests from zero and misses those already made, so lower \
             daily_allowance= for today. If it is another file, name another path.",
        ),
        LedgerFailure::Text(TextFault::Newer(_)) => {
            (Kind::StoreError, "Update siteline, or name another path.")
        }
        LedgerFailure::Foreign => {
            (Kind::StoreError, "Each integration has its own ledger: name another path.")
        }
    }
}

impl Ledger for FileLedger {
    fn permit(&self, now: Moment, must_remain: u64) -> Result<Permit> {
        self.read(|count| count.permit(self.terms, now, must_remain))
    }

    fn reserve(&self, now: Moment, must_remain: u64) -> Result<Reservation> {
        self.update(|count| count.reserve(self.terms, now, must_remain))?
    }

    fn settle(&self, reservation: Reservation, outcome: Outcome, now: Moment) {
        if let Err(error) =
            self.update(|count| count.settle(self.terms, &reservation, outcome, now))
        {
            log::warn!(target: "siteline::ledger", "one request is counted too many: {error}");
        }
    }

    fn lend(&self, wish: Wish, now: Moment) -> Result<Lent> {
        self.update(|count| count.lend(self.terms, wish, now))
    }

    fn observe(&self, reading: Reading, now: Moment) {
        if let Err(error) = self.update(|count| count.observe(self.terms, reading, now)) {
            log::warn!(target: "siteline::ledger", "the service's time is not recorded: {error}");
        }
    }

    fn pin(&self, pause: Duration, now: Moment) -> Result<()> {
        self.update(|count| count.pin(self.terms, pause, now))
    }

    fn state(&self, now: Moment) -> Result<AllowanceState> {
        self.read(|count| count.state(self.terms, now))
    }

    fn service_time(&self, now: Moment) -> Result<Timestamp> {
        self.read(|count| count.service_time(now))
    }

    fn count_token_request(&self, now: Moment) -> Result<()> {
        self.update(|count| count.count_token_request(self.terms, now))
    }

    fn begin_token_request(&self, now: Moment) -> Result<u64> {
        self.update(|count| count.begin_token_request(now))
    }

    fn pause_tokens(&self, pause: Duration, now: Moment) -> Result<()> {
        self.update(|count| count.pause_tokens(pause, now))
    }

    fn token_pause(&self, now: Moment) -> Result<Option<(Duration, Timestamp)>> {
        self.read(|count| count.token_pause(now))
    }
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
