//! A lock file beside a store.

use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;

use aws_lc_rs::digest;

use crate::error::Result;
use crate::files::{self, Owner};
use crate::store::access::denied;

/// Makes a lock file with the owner and the mode of the store, or opens it. It is never removed: if
/// it were, two processes could each lock a file of that name.
pub(super) fn open_or_create(path: &Path, store: &Path) -> Result<File> {
    let file = Owner::of(store).and_then(|owner| {
        files::create(path, owner.mode, owner).or_else(|error| match error.kind() {
            ErrorKind::AlreadyExists => files::open(path),
            _ => Err(error),
        })
    });
    file.map_err(|error| denied(store, "this process may not write to its lock file", path, error))
}

/// The number of a feed: two names have the same one with a probability of 2^-62.
pub(super) fn number_of(feed: &str) -> i64 {
    let name = digest::digest(&digest::SHA256, feed.as_bytes());
    let (head, _) = name.as_ref().split_first_chunk().unwrap_or((&[0; 8], &[]));
    i64::from_be_bytes(*head) & (i64::MAX >> 1)
}
