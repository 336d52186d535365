//! The bodies of a folder.

use std::fs;
use std::io;
use std::path::Path;

/// All bodies of a folder, in the order of their names.
///
/// # Errors
/// A folder that cannot be read, or has no pages.
pub fn of_folder(folder: &Path) -> io::Result<Vec<Vec<u8>>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "json") {
            paths.push(path);
        }
    }
    paths.sort();
    if paths.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "a folder without pages"));
    }
    paths.iter().map(fs::read).collect()
}
