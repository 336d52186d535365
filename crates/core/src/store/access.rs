//! Who may use a store. A store has up to three files beside it: the log and the shared memory of
//! `SQLite`, and the lock file. All four belong to the same user and group and have the same mode.
//!
//! The permissions are checked before `SQLite` opens anything: it would open a file that may only be
//! read, and make a log and shared memory of the wrong user beside it, which shut the owner out.

use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::Duration;

use super::failure::{StoreFailure, StoreResult, busy, other, system};
use crate::error::{Error, Kind, Result, excerpt};
use crate::files::{self, Owner, Stamp, Use, beside, owner_text};

/// The endings of the names of the files beside a store.
pub(super) const LOG: &str = "-wal";
pub(super) const MEMORY: &str = "-shm";
/// `SQLite` has it only until a new store has a log.
pub(super) const JOURNAL: &str = "-journal";
pub(super) const LOCK: &str = "-lock";

/// The mode of a store that is not shared: as that of a key, for it has cursors and a customer's data.
const PRIVATE: u32 = 0o600;
/// The bits of a mode that let the group in.
const GROUP: u32 = 0o070;

/// A writer that opens or closes a store makes and removes its log and its shared memory one after
/// the other; a reader that meets only one of them looks again so often, after so long a pause.
const LOOKS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(5);

/// Who else may use a store: the group of its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share {
    /// The group may read it, with [`StoreOptions::read_only`]: mode 0640.
    GroupRead,
    /// The group may read it and write to it: mode 0660.
    Group,
}

impl Share {
    /// Parses the name that a user writes.
    pub fn parse(name: &str) -> Result<Self> {
        match name {
            "group-read" => Ok(Self::GroupRead),
            "group" => Ok(Self::Group),
            _ => Err(Error::new(
                Kind::ConfigError,
                format!("share={:?} is not known", excerpt(name)),
            )
            .with_hint("Write share=\"group-read\" or share=\"group\".")),
        }
    }

    /// The name that a user writes.
    fn name(self) -> &'static str {
        match self {
            Self::GroupRead => "group-read",
            Self::Group => "group",
        }
    }

    fn mode(self) -> u32 {
        match self {
            Self::GroupRead => 0o640,
            Self::Group => 0o660,
        }
    }
}

/// How a store is opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoreOptions {
    /// Nothing is written, and no file is made.
    pub read_only: bool,
    /// Who else may use it; `None` leaves an existing store as it is, and makes a new one for its
    /// owner alone.
    pub share: Option<Share>,
}

/// Makes an empty store file, with the owner of its folder where root makes it.
fn create(path: &Path, mode: u32) -> Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    let may_not =
        |error| denied(path, "this process may not make files in its folder", folder, error);
    files::check(folder, Use::Change).map_err(may_not)?;
    match Owner::of(folder).and_then(|owner| files::create(path, mode, owner)) {
        Ok(_) => Ok(()),
        // Another process was faster.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(may_not(error)),
    }
}

/// Makes an empty file for a copy of the store, with its mode unless the copy is shared otherwise.
pub(super) fn create_copy(path: &Path, store: &Path, share: Option<Share>) -> Result<()> {
    let own = || Owner::of(store).map_or(PRIVATE, |owner| owner.mode);
    if let Some(share) = share.filter(|_| cfg!(windows)) {
        return Err(without_groups(share));
    }
    create(path, share.map_or_else(own, Share::mode))
}

/// Makes an empty file for what is put in the place of a store. Only its owner may use it so far.
///
/// # Errors
/// `StoreError` where it would not have the owner of the store.
pub(super) fn create_replacement(part: &Path, store: &Path) -> Result<()> {
    let Ok(owner) = Owner::of(store) else { return create(part, PRIVATE) };
    let folder = store.parent().unwrap_or(Path::new("/"));
    let what = "this process may not make files in its folder";
    files::create(part, PRIVATE, owner).map_err(|error| denied(store, what, folder, error))?;
    #[cfg(unix)]
    if Owner::of(part).is_ok_and(|made| made.user != owner.user) {
        let _gone = std::fs::remove_file(part);
        let refused = io::Error::from(ErrorKind::PermissionDenied);
        return Err(denied(store, "only its owner, or root, may replace it", store, refused)
            .with_hint("Restore as that user, so that the store keeps its owner."));
    }
    Ok(())
}

/// Gives what is put in the place of a store the group and the mode of the store; of the backup, where
/// there was no store.
pub(super) fn share_as(part: &Path, store: &Path, backup: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{PermissionsExt as _, chown};
        let like = Owner::of(store).or_else(|_| Owner::of(backup))?;
        if Owner::of(part)?.group != like.group {
            // Not a member of that group: the group that the system chose has to do.
            let _refused = chown(part, None, Some(like.group));
        }
        std::fs::set_permissions(part, std::fs::Permissions::from_mode(like.mode))?;
    }
    #[cfg(windows)]
    let _lists = (part, store, backup);
    Ok(())
}

/// Makes the store if there is none, and refuses a user who may not write to it.
pub(super) fn prepare_for_writing(path: &Path, share: Option<Share>) -> Result<()> {
    if let Some(share) = share.filter(|_| cfg!(windows)) {
        return Err(without_groups(share));
    }
    match files::check(path, Use::Write) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {
            create(path, share.map_or(PRIVATE, Share::mode))?;
        }
        Err(error) => return Err(denied(path, "this process may not write to it", path, error)),
    }
    for ending in [LOG, MEMORY] {
        let file = beside(path, ending);
        match files::check(&file, Use::Write) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let folder = path.parent().unwrap_or(Path::new("/"));
                let what = "this process may not make its log in the folder";
                files::check(folder, Use::Change)
                    .map_err(|error| denied(path, what, folder, error))?;
            }
            Err(error) => {
                return Err(denied(path, "this process may not write to its log", &file, error));
            }
        }
    }
    #[cfg(unix)]
    share.map_or(Ok(()), |share| share_existing(path, share.mode()))?;
    Ok(())
}

/// Windows has no group of a file.
fn without_groups(share: Share) -> Error {
    let message = format!("share={:?} is not for Windows, whose files have no group", share.name());
    Error::new(Kind::ConfigError, message).with_hint(
        "Give the folder of the store an access control list that lets the others in: icacls FOLDER \
         /grant \"NAME:(OI)(CI)M\" to write, \"NAME:(OI)(CI)R\" to read. A new store takes it over.",
    )
}

/// Gives an existing store and the files beside it another mode.
#[cfg(unix)]
fn share_existing(path: &Path, mode: u32) -> Result<()> {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    for file in [path.to_owned(), beside(path, LOG), beside(path, MEMORY), beside(path, LOCK)] {
        // Not `metadata()`: a link that somebody placed here is not followed.
        let Ok(metadata) = file.symlink_metadata() else { continue };
        if !metadata.is_file() || metadata.mode() & 0o777 == mode {
            continue;
        }
        let changed = std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode));
        changed.map_err(|error| denied(path, "only its owner can share it", &file, error))?;
    }
    Ok(())
}

/// True where the group may use the store.
pub(super) fn is_shared(path: &Path) -> bool {
    Owner::of(path).is_ok_and(|owner| owner.mode & GROUP != 0)
}

/// Gives the log and the shared memory the group of a shared store. `SQLite` gives them its mode, and
/// where root makes them its owner and group too; a member of the group makes them with a group of
/// their own.
#[cfg(unix)]
pub(super) fn give_group(path: &Path) {
    use std::os::unix::fs::{MetadataExt as _, lchown};
    let Ok(owner) = Owner::of(path) else { return };
    for file in [LOG, MEMORY].map(|ending| beside(path, ending)) {
        if file.symlink_metadata().is_ok_and(|made| made.gid() != owner.group) {
            // Not this user's file, or not a member of that group: the next opening says so.
            let _refused = lchown(&file, None, Some(owner.group));
        }
    }
}

#[derive(Debug, Clone)]
pub(super) enum ReadMode {
    /// With the log and the shared memory that a writer made: beside it, each read is a snapshot.
    WithLog,
    /// No writer has the store open: the file alone is complete. `SQLite` would make a log; told that
    /// the file is immutable, it does not. Whether a writer came is seen by the file.
    FileAlone(Stamp),
}

/// Refuses what was read meanwhile if a writer has opened the store or written to it, whose file was
/// like this before.
pub(super) fn check_unchanged(path: &Path, before: &Stamp) -> StoreResult<()> {
    let same = Stamp::of(path).is_ok_and(|now| now == *before);
    let log = beside(path, LOG).metadata().map_or(0, |log| log.len());
    if same && log == 0 { Ok(()) } else { Err(StoreFailure::Core(busy(path))) }
}

/// Refuses a store that is not there, or that this user may not read.
pub(super) fn check_readable(path: &Path) -> Result<()> {
    match files::check(path, Use::Read) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(other(path, "it does not exist, and read_only=True makes none")
                .with_hint("Name the file of a store that was made by a sync."));
        }
        Err(error) => return Err(denied(path, "this process may not read it", path, error)),
    }
    let log = beside(path, LOG);
    match files::check(&log, Use::Read) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(denied(path, "this process may not read its log", &log, error))
        }
        _ => Ok(()),
    }
}

/// Chooses how to read; makes no file. The hold on the store keeps a writer from removing the log
/// afterwards: `SQLite` would make another one, which belongs to the user who reads.
pub(super) fn prepare_for_reading(path: &Path) -> Result<ReadMode> {
    let may_not = |what, file: &Path, error| denied(path, what, file, error);
    let (log, memory) = (beside(path, LOG), beside(path, MEMORY));
    for _ in 0..LOOKS {
        // Before the look at the log: what is written later is seen.
        let unreadable = |error| may_not("this process may not read it", path, error);
        let stamp = Stamp::of(path).map_err(unreadable)?;
        let readable = |file| match files::check(file, Use::Read) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(may_not("this process may not read its log", file, error)),
        };
        match (readable(&log)?, readable(&memory)?) {
            (true, true) => return Ok(ReadMode::WithLog),
            (false, _) => return Ok(ReadMode::FileAlone(stamp)),
            (true, false) if log.metadata().is_ok_and(|log| log.len() == 0) => {
                return Ok(ReadMode::FileAlone(stamp));
            }
            (true, false) => std::thread::sleep(PAUSE),
        }
    }
    let what = format!("its log {} has pages that its file lacks", log.display());
    let hint = "Whoever may write to it opens it once, without read_only=: that completes the file. \
                If it is a copy, copy it with Store.backup().";
    Err(Error::new(Kind::StoreError, format!("store {}: {what}", path.display())).with_hint(hint))
}

/// A user may not use a file: the store, one beside it, or its folder.
#[expect(clippy::needless_pass_by_value, reason = "it ends here")]
pub(super) fn denied(store: &Path, what: &str, file: &Path, error: io::Error) -> Error {
    let name = if file == store { String::new() } else { format!(" {}", file.display()) };
    let why = match error.kind() {
        ErrorKind::PermissionDenied => owner_text(file),
        ErrorKind::ReadOnlyFilesystem => "it is on a read-only filesystem".to_owned(),
        _ => return system(store, &format!("{what}{name}"), &error),
    };
    let message = format!("store {}: {what}{name}: {why}", store.display());
    Error::new(Kind::StoreError, message).with_hint(advice(store, file, &error))
}

/// What to do where a user may not use a file.
fn advice(store: &Path, file: &Path, error: &io::Error) -> String {
    let shown = store.display();
    if error.kind() == ErrorKind::ReadOnlyFilesystem {
        return "Open it with read_only=True, which makes no file.".to_owned();
    }
    if file.is_dir() {
        return "A writer makes the store's log beside it: choose a folder that this user may \
                change, or open the store with read_only=True."
            .to_owned();
    }
    if cfg!(windows) {
        return "Its owner, or an administrator, can let this user use it and the files beside it: \
                in its properties, or with attrib and icacls."
            .to_owned();
    }
    if file == store {
        return "Ask its owner to share it, once, with siteline.Store(path, share=\"group-read\"), \
                for read_only=True, or share=\"group\": then every member of the file's group may \
                use it."
            .to_owned();
    }
    let file = file.display();
    format!(
        "It must belong to whom the store belongs to. Its owner, or root, can give it back: \
         chown --reference='{shown}' '{file}' && chmod --reference='{shown}' '{file}'"
    )
}
