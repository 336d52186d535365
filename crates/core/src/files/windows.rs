//! Files on Windows, which has access control lists instead of owners and modes.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::windows::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use super::{Use, folder_of};

/// Flags to open a folder, and to open a link itself instead of its target.
const FILE_FLAG_BACKUP_SEMANTICS: u32 = 0x0200_0000;
const FILE_FLAG_OPEN_REPARSE_POINT: u32 = 0x0020_0000;
/// The right to create files in a folder.
const FILE_ADD_FILE: u32 = 0x0000_0002;

/// Replaces the Unix owner and mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Owner {
    /// Always 0: the access control list of the folder applies to a new file.
    pub mode: u32,
}

impl Owner {
    pub(crate) fn read(path: &Path) -> io::Result<Self> {
        path.metadata().map(|_| Self { mode: 0 })
    }
}

/// Creates a file, which inherits the access control list of its folder. Does not follow a link.
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

/// Creates a folder and its missing parents. Each inherits the access control list of its parent.
pub fn create_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).create(path)
}

/// Renames a file in one step, unless the new name exists. FAT does not support second names.
pub(super) fn put_new(from: &Path, to: &Path) -> io::Result<()> {
    let from = tempfile::TempPath::try_from_path(from)?;
    from.persist_noclobber(to).map_err(|failure| failure.error)
}

/// Opens a file for reading and writing. Does not follow a link at the path.
pub fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(FILE_FLAG_OPEN_REPARSE_POINT);
    let file = options.open(path)?;
    if file.metadata()?.is_symlink() {
        return Err(io::Error::other("it is a link"));
    }
    Ok(file)
}

/// Always true: nobody can rename or remove a file that `SQLite` has open.
pub fn is_named(_file: &File, _path: &Path) -> io::Result<bool> {
    Ok(true)
}

/// Checks what the user may do with a path by opening it. Locks of other handles remain.
pub fn check(path: &Path, wanted: Use) -> io::Result<()> {
    let mut options = OpenOptions::new();
    match wanted {
        Use::Read => options.read(true),
        Use::Write => options.read(true).write(true),
        Use::Change => options.access_mode(FILE_ADD_FILE).custom_flags(FILE_FLAG_BACKUP_SEMANTICS),
    };
    options.open(path).map(drop)
}

/// Describes what restricts the use of a path: `it has the attribute "read-only"`.
pub(crate) fn owner_text(path: &Path) -> String {
    match path.metadata() {
        Ok(metadata) if metadata.is_file() && metadata.permissions().readonly() => {
            "it has the attribute \"read-only\"".to_owned()
        }
        _ => "its access control list decides who may use it (see icacls)".to_owned(),
    }
}

/// Changes if a file is replaced or rewritten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stamp {
    size: u64,
    attributes: u32,
    /// The times of creation and of the last write.
    times: [u64; 2],
}

impl Stamp {
    pub(crate) fn read(path: &Path) -> io::Result<Self> {
        let metadata = path.metadata()?;
        let times = [metadata.creation_time(), metadata.last_write_time()];
        Ok(Self { size: metadata.file_size(), attributes: metadata.file_attributes(), times })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_only_file_is_found_early() {
        let path = std::env::temp_dir().join(format!("siteline-{}", uuid::Uuid::new_v4()));
        assert_eq!(check(&path, Use::Read).unwrap_err().kind(), io::ErrorKind::NotFound);
        let owner = Owner::read(&std::env::temp_dir()).unwrap();
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
        let stamp = Stamp::read(&path).unwrap();
        assert_eq!(Stamp::read(&path).unwrap(), stamp);
        std::fs::write(&path, "longer").unwrap();
        assert_ne!(Stamp::read(&path).unwrap(), stamp);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(Stamp::read(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
