//! `client.scan(..., store=store)`: a scan that is read through a store.

use std::sync::Arc;

use pyo3::prelude::*;

use crate::bridge::errors::OrRaise as _;
use crate::bridge::process::guarded;
use crate::client::scan::PyScan;
use crate::store::PyStore;
use siteline_core::sync::ThroughStore;

#[pymethods]
impl PyStore {
    /// The same scan, which reads what this store has settled from it, and keeps the rest in it.
    fn _read_through(slf: &Bound<'_, Self>, scan: &Bound<'_, PyScan>) -> PyResult<PyScan> {
        let (py, scan) = (slf.py(), scan.get());
        guarded(|| {
            let read =
                ThroughStore::new(Arc::clone(&slf.get().0), scan.scan().clone()).or_raise()?;
            Ok(scan.through(py, slf.as_any().clone().unbind(), Arc::new(read)))
        })
    }
}
