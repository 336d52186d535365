//! Keeps the files of an open store consistent. The system drops the locks of `SQLite` when any
//! code in the process closes one of the files, for example a second `SQLite`. Another process then
//! removes the log, because nobody seems to use the store. So each process holds more locks while
//! it has a store open, on open files that it closes last:
//!
//! - Locks on the bytes that mark the file and its shared memory as used. They keep every other
//!   `SQLite` from removing the log or truncating the shared memory.
//! - Locks on two bytes that no `SQLite` uses. Only one process writes at a time, and the log is
//!   copied into the file only while no process reads.
//!
//! Before each write, the process verifies that the store's paths still name the open files.

mod byte_lock;
mod passes;
mod replacing;

use std::collections::HashMap;
use std::fs::File;
use std::io::ErrorKind;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::thread::sleep;
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::config::DbConfig;

use self::byte_lock::{ByteLock, is_used, set};
pub(super) use self::passes::{ReadPass, WriteTurn};
pub(super) use self::replacing::Replacing;
use super::access::{JOURNAL, LOG, MEMORY};
use super::failure::{StoreResult, busy, foreign_log, in_use, moved};
use super::log_fit::{FileMark, is_foreign};
use crate::files::{self, Use, beside, is_named, unused};
use crate::fork::{Owned, Process};
use crate::lock::Mutex;

/// Each `SQLite` that uses the file has a shared lock on one of these bytes.
const USERS: Range<i64> = 0x4000_0002..0x4000_0200;
/// Each `SQLite` that uses the shared memory has a shared lock on this byte.
const MEMORY_USERS: Range<i64> = 128..129;
/// Locked by the writer.
const TURN: Range<i64> = (1 << 61)..(1 << 61) + 1;
/// Each reader has a shared lock on this byte.
const READERS: Range<i64> = (1 << 61) + 1..(1 << 61) + 2;

/// Pauses between two attempts to lock.
const PAUSES: Range<Duration> = Duration::from_micros(250)..Duration::from_millis(5);
/// How long a closing store waits for a writer. After that, it leaves the log to the writer.
const CLOSING: Duration = Duration::from_secs(1);

/// The stores that this process has open.
static HOLDS: Owned<Mutex<HashMap<PathBuf, HoldSlot>>> = Owned::empty();

/// Locked while the process opens or closes a connection.
type HoldSlot = Arc<Mutex<Weak<StoreHold>>>;

fn place(path: &Path) -> HoldSlot {
    let mut holds = HOLDS.get_or_init(Mutex::default).lock();
    Arc::clone(holds.entry(path.to_owned()).or_default())
}

#[derive(Debug)]
pub(super) struct StoreHold {
    path: PathBuf,
    writes: bool,
    process: Process,
    /// Declared before `file`, so that its locks are released first. If a process finds the shared
    /// memory in use, the file is in use too.
    state: Mutex<HoldState>,
    file: File,
}

#[derive(Debug, Default)]
struct HoldState {
    writing: bool,
    readers: usize,
    /// The log and the shared memory, with their paths.
    log: Vec<(PathBuf, File)>,
    /// The shared memory, if it was in use when this process opened the store.
    found: Option<File>,
    /// In the file itself, without the log, when it was last read.
    mark: Option<FileMark>,
}

impl StoreHold {
    /// Creates the hold if this process has none on the store. `open` must read once, so that the
    /// log and the shared memory are open when it returns.
    pub(super) fn connect(
        path: &Path,
        timeout: Duration,
        reads_only: bool,
        open: impl FnOnce() -> StoreResult<Connection>,
    ) -> StoreResult<(Arc<Self>, Connection)> {
        let place = place(path);
        let mut slot = place.lock();
        if let Some(hold) = slot.upgrade() {
            hold.check_names()?;
            return Ok((hold, open()?));
        }
        let (hold, turn) = loop {
            let hold = Arc::new(Self::new(path)?);
            let turn = hold.turn(timeout)?;
            // A restore may have replaced the file during the wait.
            if is_named(&hold.file, path)? {
                break (hold, turn);
            }
        };
        let has_log = hold.has_log()?;
        if has_log {
            // To start a log, `SQLite` must be the only one to lock these bytes. Then `keep_log`
            // locks them after `open`.
            hold.wait(timeout, || set(&hold.file, ByteLock::Shared, &USERS))?;
        }
        hold.check_log(reads_only, timeout)?;
        let connection = open()?;
        hold.keep_log(has_log, timeout)?;
        *slot = Arc::downgrade(&hold);
        drop(turn);
        Ok((hold, connection))
    }

    /// After the last connection, `SQLite` may remove the log. It is kept if another process has
    /// the turn to write, or if the store's files were replaced.
    pub(super) fn close(self: Arc<Self>, connection: Connection) {
        let path = self.path.clone();
        let place = place(&path);
        let mut slot = place.lock();
        if Arc::strong_count(&self) > 1 {
            drop(connection);
            drop(self);
            return;
        }
        if connection.is_readonly("main").is_ok_and(|reads| !reads) {
            let turn = self.turn(CLOSING);
            if turn.is_ok() && self.verify().is_ok() {
                self.let_go();
            } else {
                let _kept =
                    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
            }
            drop(connection);
            drop(turn);
        } else {
            drop(connection);
        }
        *slot = Weak::new();
        drop(self);
        let mut holds = HOLDS.get_or_init(Mutex::default).lock();
        // The map and this function have a reference each. Another thread that waits has a third.
        if Arc::strong_count(&place) == 2 {
            holds.remove(&path);
        }
    }

    fn new(path: &Path) -> StoreResult<Self> {
        let writes = files::check(path, Use::Write).is_ok();
        let file = File::options().read(true).write(writes).open(path)?;
        let (state, process) = (Mutex::default(), Process::current());
        Ok(Self { path: path.to_owned(), file, writes, process, state })
    }

    fn wait(
        &self,
        timeout: Duration,
        mut lock: impl FnMut() -> std::io::Result<bool>,
    ) -> StoreResult<()> {
        let (mut waited, mut pause) = (Duration::ZERO, PAUSES.start);
        while !lock()? {
            if waited >= timeout {
                return Err(busy(&self.path).into());
            }
            sleep(pause);
            waited += pause;
            pause = (pause * 2).min(PAUSES.end);
        }
        Ok(())
    }

    /// Whether the file's header declares a log. If a power loss interrupted the change to a log,
    /// the journal still exists, and `SQLite` must be the only user of the file to undo the change.
    fn has_log(&self) -> StoreResult<bool> {
        use std::io::{Read as _, Seek as _};
        let journal = beside(&self.path, JOURNAL);
        if journal.metadata().is_ok_and(|found| found.len() > 0) {
            return Ok(false);
        }
        let mut file = &self.file;
        let mut header = Vec::new();
        file.rewind()?;
        file.take(20).read_to_end(&mut header)?;
        Ok(header.get(18..) == Some(&[2, 2]))
    }

    /// Rejects the log of another file, or sets it aside if the store is writable and unused.
    fn check_log(&self, reads_only: bool, timeout: Duration) -> StoreResult<()> {
        let path = &self.path;
        let mut foreign = false;
        // A closing process releases its locks one after the other.
        let agrees = self.wait(timeout, || {
            self.state.lock().found = None;
            let file = File::options().read(true).write(self.writes).open(beside(path, MEMORY));
            let found = match file {
                // The `SQLite` of this process does not see the locks of a second one in the same
                // process, and could truncate the memory.
                Ok(memory) if is_used(&memory, &MEMORY_USERS)? => {
                    if !set(&memory, ByteLock::Shared, &MEMORY_USERS)? {
                        return Ok(false);
                    }
                    Some(memory)
                }
                _ => None,
            };
            foreign = is_foreign(&self.file, &beside(path, LOG))?;
            let is_whole = !foreign && is_used(&self.file, &USERS)?;
            let agrees = found.is_none() || is_whole;
            self.state.lock().found = found;
            Ok(agrees)
        });
        agrees.map_err(|failure| failure.busy_as(|| in_use(path)))?;
        if foreign && reads_only {
            return Err(foreign_log(path, &beside(path, LOG)).into());
        }
        if foreign { self.set_log_aside() } else { Ok(()) }
    }

    fn set_log_aside(&self) -> StoreResult<()> {
        let (path, log) = (&self.path, beside(&self.path, LOG));
        let aside = unused(path, "other-wal");
        std::fs::rename(&log, &aside)?;
        log::warn!(
            target: "siteline::store",
            "store {}: its log belonged to another file and is set aside as {}",
            path.display(),
            aside.display()
        );
        Ok(())
    }

    fn keep_log(&self, has_lock: bool, timeout: Duration) -> StoreResult<()> {
        if !has_lock {
            self.wait(timeout, || set(&self.file, ByteLock::Shared, &USERS))?;
        }
        let log = self.open_log()?;
        if let Some((_, memory)) = log.last() {
            self.wait(timeout, || set(memory, ByteLock::Shared, &MEMORY_USERS))?;
        }
        let mark = FileMark::read(&self.file)?;
        let mut state = self.state.lock();
        (state.log, state.mark) = (log, Some(mark));
        Ok(())
    }

    /// Returns nothing if one of the files does not exist, and always on Windows. There, nothing can
    /// remove an open file, and a second handle would keep `SQLite` itself from removing it.
    fn open_log(&self) -> std::io::Result<Vec<(PathBuf, File)>> {
        let mut files = Vec::new();
        if cfg!(windows) {
            return Ok(files);
        }
        for path in [LOG, MEMORY].map(|ending| beside(&self.path, ending)) {
            match File::options().read(true).write(self.writes).open(&path) {
                Ok(file) => files.push((path, file)),
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
                Err(error) => return Err(error),
            }
        }
        Ok(files)
    }

    /// Lets `SQLite` remove the log if nobody else uses the store.
    fn let_go(&self) {
        let state = self.state.lock();
        let memories = [state.found.as_ref(), state.log.last().map(|(_, memory)| memory)];
        for memory in memories.into_iter().flatten() {
            let _freed = set(memory, ByteLock::Free, &MEMORY_USERS);
        }
        let _freed = set(&self.file, ByteLock::Free, &USERS);
    }

    /// Also rejects a log that does not belong to the file's contents. The caller must hold the
    /// write turn.
    pub(super) fn verify(&self) -> StoreResult<()> {
        self.check_names()?;
        let mark = FileMark::read(&self.file)?;
        if self.state.lock().mark == Some(mark) {
            return Ok(());
        }
        // Either pages of the log were copied into the file, or another file was copied over it.
        if is_foreign(&self.file, &beside(&self.path, LOG))? {
            return Err(moved(&self.path, None).into());
        }
        self.state.lock().mark = Some(mark);
        Ok(())
    }

    /// Rejects a store with files that were moved, replaced or removed.
    pub(super) fn check_names(&self) -> StoreResult<()> {
        if !is_named(&self.file, &self.path)? {
            return Err(moved(&self.path, None).into());
        }
        if self.missing_log()?.is_empty() {
            return Ok(());
        }
        Err(moved(&self.path, Some(&beside(&self.path, LOG))).into())
    }

    /// The paths that no longer name the open files.
    fn missing_log(&self) -> std::io::Result<Vec<PathBuf>> {
        let mut missing = Vec::new();
        for (path, file) in &self.state.lock().log {
            if !is_named(file, path)? {
                missing.push(path.clone());
            }
        }
        Ok(missing)
    }

    /// Whether the log or the shared memory was removed and no other file has its name. Then this
    /// process may copy the log, which it still has open, into the file.
    pub(super) fn is_log_removed(&self) -> bool {
        let missing = self.missing_log().unwrap_or_default();
        is_named(&self.file, &self.path).unwrap_or(false)
            && !missing.is_empty()
            && missing.iter().all(|path| path.symlink_metadata().is_err())
    }
}
