//! Reads a whole file up to a size limit, because a device or a pipe may never end.

use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::path::Path;

use zeroize::Zeroizing;

/// Reads a file or a pipe of at most `most` bytes.
///
/// # Errors
/// Returns `FileTooLarge` if it is longer, and `IsADirectory` for a folder.
pub(crate) fn read_whole(path: &Path, most: u64) -> io::Result<Zeroizing<Vec<u8>>> {
    read_with_metadata(path, most).map(|(bytes, _)| bytes)
}

/// Like [`read_whole`], with the file's metadata.
pub(crate) fn read_with_metadata(
    path: &Path,
    most: u64,
) -> io::Result<(Zeroizing<Vec<u8>>, Metadata)> {
    // Windows cannot open a folder as a file and reports "permission denied".
    let file = File::open(path).map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied if cfg!(windows) && path.is_dir() => {
            io::ErrorKind::IsADirectory.into()
        }
        _ => error,
    })?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    // A vector that grows would leave a copy of a key in memory. The length of a pipe is unknown.
    let length = if metadata.is_file() { metadata.len().min(most) } else { most };
    let mut bytes = Zeroizing::new(Vec::with_capacity(usize::try_from(length).unwrap_or(0) + 1));
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok((bytes, metadata))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::test_server::TestFolder;

    #[test]
    fn a_file_is_read_up_to_a_limit() {
        let folder = TestFolder::new();
        let path = folder.join("file");
        std::fs::write(&path, "12345").unwrap();
        assert_eq!(**read_whole(&path, 5).unwrap(), *b"12345");
        let kind = |path: &Path| read_whole(path, 4).unwrap_err().kind();
        assert_eq!(kind(&path), io::ErrorKind::FileTooLarge);
        assert_eq!(kind(&folder), io::ErrorKind::IsADirectory);
        #[cfg(unix)]
        assert_eq!(kind(Path::new("/dev/zero")), io::ErrorKind::FileTooLarge);
    }
}
