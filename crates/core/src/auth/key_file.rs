//! Reads a file that contains a private key. The size is limited, and access by other users gives a
//! warning.

use std::fs;
use std::io;
use std::path::Path;

use zeroize::Zeroizing;

use super::encoding;
use super::refusal::refused;
use crate::{Error, Result, files, system};

/// Maximum size of a file. `/dev/zero` is endless.
const LARGEST_FILE: u64 = 1024 * 1024;
/// Maximum length of a path in an error. A longer one may be a secret, passed as a path by mistake.
const LONGEST_SHOWN_PATH: usize = 400;

/// Returns the bytes of a file, and its mode if others may access it (not on Windows). `what` names
/// the file in errors: "private key", "certificate".
pub(crate) fn read(what: &str, path: &Path) -> Result<(Zeroizing<Vec<u8>>, Option<u32>)> {
    match files::read_with_metadata(path, LARGEST_FILE) {
        Ok((bytes, metadata)) => Ok((bytes, open_mode(&metadata))),
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
            let path = display_path(path);
            Err(refused(format!("{path} is over 1 MiB: no {what} file is that large.")))
        }
        Err(error) => Err(unreadable(what, path, &error)),
    }
}

/// Returns a warning if other users can read the key file, or an error if `strict`.
pub(super) fn check_mode(path: &Path, open_mode: Option<u32>, strict: bool) -> Result<Vec<String>> {
    let Some(mode) = open_mode else { return Ok(Vec::new()) };
    let path = display_path(path);
    let message = format!("Other users can read the key file {path} (mode {mode:03o}).");
    let hint = "Run chmod 600 on it. If others use this machine, enroll a new key.";
    if strict {
        return Err(refused(message).with_hint(hint));
    }
    Ok(vec![format!("{message} {hint}")])
}

#[cfg(unix)]
fn open_mode(metadata: &fs::Metadata) -> Option<u32> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = metadata.permissions().mode() & 0o777;
    (mode & 0o066 != 0).then_some(mode)
}

/// Windows controls access with lists, which are not read.
#[cfg(not(unix))]
fn open_mode(_metadata: &fs::Metadata) -> Option<u32> {
    None
}

pub(super) fn unreadable(what: &str, path: &Path, error: &io::Error) -> Error {
    let (problem, hint) = match error.kind() {
        io::ErrorKind::NotFound => ("does not exist", absolute_hint(path)),
        io::ErrorKind::IsADirectory => {
            ("is a directory", "Pass the path of the file in it.".to_owned())
        }
        io::ErrorKind::PermissionDenied => (
            "may not be read by this user",
            "Run as the user who owns it, or give this user a copy.".to_owned(),
        ),
        _ => ("could not be read", format!("The system reports: {}.", system::reason(error))),
    };
    refused(format!("The {what} file {} {problem}.", display_path(path)))
        .with_hint(hint)
        .passing_as(error)
}

pub(super) fn absolute_hint(path: &Path) -> String {
    if is_hidden(path) {
        return "Pass the text of a key as text, not as a path.".to_owned();
    }
    if path.starts_with("~") {
        return "Only a shell expands ~: pass the full path.".to_owned();
    }
    match std::path::absolute(path) {
        Ok(absolute) if absolute != path => format!("Looked for {}.", display_path(&absolute)),
        _ => "Check its directory and name.".to_owned(),
    }
}

/// Quotes a path for a message. A path that may be a key is not shown.
pub(super) fn display_path(path: &Path) -> String {
    if is_hidden(path) {
        format!("({} bytes that do not look like a path)", path.as_os_str().len())
    } else {
        format!("{:?}", path.to_string_lossy())
    }
}

/// Adds the path of the file to an error about its content.
pub(super) fn placed(path: &Path, error: Error) -> Error {
    error.with(|context| {
        context.message = format!("{}: {}", display_path(path), context.message);
    })
}

fn is_hidden(path: &Path) -> bool {
    // A relative path may have been made absolute.
    let folder = std::env::current_dir().unwrap_or_default();
    let text = path.strip_prefix(folder).unwrap_or(path).to_string_lossy();
    text.len() > LONGEST_SHOWN_PATH || encoding::is_key_text(&text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::test_server::TestFolder;

    #[test]
    fn k1_the_size_of_a_key_file_is_limited() {
        let folder = TestFolder::new();
        let path = folder.join("key");
        for (size, is_read) in [(5, true), (LARGEST_FILE, true), (LARGEST_FILE + 1, false)] {
            fs::File::create(&path).and_then(|file| file.set_len(size)).expect("a file");
            let read = read("private key", &path);
            assert_eq!(read.is_ok(), is_read, "{size} bytes");
            let Ok((bytes, _)) = read else { continue };
            // A growing buffer would have left a copy.
            assert_eq!((bytes.len() as u64, bytes.capacity() as u64), (size, size + 1));
        }
    }

    #[test]
    fn k1_an_unreadable_path_has_a_hint() {
        let text = |kind: io::ErrorKind| {
            let error = unreadable("certificate", Path::new("plant.pem"), &kind.into());
            format!("{error} {}", error.context().hint.as_deref().unwrap_or_default())
        };
        assert!(text(io::ErrorKind::IsADirectory).contains("Pass the path of the file in it."));
        assert!(text(io::ErrorKind::PermissionDenied).contains("give this user a copy"));
        assert!(text(io::ErrorKind::Interrupted).contains("The system reports"));

        let relative = absolute_hint(Path::new("plant.pem"));
        let root = if cfg!(windows) { "C:\\" } else { "/" };
        let place = relative.strip_prefix("Looked for \"").expect("a path");
        assert!(place.contains(&root[root.len() - 1..]) && place.ends_with("plant.pem\"."));
        let absolute = Path::new(root).join("plant.pem");
        assert_eq!(absolute_hint(&absolute), "Check its directory and name.");
    }

    #[test]
    fn k1_a_path_that_may_be_a_key_is_hidden() {
        let text = |path: &str| display_path(Path::new(path));
        assert_eq!(text(&"k".repeat(200)), format!("{:?}", "k".repeat(200)));
        assert_eq!(text(&"k-".repeat(200)).len(), 402);
        assert_eq!(text(&"k-".repeat(201)), "(402 bytes that do not look like a path)");
        assert_eq!(text("two\nlines"), "(9 bytes that do not look like a path)");
        let absolute = std::path::absolute("A".repeat(300)).expect("a folder");
        assert!(
            text(&absolute.to_string_lossy()).ends_with(" bytes that do not look like a path)")
        );
    }
}
