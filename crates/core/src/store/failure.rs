//! The errors of the store. Inside this folder a failure is a [`StoreFailure`]; public functions
//! turn it into an [`Error`], which names the store's path.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use rusqlite::ErrorCode;
use rusqlite::ffi::{SQLITE_IOERR_SHMOPEN, SQLITE_IOERR_SHMSIZE, SQLITE_IOERR_WRITE};

use crate::error::{Error, Kind, excerpt};
use crate::files::{owner_text, unused};
use crate::system::{exhausted_files, reason};

/// A failure inside the store.
#[derive(Debug, thiserror::Error)]
pub(super) enum StoreFailure {
    /// `SQLite` failed.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    /// The file differs from what was written.
    #[error("{0}")]
    Corrupt(&'static str),
    /// The store refuses; the second text is the hint.
    #[error("{0}")]
    Refused(String, &'static str),
    /// An error that is complete.
    #[error(transparent)]
    Core(#[from] Error),
}

/// The result of a function inside this folder.
pub(super) type StoreResult<T> = Result<T, StoreFailure>;

impl StoreFailure {
    /// True where `SQLite` does not accept the file as a database.
    pub(super) fn is_no_database(&self) -> bool {
        matches!(self, Self::Sqlite(error)
            if error.sqlite_error_code() == Some(ErrorCode::NotADatabase))
    }

    /// The error for a user of the store at this path.
    pub(super) fn into_error(self, path: &Path) -> Error {
        match self {
            Self::Sqlite(error) => sqlite(path, &error),
            Self::Corrupt(what) => corrupt(path, what),
            Self::Refused(what, hint) => other(path, &what).with_hint(hint),
            Self::Core(error) => error,
        }
    }
}

fn sqlite(path: &Path, error: &rusqlite::Error) -> Error {
    use rusqlite::Error as Sql;
    let failure = match error {
        Sql::SqliteFailure(failure, _) => failure,
        // A column has a value that no siteline writes, or a row is missing.
        Sql::InvalidColumnType(..)
        | Sql::FromSqlConversionFailure(..)
        | Sql::IntegralValueOutOfRange(..)
        | Sql::Utf8Error(..)
        | Sql::QueryReturnedNoRows => return corrupt(path, "a row is not as it was written"),
        _ => return other(path, &error.to_string()),
    };
    if may_lack_files(failure.code)
        && let Some(error) = exhausted_files()
    {
        return system(path, "its files cannot be opened", &error);
    }
    match failure.code {
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => busy(path),
        ErrorCode::DiskFull => full(path),
        // The shared memory of the write-ahead log could not grow.
        _ if failure.extended_code == SQLITE_IOERR_SHMSIZE => full(path),
        // SQLite reports an exhausted quota as a failed write, and a full disk as a failure to open
        // the shared memory.
        _ if matches!(failure.extended_code, SQLITE_IOERR_WRITE | SQLITE_IOERR_SHMOPEN)
            && !has_free_space(path) =>
        {
            full(path)
        }
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::ConstraintViolation => {
            corrupt(path, "its file is damaged")
        }
        ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen => {
            let what = format!("it cannot be opened for writing: {}", owner_text(path));
            other(path, &what).with_hint(
                "The file, its folder and the files beside it must be writable; read_only=True \
                 writes to none of them.",
            )
        }
        ErrorCode::SystemIoFailure | ErrorCode::OutOfMemory => {
            other(path, &error.to_string()).with(|context| context.passing = true)
        }
        _ => other(path, &error.to_string()),
    }
}

/// Whether too many open files may be the cause of this code.
fn may_lack_files(code: ErrorCode) -> bool {
    use ErrorCode::{CannotOpen, PermissionDenied, ReadOnly, SystemIoFailure};
    matches!(code, CannotOpen | PermissionDenied | ReadOnly | SystemIoFailure)
}

/// Another connection is writing.
pub(super) fn busy(path: &Path) -> Error {
    let message = format!("store {}: another thread or process is writing to it", path.display());
    Error::new(Kind::StoreBusy, message).with_hint("Wait until it is done, then try again.")
}

/// Another sync has locked a feed.
pub(super) fn feed_locked(path: &Path, feed: &str) -> Error {
    let message =
        format!("store {}: another thread or process writes to its feed {feed:?}", path.display());
    busy(path).with(|context| context.message = message)
}

/// The disk, or a quota, is full.
pub(super) fn full(path: &Path) -> Error {
    let message = format!("store {}: there is no space left to write", path.display());
    Error::new(Kind::StoreFull, message)
        .with_hint("Nothing is lost: free some space, then sync again from the checkpoint.")
}

/// The file differs from what was written.
pub(super) fn corrupt(path: &Path, what: &str) -> Error {
    Error::new(Kind::StoreCorrupt, format!("store {}: {what}", path.display())).with_hint(
        "Put a backup in its place with siteline store restore, or sync into a new store.",
    )
}

/// The log beside a store is that of another file.
pub(super) fn foreign_log(path: &Path, log: &Path) -> Error {
    let what = format!("its log {} belongs to another file", log.display());
    other(path, &what).with_hint(
        "Whoever may write to the store opens it once, without read_only=: that sets the log aside.",
    )
}

/// The log beside a store is used by a process that has another file open.
pub(super) fn in_use(path: &Path) -> Error {
    let message = format!(
        "store {}: a process still has the file open that was here before, and uses its log",
        path.display()
    );
    Error::new(Kind::StoreBusy, message).with_hint("End that process, then try again.")
}

/// A store that is to be replaced is open.
pub(super) fn open_elsewhere(path: &Path) -> Error {
    let message = format!("store {}: a process has it open", path.display());
    Error::new(Kind::StoreBusy, message)
        .with_hint("Nothing was changed. Stop what uses the store, then restore it again.")
}

/// A file of an open store was replaced, or its log removed.
pub(super) fn moved(path: &Path, log: Option<&Path>) -> Error {
    let what = match log {
        None => "another file was put in its place while it was open".to_owned(),
        Some(log) => format!("its log {} was removed while it was open", log.display()),
    };
    other(path, &what)
        .with_hint("Close the store and open it again: a sync goes on from what the file has.")
}

pub(super) fn other(path: &Path, what: &str) -> Error {
    Error::new(Kind::StoreError, format!("store {}: {}", path.display(), excerpt(what)))
}

pub(super) fn system(path: &Path, doing: &str, error: &std::io::Error) -> Error {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    match error.kind() {
        StorageFull | QuotaExceeded => full(path),
        _ => {
            let why = reason(error);
            other(path, &format!("{doing}: {why}")).passing_as(error)
        }
    }
}

/// False where the disk, or a quota, is too full for a small file beside the store.
fn has_free_space(path: &Path) -> bool {
    let room = unused(path, "space");
    let written = File::create_new(&room).and_then(|mut file| file.write_all(&vec![0; 1 << 16]));
    // The file is missing where it could not be made.
    let _gone = std::fs::remove_file(&room);
    let full = |error: std::io::Error| system(path, "", &error).kind() == Kind::StoreFull;
    !written.is_err_and(full)
}
