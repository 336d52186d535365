//! The locks of feeds. A feed has one writer at a time.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;

use aws_lc_rs::digest;

#[cfg(unix)]
pub(super) use self::unix::FeedLock;
#[cfg(windows)]
pub(super) use self::windows::FeedLock;
use super::access::denied;
use crate::error::Result;
use crate::files::{self, Owner};

/// The file is never removed. Otherwise two processes could lock different files of the same name.
fn open_or_create(path: &Path, store: &Path) -> Result<File> {
    let file = Owner::read(store).and_then(|owner| {
        files::create(path, owner.mode, owner).or_else(|error| match error.kind() {
            ErrorKind::AlreadyExists => files::open(path),
            _ => Err(error),
        })
    });
    file.map_err(|error| denied(store, "this process may not write to its lock file", path, error))
}

/// Two feeds collide with a probability of 2^-62.
fn number_of(feed: &str) -> i64 {
    let name = digest::digest(&digest::SHA256, feed.as_bytes());
    let (head, _) = name.as_ref().split_first_chunk().unwrap_or((&[0; 8], &[]));
    i64::from_be_bytes(*head) & (i64::MAX >> 1)
}
