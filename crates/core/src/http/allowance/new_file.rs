//! Creates the file of a new ledger. It is written under another name, synced, and renamed. A
//! killed process therefore leaves no partial file, and only one of several processes creates it.

use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use super::locked::FileFailure;
use crate::files::{self, Owner};

const MODE: u32 = 0o600;

/// Creates the file, unless another process is faster. A file that root creates belongs to the
/// owner of its folder.
pub(super) fn create(path: &Path, bytes: &[u8]) -> Result<(), FileFailure> {
    let path = &target(path);
    let folder = files::folder_of(path);
    let owner = Owner::read(folder).map_err(|error| missing_folder(folder, error))?;
    let other = files::unused(path, "new");
    let made = written(&other, owner, bytes).and_then(|()| files::put(&other, path, false));
    match made {
        // Another process was faster.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        made => made.map_err(FileFailure::system("created")),
    }
}

/// Creates a folder and its missing parents for their owner only. Folders that root creates belong
/// to the owner of the first existing parent.
pub(super) fn create_folder(folder: &Path) -> Result<(), FileFailure> {
    files::create_folder(folder).map_err(FileFailure::system("created"))
}

/// Follows a link at the path.
fn target(path: &Path) -> PathBuf {
    match fs::read_link(path) {
        Ok(target) => path.parent().unwrap_or(Path::new("")).join(target),
        Err(_) => path.to_owned(),
    }
}

fn written(path: &Path, owner: Owner, bytes: &[u8]) -> io::Result<()> {
    let mut file = files::create(path, MODE, owner)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn missing_folder(folder: &Path, error: io::Error) -> FileFailure {
    let error = match error.kind() {
        ErrorKind::NotFound => {
            let what = format!("its folder {} does not exist", folder.display());
            io::Error::new(ErrorKind::NotFound, what)
        }
        _ => error,
    };
    FileFailure::System { action: "created", error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_created_once() {
        let path = std::env::temp_dir().join(format!("siteline-made-{}", std::process::id()));
        create(&path, b"first").expect("made");
        create(&path, b"second").expect("another was faster");
        assert_eq!(fs::read(&path).expect("a file"), b"first");
        fs::remove_file(path).expect("removed");
        // This name is valid, but the temporary name next to it is too long.
        let long = std::env::temp_dir().join("l".repeat(250));
        let failure = create(&long, b"text").expect_err("too long").to_string();
        assert!(failure.starts_with("cannot be created"), "{failure}");
    }
}
