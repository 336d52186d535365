//! Modes, read-only stores, and the files that remain after closing a store.

#[cfg(unix)]
use std::os::unix::fs::{MetadataExt as _, PermissionsExt};

use super::super::access::check_unchanged;
use super::*;
use crate::files::{Stamp, beside};

fn shared(share: Share) -> StoreOptions {
    StoreOptions { share: Some(share), ..StoreOptions::default() }
}

fn read_only(folder: &Folder) -> Result<Store> {
    Store::open_with(&folder.file(), READ_ONLY)
}

#[cfg(unix)]
fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().mode() & 0o777
}

#[cfg(unix)]
#[test]
fn s18_a_new_store_is_private_unless_shared() {
    for (options, expected) in [
        (StoreOptions::default(), 0o600),
        (shared(Share::GROUP_READ), 0o640),
        (shared(Share::GROUP), 0o660),
    ] {
        let folder = Folder::new();
        let store = Store::open_with(&folder.file(), options).unwrap();
        assert_eq!(store.options(), options);
        let _lock = store.lock("line").unwrap();
        Request::filled(1).apply_to(&store, b"1").unwrap();
        assert_eq!(folder.names(), ["", "-lock", "-shm", "-wal"]);
        for ending in ["", "-lock", "-shm", "-wal"] {
            assert_eq!(mode(&beside(&folder.file(), ending)), expected, "{ending}");
        }
        let copy = folder.0.join("copy");
        store.backup(&copy, None, &Watch::default()).unwrap();
        assert_eq!(mode(&copy), expected);
    }
}

#[cfg(unix)]
#[test]
fn s18_an_existing_store_keeps_its_mode() {
    let folder = Folder::new();
    drop(folder.store());
    std::fs::set_permissions(folder.file(), PermissionsExt::from_mode(0o644)).unwrap();
    drop(folder.store());
    assert_eq!(mode(&folder.file()), 0o644);
    let store = folder.store();
    let _lock = store.lock("line").unwrap();
    drop(Store::open_with(&folder.file(), shared(Share::GROUP)).unwrap());
    for ending in ["", "-lock", "-shm", "-wal"] {
        assert_eq!(mode(&beside(&folder.file(), ending)), 0o660, "{ending}");
    }
}

#[cfg(unix)]
#[test]
fn s18_files_that_are_shared_already_are_left_alone() {
    let folder = Folder::new();
    let (lock, probe) = (beside(&folder.file(), "-lock"), folder.0.join("probe"));
    let store = Store::open_with(&folder.file(), shared(Share::GROUP)).unwrap();
    drop(store.lock("line").unwrap());
    let changed = |path: &Path| {
        let metadata = path.metadata().unwrap();
        (metadata.ctime(), metadata.ctime_nsec())
    };
    let before = changed(&lock);
    // The clock of the filesystem moves in steps.
    while std::fs::write(&probe, "x").map(|()| changed(&probe)).unwrap() == before {}
    drop(Store::open_with(&folder.file(), shared(Share::GROUP)).unwrap());
    // Only the owner may change it: another member of the group would get an error.
    assert_eq!(changed(&lock), before);
    drop(Store::open_with(&folder.file(), shared(Share::GROUP_READ)).unwrap());
    assert_eq!(mode(&lock), 0o640);
    assert_ne!(changed(&lock), before);
}

/// Returns a group, other than the file's, that this process may give to a file. Root may give any.
#[cfg(unix)]
fn another_group(file: &Path) -> Option<u32> {
    use nix::unistd::{Uid, getgroups};
    let group = file.metadata().unwrap().gid();
    if Uid::effective().is_root() {
        return Some(group + 1);
    }
    getgroups().unwrap().into_iter().map(nix::unistd::Gid::as_raw).find(|other| *other != group)
}

#[cfg(unix)]
#[test]
fn s18_the_files_beside_a_shared_store_get_its_group() {
    let folder = Folder::new();
    let _store = Store::open_with(&folder.file(), shared(Share::GROUP)).unwrap();
    let Some(group) = another_group(&folder.file()) else { return };
    std::os::unix::fs::chown(folder.file(), None, Some(group)).unwrap();
    let group_of = |ending| beside(&folder.file(), ending).metadata().unwrap().gid();
    drop(read_only(&folder).unwrap());
    assert_ne!(group_of("-shm"), group, "a reader changes nothing");
    drop(folder.store());
    assert_eq!(["-wal", "-shm"].map(group_of), [group; 2]);
}

#[cfg(unix)]
#[test]
fn s18_a_link_beside_a_store_is_not_followed() {
    let (folder, store) = new_store();
    let victim = folder.0.join("victim");
    std::fs::write(&victim, "mine").unwrap();
    std::fs::set_permissions(&victim, PermissionsExt::from_mode(0o600)).unwrap();
    std::os::unix::fs::symlink(&victim, beside(&folder.file(), "-lock")).unwrap();
    assert_error(store.lock("line"), Kind::StoreError, "plant.siteline-lock");
    drop(Store::open_with(&folder.file(), shared(Share::GROUP)).unwrap());
    assert_eq!((mode(&victim), std::fs::read(&victim).unwrap()), (0o600, b"mine".to_vec()));
}

/// Windows has no groups of files.
#[cfg(windows)]
#[test]
fn a_store_is_not_shared_with_a_group() {
    let folder = Folder::new();
    for (share, name) in [(Share::GROUP_READ, "group-read"), (Share::GROUP, "group")] {
        let opened = Store::open_with(&folder.file(), shared(share));
        assert_error(opened, Kind::ConfigError, &format!("share={name:?} is not supported"));
    }
    assert_eq!(folder.names(), Vec::<String>::new());
}

#[cfg(windows)]
#[test]
fn a_read_only_attribute_is_named() {
    let folder = Folder::new();
    drop(folder.store());
    let free = folder.file().metadata().unwrap().permissions();
    let mut kept = free.clone();
    kept.set_readonly(true);
    std::fs::set_permissions(folder.file(), kept).unwrap();
    if std::fs::OpenOptions::new().write(true).open(folder.file()).is_ok() {
        return; // Root may, under Wine.
    }
    assert_error(Store::open(&folder.file()), Kind::StoreError, "the attribute \"read-only\"");
    drop(read_only(&folder).unwrap());
    std::fs::set_permissions(folder.file(), free).unwrap();
}

#[cfg(windows)]
#[test]
fn each_feed_has_a_lock_file() {
    let folder = Folder::new();
    let (store, other) = (folder.store(), folder.store());
    let held: Vec<_> = (0..50).map(|feed| store.lock(&format!("feed {feed}")).unwrap()).collect();
    assert_eq!(folder.names().iter().filter(|name| name.starts_with("-lock-")).count(), 50);
    assert_eq!(other.lock("feed 7").unwrap_err().kind(), Kind::StoreBusy);
    drop(other.lock("feed 99").unwrap());
    drop(held);
    drop(other.lock("feed 7").unwrap());
}

#[test]
fn s19_reading_a_closed_store_creates_no_file() {
    let (folder, store) = filled_store(1);
    drop(store);
    let reader = read_only(&folder).unwrap();
    assert_eq!(latest(&reader).len(), 900);
    assert_eq!(reader.feeds().unwrap(), ["line"]);
    assert_eq!(reader.sequence("line").unwrap(), 1);
    reader.check(&Watch::default()).unwrap();
    reader.backup(&folder.0.join("copy"), None, &Watch::default()).unwrap();
    assert_eq!(folder.names(), ["", "copy"]);
    assert_eq!(latest(&Store::open(&folder.0.join("copy")).unwrap()).len(), 900);
}

#[test]
fn s19_a_read_only_store_follows_a_writer() {
    let (folder, store) = filled_store(1);
    let reader = read_only(&folder).unwrap();
    let before = folder.names();
    let mut open = reader.read("line", all(View::LATEST, Flagged::Drop)).unwrap();
    for sequence in 2..20 {
        Request::filled(sequence).apply_to(&store, b"2").unwrap();
        let value = Some(value(sequence).to_bits());
        assert!(latest(&reader).iter().all(|row| row.2 == value));
    }
    // The snapshot that began before all this.
    while let Some(batch) = open.next_batch(100).unwrap() {
        assert!(rows(&batch).iter().all(|row| row.2 == Some(value(1).to_bits())));
    }
    assert_eq!(folder.names(), before);
    drop((open, store));
    assert_eq!((folder.names(), latest(&reader).len()), (vec![String::new()], 900));
}

#[test]
fn s19_a_read_without_a_log_notices_a_writer() {
    let (folder, store) = filled_store(1);
    drop(store);
    let reader = read_only(&folder).unwrap();
    let mut open = reader.read("line", all(View::LATEST, Flagged::Drop)).unwrap();
    let Ok(Some(first)) = open.next_batch(1) else { panic!("a first batch") };
    assert!(first.num_rows() > 0);
    let before = Stamp::read(&folder.file()).unwrap();
    check_unchanged(&folder.file(), &before).unwrap();
    let store = folder.store();
    Request::filled(2).apply_to(&store, b"2").unwrap();
    // The write is noticed while the writer is open and after it was closed.
    for end in [false, true] {
        let mut begun = reader.read("line", all(View::LATEST, Flagged::Drop)).unwrap();
        assert_eq!(rows(&begun.next_batch(900).unwrap().unwrap())[0].2, Some(value(2).to_bits()));
        let failure = check_unchanged(&folder.file(), &before).unwrap_err();
        assert_eq!(failure.into_error(&folder.file()).kind(), Kind::StoreBusy);
        if !end {
            drop(begun);
            store.close();
        }
    }
    assert_eq!(open.next_batch(1).unwrap_err().kind(), Kind::StoreBusy, "points were left");
}

#[test]
fn s19_a_read_only_store_refuses_to_write() {
    let folder = Folder::new();
    assert_error(read_only(&folder), Kind::StoreError, "does not exist");
    assert_eq!(folder.names(), Vec::<String>::new());
    std::fs::write(folder.file(), "").unwrap();
    assert_error(read_only(&folder), Kind::StoreError, "it is empty");
    assert_eq!(folder.names(), [""]);
    std::fs::remove_file(folder.file()).unwrap();
    drop(folder.store());
    let reader = read_only(&folder).unwrap();
    assert_error(reader.lock("line"), Kind::StoreError, "read_only=True");
    assert_error(reader.apply("line", None, b""), Kind::StoreError, "read_only=True");
    std::fs::write(folder.0.join("text"), "no store, and longer than a header".repeat(9)).unwrap();
    let opened = Store::open_with(&folder.0.join("text"), READ_ONLY);
    assert_error(opened, Kind::StoreError, "not a store of siteline");
    assert_eq!(folder.names(), ["", "text"]);
}

#[test]
fn s19_a_log_without_its_shared_memory_is_not_ignored() {
    let ((folder, _store), copy) = (filled_store(1), Folder::new());
    for ending in ["", "-wal"] {
        std::fs::copy(beside(&folder.file(), ending), beside(&copy.file(), ending)).unwrap();
    }
    assert_error(read_only(&copy), Kind::StoreError, "plant.siteline-wal has pages");
    assert_eq!(copy.names(), ["", "-wal"]);
    // A writer completes the file.
    drop(copy.store());
    assert_eq!(latest(&read_only(&copy).unwrap()).len(), 900);
}

#[test]
fn s19_an_empty_log_without_its_shared_memory_lacks_nothing() {
    let (folder, store) = filled_store(1);
    drop(store);
    std::fs::write(beside(&folder.file(), "-wal"), "").unwrap();
    assert_eq!(latest(&read_only(&folder).unwrap()).len(), 900);
    assert_eq!(folder.names(), ["", "-wal"]);
}

#[cfg(unix)]
#[test]
fn s19_the_log_of_a_shared_store_stays() {
    let folder = Folder::new();
    let store = Store::open_with(&folder.file(), shared(Share::GROUP_READ)).unwrap();
    Request::filled(1).apply_to(&store, b"1").unwrap();
    drop(store);
    assert_eq!(folder.names(), ["", "-shm", "-wal"]);
    // The file is complete without the log.
    let alone = Folder::new();
    std::fs::copy(folder.file(), alone.file()).unwrap();
    assert_eq!(latest(&read_only(&alone).unwrap()).len(), 900);
    let reader = read_only(&folder).unwrap();
    assert_eq!(latest(&reader).len(), 900);
    let store = folder.store();
    Request::filled(2).apply_to(&store, b"2").unwrap();
    assert_eq!(latest(&reader)[0].2, Some(value(2).to_bits()));
    assert_eq!(folder.names(), ["", "-shm", "-wal"]);
}

#[cfg(target_os = "linux")]
#[test]
fn s6_one_lock_file_locks_any_number_of_feeds() {
    let folder = Folder::new();
    let (store, other) = (folder.store(), folder.store());
    let held: Vec<_> =
        (0..2_000).map(|feed| store.lock(&format!("feed {feed}")).unwrap()).collect();
    assert_eq!(folder.names(), ["", "-lock", "-shm", "-wal"]);
    let open = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    let is_lock = |entry: &std::fs::DirEntry| {
        entry.path().read_link().is_ok_and(|path| path == beside(store.path(), "-lock"))
    };
    assert_eq!(open.filter(is_lock).count(), 1);
    assert_eq!(other.lock("feed 7").unwrap_err().kind(), Kind::StoreBusy);
    drop(held);
    drop(other.lock("feed 7").unwrap());
    assert!(beside(&folder.file(), "-lock").exists());
}
