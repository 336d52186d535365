//! Reads a file that contains a private key: of limited size, and with a warning if others can read it.

use std::fs;
use std::io;
use std::path::Path;

use zeroize::Zeroizing;

use super::encoding;
use super::refusal::refused;
use crate::{Error, Result, files, system};

/// Larger files are not read; `/dev/zero` is endless.
const LARGEST_FILE: u64 = 1024 * 1024;
/// Longer paths are not shown: they may be a secret, passed as a path by mistake.
const LONGEST_SHOWN_PATH: usize = 400;

/// The bytes of a file, and its mode if others may access it (not checked on Windows). `what` names it in
/// errors: "private key", "certificate".
///
/// # Errors
/// `CredentialError` with the path, never the content: for a file that is missing, a directory, not
/// readable or over 1 MiB.
pub(super) fn read(what: &str, path: &Path) -> Result<(Zeroizing<Vec<u8>>, Option<u32>)> {
    match files::read_with_metadata(path, LARGEST_FILE) {
        Ok((bytes, metadata)) => Ok((bytes, open_mode(&metadata))),
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
            Err(refused(format!("{} is over 1 MiB: no {what} file is that large.", shown(path))))
        }
        Err(error) => Err(unreadable(what, path, &error)),
    }
}

/// A warning if other users can read the file of a key (K8).
///
/// # Errors
/// `CredentialError` instead of the warning, if `strict`.
pub(super) fn check_mode(path: &Path, open_mode: Option<u32>, strict: bool) -> Result<Vec<String>> {
    let Some(mode) = open_mode else { return Ok(Vec::new()) };
    let message = format!("Other users can read the key file {} (mode {mode:03o}).", shown(path));
    let hint = "Run chmod 600 on it; if others use this machine, enroll a new key.";
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

/// Who may read it is in its access control list, which is not read.
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
        _ => ("could not be read", format!("The system says: {}.", system::reason(error))),
    };
    refused(format!("The {what} file {} {problem}.", shown(path)))
        .with_hint(hint)
        .passing_with(error)
}

pub(super) fn absolute_hint(path: &Path) -> String {
    if is_hidden(path) {
        return "Pass the text of a key as text, not as a path.".to_owned();
    }
    if path.starts_with("~") {
        return "Only a shell expands ~: pass the full path.".to_owned();
    }
    match std::path::absolute(path) {
        Ok(absolute) if absolute != path => format!("Looked for {}.", shown(&absolute)),
        _ => "Check its directory and name.".to_owned(),
    }
}

/// A path with control characters escaped; a path that may be a key is not shown.
pub(super) fn shown(path: &Path) -> String {
    if is_hidden(path) {
        format!("({} bytes that do not look like a path)", path.as_os_str().len())
    } else {
        format!("{:?}", path.to_string_lossy())
    }
}

fn is_hidden(path: &Path) -> bool {
    let text = path.to_string_lossy();
    text.len() > LONGEST_SHOWN_PATH || encoding::is_key_text(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k1_a_file_of_the_largest_size_is_read_and_its_bytes_are_never_moved() {
        let path = std::env::temp_dir().join(format!("siteline-{}", uuid::Uuid::new_v4()));
        for (size, is_read) in [(5, true), (LARGEST_FILE, true), (LARGEST_FILE + 1, false)] {
            fs::File::create(&path).and_then(|file| file.set_len(size)).expect("a file");
            let read = read("private key", &path);
            assert_eq!(read.is_ok(), is_read, "{size} bytes");
            let Ok((bytes, _)) = read else { continue };
            // A larger one would have grown, and left a copy.
            assert_eq!((bytes.len() as u64, bytes.capacity() as u64), (size, size + 1));
        }
        fs::remove_file(path).expect("removed");
    }

    #[test]
    fn k1_a_path_that_cannot_be_read_comes_with_what_to_do() {
        let text = |kind: io::ErrorKind| {
            let error = unreadable("certificate", Path::new("plant.pem"), &kind.into());
            format!("{error} {}", error.context().hint.as_deref().unwrap_or_default())
        };
        assert!(text(io::ErrorKind::IsADirectory).contains("Pass the path of the file in it."));
        assert!(text(io::ErrorKind::PermissionDenied).contains("give this user a copy"));
        assert!(text(io::ErrorKind::Interrupted).contains("The system says"));

        let relative = absolute_hint(Path::new("plant.pem"));
        let root = if cfg!(windows) { "C:\\" } else { "/" };
        let place = relative.strip_prefix("Looked for \"").expect("a path");
        assert!(place.contains(&root[root.len() - 1..]) && place.ends_with("plant.pem\"."));
        let absolute = Path::new(root).join("plant.pem");
        assert_eq!(absolute_hint(&absolute), "Check its directory and name.");
    }

    #[test]
    fn k1_a_path_is_shown_up_to_400_bytes_if_it_is_no_key() {
        let text = |path: &str| shown(Path::new(path));
        assert_eq!(text(&"k".repeat(200)), format!("{:?}", "k".repeat(200)));
        assert_eq!(text(&"k-".repeat(200)).len(), 402);
        assert_eq!(text(&"k-".repeat(201)), "(402 bytes that do not look like a path)");
        assert_eq!(text("two\nlines"), "(9 bytes that do not look like a path)");
    }
}
