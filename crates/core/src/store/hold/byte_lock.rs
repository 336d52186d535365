//! Locks on bytes of a file. They belong to the open file, so they remain if another `SQLite` in
//! this process closes the same file. They conflict with the locks of every `SQLite`, also in this
//! process.

use std::fs::File;
use std::io;
use std::ops::Range;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ByteLock {
    Free,
    Shared,
    Alone,
}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod system {
    use nix::errno::Errno;
    use nix::fcntl::{FcntlArg, fcntl};
    use nix::libc;

    use super::{ByteLock, File, Range, io};

    fn flock(lock: ByteLock, bytes: &Range<i64>) -> libc::flock {
        let kind = match lock {
            ByteLock::Free => libc::F_UNLCK,
            ByteLock::Shared => libc::F_RDLCK,
            ByteLock::Alone => libc::F_WRLCK,
        };
        libc::flock {
            l_type: libc::c_short::try_from(kind).unwrap_or_default(),
            l_whence: libc::c_short::try_from(libc::SEEK_SET).unwrap_or_default(),
            l_start: bytes.start,
            l_len: bytes.end - bytes.start,
            l_pid: 0,
        }
    }

    /// Does not wait. Returns false if another open file has a conflicting lock.
    pub(in super::super) fn set(
        file: &File,
        lock: ByteLock,
        bytes: &Range<i64>,
    ) -> io::Result<bool> {
        match fcntl(file, FcntlArg::F_OFD_SETLK(&flock(lock, bytes))) {
            Ok(_) => Ok(true),
            Err(Errno::EAGAIN | Errno::EACCES) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether another open file, or a `SQLite` of any process, has a lock.
    pub(in super::super) fn is_used(file: &File, bytes: &Range<i64>) -> io::Result<bool> {
        let mut found = flock(ByteLock::Alone, bytes);
        fcntl(file, FcntlArg::F_OFD_GETLK(&mut found))?;
        Ok(i32::from(found.l_type) != i32::from(flock(ByteLock::Free, bytes).l_type))
    }
}

/// On other systems, only the locks of `SQLite` apply.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod system {
    use super::{ByteLock, File, Range, io};

    pub(in super::super) fn set(_: &File, _: ByteLock, _: &Range<i64>) -> io::Result<bool> {
        Ok(true)
    }

    pub(in super::super) fn is_used(_: &File, _: &Range<i64>) -> io::Result<bool> {
        Ok(false)
    }
}

pub(super) use self::system::{is_used, set};
