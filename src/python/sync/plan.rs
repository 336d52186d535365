//! `client.plan`: what a sync, or scans, would read and cost.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::client::Client;
use crate::client::collect::CollectOnce;
use crate::error::{Error, Kind};
use crate::python::bridge::errors::raise;
use crate::python::bridge::process::guarded;
use crate::python::bridge::runtime::step;
use crate::python::client::PyClient;
use crate::python::client::gather::scans;
use crate::python::client::scan::PyScan;
use crate::python::convert::values::refuse;
use crate::python::store::PyStore;
use crate::python::sync::arguments::{SyncTarget, feeds, keywords, plan_settings};
use crate::python::sync::summary;
use crate::store::Store;
use crate::sync::{SyncSettings, plan, plan_scans};

/// A `siteline.Plan` of feeds.
fn of_feeds<'py>(
    client: &Client,
    given: &Bound<'py, PyAny>,
    store: Option<&Bound<'py, PyAny>>,
    settings: &SyncSettings,
) -> PyResult<Bound<'py, PyAny>> {
    let py = given.py();
    let known = "a siteline.Feed or a siteline.Scan, or a list of the one or the other";
    let feeds = feeds(given, known)?;
    let Some(store) = store else {
        let error = Error::new(Kind::QueryError, "plan() of feeds needs the store.");
        return Err(raise(py, &error.with_hint("client.plan(feeds, store)")));
    };
    let target = SyncTarget::new(store, &feeds, client)?;
    let shared = target.shared();
    let plan = target.step(py, || plan(client, &*shared, &feeds, settings))?;
    summary::plan(py, &plan, "sync")
}

/// A `siteline.Plan` of scans.
fn of_scans<'py>(
    py: Python<'py>,
    client: &Client,
    scans: &[Py<PyScan>],
    store: Option<&Store>,
) -> PyResult<Bound<'py, PyAny>> {
    let scans: Vec<&CollectOnce> = scans.iter().map(|scan| &*scan.get().collect).collect();
    let plan = step(py, || plan_scans(client, store, &scans))?;
    summary::plan(py, &plan.map_err(|error| raise(py, &error))?, "scan")
}

/// The scans among the arguments: one, or a list of nothing else.
fn given_scans(given: &Bound<'_, PyAny>) -> PyResult<Option<Vec<Py<PyScan>>>> {
    if let Ok(scan) = given.cast::<PyScan>() {
        return Ok(Some(vec![scan.clone().unbind()]));
    }
    Ok(scans(given)?.filter(|scans| !scans.is_empty()))
}

/// The items of an iterator as a list, as they are looked at twice; everything else as it is.
fn listed<'py>(given: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if !given.hasattr("__next__")? {
        return Ok(given.clone());
    }
    let items = given.try_iter()?.collect::<PyResult<Vec<_>>>()?;
    Ok(PyList::new(given.py(), items)?.into_any())
}

#[pymethods]
impl PyClient {
    /// What the next sync, or a scan, would read and cost: a :class:`Plan`. Costs no request.
    ///
    /// - ``feeds``: as of :meth:`sync`, with the ``store``; or a :class:`Scan`, or a list of them:
    ///   their pages are known where this client has read a scan or feed that asks the same of
    ///   another range, or a feed of the ``store`` does. What a scan remembers costs nothing
    /// - ``until``, ``now``, ``reread``: as of :meth:`sync`; of feeds alone
    ///
    /// Raises :class:`QueryError`, and of feeds :class:`FeedChanged` and those of the store.
    #[pyo3(signature = (feeds, store=None, **options),
        text_signature = "($self, feeds, store=None, *, until=None, now=None, reread=None)")]
    fn plan<'py>(
        &self,
        py: Python<'py>,
        feeds: &Bound<'py, PyAny>,
        store: Option<&Bound<'py, PyAny>>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let options = keywords("plan", ["until", "now", "reread"], options)?;
        guarded(|| {
            let feeds = listed(feeds)?;
            let Some(scans) = given_scans(&feeds)? else {
                return of_feeds(&self.client, &feeds, store, &plan_settings(options)?);
            };
            let refused = |message| Err(refuse(py, Kind::QueryError, message));
            if options.iter().any(Option::is_some) {
                return refused(
                    "until=, now= and reread= belong to plans of feeds: a scan has a range.",
                );
            }
            match store.map(|store| store.cast::<PyStore>()) {
                None => of_scans(py, &self.client, &scans, None),
                Some(Ok(store)) => of_scans(py, &self.client, &scans, Some(&store.get().0)),
                Some(Err(_)) => {
                    refused("store= is a siteline.Store: what it has seen tells what a scan takes.")
                }
            }
        })
    }
}
