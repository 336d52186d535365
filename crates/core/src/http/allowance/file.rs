//! The ledger file, shared by all processes of an integration: one small JSON file for each base
//! URL and subject.
//!
//! Each operation opens the file, takes an exclusive lock, and writes the count in place, in one
//! write of less than a page. Nothing stays open between operations, so forks are safe, and a
//! killed process leaves the old count or the new one. A kill between counting and sending counts
//! one request too many, never one too few. The file is synced to disk only when it is
//! created, because a sync takes longer than a request: only a power failure can lose counts.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

use super::count::Count;
use super::locked::LockedFile;
use crate::error::{Error, Kind};
use crate::files::{self, owner_text};
use crate::system;

/// A process keeps the lock for microseconds, unless it was stopped. The wait has a limit because
/// Ctrl-C cannot interrupt it.
const LOCK_WAIT: Duration = Duration::from_secs(5);

const FORM: u32 = 1;
/// The length of every file. It is less than a page, so one write replaces it.
const LENGTH: usize = 2_560;
/// The length of `{"check":"01234567",`.
const CHECK: usize = 20;

#[derive(Serialize, Deserialize)]
struct Contents {
    form: u32,
    integration: String,
    count: Count,
}

/// The member that every version has.
#[derive(Deserialize)]
struct FileForm {
    form: u32,
}

/// Identifies an integration by a short hash of base URL and subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Integration(String);

impl Integration {
    pub fn new(base_url: &str, subject: &str) -> Self {
        let hash = digest(&SHA256, format!("{base_url}\n{subject}").as_bytes());
        let head = hash.as_ref().first_chunk().copied().unwrap_or_default();
        Self(format!("{:016x}", u64::from_be_bytes(head)))
    }

    /// The name of its file in the user's state folder.
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
    #[error("cannot be used: {}", system::reason(.0))]
    System(#[from] io::Error),
    #[error("has been locked by another process for seconds")]
    Locked,
    #[error("is damaged")]
    Damaged,
    #[error("was written by a newer siteline (form {0})")]
    Newer(u32),
    #[error("belongs to another base_url and subject")]
    Foreign,
}

impl LedgerFailure {
    fn is_not_found(&self) -> bool {
        matches!(self, Self::System(error) if error.kind() == ErrorKind::NotFound)
    }
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

    /// Opens the file and locks it, exclusively if it `writes`.
    fn open(&self, writes: bool) -> Result<LockedFile, LedgerFailure> {
        let mut options = OpenOptions::new();
        options.read(true).write(writes);
        let lock = if writes { File::try_lock } else { File::try_lock_shared };
        LockedFile::open(&self.path, &options, lock, self.lock_wait)
    }

    /// Reads the count, opened and locked as an update does if it `writes`. Returns `None` for a
    /// missing file, which is not created.
    pub(super) fn try_read(&self, writes: bool) -> Result<Option<Count>, LedgerFailure> {
        match self.open(writes) {
            Err(failure) if failure.is_not_found() => Ok(None),
            opened => self.count_in(&opened?.read()?).map(Some),
        }
    }

    /// Reads, changes and writes back under an exclusive lock. Creates a missing file.
    pub(super) fn try_update<T>(
        &self,
        change: impl FnOnce(&mut Count) -> T,
    ) -> Result<T, LedgerFailure> {
        let file = match self.open(true) {
            Err(failure) if failure.is_not_found() => {
                create(&self.path, &self.text(&Count::default())?)?;
                self.open(true)?
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

    /// Writes a count: one JSON object, padded to a fixed length.
    fn text(&self, count: &Count) -> Result<String, LedgerFailure> {
        let (integration, count) = (self.integration.0.clone(), count.clone());
        let text = serde_json::to_string(&Contents { form: FORM, integration, count })
            .map_err(io::Error::from)?;
        Ok(sealed(&format!("{:width$}\n", &text[1..], width = LENGTH - CHECK - 1)))
    }

    /// Parses a count. An empty file is damaged, because a new ledger is created with its content.
    fn count_in(&self, bytes: &[u8]) -> Result<Count, LedgerFailure> {
        let contents = contents_of(bytes)?;
        if contents.integration != self.integration.0 {
            return Err(LedgerFailure::Foreign);
        }
        Ok(contents.count)
    }

    pub(super) fn error(&self, failure: &LedgerFailure) -> Error {
        let (kind, hint) = advice(failure);
        let error = |whose: &str| {
            let message = format!("the ledger {} {failure}{whose}", self.path.display());
            Error::new(kind, message).with_hint(hint).with(|context| context.unsent = true)
        };
        match failure {
            LedgerFailure::System(system) if system.kind() == ErrorKind::PermissionDenied => {
                error(&self.owner())
            }
            LedgerFailure::System(system) => error("").passing_as(system),
            _ => error(""),
        }
    }

    /// The owner of the file, or of its innermost folder that this user may see.
    fn owner(&self) -> String {
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
        LedgerFailure::Locked => (
            Kind::StoreBusy,
            "A process usually keeps the lock for microseconds. Check for a stopped process.",
        ),
        LedgerFailure::System(error) => {
            let full = matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded);
            (
                if full { Kind::StoreFull } else { Kind::StoreError },
                "No request was sent, because it could not be counted. Use ledger= to name a file \
                 that this user may write, or ledger=\"memory\" to count in memory for this \
                 client only.",
            )
        }
        LedgerFailure::Damaged => (
            Kind::StoreCorrupt,
            "No request is sent until this is fixed. If the file is a ledger, delete it and lower \
             daily_allowance= for today: the count restarts at zero. Otherwise name another path.",
        ),
        LedgerFailure::Newer(_) => (Kind::StoreError, "Update siteline, or name another path."),
        LedgerFailure::Foreign => {
            (Kind::StoreError, "Each integration needs its own ledger. Name another path.")
        }
    }
}

/// Adds the checksum to the members after it.
fn sealed(members: &str) -> String {
    check(members.as_bytes()) + members
}

fn check(members: &[u8]) -> String {
    format!("{{\"check\":\"{:08x}\",", libdeflater::crc32(members))
}

fn contents_of(bytes: &[u8]) -> Result<Contents, LedgerFailure> {
    let (head, members) = bytes.split_at_checked(CHECK).ok_or(LedgerFailure::Damaged)?;
    if head != check(members).as_bytes() {
        return Err(LedgerFailure::Damaged);
    }
    let form = serde_json::from_slice(bytes).map_err(|_| LedgerFailure::Damaged)?;
    match form {
        FileForm { form: FORM } => {
            serde_json::from_slice(bytes).map_err(|_| LedgerFailure::Damaged)
        }
        FileForm { form } => Err(LedgerFailure::Newer(form)),
    }
}

/// Creates the file of a new ledger, unless another process is faster. A killed process leaves no
/// partial file. A file that root creates belongs to the owner of its folder.
fn create(path: &Path, text: &str) -> io::Result<()> {
    match files::write_whole(&files::behind_links(path), text.as_bytes(), false) {
        // Another process was faster.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let folder = files::folder_of(path).display();
            Err(io::Error::new(error.kind(), format!("its folder {folder} does not exist")))
        }
        made => made,
    }
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
