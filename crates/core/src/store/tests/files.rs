//! Creating, rejecting and copying files.

use super::*;

fn refused(path: &Path) -> Error {
    let error = Store::open(path).unwrap_err();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    assert!(error.to_string().contains(&*name), "{error}");
    error
}

#[test]
fn a_store_is_created_once_and_opened_again() {
    let folder = Folder::new();
    assert_eq!(folder.store().feeds().unwrap(), Vec::<String>::new());
    let store = folder.store();
    assert_eq!((store.state("line").unwrap(), store.sequence("line").unwrap()), (None, 0));
    store.apply("line", None, b"first").unwrap();
    store.apply("a", None, b"").unwrap();
    drop(store);
    let store = folder.store();
    assert_eq!(store.feeds().unwrap(), ["a", "line"]);
    assert_eq!(store.state("line").unwrap().as_deref(), Some(&b"first"[..]));
    assert_eq!(store.path().canonicalize().unwrap(), folder.file().canonicalize().unwrap());
    assert!(store.path().is_absolute() && !store.path().to_string_lossy().starts_with(r"\\?"));
    let none = store.read("line", all(View::LATEST, Flagged::Keep)).unwrap().next_batch(9);
    assert!(none.unwrap().is_none());
    assert_error(
        store.read("other", all(View::LATEST, Flagged::Keep)),
        Kind::StoreError,
        "\"other\"",
    );
    // The log and its index are removed with the last connection.
    drop(store);
    assert_eq!(folder.names(), [""]);
}

#[test]
fn s15_a_reopened_store_continues_from_its_checkpoint() {
    let folder = Folder::new();
    for sequence in 1..=6 {
        let store = folder.store();
        assert_eq!(store.sequence("line").unwrap(), sequence - 1);
        let points = [(1, 1, Some(1.0)), (1, sequence.cast_signed(), Some(2.0))];
        Request::whole(sequence, 0, 1, &points).apply_to(&store, b"s").unwrap();
    }
    assert_eq!(latest(&folder.store()).len(), 6);
}

#[test]
fn s5_a_missing_folder_is_an_error() {
    let folder = Folder::new();
    let nowhere = folder.0.join("nowhere/plant.siteline");
    assert_error(Store::open(&nowhere), Kind::StoreError, "its folder does not exist");
    assert_eq!(refused(&folder.0).kind(), Kind::StoreError);
    std::fs::write(folder.file(), "").unwrap();
    let deeper =
        if cfg!(windows) { "its folder does not exist" } else { "its folder cannot be read" };
    for (path, expected) in [("a", "its folder is a file"), ("a/b", deeper)] {
        assert_error(Store::open(&folder.file().join(path)), Kind::StoreError, expected);
    }
    assert_eq!(Store::open(Path::new("/")).unwrap_err().kind(), Kind::StoreError);
    assert_eq!(Store::open(Path::new("")).unwrap_err().kind(), Kind::StoreError);
}

#[test]
#[cfg(target_os = "linux")]
fn s5_a_read_only_folder_is_an_error() {
    // No user can create a file there, not even root.
    assert_eq!(refused(Path::new("/proc/self/plant.siteline")).kind(), Kind::StoreError);
}

#[test]
#[cfg(unix)]
fn s5_a_read_only_file_is_an_error() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    drop(folder.store());
    std::fs::set_permissions(folder.file(), PermissionsExt::from_mode(0o444)).unwrap();
    if std::fs::OpenOptions::new().write(true).open(folder.file()).is_ok() {
        return; // Root may.
    }
    assert_error(Store::open(&folder.file()), Kind::StoreError, "written");
}

#[test]
fn a_foreign_file_is_refused_and_unchanged() {
    let folder = Folder::new();
    let foreign = |name: &str, make: &dyn Fn(&Path)| {
        let path = folder.0.join(name);
        make(&path);
        let before = std::fs::read(&path).unwrap();
        assert_error(Store::open(&path), Kind::StoreError, "not a store of siteline");
        assert_eq!(std::fs::read(&path).unwrap(), before, "{name}");
    };
    foreign("short.txt", &|path| std::fs::write(path, "short").unwrap());
    foreign("long.txt", &|path| std::fs::write(path, "long ".repeat(1_000)).unwrap());
    foreign("other.db", &|path| {
        Connection::open(path).unwrap().execute_batch("CREATE TABLE t (a)").unwrap();
    });
    foreign("numbered.db", &|path| {
        Connection::open(path).unwrap().pragma_update(None, "application_id", 7).unwrap();
    });
    std::fs::write(folder.file(), "").unwrap();
    folder.store().check(&Watch::default()).unwrap();
}

#[test]
fn s8_another_schema_names_the_siteline_that_made_it() {
    for (version, next_step) in [(9, "Upgrade"), (1, "Sync into a new store")] {
        let folder = Folder::new();
        drop(folder.store());
        folder.execute(&format!(
            "UPDATE store SET made_by = 'siteline 9.1'; PRAGMA user_version = {version}"
        ));
        for options in [StoreOptions::default(), READ_ONLY] {
            let open = || Store::open_with(&folder.file(), options);
            assert_error(open(), Kind::StoreError, "made by siteline 9.1");
            assert_error(open(), Kind::StoreError, next_step);
        }
    }
}

#[test]
fn s7_a_schema_before_the_first_is_damage() {
    for version in [0, -1] {
        let folder = Folder::new();
        drop(folder.store());
        folder.execute(&format!("PRAGMA user_version = {version}"));
        assert_eq!(refused(&folder.file()).kind(), Kind::StoreCorrupt, "{version}");
    }
}

#[test]
fn s7_a_damaged_header_is_still_a_store() {
    let folder = Folder::new();
    drop(folder.store());
    let bytes = std::fs::read(folder.file()).unwrap();
    // The name of the format, the page size, the application id.
    let (name, size, application) = ((0, b'X'), (17, 3), (68, 0));
    for (damage, kind) in [
        (vec![name], Kind::StoreCorrupt),
        (vec![size], Kind::StoreCorrupt),
        (vec![size, application], Kind::StoreCorrupt),
        (vec![name, application], Kind::StoreError),
    ] {
        let mut damaged = bytes.clone();
        for (at, byte) in &damage {
            damaged[*at] = *byte;
        }
        std::fs::write(folder.file(), &damaged).unwrap();
        let error = refused(&folder.file());
        assert_eq!(error.kind(), kind, "{damage:?}: {error}");
    }
}

#[test]
fn a_backup_beside_a_writer_is_consistent() {
    let (folder, store) = new_store();
    Request::filled(1).apply_to(&store, b"1").unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for sequence in 2..30 {
                let request = Request::filled(sequence);
                request.apply_to(&store, sequence.to_string().as_bytes()).unwrap();
            }
        });
        for copy in 0..10 {
            let to = folder.0.join(format!("copy-{copy}"));
            store.backup(&to, None, &Watch::default()).unwrap();
            let copy = Store::open(&to).unwrap();
            copy.check(&Watch::default()).unwrap();
            let sequence = copy.sequence("line").unwrap();
            assert_eq!(copy.state("line").unwrap(), Some(sequence.to_string().into_bytes()));
            let value = Some(value(sequence).to_bits());
            assert!(latest(&copy).iter().all(|row| row.2 == value));
            Request::filled(99).apply_to(&copy, b"99").unwrap();
        }
        writer.join().unwrap();
    });
    let again = store.backup(&folder.0.join("copy-0"), None, &Watch::default());
    assert_error(again, Kind::StoreError, "already");
    assert!(!folder.names().iter().any(|name| name.contains("-part")));
}

#[test]
#[cfg(unix)]
fn a_backup_does_not_replace_a_dangling_link() {
    let folder = Folder::new();
    let (store, to) = (folder.store(), folder.0.join("copy"));
    std::os::unix::fs::symlink(folder.0.join("nowhere"), &to).unwrap();
    assert_error(store.backup(&to, None, &Watch::default()), Kind::StoreError, "already");
    assert!(to.is_symlink() && !to.exists());
    assert!(!folder.names().iter().any(|name| name.contains("-part")));
}

#[test]
#[cfg(target_os = "linux")]
fn a_failed_open_keeps_the_locks_of_others() {
    use nix::fcntl::{FcntlArg, fcntl};
    use nix::libc;
    let (folder, store) = new_store();
    store.apply("line", None, b"").unwrap();
    // Closing it would release the locks of this process too.
    let probe = std::mem::ManuallyDrop::new(std::fs::File::open(folder.file()).unwrap());
    let short = |number: i32| libc::c_short::try_from(number).unwrap();
    let is_locked = || {
        let (l_type, l_whence) = (short(libc::F_WRLCK), short(libc::SEEK_SET));
        let mut lock = libc::flock { l_type, l_whence, l_start: 0, l_len: 0, l_pid: 0 };
        fcntl(&*probe, FcntlArg::F_OFD_GETLK(&mut lock)).unwrap();
        lock.l_type != short(libc::F_UNLCK)
    };
    assert!(is_locked());
    folder.execute("PRAGMA user_version = 9");
    assert!(refused(&folder.file()).to_string().contains("Upgrade"));
    assert!(is_locked());
}
