//! `client.plan`: what a sync, or scans, would read and cost.

use std::collections::HashMap;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::bridge::errors::OrRaise as _;
use crate::bridge::process::guarded;
use crate::bridge::runtime::step;
use crate::client::PyClient;
use crate::client::scan::PyScan;
use crate::convert::state::dict;
use crate::store::StoreHandle;
use crate::sync::KnownStates;
use crate::sync::arguments::{feeds, plan_settings};
use siteline_core::client::collect::CollectOnce;
use siteline_core::sync::{ThroughStore, plan, plan_scans};

#[pymethods]
impl PyClient {
    /// The members of the plan of a sync to a store, or to a target with these states.
    fn plan_feeds<'py>(
        &self,
        py: Python<'py>,
        handles: &Bound<'py, PyAny>,
        store: Option<&StoreHandle>,
        states: HashMap<String, Vec<u8>>,
        options: &Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (feeds, settings) = (feeds(handles)?, plan_settings(&self.client, options)?);
        guarded(|| {
            let plan = step(py, || match store {
                Some(store) => plan(&self.client, &*store.0, &feeds, &settings),
                None => plan(&self.client, &KnownStates(states), &feeds, &settings),
            });
            dict(py, &plan?.or_raise()?)
        })
    }

    /// The members of the plan of scans; a store estimates their pages.
    fn plan_scans<'py>(
        &self,
        py: Python<'py>,
        scans: Vec<Py<PyScan>>,
        store: Option<&StoreHandle>,
    ) -> PyResult<Bound<'py, PyAny>> {
        guarded(|| {
            let scans = scans.iter().map(Py::get);
            let scans: Vec<(&CollectOnce, &[Arc<ThroughStore>])> =
                scans.map(|scan| (&*scan.collect, scan.read_through())).collect();
            let store = store.map(|store| &*store.0);
            dict(py, &step(py, || plan_scans(&self.client, store, &scans))?.or_raise()?)
        })
    }
}
