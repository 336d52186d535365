//! Makes the file of a new ledger: written whole under another name, synced, and renamed, so
//! that a process that is killed leaves no half of one, and of several processes one makes it.

use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use super::locked::FileFailure;
use crate::files::{self, Owner};

/// Only its owner may read or write it.
const MODE: u32 = 0o600;

/// Makes the file, unless another process is faster. Where root makes it, it belongs to the owner of
/// its folder.
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

/// Makes a folder and those above it that are missing, for their owner alone. Where root makes them,
/// they belong to the owner of the first one that was there.
pub(super) fn create_folder(folder: &Path) -> Result<(), FileFailure> {
    files::create_folder(folder).map_err(FileFailure::system("created"))
}

/// What a link at the path names.
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
    fn a_file_is_made_unless_another_process_was_faster_and_any_other_failure_is_an_error() {
        let path = std::env::temp_dir().join(format!("siteline-made-{}", std::process::id()));
        create(&path, b"first").expect("made");
        create(&path, b"second").expect("another was faster");
        assert_eq!(fs::read(&path).expect("a file"), b"first");
        fs::remove_file(path).expect("removed");
        // A name that is allowed, beside which there is none for the file under way.
        let long = std::env::temp_dir().join("l".repeat(250));
        let failure = create(&long, b"text").expect_err("too long").to_string();
        assert!(failure.starts_with("cannot be created"), "{failure}");
    }
}
