//! Detects paths on a network filesystem.

#[cfg(unix)]
pub(super) use self::unix::filesystem;
#[cfg(windows)]
pub(super) use self::windows::filesystem;

#[cfg(unix)]
mod unix {
    use std::path::{Path, PathBuf};

    /// Filesystems with unreliable locks and shared memory. A trailing `*` matches any suffix.
    const NETWORK: &str = "nfs* cifs smb* afs ceph lustre glusterfs beegfs gpfs gfs2 ocfs2 coda \
        orangefs ncpfs fuse.sshfs fuse.gluster* fuse.ceph* fuse.s3fs fuse.gcsfuse fuse.rclone \
        fuse.davfs*";

    /// The type of the network filesystem, or `None` for other filesystems.
    pub(in crate::store) fn filesystem(path: &Path) -> Option<String> {
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
        mounted(&mounts, path)
    }

    /// `mounts` is the text of `/proc/self/mountinfo`.
    fn mounted(mounts: &str, path: &Path) -> Option<String> {
        // "36 35 98:0 /root /mount/point rw,noatime master:1 - ext3 /dev/root rw"
        let covering = mounts.lines().filter_map(|line| {
            let (mount, kind) = line.split_once(" - ")?;
            let point = unescape(mount.split(' ').nth(4)?);
            path.starts_with(&point).then_some((point, kind.split(' ').next()?))
        });
        // Of equal lengths the last one, because a later mount on the same point hides the earlier.
        let (_, kind) = covering.max_by_key(|(point, _)| point.components().count())?;
        let matches = |known: &str| match known.strip_suffix('*') {
            Some(beginning) => kind.starts_with(beginning),
            None => kind == known,
        };
        NETWORK.split(' ').any(matches).then(|| kind.to_owned())
    }

    /// Decodes the characters that the kernel escapes.
    fn unescape(text: &str) -> PathBuf {
        let escapes =
            [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\043", "#"), ("\\134", "\\")];
        let decode = |text: String, (code, character)| text.replace(code, character);
        escapes.into_iter().fold(text.to_owned(), decode).into()
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn s5_network_filesystems_are_recognised_in_the_table_of_mounts() {
            let mounts = "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n\
                40 22 0:40 / /mnt/share rw master:2 - nfs4 server:/export rw,vers=4.2\n\
                41 40 8:2 / /mnt/share/local rw - xfs /dev/sdb rw\n\
                42 22 0:41 / /mnt/with\\040blank rw - cifs //server/x rw\n\
                43 22 0:42 / /home/me/far rw - fuse.sshfs me@far: rw\n\
                44 22 0:43 / /mnt/over rw - nfs server:/x rw\n\
                45 44 0:44 / /mnt/over rw - tmpfs tmpfs rw\n\
                46 22 0:45 / /glue rw - fuse.glusterfs glue rw\n\
                no line of mounts";
            let kind = |path: &str| mounted(mounts, Path::new(path));
            assert_eq!(kind("/data/plant.siteline"), None);
            assert_eq!(kind("/mnt/share/a/plant.siteline").as_deref(), Some("nfs4"));
            assert_eq!(kind("/mnt/share-not/plant.siteline"), None);
            assert_eq!(kind("/mnt/share/local/plant.siteline"), None);
            assert_eq!(kind("/mnt/with blank/plant.siteline").as_deref(), Some("cifs"));
            assert_eq!(kind("/home/me/far/plant.siteline").as_deref(), Some("fuse.sshfs"));
            assert_eq!(kind("/mnt/over/plant.siteline"), None);
            assert_eq!(kind("/glue/plant.siteline").as_deref(), Some("fuse.glusterfs"));
            assert_eq!(mounted("", Path::new("/a")), None);
        }
    }
}

#[cfg(windows)]
mod windows {
    use std::path::{Component, Path, Prefix};

    /// The path is resolved, so a mapped drive appears as its share.
    pub(in crate::store) fn filesystem(path: &Path) -> Option<String> {
        let Some(Component::Prefix(prefix)) = path.components().next() else { return None };
        match prefix.kind() {
            Prefix::UNC(server, share) | Prefix::VerbatimUNC(server, share) => {
                Some(format!("\\\\{}\\{}", server.display(), share.display()))
            }
            _ => None,
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_share_is_known_by_its_name() {
            for (path, share) in [
                (r"\\plant\data\line.siteline", Some(r"\\plant\data")),
                (r"\\?\UNC\plant\data\line.siteline", Some(r"\\plant\data")),
                (r"C:\data\line.siteline", None),
                (r"\\?\C:\data\line.siteline", None),
                (r"data\line.siteline", None),
            ] {
                assert_eq!(filesystem(Path::new(path)).as_deref(), share, "{path}");
            }
        }
    }
}
