//! Files with a chosen owner and mode, and the file formats of keys and certificates.
//!
//! If root creates a file for another user, it belongs to that user. A file that only root may open
//! would lock out the job that needs it.
//!
//! Windows has access control lists instead of owners and modes. A new file inherits the list of
//! its folder, and this module never changes it.

mod der;
mod new_file;
mod pem;
mod text;
#[cfg(unix)]
mod unix;
mod whole;
#[cfg(windows)]
mod windows;

use std::io;
use std::path::{Path, PathBuf};

pub(crate) use self::der::{elements, first_element, leading_element, member_tags, members};
pub use self::new_file::NewFile;
pub(crate) use self::new_file::{behind_links, write_whole};
pub(crate) use self::pem::{
    Block, blocks, decode_base64, is_bare_base64, is_pem, unescaped, without_base64,
};
pub use self::text::text_of;
#[cfg(unix)]
pub(crate) use self::unix::{Owner, Stamp, create, owner_text};
#[cfg(unix)]
pub use self::unix::{check, create_folder, is_named, open};
#[cfg(unix)]
use self::unix::{put_new, sync_names};
pub(crate) use self::whole::{read_whole, read_with_metadata};
#[cfg(windows)]
use self::windows::put_new;
#[cfg(windows)]
pub(crate) use self::windows::{Owner, Stamp, create, owner_text};
#[cfg(windows)]
pub use self::windows::{check, create_folder, is_named, open};

/// The intended use of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    Read,
    Write,
    /// Create and remove files in a folder.
    Change,
}

/// Appends a suffix to a path.
pub(crate) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Returns an unused path next to another, which nobody can guess.
pub(crate) fn unused(path: &Path, what: &str) -> PathBuf {
    beside(path, &format!("-{what}-{}", uuid::Uuid::new_v4().simple()))
}

/// Returns the folder of a path.
pub(crate) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Moves a written and synced file to its final path, and makes that durable. After a kill or a
/// power failure, the file is complete or missing. The old name is always gone afterwards. Returns
/// `AlreadyExists` if the path exists and `replaces` is false.
pub(crate) fn put(from: &Path, to: &Path, replaces: bool) -> io::Result<()> {
    let put = if replaces { std::fs::rename(from, to) } else { put_new(from, to) };
    // The old name still exists after an error, or after `put_new` made a second name.
    let _gone = std::fs::remove_file(from);
    // Windows cannot sync folders. The journal of NTFS makes a rename atomic.
    #[cfg(unix)]
    let put = put.and_then(|()| sync_names(to));
    put
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::test_server::TestFolder;

    #[test]
    fn an_open_file_is_replaced_or_unchanged() {
        let folder = TestFolder::new();
        let path = folder.join("file");
        std::fs::write(&path, "first").unwrap();
        let (reader, part) = (std::fs::File::open(&path).unwrap(), unused(&path, "new"));
        std::fs::write(&part, "second").unwrap();
        let replaced = put(&part, &path, true);
        // NTFS can replace an open file. Other filesystems of Windows may not.
        assert!(replaced.is_ok() || cfg!(windows), "{replaced:?}");
        let expected = if replaced.is_ok() { "second" } else { "first" };
        assert_eq!(std::fs::read_to_string(&path).unwrap(), expected);
        assert_eq!(io::read_to_string(reader).unwrap(), "first");
        assert!(!part.exists());
    }
}
