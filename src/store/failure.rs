//! The errors of the store. Inside this folder a failure is a [`StoreFailure`]; where it leaves the
//! folder it becomes an [`Error`], which names the store's path.

use std::path::Path;

use rusqlite::ErrorCode;
use rusqlite::ffi::{SQLITE_IOERR_SHMOPEN, SQLITE_IOERR_SHMSIZE, SQLITE_IOERR_WRITE};

use crate::error::{Error, Kind, excerpt};

/// A failure inside the store.
#[derive(Debug, thiserror::Error)]
pub(super) enum StoreFailure {
    /// `SQLite` failed.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    /// What is stored is not what was written.
    #[error("{0}")]
    Corrupt(&'static str),
    /// The store does not do it; and what to do instead.
    #[error("{0}")]
    Refused(String, &'static str),
    /// An error that names all it has to already.
    #[error(transparent)]
    Core(#[from] Error),
}

/// The result of what the store does inside.
pub(super) type StoreResult<T> = Result<T, StoreFailure>;

impl StoreFailure {
    /// True where `SQLite` does not take the file for one of its own.
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
        // A column holds what no siteline writes there, or a row is gone.
        Sql::InvalidColumnType(..)
        | Sql::FromSqlConversionFailure(..)
        | Sql::IntegralValueOutOfRange(..)
        | Sql::Utf8Error(..)
        | Sql::QueryReturnedNoRows => return corrupt(path, "a row is not as it was written"),
        _ => return other(path, &error.to_string()),
    };
    match failure.code {
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => busy(path),
        ErrorCode::DiskFull => full(path),
        // The shared memory of the write-ahead log could not grow.
        _ if failure.extended_code == SQLITE_IOERR_SHMSIZE => full(path),
        // A quota that is used up comes as a failed write; a full disk, where the shared memory is
        // made, as memory that can't be.
        _ if matches!(failure.extended_code, SQLITE_IOERR_WRITE | SQLITE_IOERR_SHMOPEN)
            && !has_free_space(path) =>
        {
            full(path)
        }
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::ConstraintViolation => {
            corrupt(path, "its file is damaged")
        }
        ErrorCode::ReadOnly | ErrorCode::PermissionDenied => other(path, "it may not be written")
            .with_hint(
                "A store is written by all who use it: its file and folder must be writable.",
            ),
        ErrorCode::CannotOpen => other(path, "it cannot be opened")
            .with_hint("Its file and folder must be readable and writable, and the file a file."),
        _ => other(path, &error.to_string()),
    }
}

/// Another connection writes.
pub(super) fn busy(path: &Path) -> Error {
    Error::new(Kind::StoreBusy, format!("store {}: somebody else writes to it", path.display()))
        .with_hint("Wait until the other thread or process is done, then try again.")
}

/// Another sync has locked a feed.
pub(super) fn taken(path: &Path, feed: &str) -> Error {
    let message = format!("store {}: somebody else writes to its feed {feed:?}", path.display());
    busy(path).with(|context| context.message = message)
}

/// The disk, or a quota, is full.
pub(super) fn full(path: &Path) -> Error {
    let message = format!("store {}: there is no room left to write", path.display());
    Error::new(Kind::StoreFull, message)
        .with_hint("Nothing is lost; it continues from its checkpoint when there is room again.")
}

/// What is stored is not what was written.
pub(super) fn corrupt(path: &Path, what: &str) -> Error {
    Error::new(Kind::StoreCorrupt, format!("store {}: {what}", path.display()))
        .with_hint("Go on from a backup of it, or sync into a new store.")
}

fn other(path: &Path, what: &str) -> Error {
    Error::new(Kind::StoreError, format!("store {}: {}", path.display(), excerpt(what)))
}

/// What the operating system refused.
pub(super) fn system(path: &Path, doing: &str, error: &std::io::Error) -> Error {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    match error.kind() {
        StorageFull | QuotaExceeded => full(path),
        _ => other(path, &format!("{doing}: {error}")),
    }
}

/// False where the disk is too full for a small file beside the store.
fn has_free_space(path: &Path) -> bool {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!("-space-{}", std::process::id()));
    let written = std::fs::write(&beside, vec![0; 1 << 16]);
    // It may not be there at all.
    let _gone = std::fs::remove_file(&beside);
    let full = |error: std::io::Error| system(path, "", &error).kind() == Kind::StoreFull;
    !written.is_err_and(full)
}
