//! Files of systems with users, groups and modes.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, chown, fchown,
};
use std::path::Path;

use nix::fcntl::{AT_FDCWD, AtFlags, OFlag};
use nix::unistd::{AccessFlags, Uid, User, faccessat};

use super::{Use, folder_of};

/// Owner, group and mode of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) user: u32,
    pub(crate) group: u32,
    /// The nine permission bits.
    pub mode: u32,
}

impl Owner {
    pub(crate) fn read(path: &Path) -> io::Result<Self> {
        let metadata = path.metadata()?;
        let mode = metadata.mode() & 0o777;
        Ok(Self { user: metadata.uid(), group: metadata.gid(), mode })
    }
}

/// Creates a file with exactly this mode, or with the mode that the umask leaves. If root creates
/// it, it gets the user and the group of `owner`. Another user gives it the group if the mode lets
/// the group in and the user is a member. A link at the path is not followed.
pub(crate) fn create(path: &Path, mode: impl Into<Option<u32>>, owner: Owner) -> io::Result<File> {
    let mode = mode.into();
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(mode.unwrap_or(0o666));
    let file = options.open(path)?;
    let given = give(&file, mode, owner);
    if given.is_err() {
        let _gone = std::fs::remove_file(path);
    }
    given.map(|()| file)
}

fn give(file: &File, mode: Option<u32>, owner: Owner) -> io::Result<()> {
    let group = (file.metadata()?.gid() != owner.group).then_some(owner.group);
    if Uid::effective().is_root() {
        fchown(file, Some(owner.user), Some(owner.group))?;
    } else if mode.is_some_and(|mode| mode & 0o070 != 0) && group.is_some() {
        // A user who is not a member of that group keeps the group that the system chose.
        let _refused = fchown(file, None, group);
    }
    // A change of the owner may clear bits of the mode, so set the mode afterwards.
    mode.map_or(Ok(()), |mode| file.set_permissions(std::fs::Permissions::from_mode(mode)))
}

/// Creates a folder for its owner only, and its missing parents. If root creates them, they belong
/// to the owner of the nearest existing parent.
pub fn create_folder(path: &Path) -> io::Result<()> {
    if path.as_os_str().is_empty() || path.is_dir() {
        return Ok(());
    }
    let above = path.parent().ok_or(io::ErrorKind::NotADirectory)?;
    create_folder(above)?;
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Ok(()) if Uid::effective().is_root() => {
            let above = if above.as_os_str().is_empty() { Path::new(".") } else { above };
            let owner = Owner::read(above)?;
            chown(path, Some(owner.user), Some(owner.group))
        }
        made => made,
    }
}

/// Renames a file unless the new name exists. If the system cannot do this in one step, the file
/// first gets a second name. A process that is killed in between leaves both.
pub(super) fn put_new(from: &Path, to: &Path) -> io::Result<()> {
    rename_new(from, to).or_else(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => Err(error),
        _ => std::fs::hard_link(from, to),
    })
}

// nix has `renameat2` only for the GNU C library.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    use nix::fcntl::{RenameFlags, renameat2};
    Ok(renameat2(AT_FDCWD, from, AT_FDCWD, to, RenameFlags::RENAME_NOREPLACE)?)
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn rename_new(_from: &Path, _to: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Makes the names in the folder of a path durable, if the filesystem supports it.
pub(super) fn sync_names(path: &Path) -> io::Result<()> {
    match File::open(folder_of(path)).and_then(|folder| folder.sync_all()) {
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        synced => synced,
    }
}

/// Opens a file for reading and writing. Does not follow a link at the path.
pub fn open(path: &Path) -> io::Result<File> {
    let flags = OFlag::O_NOFOLLOW.bits();
    OpenOptions::new().read(true).write(true).custom_flags(flags).open(path)
}

/// Returns whether a path still names an open file.
pub fn is_named(file: &File, path: &Path) -> io::Result<bool> {
    let open = file.metadata()?;
    match path.metadata() {
        Ok(named) => Ok((named.dev(), named.ino()) == (open.dev(), open.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Checks what the effective user may do with a path, without opening it: closing a file would
/// release the locks of this process on it.
pub fn check(path: &Path, wanted: Use) -> io::Result<()> {
    let flags = match wanted {
        Use::Read => AccessFlags::R_OK,
        Use::Write => AccessFlags::R_OK | AccessFlags::W_OK,
        Use::Change => AccessFlags::W_OK | AccessFlags::X_OK,
    };
    Ok(faccessat(AT_FDCWD, path, flags, AtFlags::AT_EACCESS)?)
}

/// Describes the owner of a path and the current user: `it belongs to alice (uid 1001, mode 0600),
/// this process runs as bob (uid 1002)`.
pub(crate) fn owner_text(path: &Path) -> String {
    let owner = Owner::read(path).map_or_else(
        |_| "its owner is not known".to_owned(),
        |owner| format!("it belongs to {}, mode {:04o})", user_text(owner.user), owner.mode),
    );
    format!("{owner}, this process runs as {})", user_text(Uid::effective().as_raw()))
}

/// A user's name and id, without the closing bracket.
fn user_text(user: u32) -> String {
    match User::from_uid(Uid::from_raw(user)) {
        Ok(Some(known)) => format!("{} (uid {user}", known.name),
        _ => format!("a user without a name (uid {user}"),
    }
}

/// Changes if a file is replaced or rewritten, or if its owner or mode changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stamp {
    inode: u64,
    size: u64,
    /// The last changes of the contents and of the metadata, in seconds and nanoseconds.
    changed: [i64; 4],
}

impl Stamp {
    pub(crate) fn read(path: &Path) -> io::Result<Self> {
        let metadata = path.metadata()?;
        let changed =
            [metadata.mtime(), metadata.mtime_nsec(), metadata.ctime(), metadata.ctime_nsec()];
        Ok(Self { inode: metadata.ino(), size: metadata.size(), changed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::test_server::TestFolder;

    #[test]
    fn a_file_is_created_with_its_mode_and_no_link() {
        for mode in [0o600, 0o640, 0o660] {
            let place = TestFolder::new();
            let (made, link) = (place.join("made"), place.join("link"));
            let folder = Owner::read(&place).unwrap();
            drop(create(&made, mode, folder).unwrap());
            let owner = Owner::read(&made).unwrap();
            assert_eq!(owner.mode, mode);
            let error = create(&made, mode, folder).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
            std::os::unix::fs::symlink(&made, &link).unwrap();
            assert_eq!(
                create(&link, mode, folder).unwrap_err().kind(),
                io::ErrorKind::AlreadyExists
            );
            assert!(open(&link).is_err());
            drop(open(&made).unwrap());
        }
    }

    #[test]
    fn an_owner_is_named_with_the_current_user() {
        let text = owner_text(Path::new("/"));
        assert!(text.starts_with("it belongs to root (uid 0, mode 0"), "{text}");
        assert!(text.contains("this process runs as ") && text.ends_with(')'), "{text}");
        assert!(owner_text(Path::new("/nowhere/at all")).starts_with("its owner is not known, "));
        assert_eq!(
            check(Path::new("/nowhere"), Use::Read).unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
        check(Path::new("/"), Use::Read).unwrap();
    }
}
