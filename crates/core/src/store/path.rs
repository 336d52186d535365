//! A store is a file on a local disk.

use std::io;
use std::path::{Path, PathBuf};

use super::failure::{store_error, system};
use super::network;
use crate::error::{Kind, Result};

/// Resolves links. Rejects a path that cannot be a store.
pub fn resolve(path: &Path) -> Result<PathBuf> {
    let refused =
        |what: &str, hint: &str| Err(store_error(path, Kind::StoreError, what).with_hint(hint));
    let Some(name) = path.file_name() else {
        return refused("this is not the name of a file", "Name a file, such as plant.siteline.");
    };
    if name == ":memory:" || name.as_encoded_bytes().starts_with(b"file:") {
        let hint = "A store is a file. For a test, use a temporary folder.";
        return refused("this name has a special meaning in SQLite", hint);
    }
    #[cfg(windows)]
    if let Some(what) = misleading(&name.to_string_lossy()) {
        return refused(what, "Choose another name, such as plant.siteline.");
    }
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    let folder = match canonical(folder.unwrap_or(Path::new("."))) {
        Ok(folder) if folder.is_dir() => folder,
        Ok(_) => return refused("its folder is a file", "Name a file in a folder."),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return refused("its folder does not exist", "Create the folder first.");
        }
        Err(error) => return Err(system(path, "its folder cannot be read", &error)),
    };
    let resolved = folder.join(name);
    // The log and the locks are next to the file that a link points to.
    let resolved = canonical(&resolved).unwrap_or(resolved);
    if resolved.exists() && !resolved.is_file() {
        let what = "this is a folder, a device or a pipe";
        return refused(what, "Name a file, such as plant.siteline.");
    }
    if let Some(kind) = network::filesystem(&resolved) {
        let what = format!("it is on a network filesystem ({kind})");
        return refused(&what, "Locks are unreliable there. Keep the store on a local disk.");
    }
    Ok(resolved)
}

/// On Windows, omits the prefix `\\?\` if possible.
fn canonical(path: &Path) -> io::Result<PathBuf> {
    #[cfg(windows)]
    return dunce::canonicalize(path);
    #[cfg(not(windows))]
    path.canonicalize()
}

/// Returns why Windows would use this file name differently.
#[cfg(any(windows, test))]
fn misleading(name: &str) -> Option<&'static str> {
    const DEVICES: [&str; 6] = ["con", "prn", "aux", "nul", "conin$", "conout$"];
    let stem = name.split('.').next().unwrap_or_default().trim_end().to_ascii_lowercase();
    let is_port = |kind| stem.strip_prefix(kind).is_some_and(|port| port.chars().count() == 1);
    if name.contains(':') {
        return Some("Windows treats the text after the colon as a stream of another file");
    }
    if name.ends_with(['.', ' ']) {
        return Some("Windows drops the dots and spaces at its end");
    }
    let is_device = DEVICES.contains(&stem.as_str()) || is_port("com") || is_port("lpt");
    is_device.then_some("Windows reserves this name for a device")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_a_meaning_on_windows_are_detected() {
        for name in ["nul", "NUL.siteline", "Com1", "lpt9.txt", "aux .x", "CONIN$"] {
            assert!(misleading(name).is_some_and(|what| what.ends_with("device")), "{name}");
        }
        for name in ["plant.siteline", "nullable", "com", "com10", "console", "ä.nul", ".nul"] {
            assert_eq!(misleading(name), None, "{name}");
        }
        assert!(misleading("plant:siteline").is_some_and(|what| what.contains("stream")));
        assert!(misleading("plant. ").is_some_and(|what| what.contains("at its end")));
    }
}
