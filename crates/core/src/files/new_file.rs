//! A file that is written under a temporary name and renamed when it is complete.

use std::fs::File;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use crate::fork::Process;

use super::{Owner, create, folder_of, put, unused};

/// Maximum number of links that lead to a file.
const MOST_LINKS: usize = 40;

/// A file under construction. Dropping it removes it.
#[derive(Debug)]
pub struct NewFile {
    part: PathBuf,
    path: PathBuf,
    file: File,
    /// The process that removes the file. `None` when it has its name.
    owner: Option<Process>,
}

impl NewFile {
    /// Creates the empty file `part`, by default next to the path under an unused name.
    ///
    /// With `keeps`, it gets the group and the mode of the file that it replaces, for root also the
    /// owner, and replaces the file behind a link. Without `keeps`, it gets `mode`, by default from
    /// the umask. If root creates it, it belongs to the owner of its folder.
    ///
    /// # Errors
    /// Returns `InvalidInput` if it would replace something other than a regular file.
    pub fn begin(
        path: &Path,
        part: Option<PathBuf>,
        mode: Option<u32>,
        keeps: bool,
    ) -> io::Result<Self> {
        let path = if keeps { behind_links(path) } else { path.to_owned() };
        let part = part.unwrap_or_else(|| unused(&path, "new"));
        let file = match path.metadata() {
            Ok(former) if keeps && !former.is_file() => {
                Err(io::Error::new(ErrorKind::InvalidInput, "it is not a regular file"))
            }
            Ok(_) if keeps => {
                let owner = Owner::read(&path)?;
                create(&part, owner.mode, owner)
            }
            _ => create(&part, mode, Owner::read(folder_of(&path))?),
        }?;
        Ok(Self { part, path, file, owner: Some(Process::current()) })
    }

    /// The path to write to.
    pub fn part(&self) -> &Path {
        &self.part
    }

    /// Syncs the file and puts it at its path. Returns `AlreadyExists` if the path exists and
    /// `replaces` is false.
    pub fn finish(mut self, replaces: bool) -> io::Result<()> {
        self.file.sync_all()?;
        put(&self.part, &self.path, replaces)?;
        self.owner = None;
        Ok(())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        // A forked child has a copy of this value while its parent continues to write.
        if self.owner.is_some_and(Process::is_current) {
            let _gone = std::fs::remove_file(&self.part);
        }
    }
}

/// Writes a file that only its owner may open, whole or not at all. Returns `AlreadyExists` if the
/// path exists and `replaces` is false.
pub(crate) fn write_whole(path: &Path, content: &[u8], replaces: bool) -> io::Result<()> {
    let mut new = NewFile::begin(path, None, Some(0o600), false)?;
    new.file.write_all(content)?;
    new.finish(replaces)
}

/// Returns the path that a chain of links leads to. It may not exist.
pub(crate) fn behind_links(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let Ok(next) = path.read_link() else { break };
        path = folder_of(&path).join(next);
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::test_server::TestFolder;

    fn names(folder: &Path) -> usize {
        folder.read_dir().unwrap().count()
    }

    #[test]
    fn a_file_appears_whole_or_not_at_all() {
        let folder = TestFolder::new();
        let path = folder.join("out.csv");
        let mut dropped = NewFile::begin(&path, None, None, true).unwrap();
        dropped.file.write_all(b"part").unwrap();
        assert!(dropped.part().exists() && !path.exists());
        drop(dropped);
        assert_eq!(names(&folder), 0);
        let mut whole = NewFile::begin(&path, Some(folder.join("part")), None, true).unwrap();
        whole.file.write_all(b"whole").unwrap();
        whole.finish(false).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"whole");
        let refused = NewFile::begin(&path, None, None, true).unwrap().finish(false);
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::AlreadyExists);
        let folder_itself = NewFile::begin(&folder, None, None, true);
        assert_eq!(folder_itself.unwrap_err().kind(), ErrorKind::InvalidInput);
        assert_eq!(names(&folder), 1);
    }

    #[cfg(unix)]
    #[test]
    fn the_mode_and_links_are_kept_or_replaced() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};

        let folder = TestFolder::new();
        let (path, link) = (folder.join("config"), folder.join("link"));
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        symlink("config", &link).unwrap();
        NewFile::begin(&link, None, Some(0o600), true).unwrap().finish(true).unwrap();
        assert_eq!(mode(&path), 0o600);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o664)).unwrap();
        NewFile::begin(&link, None, Some(0o600), true).unwrap().finish(true).unwrap();
        assert_eq!((mode(&path), link.is_symlink()), (0o664, true));
        NewFile::begin(&link, None, Some(0o600), false).unwrap().finish(true).unwrap();
        assert_eq!((mode(&path), mode(&link), link.is_symlink()), (0o664, 0o600, false));
    }
}
