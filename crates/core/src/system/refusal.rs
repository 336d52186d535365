//! Describes an I/O error, its reason and a remedy, for all other modules.

use std::fs::File;
use std::io::{self, ErrorKind};

use super::limits;
use super::threads::{NoThread, is_no_thread};

/// A resource that is missing only temporarily, so the same call may succeed later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lack {
    /// The process has reached its limit of open files.
    Files,
    /// All processes together have reached the system's limit of open files.
    #[cfg_attr(windows, expect(dead_code, reason = "Windows has no such limit"))]
    FilesOfSystem,
    /// No thread or process can be started.
    Threads,
    Memory,
    Space,
    /// The disk or the network connection to it fails.
    Disk,
}

/// Returns the reason for an error in a few words, without a full stop. This is the kind of the
/// error, or the system's own text if the kind has no name. If siteline made the error, or a limit
/// is the reason, it is siteline's text.
pub fn reason(error: &io::Error) -> String {
    match lack(error) {
        Some(Lack::Files) => match limits::open_files() {
            Some(most) => {
                format!("too many open files: this process may open {most} (RLIMIT_NOFILE)")
            }
            None => "too many open files in this process".to_owned(),
        },
        Some(Lack::FilesOfSystem) => "too many open files in the whole system".to_owned(),
        Some(Lack::Threads) => NoThread.to_string(),
        _ => error.get_ref().map_or_else(|| words(error), ToString::to_string),
    }
}

/// Returns the kind of a system error, or the system's own text if the kind has no name.
fn words(error: &io::Error) -> String {
    if error.kind() == ErrorKind::NotFound {
        return "no such file or folder".to_owned();
    }
    let kind = error.kind().to_string();
    if kind != "uncategorized error" && kind != ErrorKind::Other.to_string() {
        return kind;
    }
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(letters).collect()
}

/// Returns a remedy if a resource is temporarily missing.
pub fn advice(error: &io::Error) -> Option<&'static str> {
    Some(match lack(error)? {
        Lack::Files => {
            "Close clients, stores and files that are no longer used, or allow the process more open \
             files (`ulimit -n`), then try again."
        }
        Lack::FilesOfSystem => "Close programs that have many open files, then try again.",
        Lack::Threads => {
            "End processes that are no longer used, or allow more (`ulimit -u`, or the pids limit of \
             the container), then try again."
        }
        Lack::Memory => "End programs that use much memory, then try again.",
        Lack::Space => "Free some space, then try again.",
        Lack::Disk => "Check the disk (the system's log names the fault), then try again.",
    })
}

/// Whether the same call, unchanged, may succeed later.
pub(crate) fn is_passing(error: &io::Error) -> bool {
    lack(error).is_some()
}

fn lack(error: &io::Error) -> Option<Lack> {
    if is_no_thread(error) {
        return Some(Lack::Threads);
    }
    match error.kind() {
        ErrorKind::OutOfMemory => return Some(Lack::Memory),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => return Some(Lack::Space),
        ErrorKind::StaleNetworkFileHandle => return Some(Lack::Disk),
        _ => {}
    }
    of_number(error.raw_os_error()?)
}

#[cfg(unix)]
fn of_number(number: i32) -> Option<Lack> {
    use nix::errno::Errno;
    match Errno::from_raw(number) {
        Errno::EMFILE => Some(Lack::Files),
        Errno::ENFILE => Some(Lack::FilesOfSystem),
        Errno::EIO | Errno::ENXIO => Some(Lack::Disk),
        _ => None,
    }
}

/// The numbers are `ERROR_TOO_MANY_OPEN_FILES`, `WSAEMFILE`, `ERROR_CRC` and `ERROR_IO_DEVICE`.
#[cfg(windows)]
fn of_number(number: i32) -> Option<Lack> {
    match number {
        4 | 10_024 => Some(Lack::Files),
        23 | 1_117 => Some(Lack::Disk),
        _ => None,
    }
}

/// Whether an error means that too many files are open.
pub(crate) fn lacks_files(error: &io::Error) -> bool {
    matches!(lack(error), Some(Lack::Files | Lack::FilesOfSystem))
}

/// Returns the system's error if this process cannot open as many more files as a store needs.
/// Libraries that open files (`SQLite`, the resolver) report another reason.
pub(crate) fn exhausted_files() -> Option<io::Error> {
    const NEEDED: usize = 4;
    let anywhere = std::env::temp_dir();
    let place = if cfg!(unix) { std::path::Path::new("/") } else { anywhere.as_path() };
    let opened: io::Result<Vec<File>> = (0..NEEDED).map(|_| File::open(place)).collect();
    opened.err().filter(lacks_files)
}

#[cfg(all(test, unix))]
mod tests {
    use nix::errno::Errno;

    use super::*;

    fn of(errno: Errno) -> io::Error {
        io::Error::from_raw_os_error(errno as i32)
    }

    #[test]
    fn every_error_of_the_system_has_words() {
        for number in 1..=Errno::EHWPOISON as i32 {
            let error = io::Error::from_raw_os_error(number);
            let why = reason(&error);
            assert!(!why.contains("uncategorized") && !why.contains("os error"), "{number}: {why}");
            assert!(!why.is_empty() && !why.ends_with('.'), "{number}: {why}");
        }
    }

    #[test]
    fn a_limit_of_open_files_is_named() {
        let why = reason(&of(Errno::EMFILE));
        assert!(why.starts_with("too many open files"), "{why}");
        if let Some(most) = limits::open_files() {
            assert!(why.contains(&format!("may open {most} (RLIMIT_NOFILE)")), "{why}");
        }
        assert!(advice(&of(Errno::EMFILE)).is_some_and(|advice| advice.contains("ulimit -n")));
        assert_eq!(reason(&of(Errno::ENFILE)), "too many open files in the whole system");
    }

    #[test]
    fn only_what_may_pass_is_passing() {
        use Errno::{
            EACCES, EDQUOT, EIO, EISDIR, EMFILE, ENFILE, ENOENT, ENOMEM, ENOSPC, EROFS, ESTALE,
        };
        for errno in [EMFILE, ENFILE, ENOMEM, ENOSPC, EDQUOT, EIO, ESTALE] {
            assert!(is_passing(&of(errno)) && advice(&of(errno)).is_some(), "{errno}");
        }
        for errno in [EACCES, ENOENT, EISDIR, EROFS] {
            assert!(!is_passing(&of(errno)) && advice(&of(errno)).is_none(), "{errno}");
        }
    }

    #[test]
    fn our_own_errors_keep_their_words() {
        let own = io::Error::other("it is not a regular file");
        assert_eq!(reason(&own), "it is not a regular file");
        assert_eq!(reason(&of(Errno::ENOENT)), "no such file or folder");
        assert_eq!(reason(&of(Errno::ELOOP)).to_lowercase(), reason(&of(Errno::ELOOP)));
    }
}
