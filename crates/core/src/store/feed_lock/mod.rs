//! The locks of feeds: one writer of a feed at a time.

mod lock_file;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(super) use self::unix::FeedLock;
#[cfg(windows)]
pub(super) use self::windows::FeedLock;
