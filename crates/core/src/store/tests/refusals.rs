//! What the store refuses, and what its errors say: about files that a user may not use, and for the
//! codes of `SQLite`.

use std::io::ErrorKind;

use rusqlite::ffi;

use super::super::access::{create_copy, denied};
use super::*;
use crate::files::beside;

#[test]
fn a_store_is_shared_under_one_of_two_names() {
    assert_eq!(Share::parse("group-read").unwrap(), Share::GroupRead);
    assert_eq!(Share::parse("group").unwrap(), Share::Group);
    for name in ["", "Group", "everybody"] {
        let error = Share::parse(name).unwrap_err();
        assert_eq!(error.kind(), Kind::ConfigError);
        assert!(error.to_string().contains(&format!("share={name:?} is not known")), "{error}");
    }
}

#[cfg(unix)]
#[test]
fn s18_who_may_not_use_a_file_reads_whose_it_is_and_what_helps() {
    let folder = Folder::new();
    let store = folder.store();
    let (path, above, log) = (store.path(), folder.0.as_path(), beside(store.path(), "-wal"));
    let log = log.as_path();
    let advice = [
        "which makes no file",
        "choose a folder",
        "Ask its owner to share it",
        "chown --reference",
    ];
    let (no_permission, no_writing) = (ErrorKind::PermissionDenied, ErrorKind::ReadOnlyFilesystem);
    for (file, kind, why, expected) in [
        (path, no_permission, "write to it: it belongs to", Some(2)),
        (log, no_permission, "plant.siteline-wal: it belongs to", Some(3)),
        (above, no_permission, "mode 0", Some(1)),
        (path, no_writing, "write to it: it is on a read-only filesystem", Some(0)),
        (log, no_writing, "plant.siteline-wal: it is on a read-only filesystem", Some(0)),
        (above, no_writing, "it is on a read-only filesystem", Some(0)),
        (path, ErrorKind::NotADirectory, "write to it: ", None),
    ] {
        let error = denied(path, "this process may not write to it", file, kind.into());
        assert_eq!(error.kind(), Kind::StoreError);
        let text = error.to_string();
        assert!(text.contains(why), "{why}: {text}");
        let given: Vec<usize> = (0..4).filter(|n| text.contains(advice[*n])).collect();
        assert_eq!(given, expected.into_iter().collect::<Vec<_>>(), "{text}");
    }
}

#[cfg(windows)]
#[test]
fn who_may_not_use_a_file_reads_what_decides_and_what_helps() {
    let folder = Folder::new();
    let store = folder.store();
    let log = beside(store.path(), "-wal");
    for file in [store.path(), log.as_path(), folder.0.as_path()] {
        let error = denied(store.path(), "it may not", file, ErrorKind::PermissionDenied.into());
        assert_eq!(error.kind(), Kind::StoreError);
        let text = error.to_string();
        assert!(text.contains("its access control list decides who may"), "{text}");
        let remedy = if file.is_dir() { "choose a folder" } else { "attrib and icacls" };
        assert!(text.contains(remedy), "{text}");
    }
}

#[test]
fn a_full_disk_and_an_exhausted_quota_are_named_as_such() {
    let path = Path::new("/somewhere/plant.siteline");
    for (kind, expected) in [
        (ErrorKind::StorageFull, Kind::StoreFull),
        (ErrorKind::QuotaExceeded, Kind::StoreFull),
        (ErrorKind::FileTooLarge, Kind::StoreError),
        (ErrorKind::PermissionDenied, Kind::StoreError),
    ] {
        let error = failure::system(path, "the copy cannot be flushed", &kind.into());
        assert_eq!(error.kind(), expected);
        assert!(error.to_string().contains("/somewhere/plant.siteline"), "{error}");
    }
}

/// Windows takes a name that is too long for one that nothing has.
#[cfg(unix)]
#[test]
fn a_name_that_is_too_long_for_a_file_of_the_store_is_an_error() {
    let folder = Folder::new();
    drop(folder.store());
    for (length, read_only, expected) in [
        (256, false, "this process may not write to it: "),
        (256, true, "this process may not read it: "),
        // The ending of the log has no room.
        (252, false, "this process may not write to its log "),
        (252, true, "this process may not read its log "),
    ] {
        let path = folder.0.join("n".repeat(length));
        if length < 256 {
            std::fs::copy(folder.file(), &path).unwrap();
        }
        let options = StoreOptions { read_only, share: None };
        let error = Store::open_with(&path, options).unwrap_err();
        assert_eq!(error.kind(), Kind::StoreError);
        assert!(error.to_string().contains(expected), "{expected}: {error}");
    }
}

#[test]
fn a_file_for_a_copy_that_is_there_already_is_kept_and_one_that_cannot_be_made_is_an_error() {
    let folder = Folder::new();
    let (store, copy) = (folder.store(), folder.0.join("copy"));
    for contents in ["", "written"] {
        create_copy(&copy, store.path(), None).unwrap();
        assert_eq!(std::fs::read_to_string(&copy).unwrap(), contents);
        std::fs::write(&copy, "written").unwrap();
    }
    let error = create_copy(&folder.0.join("n".repeat(256)), store.path(), None).unwrap_err();
    assert!(error.to_string().contains("may not make files in its folder"), "{error}");
}

#[test]
fn each_code_of_sqlite_has_its_error() {
    let folder = Folder::new();
    let error = |path: &Path, code| {
        let failure = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
        let error = StoreFailure::Sqlite(failure).into_error(path);
        assert!(error.to_string().contains("plant.siteline"), "{error}");
        error
    };
    for (code, kind, expected) in [
        (ffi::SQLITE_BUSY, Kind::StoreBusy, "another thread or process"),
        (ffi::SQLITE_LOCKED, Kind::StoreBusy, "another thread or process"),
        (ffi::SQLITE_FULL, Kind::StoreFull, "no space left"),
        (ffi::SQLITE_IOERR_SHMSIZE, Kind::StoreFull, "no space left"),
        (ffi::SQLITE_CORRUPT, Kind::StoreCorrupt, "its file is damaged"),
        (ffi::SQLITE_NOTADB, Kind::StoreCorrupt, "its file is damaged"),
        (ffi::SQLITE_CONSTRAINT, Kind::StoreCorrupt, "its file is damaged"),
        (ffi::SQLITE_READONLY, Kind::StoreError, "cannot be opened for writing"),
        (ffi::SQLITE_PERM, Kind::StoreError, "cannot be opened for writing"),
        (ffi::SQLITE_CANTOPEN, Kind::StoreError, "cannot be opened for writing"),
        (ffi::SQLITE_IOERR_READ, Kind::StoreError, ""),
        // There is room beside the store: it is another failure.
        (ffi::SQLITE_IOERR_WRITE, Kind::StoreError, ""),
        (ffi::SQLITE_IOERR_SHMOPEN, Kind::StoreError, ""),
    ] {
        let error = error(&folder.file(), code);
        assert_eq!(error.kind(), kind, "{code}: {error}");
        assert!(error.to_string().contains(expected), "{code}: {error}");
    }
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 0, "nothing is left behind");
    // Whether there is room cannot be found out.
    let gone = folder.0.join("gone/plant.siteline");
    assert_eq!(error(&gone, ffi::SQLITE_IOERR_WRITE).kind(), Kind::StoreError);
}
