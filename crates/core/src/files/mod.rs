//! Files that several users may meet: who owns a path, who may use it, and files that are made with
//! an owner and a mode of their own, whatever the umask.
//!
//! What root makes for another user belongs to that user: a file that only root may open would
//! shut out the job that needs it.
//!
//! Also the forms in which people save keys and certificates: the encoding of a text, PEM and DER.
//!
//! Windows has access control lists in the place of owners and modes. A new file takes over the list
//! of its folder, and nothing here changes it.

mod der;
mod names;
mod new_file;
mod pem;
mod text;
#[cfg(unix)]
mod unix;
mod wanted;
mod whole;
#[cfg(windows)]
mod windows;

use std::io;
use std::path::Path;

pub(crate) use self::der::{first_element, leading_element, member_tags};
pub(crate) use self::names::{beside, folder_of, unused};
pub use self::new_file::NewFile;
pub(crate) use self::pem::{Block, blocks, decode_base64, is_bare_base64, is_pem, unescaped};
pub use self::text::text_of;
#[cfg(unix)]
pub(crate) use self::unix::{Owner, Stamp, create, owner_text};
#[cfg(unix)]
pub use self::unix::{check, create_folder, is_named, open};
#[cfg(unix)]
use self::unix::{put_new, sync_names};
pub use self::wanted::Use;
pub(crate) use self::whole::{read_whole, read_with_metadata};
#[cfg(windows)]
use self::windows::put_new;
#[cfg(windows)]
pub(crate) use self::windows::{Owner, Stamp, create, owner_text};
#[cfg(windows)]
pub use self::windows::{check, create_folder, is_named, open};

/// Gives a file that is written and synced under another name its own, and makes that durable: it is
/// there whole or not at all, whenever the process is killed or the power lost. The other name is gone
/// then, also after an error.
///
/// # Errors
/// `AlreadyExists` where something has the name, unless it is to be replaced; the others of the system.
pub(crate) fn put(from: &Path, to: &Path, replaces: bool) -> io::Result<()> {
    let put = if replaces { std::fs::rename(from, to) } else { put_new(from, to) };
    // Where the file has got a second name, and after an error.
    let _gone = std::fs::remove_file(from);
    // Windows syncs no folders: NTFS has a journal, in which a rename is done or not.
    #[cfg(unix)]
    let put = put.and_then(|()| sync_names(to));
    put
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_gets_its_name_where_nothing_has_it_and_replaces_another_where_it_shall() {
        let path = std::env::temp_dir().join(format!("siteline-put-{}", uuid::Uuid::new_v4()));
        let written = |text: &str| {
            let part = unused(&path, "new");
            std::fs::write(&part, text).unwrap();
            part
        };
        let first = written("first");
        put(&first, &path, false).unwrap();
        let second = written("second");
        let error = put(&second, &path, false).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(&path).unwrap(), b"first");
        let third = written("third");
        put(&third, &path, true).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"third");
        for part in [first, second, third] {
            assert!(!part.exists());
        }
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_file_that_another_has_open_is_replaced_or_stays_as_it_was() {
        let path = std::env::temp_dir().join(format!("siteline-put-{}", uuid::Uuid::new_v4()));
        std::fs::write(&path, "first").unwrap();
        let (reader, part) = (std::fs::File::open(&path).unwrap(), unused(&path, "new"));
        std::fs::write(&part, "second").unwrap();
        let replaced = put(&part, &path, true);
        // Not every filesystem of Windows can; NTFS can.
        assert!(replaced.is_ok() || cfg!(windows), "{replaced:?}");
        let expected = if replaced.is_ok() { "second" } else { "first" };
        assert_eq!(std::fs::read_to_string(&path).unwrap(), expected);
        assert_eq!(io::read_to_string(reader).unwrap(), "first");
        assert!(!part.exists());
        std::fs::remove_file(path).unwrap();
    }
}
