//! Errors about files that a user may not use, and about the codes of `SQLite`.

use std::io::ErrorKind;

use rusqlite::ffi;

use super::super::access::{create_copy, denied};
use super::*;
use crate::files::beside;

#[cfg(unix)]
#[test]
fn s18_an_access_error_names_owner_and_remedy() {
    let (folder, store) = new_store();
    let (path, above, log) = (store.path(), &*folder.0, beside(store.path(), "-wal"));
    let log = log.as_path();
    let advice =
        ["which makes no file", "Choose a folder", "Its owner can share it", "chown --reference"];
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
fn an_access_error_names_the_remedy() {
    let (folder, store) = new_store();
    let log = beside(store.path(), "-wal");
    for file in [store.path(), log.as_path(), &*folder.0] {
        let error = denied(store.path(), "it may not", file, ErrorKind::PermissionDenied.into());
        assert_eq!(error.kind(), Kind::StoreError);
        let text = error.to_string();
        assert!(text.contains("its access control list decides who may"), "{text}");
        let remedy = if file.is_dir() { "Choose a folder" } else { "attrib and icacls" };
        assert!(text.contains(remedy), "{text}");
    }
}

#[test]
fn a_full_disk_or_quota_is_named() {
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

/// Windows reports a name that is too long as missing.
#[cfg(unix)]
#[test]
fn a_too_long_name_is_an_error() {
    let folder = Folder::new();
    drop(folder.store());
    for (length, read_only, expected) in [
        (256, false, "this process may not write to it: "),
        (256, true, "this process may not read it: "),
        // The suffix of the log does not fit.
        (252, false, "this process may not write to its log "),
        (252, true, "this process may not read its log "),
    ] {
        let path = folder.0.join("n".repeat(length));
        if length < 256 {
            std::fs::copy(folder.file(), &path).unwrap();
        }
        let options = StoreOptions { read_only, share: None };
        assert_error(Store::open_with(&path, options), Kind::StoreError, expected);
    }
}

#[test]
fn an_existing_file_for_a_copy_is_kept() {
    let folder = Folder::new();
    let (store, copy) = (folder.store(), folder.0.join("copy"));
    for contents in ["", "written"] {
        create_copy(&copy, store.path(), None).unwrap();
        assert_eq!(std::fs::read_to_string(&copy).unwrap(), contents);
        std::fs::write(&copy, "written").unwrap();
    }
    let long = create_copy(&folder.0.join("n".repeat(256)), store.path(), None);
    assert_error(long, Kind::StoreError, "may not make files in its folder");
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
        // There is enough space, so the write failed for another reason.
        (ffi::SQLITE_IOERR_WRITE, Kind::StoreError, ""),
        (ffi::SQLITE_IOERR_SHMOPEN, Kind::StoreError, ""),
    ] {
        let error = error(&folder.file(), code);
        assert_eq!(error.kind(), kind, "{code}: {error}");
        assert!(error.to_string().contains(expected), "{code}: {error}");
    }
    assert_eq!(std::fs::read_dir(&*folder.0).unwrap().count(), 0, "nothing is left behind");
    // The free space cannot be determined.
    let gone = folder.0.join("gone/plant.siteline");
    assert_eq!(error(&gone, ffi::SQLITE_IOERR_WRITE).kind(), Kind::StoreError);
}
