//! File permissions of a store. Its log, its shared memory and its lock file have the same user,
//! group and mode.
//!
//! They are checked before `SQLite` opens anything. It would create a log of the wrong user, which
//! locks the owner out.

use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::Duration;

use super::failure::{StoreFailure, StoreResult, busy, other, store_error, system};
use crate::error::{Error, Kind, Result, excerpt};
use crate::files::{self, Owner, Stamp, Use, beside, folder_of, owner_text};

pub(super) const LOG: &str = "-wal";
pub(super) const MEMORY: &str = "-shm";
/// Exists only until a new store has a log.
pub(super) const JOURNAL: &str = "-journal";
pub(super) const LOCK: &str = "-lock";

/// Private, because a store contains cursors and customer data.
const PRIVATE: u32 = 0o600;
const GROUP: u32 = 0o070;

/// A writer creates and removes the log and the shared memory one after the other. A reader that
/// finds only one of them checks again: this often, with this pause.
const LOOKS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(5);

/// The mode of a store that others may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share(u32);

impl Share {
    /// For readers with [`StoreOptions::read_only`].
    pub const GROUP_READ: Self = Self(0o640);
    pub const GROUP: Self = Self(0o660);

    pub fn parse(name: &str) -> Result<Self> {
        match name {
            "group-read" => Ok(Self::GROUP_READ),
            "group" => Ok(Self::GROUP),
            _ => Err(Error::new(
                Kind::ConfigError,
                format!("share={:?} is not known", excerpt(name)),
            )
            .with_hint("Write share=\"group-read\" or share=\"group\".")),
        }
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoreOptions {
    /// Writes nothing and creates no file.
    pub read_only: bool,
    /// `None` keeps the mode of an existing store and creates a new store for its owner only.
    pub share: Option<Share>,
}

/// A file that root creates gets the owner of its folder.
fn create(path: &Path, mode: u32) -> Result<()> {
    let folder = folder_of(path);
    let may_not =
        |error| denied(path, "this process may not make files in its folder", folder, error);
    files::check(folder, Use::Change).map_err(may_not)?;
    match Owner::read(folder).and_then(|owner| files::create(path, mode, owner)) {
        Ok(_) => Ok(()),
        // Another process was faster.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(may_not(error)),
    }
}

/// The copy has the store's mode unless `share` is set.
pub(super) fn create_copy(path: &Path, store: &Path, share: Option<Share>) -> Result<()> {
    let own = || Owner::read(store).map_or(PRIVATE, |owner| owner.mode);
    refuse_share_on_windows(share)?;
    create(path, share.map_or_else(own, |share| share.0))
}

/// Only its owner may use the file so far. Fails if it would not get the owner of the store.
pub(super) fn create_replacement(part: &Path, store: &Path) -> Result<()> {
    let Ok(owner) = Owner::read(store) else { return create(part, PRIVATE) };
    let folder = folder_of(store);
    let what = "this process may not make files in its folder";
    files::create(part, PRIVATE, owner).map_err(|error| denied(store, what, folder, error))?;
    #[cfg(unix)]
    if Owner::read(part).is_ok_and(|made| made.user != owner.user) {
        let refused = io::Error::from(ErrorKind::PermissionDenied);
        return Err(denied(store, "only its owner, or root, may replace it", store, refused)
            .with_hint("Restore as that user, so that the store keeps its owner."));
    }
    Ok(())
}

/// Uses the group and the mode of the store, or of the backup if there was no store.
pub(super) fn share_as(part: &Path, store: &Path, backup: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{PermissionsExt as _, chown};
        let like = Owner::read(store).or_else(|_| Owner::read(backup))?;
        if Owner::read(part)?.group != like.group {
            // A user who is not a member of that group keeps the group that the system chose.
            let _refused = chown(part, None, Some(like.group));
        }
        std::fs::set_permissions(part, std::fs::Permissions::from_mode(like.mode))?;
    }
    #[cfg(windows)]
    let _lists = (part, store, backup);
    Ok(())
}

/// Also creates a missing store.
pub(super) fn prepare_for_writing(path: &Path, share: Option<Share>) -> Result<()> {
    refuse_share_on_windows(share)?;
    if !may_use(path, path, Use::Write, "this process may not write to it")? {
        create(path, share.map_or(PRIVATE, |share| share.0))?;
    }
    for ending in [LOG, MEMORY] {
        let file = beside(path, ending);
        if !may_use(path, &file, Use::Write, "this process may not write to its log")? {
            let folder = folder_of(path);
            let what = "this process may not make its log in the folder";
            files::check(folder, Use::Change).map_err(|error| denied(path, what, folder, error))?;
        }
    }
    #[cfg(unix)]
    share.map_or(Ok(()), |share| share_existing(path, share.0))?;
    Ok(())
}

/// Returns false if the file does not exist.
fn may_use(store: &Path, file: &Path, wanted: Use, what: &str) -> Result<bool> {
    match files::check(file, wanted) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(denied(store, what, file, error)),
    }
}

fn refuse_share_on_windows(share: Option<Share>) -> Result<()> {
    if share.is_none() || !cfg!(windows) {
        return Ok(());
    }
    let message = "share= is not supported on Windows: files have no group there";
    Err(Error::new(Kind::ConfigError, message).with_hint(
        "Set an access control list on the folder of the store instead. icacls FOLDER /grant \
         \"NAME:(OI)(CI)M\" allows writing, \"NAME:(OI)(CI)R\" reading. A new store inherits it.",
    ))
}

#[cfg(unix)]
fn share_existing(path: &Path, mode: u32) -> Result<()> {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    for file in [path.to_owned(), beside(path, LOG), beside(path, MEMORY), beside(path, LOCK)] {
        // `metadata()` would follow a link that somebody placed here.
        let Ok(metadata) = file.symlink_metadata() else { continue };
        if !metadata.is_file() || metadata.mode() & 0o777 == mode {
            continue;
        }
        let changed = std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode));
        changed.map_err(|error| denied(path, "only its owner can share it", &file, error))?;
    }
    Ok(())
}

pub(super) fn is_shared(path: &Path) -> bool {
    Owner::read(path).is_ok_and(|owner| owner.mode & GROUP != 0)
}

/// `SQLite` gives the log and the shared memory the store's mode. It gives them the store's group
/// only if it runs as root.
#[cfg(unix)]
pub(super) fn give_group(path: &Path) {
    use std::os::unix::fs::{MetadataExt as _, lchown};
    let Ok(owner) = Owner::read(path) else { return };
    for file in [LOG, MEMORY].map(|ending| beside(path, ending)) {
        if file.symlink_metadata().is_ok_and(|made| made.gid() != owner.group) {
            // If this user may not change the group, the next call of `open` reports it.
            let _refused = lchown(&file, None, Some(owner.group));
        }
    }
}

#[derive(Debug, Clone)]
pub(super) enum ReadMode {
    /// A writer has the store open, so each read is a snapshot.
    WithLog,
    /// The file is complete, because no writer has it open. `SQLite` creates no log for an
    /// immutable file. The stamp shows whether a writer has changed it since.
    FileAlone(Stamp),
}

pub(super) fn check_unchanged(path: &Path, before: &Stamp) -> StoreResult<()> {
    let same = Stamp::read(path).is_ok_and(|now| now == *before);
    let log = beside(path, LOG).metadata().map_or(0, |log| log.len());
    if same && log == 0 { Ok(()) } else { Err(StoreFailure::Core(busy(path))) }
}

pub(super) fn check_readable(path: &Path) -> Result<()> {
    if !may_use(path, path, Use::Read, "this process may not read it")? {
        return Err(other(path, "it does not exist, and read_only=True creates no store")
            .with_hint("Name the file of a store that a sync has created."));
    }
    may_use(path, &beside(path, LOG), Use::Read, "this process may not read its log").map(drop)
}

/// Creates no file. The hold on the store keeps writers from removing the log afterwards. Otherwise
/// `SQLite` would create a log that belongs to the reader.
pub(super) fn prepare_for_reading(path: &Path) -> Result<ReadMode> {
    let (log, memory) = (beside(path, LOG), beside(path, MEMORY));
    for _ in 0..LOOKS {
        // Take the stamp before checking the log, so that a later write is noticed.
        let unreadable = |error| denied(path, "this process may not read it", path, error);
        let stamp = Stamp::read(path).map_err(unreadable)?;
        let readable = |file| may_use(path, file, Use::Read, "this process may not read its log");
        match (readable(&log)?, readable(&memory)?) {
            (true, true) => return Ok(ReadMode::WithLog),
            (has_log, _) if !has_log || log.metadata().is_ok_and(|log| log.len() == 0) => {
                return Ok(ReadMode::FileAlone(stamp));
            }
            _ => std::thread::sleep(PAUSE),
        }
    }
    let what = format!("its log {} has pages that are not in its file yet", log.display());
    let hint = "Open the store once without read_only=, as a user who may write: that completes \
                the file. Copy a store with Store.backup().";
    Err(store_error(path, Kind::StoreError, &what).with_hint(hint))
}

/// `file` is the store, a file next to it, or its folder.
#[expect(clippy::needless_pass_by_value, reason = "it ends here")]
pub(super) fn denied(store: &Path, what: &str, file: &Path, error: io::Error) -> Error {
    let name = if file == store { String::new() } else { format!(" {}", file.display()) };
    let why = match error.kind() {
        ErrorKind::PermissionDenied => owner_text(file),
        ErrorKind::ReadOnlyFilesystem => "it is on a read-only filesystem".to_owned(),
        _ => return system(store, &format!("{what}{name}"), &error),
    };
    let what = format!("{what}{name}: {why}");
    store_error(store, Kind::StoreError, &what).with_hint(advice(store, file, &error))
}

fn advice(store: &Path, file: &Path, error: &io::Error) -> String {
    let shown = store.display();
    if error.kind() == ErrorKind::ReadOnlyFilesystem {
        return "Open it with read_only=True, which makes no file.".to_owned();
    }
    if file.is_dir() {
        return "A writer creates a log next to the store. Choose a folder that this user may \
                change, or open the store with read_only=True."
            .to_owned();
    }
    if cfg!(windows) {
        return "Its owner or an administrator can allow this user to use it and the files next to \
                it, in its properties or with attrib and icacls."
            .to_owned();
    }
    if file == store {
        return "Its owner can share it with the file's group, once, with siteline.Store(path, \
                share=\"group-read\") for read_only=True, or share=\"group\" for writing."
            .to_owned();
    }
    let file = file.display();
    format!(
        "It must have the owner of the store. Its owner or root can restore that: \
         chown --reference='{shown}' '{file}' && chmod --reference='{shown}' '{file}'"
    )
}
