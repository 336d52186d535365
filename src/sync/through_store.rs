//! `client.scan(..., store=store)`: a scan that is read through a store.

use pyo3::prelude::*;

use crate::bridge::errors::IntoPyErr as _;
use crate::bridge::errors::OrRaise as _;
use crate::bridge::process::guarded;
use crate::client::scan::PyScan;
use crate::convert::values::described;
use crate::store::store_of;
use siteline_core::error::{Error, Kind};
use siteline_core::sync::ThroughStore;

#[pymethods]
impl PyScan {
    /// The same scan, which reads settled data from this store, and keeps the rest in it.
    ///
    /// # Errors
    /// `QueryError` for another object, and for a scan that cannot be read through a store.
    fn through(&self, py: Python<'_>, store: &Bound<'_, PyAny>) -> PyResult<Self> {
        let Some(store) = store_of(store)? else {
            let message = format!("store= is {}, not a siteline.Store.", described(store));
            let hint = "For a target of yours use client.sync(feed, target).";
            return Err(Error::new(Kind::QueryError, message).with_hint(hint).into_py_err());
        };
        let read = guarded(|| ThroughStore::of_scan(&store, self.scan()).or_raise())?;
        Ok(self.read_by(py, read))
    }
}
