//! The Python layer: thin. It converts arguments and results, and waits through one crossing
//! ([`runtime`]); everything else is in the core.

#![expect(clippy::doc_link_with_quotes, reason = "the docstrings of Python classes show Python")]

mod allowance;
mod awaitable;
mod bookmark;
mod client;
mod clock;
mod columns;
mod conversions;
mod coverage;
mod credential;
mod errors;
mod feed;
mod follower;
mod gather;
mod ledger;
mod logging;
mod memory;
mod page;
mod passphrase;
mod points;
mod preview;
mod private_key;
mod process;
mod progress;
mod query;
mod recipe;
mod records;
mod report;
mod rows;
mod runtime;
mod sandbox;
mod scan;
mod selected;
mod settings;
mod shape;
mod snapshot;
mod steps;
mod store;
mod stored;
mod summary;
mod sync;
mod table;
mod target;

use pyo3::prelude::*;

/// The core of siteline. Everything public is exported by the package ``siteline``.
#[pymodule(gil_used = false)]
mod _siteline {
    #[pymodule_export]
    use super::allowance::PyAllowance;
    #[pymodule_export]
    use super::bookmark::PyBookmark;
    #[pymodule_export]
    use super::client::PyClient;
    #[pymodule_export]
    use super::clock::PyClock;
    #[pymodule_export]
    use super::credential::PyCredential;
    #[pymodule_export]
    use super::feed::PyFeed;
    #[pymodule_export]
    use super::page::{PageIterator, PyPage};
    #[pymodule_export]
    use super::points::PyPoints;
    #[pymodule_export]
    use super::private_key::PyPrivateKey;
    #[pymodule_export]
    use super::query::PyQuery;
    #[pymodule_export]
    use super::rows::RecordIterator;
    #[pymodule_export]
    use super::sandbox::PySandbox;
    #[pymodule_export]
    use super::scan::PyScan;
    #[pymodule_export]
    use super::shape::PyShape;
    #[pymodule_export]
    use super::store::PyStore;
    #[pymodule_export]
    use super::table::PyTable;

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", crate::VERSION)?;
        super::logging::install();
        super::process::watch(module)?;
        #[cfg(debug_assertions)]
        super::runtime::panic::export(module)?;
        Ok(())
    }
}
