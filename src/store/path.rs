//! Path checks: a store is a file on a local disk.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use super::failure::system;
use crate::error::{Error, Kind, Result};

/// Filesystems on which the locks and the shared memory of a store are unreliable; `*` at the end
/// of a kind matches any ending.
const NETWORK: [&str; 21] = [
    "nfs*",
    "cifs",
    "smb*",
    "afs",
    "ceph",
    "lustre",
    "glusterfs",
    "beegfs",
    "gpfs",
    "gfs2",
    "ocfs2",
    "coda",
    "orangefs",
    "ncpfs",
    "fuse.sshfs",
    "fuse.gluster*",
    "fuse.ceph*",
    "fuse.s3fs",
    "fuse.gcsfuse",
    "fuse.rclone",
    "fuse.davfs*",
];

/// The absolute path of a store, with links resolved; an error where a store cannot be there.
pub(super) fn resolve(path: &Path) -> Result<PathBuf> {
    let refused = |what: &str, hint: &str| {
        let message = format!("store {}: {what}", path.display());
        Err(Error::new(Kind::StoreError, message).with_hint(hint))
    };
    let Some(name) = path.file_name() else {
        return refused("this is not the name of a file", "Name a file, as plant.siteline.");
    };
    if name == ":memory:" || name.as_bytes().starts_with(b"file:") {
        let hint = "A store is a file: for a test, name one in a temporary folder.";
        return refused("SQLite gives this name a meaning of its own", hint);
    }
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    let folder = match folder.unwrap_or(Path::new(".")).canonicalize() {
        Ok(folder) if folder.is_dir() => folder,
        Ok(_) => return refused("its folder is a file", "Name a file in a folder."),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return refused("its folder does not exist", "Make the folder first.");
        }
        Err(error) => return Err(system(path, "its folder cannot be read", &error)),
    };
    let resolved = folder.join(name);
    // The write-ahead log and the locks are beside the file that a link points to.
    let resolved = resolved.canonicalize().unwrap_or(resolved);
    if resolved.is_dir() {
        return refused("this is a folder", "Name a file, as plant.siteline.");
    }
    if resolved.exists() && !resolved.is_file() {
        return refused("this is a device or a pipe", "Name a file, as plant.siteline.");
    }
    if let Ok(mounts) = std::fs::read_to_string("/proc/self/mountinfo")
        && let Some(kind) = network_filesystem(&mounts, &resolved)
    {
        let what = format!("it is on a network filesystem ({kind})");
        return refused(&what, "Locks are unreliable there: keep the store on a local disk.");
    }
    Ok(resolved)
}

/// The kind of the network filesystem that a path is on, from the text of `/proc/self/mountinfo`;
/// `None` for other filesystems.
pub(super) fn network_filesystem(mounts: &str, path: &Path) -> Option<String> {
    let mut nearest: Option<(PathBuf, &str)> = None;
    for line in mounts.lines() {
        // "36 35 98:0 /root /mount/point rw,noatime master:1 - ext3 /dev/root rw"
        let Some((mount, kind)) = line.split_once(" - ") else { continue };
        let (Some(point), Some(kind)) = (mount.split(' ').nth(4), kind.split(' ').next()) else {
            continue;
        };
        let point = unescape(point);
        let covers = path.starts_with(&point);
        // A later mount on the same point hides the earlier one.
        let length = |point: &Path| point.components().count();
        if covers && nearest.as_ref().is_none_or(|(near, _)| length(&point) >= length(near)) {
            nearest = Some((point, kind));
        }
    }
    let (_, kind) = nearest?;
    let matches = |known: &str| match known.strip_suffix('*') {
        Some(beginning) => kind.starts_with(beginning),
        None => kind == known,
    };
    NETWORK.iter().any(|known| matches(known)).then(|| kind.to_owned())
}

/// A mount point with octal escapes such as `\040` decoded.
fn unescape(text: &str) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        let octal = (*byte == b'\\').then(|| after.get(..3)).flatten();
        let code = octal.and_then(|digits| std::str::from_utf8(digits).ok());
        if let Some(code) = code.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            bytes.push(code);
            rest = &after[3..];
        } else {
            bytes.push(*byte);
            rest = after;
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}
