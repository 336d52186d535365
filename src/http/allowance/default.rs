//! The default ledger: a file in the user's state folder. If it cannot be created (no home folder, or
//! a read-only one), requests are counted in memory and one warning is logged.

use std::fs::DirBuilder;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use jiff::Timestamp;

use super::count::{Reservation, Terms};
use super::file::{FileLedger, Integration, LedgerFailure};
use super::ledger::Ledger;
use super::locked::FileFailure;
use super::memory::MemoryLedger;
use super::state::AllowanceState;
use crate::error::Result;
use crate::lock::Mutex;

/// Counts in the file, which the first request creates, or in memory.
#[derive(Debug)]
pub(crate) struct DefaultLedger {
    file: Option<FileLedger>,
    memory: MemoryLedger,
    /// Whether the file is used: decided by the first request.
    counts_in_file: OnceLock<bool>,
}

impl DefaultLedger {
    /// The ledger in this file; `None` if there is no folder for one.
    #[must_use]
    pub(crate) fn new(path: Option<&Path>, integration: Integration, terms: Terms) -> Self {
        let file = path.map(|path| FileLedger::unopened(path, integration, terms));
        Self { file, memory: MemoryLedger::new(terms), counts_in_file: OnceLock::new() }
    }

    /// The ledger in use; creates its file if it does not exist.
    fn ledger(&self) -> Result<&dyn Ledger> {
        let Some(file) = &self.file else {
            if self.counts_in_file.set(false).is_ok() {
                warn_once(Path::new(""), "there is no home folder for a ledger");
            }
            return Ok(&self.memory);
        };
        let counts_in_file = match self.counts_in_file.get() {
            Some(counts_in_file) => *counts_in_file,
            None => match create(file) {
                Ok(()) => *self.counts_in_file.get_or_init(|| true),
                Err(failure @ LedgerFailure::File(FileFailure::System { .. })) => {
                    warn_once(file.path(), &file.error(&failure).context().message);
                    *self.counts_in_file.get_or_init(|| false)
                }
                Err(failure) => return Err(file.error(&failure)),
            },
        };
        Ok(if counts_in_file { file } else { &self.memory })
    }

    /// Reads the count without creating the file.
    fn read<T>(&self, read: impl Fn(&dyn Ledger) -> Result<T>) -> Result<T> {
        match (&self.file, self.counts_in_file.get()) {
            (Some(file), Some(true)) => read(file),
            (Some(file), None) => match file.try_read(|_| ()) {
                Err(LedgerFailure::File(FileFailure::System { .. })) => read(&self.memory),
                _ => read(file),
            },
            _ => read(&self.memory),
        }
    }
}

impl Ledger for DefaultLedger {
    fn reserve(&self, now: Timestamp, must_remain: u64) -> Result<Reservation> {
        self.ledger()?.reserve(now, must_remain)
    }

    fn give_back(&self, reservation: Reservation) {
        if let Ok(ledger) = self.ledger() {
            ledger.give_back(reservation);
        }
    }

    fn pin_until(&self, until: Timestamp, now: Timestamp) -> Result<()> {
        self.ledger()?.pin_until(until, now)
    }

    fn state(&self, now: Timestamp) -> Result<AllowanceState> {
        self.read(|ledger| ledger.state(now))
    }

    fn count_token_request(&self, now: Timestamp) -> Result<()> {
        self.ledger()?.count_token_request(now)
    }

    fn pause_tokens(&self, until: Timestamp, now: Timestamp) -> Result<()> {
        self.ledger()?.pause_tokens(until, now)
    }

    fn token_pause(&self, now: Timestamp) -> Result<Option<Timestamp>> {
        self.read(|ledger| ledger.token_pause(now))
    }
}

fn create(file: &FileLedger) -> Result<(), LedgerFailure> {
    let folder = file.path().parent().unwrap_or(Path::new(""));
    create_folder(folder).map_err(FileFailure::system("created"))?;
    file.try_update(|_| ())
}

/// Creates the state folder, accessible to the user only.
fn create_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Warns once for each process and path.
fn warn_once(path: &Path, why: &str) {
    static WARNED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
    let mut warned = WARNED.lock();
    if warned.iter().any(|known| known == path) {
        return;
    }
    warned.push(path.to_owned());
    drop(warned);
    log::warn!(
        target: "siteline::ledger",
        "{why}: requests are counted in memory, by this client alone. To share the count between \
         processes, name a file with ledger="
    );
}
