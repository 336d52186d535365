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
use crate::python::client::scan::PyScan;
use crate::python::convert::state::{dict, python_object};
use crate::python::convert::values::{items, refuse};
use crate::python::store::PyStore;
use crate::python::sync::arguments::{SyncTarget, feeds, keywords, plan_settings};
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
    python_object(py, ("siteline.sync", "Plan"), (dict(py, &plan)?, "sync"))
}

/// A `siteline.Plan` of scans.
fn of_scans<'py>(
    py: Python<'py>,
    client: &Client,
    scans: &[Py<PyScan>],
    store: Option<&Store>,
) -> PyResult<Bound<'py, PyAny>> {
    let scans: Vec<&CollectOnce> = scans.iter().map(|scan| &*scan.get().collect).collect();
    let plan =
        step(py, || plan_scans(client, store, &scans))?.map_err(|error| raise(py, &error))?;
    python_object(py, ("siteline.sync", "Plan"), (dict(py, &plan)?, "scan"))
}

/// The scans among the arguments: one, or a list of nothing else; none where there are feeds.
fn given_scans(given: &Bound<'_, PyAny>) -> PyResult<Vec<Py<PyScan>>> {
    match given.cast::<PyScan>() {
        Ok(scan) => Ok(vec![scan.clone().unbind()]),
        Err(_) => Ok(items(given)?.unwrap_or_default()),
    }
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
            // The items of an iterator are kept: they are read twice.
            let is_iterator = feeds.hasattr("__next__")?;
            let list = is_iterator.then(|| py.get_type::<PyList>().call1((feeds,))).transpose()?;
            let feeds = list.as_ref().unwrap_or(feeds);
            let scans = given_scans(feeds)?;
            if scans.is_empty() {
                return of_feeds(&self.client, feeds, store, &plan_settings(options)?);
            }
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
