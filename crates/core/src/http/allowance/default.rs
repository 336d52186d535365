//! The default ledger: a file in the user's state folder. If it cannot be created (no home folder, or
//! a read-only one), requests are counted in memory and one warning is logged; unless there is an
//! allowance to be kept, which each process alone cannot do.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::count::{Count, Terms};
use super::file::{FileLedger, Integration, LedgerFailure};
use super::ledger::Keeps;
use super::locked::FileFailure;
use super::memory::MemoryLedger;
use super::new_file::create_folder;
use crate::error::{Error, Kind, Result};
use crate::lock::Mutex;
use crate::system::lacks_files;

const NO_HOME: &str = "there is no home folder for a ledger";

/// Counts in the file, which the first request creates, or in memory.
#[derive(Debug)]
pub(crate) struct DefaultLedger {
    file: Option<FileLedger>,
    memory: MemoryLedger,
    /// Whether the file is used: decided by the first request.
    counts_in_file: OnceLock<bool>,
}

impl DefaultLedger {
    /// The ledger in this file; `None` if there is no folder for one. With a limit the file is made at
    /// once.
    ///
    /// # Errors
    /// `ConfigError` if there is a limit and the file cannot be made; those of a file that is damaged.
    pub(crate) fn new(path: Option<&Path>, integration: Integration, terms: Terms) -> Result<Self> {
        let ledger = Self::unopened(path, integration, terms);
        if terms.limit.is_some() {
            let file = ledger.file.as_ref().ok_or_else(|| cannot_be_kept(NO_HOME))?;
            create(file).map_err(|failure| {
                let error = file.error(&failure);
                match failure {
                    LedgerFailure::File(FileFailure::System { .. }) => {
                        cannot_be_kept(&error.context().message)
                    }
                    _ => error,
                }
            })?;
            ledger.counts_in_file.get_or_init(|| true);
        }
        Ok(ledger)
    }

    /// The same ledger, whose file the first request creates in any case.
    #[must_use]
    pub(crate) fn unopened(path: Option<&Path>, integration: Integration, terms: Terms) -> Self {
        let file = path.map(|path| FileLedger::unopened(path, integration, terms));
        Self { file, memory: MemoryLedger::new(terms), counts_in_file: OnceLock::new() }
    }

    /// Whether the file is used; creates it if it does not exist.
    fn counts_in_file(&self) -> Result<bool> {
        let Some(file) = &self.file else {
            if self.counts_in_file.set(false).is_ok() {
                warn_once(Path::new(""), NO_HOME);
            }
            return Ok(false);
        };
        if let Some(counts_in_file) = self.counts_in_file.get() {
            return Ok(*counts_in_file);
        }
        match create(file) {
            Ok(()) => Ok(*self.counts_in_file.get_or_init(|| true)),
            Err(failure) if is_final(&failure) => {
                warn_once(file.path(), &file.error(&failure).context().message);
                Ok(*self.counts_in_file.get_or_init(|| false))
            }
            Err(failure) => Err(file.error(&failure)),
        }
    }
}

impl Keeps for DefaultLedger {
    fn terms(&self) -> Terms {
        self.memory.terms()
    }

    /// Does not create the file.
    fn read<T>(&self, read: impl FnOnce(&Count) -> T) -> Result<T> {
        match (&self.file, self.counts_in_file.get()) {
            (Some(file), None) => match file.try_read(|_| ()) {
                Err(failure) if is_final(&failure) => self.memory.read(read),
                _ => file.read(read),
            },
            (Some(file), Some(true)) => file.read(read),
            _ => self.memory.read(read),
        }
    }

    fn update<T>(&self, change: impl FnOnce(&mut Count) -> T) -> Result<T> {
        let counts_in_file = self.counts_in_file()?;
        match &self.file {
            Some(file) if counts_in_file => file.update(change),
            _ => self.memory.update(change),
        }
    }

    fn is_shared(&self) -> bool {
        self.counts_in_file().unwrap_or(true)
    }
}

/// Whether the file cannot be used. What passes, such as too many open files, stays an error: a process
/// that counts in memory would do so to its end.
fn is_final(failure: &LedgerFailure) -> bool {
    matches!(failure, LedgerFailure::File(FileFailure::System { error, .. }) if !lacks_files(error))
}

fn create(file: &FileLedger) -> Result<(), LedgerFailure> {
    create_folder(file.path().parent().unwrap_or(Path::new("")))?;
    file.try_update(|_| ())
}

fn cannot_be_kept(why: &str) -> Error {
    let message = format!("daily_allowance= cannot be kept: {why}.");
    Error::new(Kind::ConfigError, message).with_hint(
        "Name a file that this user may write, for all processes together: ledger= or \
         SITELINE_LEDGER. Or count in memory, each client for itself: ledger=\"memory\".",
    )
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
