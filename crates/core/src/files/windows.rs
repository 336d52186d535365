//! Files of Windows, which has access control lists in the place of owners and modes.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::windows::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use super::names::folder_of;
use super::wanted::Use;

/// To open a folder, and to open a link itself instead of what it names.
const FILE_FLAG_BACKUP_SEMANTICS: u32 = 0x0200_0000;
const FILE_FLAG_OPEN_REPARSE_POINT: u32 = 0x0020_0000;
/// The right to make files in a folder.
const FILE_ADD_FILE: u32 = 0x0000_0002;

/// What a path has in the place of user, group and permissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Owner {
    /// There are no such bits: the access control list of its folder decides about a new file.
    pub mode: u32,
}

impl Owner {
    /// The owner of what a path names.
    ///
    /// # Errors
    /// Those of the system.
    pub fn of(path: &Path) -> io::Result<Self> {
        path.metadata().map(|_| Self { mode: 0 })
    }
}

/// Makes a file, which takes over the access control list of its folder. A link at the path is not
/// followed.
///
/// # Errors
/// `AlreadyExists` where anything is at the path; the others of the system.
pub(crate) fn create(
    path: &Path,
    _mode: impl Into<Option<u32>>,
    _owner: Owner,
) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).open(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound if folder_of(path).is_file() => io::ErrorKind::NotADirectory.into(),
        _ => error,
    })
}

/// Makes a folder, and those above it that are missing; each takes over the list of the one above.
///
/// # Errors
/// Those of the system.
pub fn create_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).create(path)
}

/// Renames a file, if nothing has the name, in one step: the standard library's rename replaces, and
/// a second name, as on Unix, cannot be had on FAT.
pub(super) fn put_new(from: &Path, to: &Path) -> io::Result<()> {
    let from = tempfile::TempPath::try_from_path(from)?;
    from.persist_noclobber(to).map_err(|failure| failure.error)
}

/// Opens a file to read and write. A link at the path is not followed.
///
/// # Errors
/// Those of the system.
pub fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(FILE_FLAG_OPEN_REPARSE_POINT);
    let file = options.open(path)?;
    if file.metadata()?.is_symlink() {
        return Err(io::Error::other("it is a link"));
    }
    Ok(file)
}

/// True while an open file is the one that a path names: Windows lets nobody rename or remove a file
/// that `SQLite` has open.
///
/// # Errors
/// None.
pub fn is_named(_file: &File, _path: &Path) -> io::Result<bool> {
    Ok(true)
}

/// Refuses what the user may not do, by opening the path: another handle's locks stay.
///
/// # Errors
/// `PermissionDenied`, `ReadOnlyFilesystem`, `NotFound`, the others of the system.
pub fn check(path: &Path, wanted: Use) -> io::Result<()> {
    let mut options = OpenOptions::new();
    match wanted {
        Use::Read => options.read(true),
        Use::Write => options.read(true).write(true),
        Use::Change => options.access_mode(FILE_ADD_FILE).custom_flags(FILE_FLAG_BACKUP_SEMANTICS),
    };
    options.open(path).map(drop)
}

/// What decides who may use a path: `it has the attribute "read-only"`.
pub(crate) fn owner_text(path: &Path) -> String {
    match path.metadata() {
        Ok(metadata) if metadata.is_file() && metadata.permissions().readonly() => {
            "it has the attribute \"read-only\"".to_owned()
        }
        _ => "its access control list decides who may, which icacls shows".to_owned(),
    }
}

/// Changes if a file is replaced or rewritten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stamp {
    size: u64,
    attributes: u32,
    /// When it was made and when it was written.
    times: [u64; 2],
}

impl Stamp {
    /// That of the file that a path names.
    ///
    /// # Errors
    /// Those of the system.
    pub fn of(path: &Path) -> io::Result<Self> {
        let metadata = path.metadata()?;
        let times = [metadata.creation_time(), metadata.last_write_time()];
        Ok(Self { size: metadata.file_size(), attributes: metadata.file_attributes(), times })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_may_only_be_read_is_found_before_it_is_used() {
        let path = std::env::temp_dir().join(format!("siteline-{}", uuid::Uuid::new_v4()));
        assert_eq!(check(&path, Use::Read).unwrap_err().kind(), io::ErrorKind::NotFound);
        let owner = Owner::of(&std::env::temp_dir()).unwrap();
        drop(create(&path, 0, owner).unwrap());
        assert_eq!(create(&path, 0, owner).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        check(&path, Use::Write).unwrap();
        check(&std::env::temp_dir(), Use::Change).unwrap();
        assert!(owner_text(&path).contains("access control list"));
        let metadata = path.metadata().unwrap();
        let (free, mut kept) = (metadata.permissions(), metadata.permissions());
        kept.set_readonly(true);
        std::fs::set_permissions(&path, kept).unwrap();
        check(&path, Use::Read).unwrap();
        // Root may, under Wine.
        if let Err(error) = check(&path, Use::Write) {
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        }
        assert_eq!(owner_text(&path), "it has the attribute \"read-only\"");
        std::fs::set_permissions(&path, free).unwrap();
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_stamp_changes_with_the_file() {
        let path = std::env::temp_dir().join(format!("siteline-{}", uuid::Uuid::new_v4()));
        std::fs::write(&path, "one").unwrap();
        let stamp = Stamp::of(&path).unwrap();
        assert_eq!(Stamp::of(&path).unwrap(), stamp);
        std::fs::write(&path, "longer").unwrap();
        assert_ne!(Stamp::of(&path).unwrap(), stamp);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(Stamp::of(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
