//! The errors of the store. Public functions convert a [`StoreFailure`] into an [`Error`] with the
//! store's path.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

use rusqlite::ErrorCode;
use rusqlite::ffi::{SQLITE_IOERR_SHMOPEN, SQLITE_IOERR_SHMSIZE, SQLITE_IOERR_WRITE};

use crate::error::{Error, Kind, excerpt};
use crate::files::{owner_text, unused};
use crate::system::{exhausted_files, reason};

#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreFailure {
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    /// The file is damaged.
    #[error("{0}")]
    Corrupt(&'static str),
    /// The store rejects a call. The second text is the hint.
    #[error("{0}")]
    Refused(String, &'static str),
    #[error("no feed {name:?}")]
    UnknownFeed { name: String, known: Vec<String> },
    /// The files of the store cannot be opened or locked.
    #[error(transparent)]
    Files(#[from] io::Error),
    #[error(transparent)]
    Core(#[from] Error),
}

pub(crate) type StoreResult<T> = Result<T, StoreFailure>;

impl StoreFailure {
    pub(super) fn is_no_database(&self) -> bool {
        matches!(self, Self::Sqlite(error)
            if error.sqlite_error_code() == Some(ErrorCode::NotADatabase))
    }

    pub(super) fn busy_as(self, error: impl FnOnce() -> Error) -> Self {
        match self {
            Self::Core(busy) if busy.kind() == Kind::StoreBusy => Self::Core(error()),
            other => other,
        }
    }

    pub(super) fn into_error(self, path: &Path) -> Error {
        match self {
            Self::Sqlite(error) => sqlite(path, &error),
            Self::Corrupt(what) => corrupt(path, what),
            Self::Refused(what, hint) => other(path, &what).with_hint(hint),
            Self::UnknownFeed { name, known } => unknown_feed(path, &name, &known),
            Self::Files(error) => system(path, "its files cannot be locked", &error),
            Self::Core(error) => error,
        }
    }
}

fn sqlite(path: &Path, error: &rusqlite::Error) -> Error {
    use ErrorCode::{CannotOpen, PermissionDenied, ReadOnly, SystemIoFailure};
    use rusqlite::Error as Sql;
    let failure = match error {
        Sql::SqliteFailure(failure, _) => failure,
        // A row is missing, or a column has a value that siteline never writes.
        Sql::InvalidColumnType(..)
        | Sql::FromSqlConversionFailure(..)
        | Sql::IntegralValueOutOfRange(..)
        | Sql::Utf8Error(..)
        | Sql::QueryReturnedNoRows => return corrupt(path, "a row is not as it was written"),
        _ => return other(path, &error.to_string()),
    };
    // These codes may be caused by too many open files.
    if matches!(failure.code, CannotOpen | PermissionDenied | ReadOnly | SystemIoFailure)
        && let Some(error) = exhausted_files()
    {
        return system(path, "its files cannot be opened", &error);
    }
    match failure.code {
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => busy(path),
        ErrorCode::DiskFull => full(path),
        // The shared memory could not grow.
        _ if failure.extended_code == SQLITE_IOERR_SHMSIZE => full(path),
        // SQLite reports an exhausted quota as a failed write, a full disk as a failed open.
        _ if matches!(failure.extended_code, SQLITE_IOERR_WRITE | SQLITE_IOERR_SHMOPEN)
            && !has_free_space(path) =>
        {
            full(path)
        }
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::ConstraintViolation => {
            corrupt(path, "its file is damaged")
        }
        ReadOnly | PermissionDenied | CannotOpen => {
            let what = format!("it cannot be opened for writing: {}", owner_text(path));
            other(path, &what).with_hint(
                "The file, its folder and the files next to it must be writable. To only read, \
                 open it with read_only=True.",
            )
        }
        SystemIoFailure | ErrorCode::OutOfMemory => {
            other(path, &error.to_string()).with(|context| context.passing = true)
        }
        _ => other(path, &error.to_string()),
    }
}

pub(super) fn store_error(path: &Path, kind: Kind, what: &str) -> Error {
    Error::new(kind, format!("store {}: {what}", path.display()))
}

pub(super) fn busy(path: &Path) -> Error {
    store_error(path, Kind::StoreBusy, "another thread or process is writing to it")
        .with_hint("Wait until it is done, then try again.")
}

pub(super) fn feed_locked(path: &Path, feed: &str) -> Error {
    let what = format!("another thread or process writes to its feed {feed:?}");
    store_error(path, Kind::StoreBusy, &what).with_hint("Wait until it is done, then try again.")
}

fn unknown_feed(path: &Path, name: &str, known: &[String]) -> Error {
    let message = format!("the store {} has no feed {name:?}", path.display());
    let hint = if known.is_empty() {
        "It has no feeds yet: client.sync(feed, store) adds one.".to_owned()
    } else {
        format!("Its feeds: {}.", known.join(", "))
    };
    Error::new(Kind::StoreError, message).with_hint(hint)
}

pub(super) fn full(path: &Path) -> Error {
    store_error(path, Kind::StoreFull, "there is no space left to write")
        .with_hint("Stored data is safe. Free some space, then sync again from the checkpoint.")
}

pub(super) fn corrupt(path: &Path, what: &str) -> Error {
    store_error(path, Kind::StoreCorrupt, what)
        .with_hint("Replace it with a backup: siteline store restore. Or sync into a new store.")
}

pub(super) fn foreign_log(path: &Path, log: &Path) -> Error {
    let what = format!("its log {} belongs to another file", log.display());
    other(path, &what).with_hint(
        "Open the store once without read_only=, as a user who may write: that sets the log aside.",
    )
}

pub(super) fn in_use(path: &Path) -> Error {
    let what = "a process still has the former file open and uses its log";
    store_error(path, Kind::StoreBusy, what).with_hint("End that process, then try again.")
}

pub(super) fn open_elsewhere(path: &Path) -> Error {
    store_error(path, Kind::StoreBusy, "a process has it open")
        .with_hint("Nothing was changed. Stop that process, then restore again.")
}

pub(super) fn moved(path: &Path, log: Option<&Path>) -> Error {
    let what = match log {
        None => "another file replaced it while it was open".to_owned(),
        Some(log) => format!("its log {} was removed while it was open", log.display()),
    };
    other(path, &what)
        .with_hint("Close the store and open it again. A sync continues from the file's contents.")
}

pub(super) fn other(path: &Path, what: &str) -> Error {
    store_error(path, Kind::StoreError, &excerpt(what))
}

pub(super) fn system(path: &Path, doing: &str, error: &io::Error) -> Error {
    use io::ErrorKind::{QuotaExceeded, StorageFull};
    match error.kind() {
        StorageFull | QuotaExceeded => full(path),
        _ => {
            let why = reason(error);
            other(path, &format!("{doing}: {why}")).passing_as(error)
        }
    }
}

/// Tries with a small file next to the store.
fn has_free_space(path: &Path) -> bool {
    let room = unused(path, "space");
    let written = File::create_new(&room).and_then(|mut file| file.write_all(&vec![0; 1 << 16]));
    let _gone = std::fs::remove_file(&room);
    let full = |error: io::Error| system(path, "", &error).kind() == Kind::StoreFull;
    !written.is_err_and(full)
}
