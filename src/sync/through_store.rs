//! `client.scan(..., store=store)`: a scan that is read through a store.

use std::sync::Arc;

use pyo3::prelude::*;

use crate::bridge::errors::OrRaise as _;
use crate::bridge::process::guarded;
use crate::client::scan::PyScan;
use crate::store::StoreHandle;
use siteline_core::sync::ThroughStore;

#[pymethods]
impl StoreHandle {
    /// The same scan, which reads what this store has settled from it, and keeps the rest in it. `store` is
    /// the `siteline.Store`.
    fn read_through(
        &self,
        py: Python<'_>,
        store: Py<PyAny>,
        scan: &Bound<'_, PyScan>,
    ) -> PyResult<PyScan> {
        let scan = scan.get();
        guarded(|| {
            let read = ThroughStore::new(Arc::clone(&self.0), scan.scan().clone()).or_raise()?;
            Ok(scan.through(py, store, Arc::new(read)))
        })
    }
}
