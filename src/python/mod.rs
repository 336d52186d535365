//! The Python layer: thin. It converts arguments and results, and waits through one crossing
//! ([`runtime`]); everything else is in the core.

mod bookmark;
mod client;
mod clock;
mod conversions;
mod credential;
mod errors;
mod page;
mod private_key;
mod query;
mod report;
mod rows;
mod runtime;
mod sandbox;
mod scan;
mod shape;
mod table;

use pyo3::prelude::*;

/// The core of siteline. Everything public is exported by the package ``siteline``.
#[pymodule(gil_used = false)]
mod _siteline {
    #[pymodule_export]
    use super::bookmark::PyBookmark;
    #[pymodule_export]
    use super::client::{PyAllowance, PyClient};
    #[pymodule_export]
    use super::clock::PyClock;
    #[pymodule_export]
    use super::credential::PyCredential;
    #[pymodule_export]
    use super::page::{PageIterator, PyPage};
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
    use super::table::PyTable;

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", crate::VERSION)?;
        super::logging(module.py());
        Ok(())
    }
}

/// The core's records go to the stdlib loggers `siteline.token`, `siteline.http`, `siteline.data`;
/// those of other crates go nowhere.
fn logging(py: Python<'_>) {
    let Ok(logger) = pyo3_log::Logger::new(py, pyo3_log::Caching::Nothing) else { return };
    let logger = logger
        .filter(log::LevelFilter::Off)
        .filter_target("siteline".to_owned(), log::LevelFilter::Debug);
    // Another extension in this process may have come first with a logger of its own.
    drop(logger.install());
}
