//! `client.plan`: what a sync, or scans, would read and cost.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use crate::bridge::errors::IntoPyErr as _;
use crate::bridge::errors::OrRaise as _;
use crate::bridge::process::guarded;
use crate::bridge::runtime::step;
use crate::client::PyClient;
use crate::client::scan::PyScan;
use crate::convert::state::record;
use crate::convert::values::refuse;
use crate::store::store_of;
use crate::sync::arguments::{SyncTarget, feeds, keywords, plan_settings};
use siteline_core::client::Client;
use siteline_core::client::collect::CollectOnce;
use siteline_core::error::{Error, Kind};
use siteline_core::sync::{Plan, SyncSettings, ThroughStore, plan, plan_scans};

/// A `siteline.types.Plan`.
fn plan_object<'py>(py: Python<'py>, plan: &Plan, kind: &str) -> PyResult<Bound<'py, PyAny>> {
    let kind = PyString::new(py, kind).into_any();
    record(py, ("siteline._records.plan", "Plan"), plan, [("kind", kind)])
}

/// What a sync of these feeds would read.
fn plan_feeds(
    client: &Client,
    given: &Bound<'_, PyAny>,
    store: Option<&Bound<'_, PyAny>>,
    settings: &SyncSettings,
) -> PyResult<Plan> {
    let known = "a siteline.Feed or a siteline.Scan, or a list of the one or the other";
    let feeds = feeds(given, known)?;
    let Some(store) = store else {
        let error = Error::new(Kind::QueryError, "plan() of feeds needs the store.");
        return Err(error.with_hint("client.plan(feeds, store)").into_py_err());
    };
    let target = SyncTarget::new(store, &feeds, client)?;
    target.step(given.py(), || plan(client, &*target.target, &feeds, settings))
}

/// The scans to plan: one, or those of a list of scans; none if feeds are given.
fn given_scans<'py>(given: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyScan>>> {
    let scan = |one: &Bound<'py, PyAny>| -> PyResult<Option<Bound<'py, PyScan>>> {
        Ok(one.getattr_opt("_handle")?.and_then(|handle| handle.cast_into().ok()))
    };
    if let Some(one) = scan(given)? {
        return Ok(vec![one]);
    }
    let Ok(items) = given.try_iter() else { return Ok(Vec::new()) };
    let scans = items.map(|item| scan(&item?)).collect::<PyResult<Option<Vec<_>>>>()?;
    Ok(scans.unwrap_or_default())
}

#[pymethods]
impl PyClient {
    /// A `siteline.types.Plan`.
    #[pyo3(signature = (feeds, store, options))]
    fn plan<'py>(
        &self,
        py: Python<'py>,
        feeds: &Bound<'py, PyAny>,
        store: Option<&Bound<'py, PyAny>>,
        options: &Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let options = keywords("plan", ["until", "reread"], options)?;
        guarded(|| {
            // The items of an iterator are kept: they are read twice.
            let is_iterator = feeds.hasattr("__next__")?;
            let list = is_iterator.then(|| py.get_type::<PyList>().call1((feeds,))).transpose()?;
            let feeds = list.as_ref().unwrap_or(feeds);
            let scans = given_scans(feeds)?;
            if scans.is_empty() {
                let plan =
                    plan_feeds(&self.client, feeds, store, &plan_settings(&self.client, options)?)?;
                return plan_object(py, &plan, "sync");
            }
            let refused = |message| refuse(py, Kind::QueryError, message);
            if options.iter().any(Option::is_some) {
                let message = "until= and reread= belong to plans of feeds: a scan has a range.";
                return Err(refused(message));
            }
            let message = "store= is a siteline.Store: what it has seen tells what a scan takes.";
            let store = store.map(|store| store_of(store)?.ok_or_else(|| refused(message)));
            let store = store.transpose()?;
            let scans = scans.iter().map(Bound::get);
            let scans: Vec<(&CollectOnce, &[Arc<ThroughStore>])> =
                scans.map(|scan| (&*scan.collect, scan.read_through())).collect();
            let plan =
                step(py, || plan_scans(&self.client, store.as_deref(), &scans))?.or_raise()?;
            plan_object(py, &plan, "scan")
        })
    }
}
