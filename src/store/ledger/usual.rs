//! The ledger in the user's state folder. Where no file can be made there (a machine without home
//! folders, a read-only one), requests are counted in memory, and that is said once.

use std::fs::DirBuilder;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use jiff::Timestamp;

use super::{FileLedger, Integration, Trouble};
use crate::error::Result;
use crate::http::{AllowanceState, Ledger, MemoryLedger, Reservation, Terms};

/// Counts in the usual file, which is made with the first request, or else in memory.
#[derive(Debug)]
pub struct UsualLedger {
    file: Option<FileLedger>,
    memory: MemoryLedger,
    /// Whether it is the file: decided by the first request, for good.
    is_file: OnceLock<bool>,
}

impl UsualLedger {
    /// The ledger in this file, if there is a place for one.
    #[must_use]
    pub fn new(path: Option<&Path>, integration: Integration, terms: Terms) -> Self {
        let file = path.map(|path| FileLedger::unopened(path, integration, terms));
        Self { file, memory: MemoryLedger::with(terms), is_file: OnceLock::new() }
    }

    /// The one that counts, its file made where there is none yet.
    fn ledger(&self) -> Result<&dyn Ledger> {
        let Some(file) = &self.file else {
            if self.is_file.set(false).is_ok() {
                say_once(Path::new(""), "there is no home folder for a ledger");
            }
            return Ok(&self.memory);
        };
        let is_file = match self.is_file.get() {
            Some(is_file) => *is_file,
            None => match make(file) {
                Ok(()) => *self.is_file.get_or_init(|| true),
                Err(trouble @ (Trouble::Held | Trouble::Contents(_))) => {
                    return Err(file.told(trouble));
                }
                Err(trouble @ Trouble::File(..)) => {
                    say_once(file.path(), &file.told(trouble).context().message);
                    *self.is_file.get_or_init(|| false)
                }
            },
        };
        Ok(if is_file { file } else { &self.memory })
    }

    /// As before the first request, where nothing is made yet.
    fn look<T>(&self, at: impl Fn(&dyn Ledger) -> Result<T>) -> Result<T> {
        match (&self.file, self.is_file.get()) {
            (Some(file), Some(true)) => at(file),
            (Some(file), None) => match file.try_look(|_| ()) {
                Err(Trouble::File(..)) => at(&self.memory),
                Ok(()) | Err(Trouble::Held | Trouble::Contents(_)) => at(file),
            },
            _ => at(&self.memory),
        }
    }
}

impl Ledger for UsualLedger {
    fn reserve(&self, now: Timestamp, keep: u64) -> Result<Reservation> {
        self.ledger()?.reserve(now, keep)
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
        self.look(|ledger| ledger.state(now))
    }

    fn count_token_request(&self, now: Timestamp) -> Result<()> {
        self.ledger()?.count_token_request(now)
    }

    fn pause_tokens(&self, until: Timestamp, now: Timestamp) -> Result<()> {
        self.ledger()?.pause_tokens(until, now)
    }

    fn token_pause(&self, now: Timestamp) -> Result<Option<Timestamp>> {
        self.look(|ledger| ledger.token_pause(now))
    }
}

fn make(file: &FileLedger) -> Result<(), Trouble> {
    let folder = file.path().parent().unwrap_or(Path::new(""));
    make_folder(folder).map_err(|error| Trouble::File("made", error))?;
    file.try_update(|_| ())
}

/// The state folder is the user's own.
fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// One warning for a process and path.
fn say_once(path: &Path, why: &str) {
    static SAID: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    if said.iter().any(|known| known == path) {
        return;
    }
    said.push(path.to_owned());
    drop(said);
    log::warn!(
        target: "siteline::ledger",
        "{why}: requests are counted in memory, by this client alone. Name a file with ledger= for \
         processes to share"
    );
}
