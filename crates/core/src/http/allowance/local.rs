//! [`LocalLedger`]: counts on this machine, in a file that processes share or in memory.
//!
//! The default file is in the user's state folder. If it cannot be created (no home folder, or a
//! read-only one), requests are counted in memory and one warning is logged. With a daily limit
//! that is an error instead, because separate counts cannot keep it.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use jiff::Timestamp;

use super::count::{Count, Terms};
use super::file::{Integration, LedgerFailure, LedgerFile};
use super::ledger::{Ledger, Outcome, Permit, Reservation};
use super::state::AllowanceState;
use crate::clock::{Moment, Reading};
use crate::error::{Error, Kind, Result};
use crate::files::create_folder;
use crate::lock::Mutex;
use crate::system::lacks_files;

const NO_HOME: &str = "there is no home folder for the ledger";

/// Counts in a file, for all processes that use it, or in memory for the lifetime of a client.
/// Without a limit it counts and refuses nothing.
#[derive(Debug)]
pub struct LocalLedger {
    terms: Terms,
    pub(super) file: Option<LedgerFile>,
    memory: Mutex<Count>,
    /// Whether the file is used. The first request decides this for a default file.
    uses_file: OnceLock<bool>,
}

impl LocalLedger {
    fn new(terms: Terms, file: Option<LedgerFile>, uses_file: OnceLock<bool>) -> Self {
        Self { terms, file, memory: Mutex::default(), uses_file }
    }

    /// An empty ledger in memory.
    pub(crate) fn in_memory(terms: Terms) -> Self {
        Self::new(terms, None, false.into())
    }

    /// A ledger in this file, which the first count opens or creates. The folder must exist.
    pub fn in_file(path: &Path, integration: Integration, terms: Terms) -> Self {
        Self::new(terms, Some(LedgerFile::new(path, integration)), true.into())
    }

    /// A ledger in the default file, if it has a folder and the first request can create it.
    pub(crate) fn in_default_file(
        path: Option<&Path>,
        integration: Integration,
        terms: Terms,
    ) -> Self {
        let file = path.map(|path| LedgerFile::new(path, integration));
        Self::new(terms, file, OnceLock::new())
    }

    /// Opens or creates the file at once, unless it is a default file without a limit.
    pub fn opened(self) -> Result<Self> {
        if self.terms.limit.is_some() || self.uses_file.get() == Some(&true) {
            self.update(|_| ())?;
        }
        Ok(self)
    }

    pub fn path(&self) -> Option<&Path> {
        self.file.as_ref().map(LedgerFile::path)
    }

    /// Opens, locks and reads the file as an update does, and changes nothing. Returns whether it
    /// exists.
    pub(crate) fn look(&self) -> Result<bool> {
        let Some(file) = &self.file else { return Ok(false) };
        let count = file.try_read(true).map_err(|failure| file.error(&failure))?;
        Ok(count.is_some())
    }

    /// Creates a default file that does not exist. If that is impossible, it is an error with a
    /// limit, and otherwise a warning.
    fn uses_file(&self) -> Result<bool> {
        if let Some(uses_file) = self.uses_file.get() {
            return Ok(*uses_file);
        }
        let why = match &self.file {
            None => NO_HOME.to_owned(),
            Some(file) => match create(file) {
                Ok(()) => return Ok(*self.uses_file.get_or_init(|| true)),
                Err(failure) if is_final(&failure) => {
                    file.error(&failure).context().message.clone()
                }
                Err(failure) => return Err(file.error(&failure)),
            },
        };
        if self.terms.limit.is_some() {
            return Err(cannot_be_kept(&why));
        }
        warn_once(self.path().unwrap_or(Path::new("")), &why);
        Ok(*self.uses_file.get_or_init(|| false))
    }

    /// Does not create the file.
    fn read<T>(&self, read: impl FnOnce(&Count) -> T) -> Result<T> {
        let Some(file) = self.file.as_ref().filter(|_| self.uses_file.get() != Some(&false)) else {
            return Ok(read(&self.memory.lock()));
        };
        match file.try_read(false) {
            Ok(count) => Ok(read(&count.unwrap_or_default())),
            Err(failure) if self.uses_file.get().is_none() && is_final(&failure) => {
                Ok(read(&self.memory.lock()))
            }
            Err(failure) => Err(file.error(&failure)),
        }
    }

    fn update<T>(&self, change: impl FnOnce(&mut Count) -> T) -> Result<T> {
        let uses_file = self.uses_file()?;
        match &self.file {
            Some(file) if uses_file => {
                file.try_update(change).map_err(|failure| file.error(&failure))
            }
            _ => Ok(change(&mut self.memory.lock())),
        }
    }
}

impl Ledger for LocalLedger {
    fn permit(&self, now: Moment, must_remain: u64) -> Result<Permit> {
        self.read(|count| count.permit(self.terms, now, must_remain))
    }

    fn reserve(&self, now: Moment, must_remain: u64) -> Result<Reservation> {
        self.update(|count| count.reserve(self.terms, now, must_remain))?
    }

    fn settle(&self, reservation: Reservation, outcome: Outcome, now: Moment) {
        let settle = |count: &mut Count| count.settle(self.terms, &reservation, outcome, now);
        if let Err(error) = self.update(settle) {
            log::warn!(target: "siteline::ledger", "one request is counted too many: {error}");
        }
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
        self.read(|count| count.clock.best(now))
    }

    fn count_token_request(&self, now: Moment) -> Result<()> {
        self.update(|count| count.count_token_request(self.terms, now))
    }

    /// The callers of one process share their token requests.
    fn begin_token_request(&self, now: Moment) -> Result<u64> {
        if self.uses_file().unwrap_or(true) {
            self.update(|count| count.tokens.begin(count.clock.best(now)))
        } else {
            Ok(0)
        }
    }

    fn pause_tokens(&self, pause: Duration, now: Moment) -> Result<()> {
        self.update(|count| count.pause_tokens(pause, now))
    }

    fn token_pause(&self, now: Moment) -> Result<Option<(Duration, Timestamp)>> {
        self.read(|count| count.token_pause(now))
    }
}

/// Whether the file can never be used. A temporary failure, such as too many open files, stays an
/// error: otherwise the process would count in memory until its end.
fn is_final(failure: &LedgerFailure) -> bool {
    matches!(failure, LedgerFailure::System(error) if !lacks_files(error))
}

fn create(file: &LedgerFile) -> Result<(), LedgerFailure> {
    create_folder(file.path().parent().unwrap_or(Path::new("")))?;
    file.try_update(|_| ())
}

fn cannot_be_kept(why: &str) -> Error {
    let message = format!("daily_allowance= cannot be kept: {why}.");
    Error::new(Kind::ConfigError, message).with_hint(
        "Name a file that this user may write: ledger= or SITELINE_LEDGER. Or use \
         ledger=\"memory\", which counts for each client separately.",
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
        "{why}: requests are counted in memory, for this client only. To share the count between \
         processes, name a file with ledger="
    );
}
