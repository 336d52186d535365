//! The default ledger: a file in the user's state folder. If it cannot be created (no home folder, or
//! a read-only one), requests are counted in memory and one warning is logged; unless there is an
//! allowance to be kept, which each process alone cannot do.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use jiff::Timestamp;

use super::count::Terms;
use super::file::{FileLedger, Integration, LedgerFailure};
use super::ledger::Ledger;
use super::lend::{Lent, Wish};
use super::locked::FileFailure;
use super::memory::MemoryLedger;
use super::new_file::create_folder;
use super::outcome::{Outcome, Permit, Reservation};
use super::state::AllowanceState;
use crate::clock::{Moment, Reading};
use crate::error::{Error, Kind, Result};
use crate::lock::Mutex;

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

    /// The ledger in use; creates its file if it does not exist.
    fn ledger(&self) -> Result<&dyn Ledger> {
        let Some(file) = &self.file else {
            if self.counts_in_file.set(false).is_ok() {
                warn_once(Path::new(""), NO_HOME);
            }
            return Ok(&self.memory);
        };
        let counts_in_file = match self.counts_in_file.get() {
            Some(counts_in_file) => *counts_in_file,
            None => match create(file) {
                Ok(()) => *self.counts_in_file.get_or_init(|| true),
                // What passes is an error: counted in memory, this process would count alone to its end.
                Err(failure) if failure.is_of_open_files() => return Err(file.error(&failure)),
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
                Err(failure) if failure.is_of_open_files() => Err(file.error(&failure)),
                Err(LedgerFailure::File(FileFailure::System { .. })) => read(&self.memory),
                _ => read(file),
            },
            _ => read(&self.memory),
        }
    }
}

impl Ledger for DefaultLedger {
    fn permit(&self, now: Moment, must_remain: u64) -> Result<Permit> {
        self.read(|ledger| ledger.permit(now, must_remain))
    }

    fn reserve(&self, now: Moment, must_remain: u64) -> Result<Reservation> {
        self.ledger()?.reserve(now, must_remain)
    }

    fn settle(&self, reservation: Reservation, outcome: Outcome, now: Moment) {
        if let Ok(ledger) = self.ledger() {
            ledger.settle(reservation, outcome, now);
        }
    }

    fn lend(&self, wish: Wish, now: Moment) -> Result<Lent> {
        self.ledger()?.lend(wish, now)
    }

    fn observe(&self, reading: Reading, now: Moment) {
        if let Ok(ledger) = self.ledger() {
            ledger.observe(reading, now);
        }
    }

    fn pin(&self, pause: Duration, now: Moment) -> Result<()> {
        self.ledger()?.pin(pause, now)
    }

    fn state(&self, now: Moment) -> Result<AllowanceState> {
        self.read(|ledger| ledger.state(now))
    }

    fn service_time(&self, now: Moment) -> Result<Timestamp> {
        self.read(|ledger| ledger.service_time(now))
    }

    fn count_token_request(&self, now: Moment) -> Result<()> {
        self.ledger()?.count_token_request(now)
    }

    fn begin_token_request(&self, now: Moment) -> Result<u64> {
        self.ledger()?.begin_token_request(now)
    }

    fn pause_tokens(&self, pause: Duration, now: Moment) -> Result<()> {
        self.ledger()?.pause_tokens(pause, now)
    }

    fn token_pause(&self, now: Moment) -> Result<Option<(Duration, Timestamp)>> {
        self.read(|ledger| ledger.token_pause(now))
    }
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
