//! Replaces a store with a backup, completely or not at all.

use std::path::Path;

use super::connection::{BUSY_TIMEOUT, StoreConnection};
use super::failure::{other, system};
use super::hold::Replacing;
use super::maintenance::{StoreCopy, copy, flush};
use super::schema::OTHER_PATH;
use super::watch::Watch;
use super::{Store, access, not_opened, path};
use crate::error::{Error, Kind, Result};
use crate::files::{self, unused};

/// Replaces a store, which need not exist, with a verified copy of a backup. The copy keeps the
/// owner and the mode of the store. Returns whether it replaced a store. Fails with `StoreBusy` if
/// a process has the store open.
pub fn restore(backup: &Path, store: &Path, watch: &Watch) -> Result<bool> {
    let (backup, store) = (path::resolve(backup)?, path::resolve(store)?);
    if backup == store {
        return Err(other(&store, "it is the backup itself").with_hint("Name two files."));
    }
    access::check_readable(&backup)?;
    let replaced = store.exists();
    let replacing = replaced.then(|| Replacing::begin(&store, BUSY_TIMEOUT)).transpose();
    let replacing = replacing.map_err(|failure| failure.into_error(&store))?;
    let copy = StoreCopy(unused(&store, "part"));
    let part = copy.0.as_path();
    access::create_replacement(part, &store)?;
    fill(&backup, part, watch)?;
    let shared = access::share_as(part, &store, &backup).and_then(|()| flush(part));
    shared.map_err(|error| system(part, "the copy cannot be flushed", &error))?;
    let put = match replacing {
        Some(replacing) => replacing.finish(part),
        None => files::put(part, &store, false),
    };
    put.map_err(|error| system(&store, "the copy cannot be renamed", &error))?;
    Ok(replaced)
}

fn fill(backup: &Path, part: &Path, watch: &Watch) -> Result<()> {
    let copied = StoreConnection::open_read_only(backup, BUSY_TIMEOUT)
        .and_then(|link| link.read(backup, |connection| copy(connection, part, watch)));
    copied.map_err(|failure| of_backup(backup, part, not_opened(backup, failure)))?;
    let checked = Store::open(part).and_then(|store| store.check(watch));
    checked.map_err(|error| of_backup(backup, part, error))
}

/// Makes an error of the copy name the backup, because the user never sees the copy.
fn of_backup(backup: &Path, part: &Path, error: Error) -> Error {
    let message = error.to_string();
    let names_copy = message.contains(&*part.to_string_lossy());
    match error.kind() {
        Kind::StoreCorrupt => {
            Error::new(Kind::StoreCorrupt, format!("backup {}: it is damaged", backup.display()))
                .with_hint("Nothing was changed. Restore another backup.")
        }
        Kind::StoreError if names_copy => {
            let what =
                "it cannot be restored: it is not a store of siteline, or a newer one made it";
            Error::new(Kind::StoreError, format!("backup {}: {what}", backup.display()))
                .with_hint(OTHER_PATH)
        }
        _ => error,
    }
}
