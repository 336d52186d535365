//! Modules of the package that a call needs after it has waited.
//!
//! A signal handler runs between two steps of Python code, also of a module that is being imported; a
//! call that it makes would find that module half made. So they are imported before a call can wait. Not
//! with the package, whose import time they would double.

use pyo3::prelude::*;

/// Those of reads, and of every error.
const OF_CLIENTS: [&str; 6] = [
    "siteline.errors",
    "siteline._warn",
    // It imports `logging`, which registers functions to run at a fork. Imported by another thread
    // during a fork, that would release a lock that it never took, and raise.
    "siteline._logs",
    "siteline.frames",
    "siteline.types",
    "siteline.page",
];
/// Those of a sync, and of what is read from a store.
const OF_STORES: [&str; 5] =
    ["siteline.errors", "siteline._warn", "siteline._logs", "siteline.types", "siteline.page"];

/// Imports what the calls of a client need.
pub(crate) fn import_for_clients(py: Python<'_>) -> PyResult<()> {
    import(py, &OF_CLIENTS)
}

/// Imports what the calls of a store need.
pub(crate) fn import_for_stores(py: Python<'_>) -> PyResult<()> {
    import(py, &OF_STORES)
}

fn import(py: Python<'_>, names: &[&str]) -> PyResult<()> {
    names.iter().try_for_each(|name| py.import(*name).map(drop))
}
