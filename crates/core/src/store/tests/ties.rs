//! Tests that a store's file and log stay consistent, whatever is copied, restored or removed.

use std::fs::{copy, remove_file, rename};

use super::super::connection::StoreConnection;
use super::*;
use crate::files::beside;
use crate::store::log_fit::is_foreign;

/// Creates the files of a killed process: pages 1 and 2 in the file, 3 and 4 in the log.
fn killed() -> Folder {
    let ((folder, store), left) = (filled_store(2), Folder::new());
    drop(store);
    let store = folder.store();
    for sequence in 3..=4 {
        Request::filled(sequence).apply_to(&store, b"state").unwrap();
    }
    for ending in ["", "-wal", "-shm"] {
        copy(beside(&folder.file(), ending), beside(&left.file(), ending)).unwrap();
    }
    left
}

/// Verifies the store and returns the sequence of its last page.
fn last_page(folder: &Folder) -> u64 {
    let store = folder.store();
    store.check(&Watch::default()).unwrap();
    store.sequence("line").unwrap()
}

fn set_aside(folder: &Folder) -> Vec<PathBuf> {
    let files = std::fs::read_dir(&*folder.0).unwrap().flatten().map(|entry| entry.path());
    files.filter(|path| path.to_string_lossy().contains("-other-wal-")).collect()
}

fn backup_of(folder: &Folder, pages: u64) -> PathBuf {
    let ((_other, store), path) = (filled_store(pages), folder.0.join(format!("backup-{pages}")));
    store.backup(&path, None, &Watch::default()).unwrap();
    path
}

#[test]
fn a_log_cut_anywhere_is_recovered_or_empty() {
    let folder = killed();
    let file = std::fs::File::open(folder.file()).unwrap();
    let (log, cut) = (std::fs::read(beside(&folder.file(), "-wal")).unwrap(), folder.0.join("cut"));
    for length in (0..=log.len()).step_by(997) {
        std::fs::write(&cut, &log[..length]).unwrap();
        assert!(!is_foreign(&file, &cut).unwrap(), "{length}");
    }
}

#[test]
fn a_torn_first_page_of_the_file_is_recovered() {
    let folder = killed();
    let mut bytes = std::fs::read(folder.file()).unwrap();
    bytes[2 * 4_096..3 * 4_096].fill(0);
    std::fs::write(folder.file(), bytes).unwrap();
    assert_eq!(last_page(&folder), 4);
}

#[test]
fn a_restored_copy_is_kept_from_an_old_log() {
    type Restore = fn(&Path, &Path);
    let over: Restore = |from, to| assert!(copy(from, to).is_ok());
    let instead: Restore = |from, to| rename(from, to).unwrap();
    for restore in [over, instead] {
        for pages in 1..=5 {
            let folder = killed();
            restore(&backup_of(&folder, pages), &folder.file());
            let opened = Store::open_with(&folder.file(), READ_ONLY);
            assert_error(opened, Kind::StoreError, "belongs to another file");
            assert_eq!(last_page(&folder), pages);
            assert_eq!(set_aside(&folder).len(), 1);
        }
    }
}

#[test]
fn an_old_copy_of_the_file_ignores_the_log() {
    let (folder, store) = filled_store(1);
    let old = folder.0.join("old");
    drop(store);
    copy(folder.file(), &old).unwrap();
    let store = folder.store();
    Request::filled(2).apply_to(&store, b"state").unwrap();
    drop(store);
    let (store, left) = (folder.store(), Folder::new());
    Request::filled(3).apply_to(&store, b"state").unwrap();
    copy(beside(&folder.file(), "-wal"), beside(&left.file(), "-wal")).unwrap();
    copy(old, left.file()).unwrap();
    assert_eq!(last_page(&left), 1);
    assert_eq!(set_aside(&left).len(), 1);
}

#[test]
fn a_log_set_aside_belongs_to_its_renamed_file() {
    let folder = killed();
    let renamed = folder.0.join("renamed");
    rename(folder.file(), &renamed).unwrap();
    remove_file(beside(&folder.file(), "-shm")).unwrap();
    drop(folder.store());
    let [aside] = &set_aside(&folder)[..] else { panic!("one log") };
    rename(aside, beside(&renamed, "-wal")).unwrap();
    let store = Store::open(&renamed).unwrap();
    store.check(&Watch::default()).unwrap();
    assert_eq!(store.sequence("line").unwrap(), 4);
}

#[cfg(unix)]
#[test]
fn a_file_replaced_under_an_open_store_stays_whole() {
    for in_place in [true, false] {
        let (folder, store) = filled_store(3);
        let backup = backup_of(&folder, 2);
        let bytes = std::fs::read(&backup).unwrap();
        if in_place {
            std::fs::write(folder.file(), &bytes).unwrap();
        } else {
            rename(backup, folder.file()).unwrap();
        }
        let written = Request::filled(4).apply_to(&store, b"state");
        assert_error(written, Kind::StoreError, "another file replaced it");
        store.close();
        assert_eq!(std::fs::read(folder.file()).unwrap(), bytes);
        assert_eq!(last_page(&folder), 2);
    }
}

#[cfg(unix)]
#[test]
fn a_removed_log_of_an_open_store_is_saved() {
    let (folder, store) = filled_store(1);
    for ending in ["-wal", "-shm"] {
        remove_file(beside(&folder.file(), ending)).unwrap();
    }
    let written = Request::filled(2).apply_to(&store, b"state");
    assert_error(written, Kind::StoreError, "was removed while it was open");
    Request::filled(2).apply_to(&store, b"state").unwrap();
    drop(store);
    assert_eq!(last_page(&folder), 2);
}

/// When a second `SQLite` closes the file, the system drops the locks of the whole process.
#[cfg(target_os = "linux")]
#[test]
fn a_log_stays_when_the_process_closes_the_file() {
    let (folder, store) = filled_store(1);
    for ending in ["", "-wal", "-shm"] {
        drop(std::fs::File::open(beside(&folder.file(), ending)).unwrap());
    }
    // A `SQLite` in another process would remove the log if it saw no lock.
    let script = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); \
        c.execute('SELECT COUNT(*) FROM sqlite_master').fetchall(); c.close()";
    let mut python = std::process::Command::new("python3");
    let Ok(done) = python.arg("-c").arg(script).arg(folder.file()).status() else { return };
    assert!(done.success());
    assert!(beside(&folder.file(), "-wal").exists());
    Request::filled(2).apply_to(&store, b"state").unwrap();
    drop(store);
    assert_eq!(last_page(&folder), 2);
}

#[cfg(target_os = "linux")]
#[test]
fn a_reader_keeps_the_log_that_it_found() {
    use std::os::unix::fs::MetadataExt as _;
    let (folder, store) = filled_store(1);
    let inode = || beside(&folder.file(), "-wal").metadata().map(|log| log.ino()).ok();
    let before = inode();
    let link = StoreConnection::open_read_only(&folder.file(), BUSY_TIMEOUT).unwrap();
    // The writer acts as another process.
    let child = crate::fork::pretend(1);
    drop(folder.store());
    drop(child);
    store.close();
    let feeds = link.read(&folder.file(), Feeds::load).unwrap();
    assert!(feeds.find("line").is_some());
    assert_eq!(inode(), before, "the reader made no log of its own");
}

#[test]
fn a_log_is_copied_into_the_file_when_nobody_reads() {
    let (_folder, store) = new_store();
    Request::filled(1).apply_to(&store, b"state").unwrap();
    let reader = store.read("line", all(View::LATEST, Flagged::Drop)).unwrap();
    let copied =
        |store: &Store| store.write(|_, turn| Ok(turn.without_readers(|| ()))).unwrap().is_some();
    assert!(!copied(&store));
    drop(reader);
    assert!(copied(&store));
}

mod restoring {
    use super::*;
    use crate::store::restore;

    fn restored(backup: &Path, folder: &Folder) -> Result<bool> {
        restore(backup, &folder.file(), &Watch::default())
    }

    #[test]
    fn a_backup_replaces_a_killed_store_and_its_log() {
        let folder = killed();
        let backup = backup_of(&folder, 2);
        assert!(restored(&backup, &folder).unwrap());
        assert!(!beside(&folder.file(), "-wal").exists());
        assert_eq!((last_page(&folder), set_aside(&folder).len()), (2, 0));
        assert!(backup.exists());
    }

    #[test]
    fn a_backup_becomes_a_store_where_none_was() {
        let folder = Folder::new();
        let backup = backup_of(&folder, 2);
        assert!(!restored(&backup, &folder).unwrap());
        assert_eq!(last_page(&folder), 2);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn an_open_store_is_not_replaced() {
        let folder = Folder::new();
        let store = Store { busy_timeout: Duration::ZERO, ..folder.store() };
        Request::filled(1).apply_to(&store, b"state").unwrap();
        let error = restored(&backup_of(&folder, 2), &folder).unwrap_err();
        assert_eq!(error.kind(), Kind::StoreBusy);
        drop(store);
        assert_eq!(last_page(&folder), 1);
    }

    #[test]
    fn a_damaged_backup_changes_nothing() {
        let folder = killed();
        let backup = backup_of(&folder, 2);
        let mut bytes = std::fs::read(&backup).unwrap();
        let end = bytes.len();
        for place in (4_096 + 2_000..end).step_by(4_096) {
            bytes[place] ^= 1;
        }
        for wrong in [bytes, b"no store".repeat(999)] {
            std::fs::write(&backup, wrong).unwrap();
            let error = restored(&backup, &folder).unwrap_err();
            assert!(error.to_string().contains("backup-2"), "{error}");
        }
        assert_eq!(std::fs::read_dir(&*folder.0).unwrap().count(), 4, "no copy is left");
        assert_eq!(last_page(&folder), 4);
    }

    #[cfg(unix)]
    #[test]
    fn a_restored_store_keeps_its_mode() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = Folder::new();
        let options = StoreOptions { share: Some(Share::GROUP), read_only: false };
        drop(Store::open_with(&folder.file(), options).unwrap());
        restored(&backup_of(&folder, 2), &folder).unwrap();
        assert_eq!(folder.file().metadata().unwrap().permissions().mode() & 0o777, 0o660);
    }
}
