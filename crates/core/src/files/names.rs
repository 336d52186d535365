//! Names beside a path.

use std::path::{Path, PathBuf};

/// The path of a file beside another, whose name begins as its does.
pub(crate) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// A path beside another that nothing has and nobody can guess.
pub(crate) fn unused(path: &Path, what: &str) -> PathBuf {
    beside(path, &format!("-{what}-{}", uuid::Uuid::new_v4().simple()))
}

/// The folder of a path.
pub(crate) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
