//! Who may use a store: modes, read-only stores, and what an opening leaves behind.

#[cfg(unix)]
use std::os::unix::fs::{MetadataExt as _, PermissionsExt};

use super::super::access::check_unchanged;
use super::*;
use crate::files::{Stamp, beside};

const READ_ONLY: StoreOptions = StoreOptions { read_only: true, share: None };

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

/// The names in the folder, without that of the store in front.
fn names(folder: &Folder) -> Vec<String> {
    let name = |entry: std::fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    let entries = std::fs::read_dir(&folder.0).unwrap().flatten().map(name);
    let mut names: Vec<String> =
        entries.map(|name| name.trim_start_matches("plant.siteline").to_owned()).collect();
    names.sort();
    names
}

fn whole(sequence: u64) -> Request {
    let points: Vec<Point> = (0..900).map(|minute| (1, minute, Some(value(sequence)))).collect();
    Request::whole(sequence, 0, 900, &points)
}

#[cfg(unix)]
#[test]
fn s18_a_store_and_its_files_are_the_owners_alone_unless_shared() {
    for (options, expected) in [
        (StoreOptions::default(), 0o600),
        (shared(Share::GroupRead), 0o640),
        (shared(Share::Group), 0o660),
    ] {
        let folder = Folder::new();
        let store = Store::open_with(&folder.file(), options).unwrap();
        assert_eq!(store.options(), options);
        let _lock = store.lock("line").unwrap();
        whole(1).apply_to(&store, b"1").unwrap();
        assert_eq!(names(&folder), ["", "-lock", "-shm", "-wal"]);
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
fn s18_an_existing_store_keeps_its_mode_until_it_is_shared() {
    let folder = Folder::new();
    drop(folder.store());
    std::fs::set_permissions(folder.file(), PermissionsExt::from_mode(0o644)).unwrap();
    drop(folder.store());
    assert_eq!(mode(&folder.file()), 0o644);
    let store = folder.store();
    let _lock = store.lock("line").unwrap();
    drop(Store::open_with(&folder.file(), shared(Share::Group)).unwrap());
    for ending in ["", "-lock", "-shm", "-wal"] {
        assert_eq!(mode(&beside(&folder.file(), ending)), 0o660, "{ending}");
    }
}

#[cfg(unix)]
#[test]
fn s18_files_that_are_shared_already_are_left_alone() {
    let folder = Folder::new();
    let (lock, probe) = (beside(&folder.file(), "-lock"), folder.0.join("probe"));
    let store = Store::open_with(&folder.file(), shared(Share::Group)).unwrap();
    drop(store.lock("line").unwrap());
    let changed = |path: &Path| {
        let metadata = path.metadata().unwrap();
        (metadata.ctime(), metadata.ctime_nsec())
    };
    let before = changed(&lock);
    // Until the clock of the filesystem, which goes in steps, has moved on.
    while std::fs::write(&probe, "x").map(|()| changed(&probe)).unwrap() == before {}
    drop(Store::open_with(&folder.file(), shared(Share::Group)).unwrap());
    // Only its owner may change it: another member of the group would be refused.
    assert_eq!(changed(&lock), before);
    drop(Store::open_with(&folder.file(), shared(Share::GroupRead)).unwrap());
    assert_eq!(mode(&lock), 0o640);
    assert_ne!(changed(&lock), before);
}

/// A group that this process may give to a file, other than that of the file; root may give any.
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
    let _store = Store::open_with(&folder.file(), shared(Share::Group)).unwrap();
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
    let folder = Folder::new();
    let store = folder.store();
    let victim = folder.0.join("victim");
    std::fs::write(&victim, "mine").unwrap();
    std::fs::set_permissions(&victim, PermissionsExt::from_mode(0o600)).unwrap();
    std::os::unix::fs::symlink(&victim, beside(&folder.file(), "-lock")).unwrap();
    let error = store.lock("line").unwrap_err();
    assert_eq!(error.kind(), Kind::StoreError);
    assert!(error.to_string().contains("plant.siteline-lock"), "{error}");
    drop(Store::open_with(&folder.file(), shared(Share::Group)).unwrap());
    assert_eq!((mode(&victim), std::fs::read(&victim).unwrap()), (0o600, b"mine".to_vec()));
}

/// Windows has no groups of files.
#[cfg(windows)]
#[test]
fn a_store_is_not_shared_with_a_group() {
    let folder = Folder::new();
    for (share, name) in [(Share::GroupRead, "group-read"), (Share::Group, "group")] {
        let error = Store::open_with(&folder.file(), shared(share)).unwrap_err();
        assert_eq!(error.kind(), Kind::ConfigError);
        assert!(
            error.to_string().contains(name) && error.to_string().contains("icacls"),
            "{error}"
        );
    }
    assert_eq!(names(&folder), Vec::<String>::new());
}

#[cfg(windows)]
#[test]
fn a_store_with_the_attribute_read_only_is_an_error_that_says_so() {
    let folder = Folder::new();
    drop(folder.store());
    let free = folder.file().metadata().unwrap().permissions();
    let mut kept = free.clone();
    kept.set_readonly(true);
    std::fs::set_permissions(folder.file(), kept).unwrap();
    if std::fs::OpenOptions::new().write(true).open(folder.file()).is_ok() {
        return; // Root may, under Wine.
    }
    let error = Store::open(&folder.file()).unwrap_err();
    assert_eq!(error.kind(), Kind::StoreError);
    assert!(error.to_string().contains("the attribute \"read-only\""), "{error}");
    drop(read_only(&folder).unwrap());
    std::fs::set_permissions(folder.file(), free).unwrap();
}

#[cfg(windows)]
#[test]
fn each_feed_has_a_lock_file() {
    let folder = Folder::new();
    let (store, other) = (folder.store(), folder.store());
    let held: Vec<_> = (0..50).map(|feed| store.lock(&format!("feed {feed}")).unwrap()).collect();
    assert_eq!(names(&folder).iter().filter(|name| name.starts_with("-lock-")).count(), 50);
    assert_eq!(other.lock("feed 7").unwrap_err().kind(), Kind::StoreBusy);
    drop(other.lock("feed 99").unwrap());
    drop(held);
    drop(other.lock("feed 7").unwrap());
}

#[test]
fn s19_a_closed_store_is_read_without_making_a_file() {
    let folder = Folder::new();
    let store = folder.store();
    whole(1).apply_to(&store, b"1").unwrap();
    drop(store);
    let reader = read_only(&folder).unwrap();
    assert_eq!(latest(&reader).len(), 900);
    assert_eq!(
        (reader.feeds().unwrap(), reader.sequence("line").unwrap()),
        (vec!["line".into()], 1)
    );
    reader.check(&Watch::default()).unwrap();
    reader.backup(&folder.0.join("copy"), None, &Watch::default()).unwrap();
    assert_eq!(names(&folder), ["", "copy"]);
    assert_eq!(latest(&Store::open(&folder.0.join("copy")).unwrap()).len(), 900);
}

#[test]
fn s19_a_read_only_store_follows_a_writer_and_makes_no_file() {
    let folder = Folder::new();
    let store = folder.store();
    whole(1).apply_to(&store, b"1").unwrap();
    let reader = read_only(&folder).unwrap();
    let before = names(&folder);
    let mut open = reader.read("line", all(View::Latest, Flagged::Drop)).unwrap();
    for sequence in 2..20 {
        whole(sequence).apply_to(&store, b"2").unwrap();
        let value = Some(value(sequence).to_bits());
        assert!(latest(&reader).iter().all(|row| row.2 == value));
    }
    // The snapshot that was begun before all this.
    while let Some(batch) = open.next_batch(100).unwrap() {
        assert!(rows(&batch).iter().all(|row| row.2 == Some(value(1).to_bits())));
    }
    assert_eq!(names(&folder), before);
    drop((open, store));
    assert_eq!((names(&folder), latest(&reader).len()), (vec![String::new()], 900));
}

#[test]
fn s19_a_writer_that_comes_during_a_read_of_the_file_alone_is_noticed() {
    let folder = Folder::new();
    let store = folder.store();
    whole(1).apply_to(&store, b"1").unwrap();
    drop(store);
    let reader = read_only(&folder).unwrap();
    let mut open = reader.read("line", all(View::Latest, Flagged::Drop)).unwrap();
    let Ok(Some(first)) = open.next_batch(1) else { panic!("a first batch") };
    assert!(first.num_rows() > 0);
    let before = Stamp::read(&folder.file()).unwrap();
    check_unchanged(&folder.file(), &before).unwrap();
    let store = folder.store();
    whole(2).apply_to(&store, b"2").unwrap();
    // While the writer is there, and after it has gone: the file was written to.
    for end in [false, true] {
        let mut begun = reader.read("line", all(View::Latest, Flagged::Drop)).unwrap();
        assert_eq!(rows(&begun.next_batch(900).unwrap().unwrap())[0].2, Some(value(2).to_bits()));
        let failure = check_unchanged(&folder.file(), &before).unwrap_err();
        assert_eq!(failure.into_error(&folder.file()).kind(), Kind::StoreBusy);
        if !end {
            drop(begun);
            store.close();
        }
    }
    assert_eq!(open.next_batch(1).unwrap_err().kind(), Kind::StoreBusy, "it had more to read");
}

#[test]
fn s19_a_read_only_store_refuses_to_write_and_makes_none() {
    let folder = Folder::new();
    let error = read_only(&folder).unwrap_err();
    assert!(
        error.kind() == Kind::StoreError && error.to_string().contains("does not exist"),
        "{error}"
    );
    assert_eq!(names(&folder), Vec::<String>::new());
    std::fs::write(folder.file(), "").unwrap();
    assert!(read_only(&folder).unwrap_err().to_string().contains("it is empty"));
    assert_eq!(names(&folder), [""]);
    std::fs::remove_file(folder.file()).unwrap();
    drop(folder.store());
    let reader = read_only(&folder).unwrap();
    for error in [reader.lock("line").unwrap_err(), reader.apply("line", None, b"").unwrap_err()] {
        assert_eq!(error.kind(), Kind::StoreError);
        assert!(error.to_string().contains("read_only=True"), "{error}");
    }
    std::fs::write(folder.0.join("text"), "no store, and longer than a header".repeat(9)).unwrap();
    let error = Store::open_with(&folder.0.join("text"), READ_ONLY).unwrap_err();
    assert!(error.to_string().contains("not a store of siteline"), "{error}");
    assert_eq!(names(&folder), ["", "text"]);
}

#[test]
fn s19_a_log_without_its_shared_memory_is_not_ignored() {
    let (folder, copy) = (Folder::new(), Folder::new());
    let store = folder.store();
    whole(1).apply_to(&store, b"1").unwrap();
    for ending in ["", "-wal"] {
        std::fs::copy(beside(&folder.file(), ending), beside(&copy.file(), ending)).unwrap();
    }
    let error = read_only(&copy).unwrap_err();
    assert_eq!(error.kind(), Kind::StoreError);
    assert!(error.to_string().contains("plant.siteline-wal has pages"), "{error}");
    assert_eq!(names(&copy), ["", "-wal"]);
    // A writer completes the file.
    drop(copy.store());
    assert_eq!(latest(&read_only(&copy).unwrap()).len(), 900);
}

#[test]
fn s19_an_empty_log_without_its_shared_memory_lacks_nothing() {
    let folder = Folder::new();
    let store = folder.store();
    whole(1).apply_to(&store, b"1").unwrap();
    drop(store);
    std::fs::write(beside(&folder.file(), "-wal"), "").unwrap();
    assert_eq!(latest(&read_only(&folder).unwrap()).len(), 900);
    assert_eq!(names(&folder), ["", "-wal"]);
}

#[cfg(unix)]
#[test]
fn s19_the_log_of_a_shared_store_stays_for_those_who_may_only_read() {
    let folder = Folder::new();
    let store = Store::open_with(&folder.file(), shared(Share::GroupRead)).unwrap();
    whole(1).apply_to(&store, b"1").unwrap();
    drop(store);
    assert_eq!(names(&folder), ["", "-shm", "-wal"]);
    // The file is complete without the log.
    let alone = Folder::new();
    std::fs::copy(folder.file(), alone.file()).unwrap();
    assert_eq!(latest(&read_only(&alone).unwrap()).len(), 900);
    let reader = read_only(&folder).unwrap();
    assert_eq!(latest(&reader).len(), 900);
    let store = folder.store();
    whole(2).apply_to(&store, b"2").unwrap();
    assert_eq!(latest(&reader)[0].2, Some(value(2).to_bits()));
    assert_eq!(names(&folder), ["", "-shm", "-wal"]);
}

#[test]
fn s5_names_that_sqlite_would_not_take_for_a_file_are_refused() {
    let folder = Folder::new();
    for name in [":memory:", "file:plant?mode=memory"] {
        let error = Store::open(&folder.0.join(name)).unwrap_err();
        assert!(error.kind() == Kind::StoreError && error.to_string().contains(name), "{error}");
    }
    assert_eq!(names(&folder), Vec::<String>::new());
}

#[cfg(target_os = "linux")]
#[test]
fn s6_one_lock_file_locks_any_number_of_feeds() {
    let folder = Folder::new();
    let (store, other) = (folder.store(), folder.store());
    let held: Vec<_> =
        (0..2_000).map(|feed| store.lock(&format!("feed {feed}")).unwrap()).collect();
    assert_eq!(names(&folder), ["", "-lock", "-shm", "-wal"]);
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
