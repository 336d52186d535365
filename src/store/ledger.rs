//! The ledger on disk: what an integration has spent of its daily allowance, shared by all of its
//! processes (§8, §5.4). One small text file for each base URL and subject.
//!
//! | file | noun |
//! |---|---|
//! | this | the file: read, changed and written back under its lock |
//! | `form` | the text in it |
//! | [`usual`] | the file in the user's state folder, or memory where none can be made |
//!
//! Each operation opens the file, takes an exclusive lock, and writes it back in place, whole, in
//! one write of less than a sector. Nothing is held between operations: a fork has nothing to be
//! careful about, and a process that is killed leaves either what was before or what is after. So a
//! kill between counting and sending counts one request too many, and never one too few. The file is
//! flushed to the disk when it is made and not afterwards, for that would take longer than the
//! request: only a power failure can lose what was counted last.

mod form;
pub mod usual;

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use jiff::Timestamp;

pub use self::usual::UsualLedger;
use crate::error::{Error, Kind, Result};
use crate::http::{AllowanceState, Count, Ledger, Reservation, Terms};

/// No more is read of a file: none of ours is longer.
const MOST: u64 = 4_096;
/// The lock is held for microseconds. One who holds it for so long was stopped, and nobody can be
/// made to wait for him, deaf to Ctrl-C.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between two looks at a lock that is held.
const PAUSES: [Duration; 2] = [Duration::from_micros(20), Duration::from_millis(2)];

/// Which integration a ledger belongs to: a short hash of base URL and subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Integration(String);

impl Integration {
    /// That of this subject at this service.
    #[must_use]
    pub fn new(base_url: &str, subject: &str) -> Self {
        let hash = digest(&SHA256, format!("{base_url}\n{subject}").as_bytes());
        let mut head = [0; 8];
        head.copy_from_slice(&hash.as_ref()[..8]);
        Self(format!("{:016x}", u64::from_be_bytes(head)))
    }

    /// The name of its file in the user's state folder.
    #[must_use]
    pub fn file_name(&self) -> String {
        format!("ledger-{}.txt", self.0)
    }
}

/// Counts in a file, for all processes that name it. The limit is the user's and stays outside.
#[derive(Debug)]
pub struct FileLedger {
    path: PathBuf,
    integration: Integration,
    terms: Terms,
    patience: Duration,
}

/// Why an operation failed: the file itself, one who holds it, or what stands in it.
#[derive(Debug)]
enum Trouble {
    File(&'static str, io::Error),
    Held,
    Contents(Error),
}

impl FileLedger {
    /// The ledger in this file, which is made where there is none. Its folder must be there.
    ///
    /// # Errors
    /// `StoreError` naming the path where no file can be made or opened there, where it is of a
    /// newer form, or another integration's; `StoreCorrupt` where it is damaged.
    pub fn at(path: &Path, integration: Integration, terms: Terms) -> Result<Self> {
        let ledger = Self::unopened(path, integration, terms);
        ledger.update(|_| ())?;
        Ok(ledger)
    }

    fn unopened(path: &Path, integration: Integration, terms: Terms) -> Self {
        // The same file, wherever the process goes.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        Self { path, integration, terms, patience: PATIENCE }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn update<T>(&self, change: impl FnOnce(&mut Count) -> T) -> Result<T> {
        self.try_update(change).map_err(|trouble| self.told(trouble))
    }

    /// Reads, changes and writes back, alone.
    fn try_update<T>(&self, change: impl FnOnce(&mut Count) -> T) -> Result<T, Trouble> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file = Locked::open(&self.path, &options)?.after(self.patience, File::try_lock)?;
        let bytes = file.read()?;
        let before = self.count_of(&bytes)?;
        let mut count = before.clone();
        let outcome = change(&mut count);
        if bytes.is_empty() || count != before {
            let text = form::write(&count, &self.integration.0);
            file.write(text.as_bytes(), bytes.is_empty())?;
        }
        Ok(outcome)
    }

    fn look<T>(&self, at: impl FnOnce(&Count) -> T) -> Result<T> {
        self.try_look(at).map_err(|trouble| self.told(trouble))
    }

    /// Reads. A file that is not there has counted nothing, and is not made by looking.
    fn try_look<T>(&self, at: impl FnOnce(&Count) -> T) -> Result<T, Trouble> {
        match Locked::open(&self.path, OpenOptions::new().read(true)) {
            Ok(file) => {
                let file = file.after(self.patience, File::try_lock_shared)?;
                Ok(at(&self.count_of(&file.read()?)?))
            }
            Err(Trouble::File(_, error)) if error.kind() == ErrorKind::NotFound => {
                Ok(at(&Count::default()))
            }
            Err(trouble) => Err(trouble),
        }
    }

    /// What was counted. An empty file was made by one who ended before writing: nothing.
    fn count_of(&self, bytes: &[u8]) -> Result<Count, Trouble> {
        if bytes.is_empty() {
            return Ok(Count::default());
        }
        let contents = form::read(bytes).map_err(|fault| self.faulty(&fault))?;
        if contents.integration != self.integration.0 {
            return Err(Trouble::Contents(
                self.error(Kind::Store, "belongs to another base_url and subject").with_hint(
                    "Each integration counts in a ledger of its own: name another path.",
                ),
            ));
        }
        Ok(contents.count)
    }

    fn faulty(&self, fault: &form::Fault) -> Trouble {
        Trouble::Contents(match fault {
            form::Fault::Damaged => self.error(Kind::StoreCorrupt, "is damaged").with_hint(
                "Nothing is counted, and so nothing sent, until it is put right. If it is a ledger, \
                 delete it: siteline then counts today's requests from zero, without those it has \
                 made already, unless daily_allowance= is lowered for today. If it is another file, \
                 name another path.",
            ),
            form::Fault::Newer(form) => self
                .error(Kind::Store, &format!("was made by a newer siteline (form {form})"))
                .with_hint("Update siteline, or name another path."),
        })
    }

    fn told(&self, trouble: Trouble) -> Error {
        match trouble {
            Trouble::Contents(error) => error,
            Trouble::Held => self
                .error(Kind::StoreBusy, "is held by another process, for seconds")
                .with_hint("It is held for microseconds: a process that counts there was stopped."),
            Trouble::File(what, error) => {
                let full =
                    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded);
                let kind = if full { Kind::StoreFull } else { Kind::Store };
                // Our own words, or the kind of the system's.
                let why = error.get_ref().map_or(error.kind().to_string(), ToString::to_string);
                self.error(kind, &format!("cannot be {what}: {why}")).with_hint(
                    "Requests are counted before they are sent, so none is sent: ledger= names \
                     another file.",
                )
            }
        }
    }

    fn error(&self, kind: Kind, what: &str) -> Error {
        let message = format!("the ledger {} {what}", self.path.display());
        Error::new(kind, message).with(|context| context.unsent = true)
    }
}

impl Ledger for FileLedger {
    fn reserve(&self, now: Timestamp, keep: u64) -> Result<Reservation> {
        self.update(|count| count.reserve(self.terms, now, keep))?
    }

    fn give_back(&self, reservation: Reservation) {
        if let Err(error) = self.update(|count| count.give_back(&reservation)) {
            log::warn!(target: "siteline::ledger", "one request is counted too many: {error}");
        }
    }

    fn pin_until(&self, until: Timestamp, now: Timestamp) -> Result<()> {
        self.update(|count| count.pin_until(self.terms, until, now))
    }

    fn state(&self, now: Timestamp) -> Result<AllowanceState> {
        self.look(|count| count.state(self.terms, now))
    }

    fn count_token_request(&self, now: Timestamp) -> Result<()> {
        self.update(|count| count.count_token_request(self.terms, now))
    }

    fn pause_tokens(&self, until: Timestamp, now: Timestamp) -> Result<()> {
        self.update(|count| count.pause_tokens(until, now))
    }

    fn token_pause(&self, now: Timestamp) -> Result<Option<Timestamp>> {
        self.look(|count| count.token_pause(now))
    }
}

/// The file, open and locked. The lock is given up by name, not by closing: a child that was forked
/// meanwhile has the file open too.
struct Locked(File);

impl Locked {
    /// Not locked yet.
    fn open(path: &Path, options: &OpenOptions) -> Result<Self, Trouble> {
        let file = options.open(path).map_err(|error| Trouble::File("opened", error))?;
        // A pipe or a device would keep us waiting.
        if file.metadata().is_ok_and(|metadata| metadata.is_file()) {
            Ok(Self(file))
        } else {
            Err(Trouble::File("used", io::Error::other("it is no plain file")))
        }
    }

    /// Locked, once others have let go.
    fn after(
        self,
        patience: Duration,
        lock: fn(&File) -> Result<(), TryLockError>,
    ) -> Result<Self, Trouble> {
        let [mut pause, longest] = PAUSES;
        let mut waited = Duration::ZERO;
        loop {
            match lock(&self.0) {
                Ok(()) => return Ok(self),
                Err(TryLockError::WouldBlock) if waited < patience => {
                    std::thread::sleep(pause);
                    waited += pause;
                    pause = (2 * pause).min(longest);
                }
                Err(TryLockError::WouldBlock) => return Err(Trouble::Held),
                Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Interrupted => {}
                Err(TryLockError::Error(error)) => return Err(Trouble::File("locked", error)),
            }
        }
    }

    fn read(&self) -> Result<Vec<u8>, Trouble> {
        let mut bytes = Vec::new();
        let read = (&self.0).take(MOST).read_to_end(&mut bytes);
        read.map(|_| bytes).map_err(|error| Trouble::File("read", error))
    }

    fn write(&self, bytes: &[u8], is_new: bool) -> Result<(), Trouble> {
        let mut file = &self.0;
        let written = file.seek(SeekFrom::Start(0)).and_then(|_| file.write_all(bytes));
        let written = written.and_then(|()| if is_new { self.0.sync_all() } else { Ok(()) });
        written.map_err(|error| {
            if is_new {
                // A part of a ledger would be taken for a damaged one.
                let _ = self.0.set_len(0);
            }
            Trouble::File("written", error)
        })
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

#[cfg(test)]
mod tests;
