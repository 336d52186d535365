//! What a sync did and what it would do, as `siteline.sync` shows it.

use jiff::Timestamp;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::client::Client;
use crate::client::scan::Scan;
use crate::error::{Error, Kind, Result};
use crate::python::allowance::PyAllowance;
use crate::python::conversions::{datetime, instant};
use crate::python::errors::raise;
use crate::python::runtime::{guarded, step};
use crate::python::scan::PyScan;
use crate::python::store::PyStore;
use crate::python::sync::{Home, feeds, keywords, reread};
use crate::store::{Store, Target as _};
use crate::sync::plan::plan;
use crate::sync::{FeedReport, Plan, Report, State, SyncSettings, Task, Why};

/// A `siteline.SyncReport`.
pub(crate) fn report<'py>(py: Python<'py>, report: &Report) -> PyResult<Bound<'py, PyAny>> {
    let module = py.import("siteline.sync")?;
    let class = module.getattr("FeedReport")?;
    let feeds = report.feeds.iter().map(|feed| class.call1(of_feed(py, feed)?));
    let feeds = PyTuple::new(py, feeds.collect::<PyResult<Vec<_>>>()?)?;
    let arguments = (
        feeds,
        report.requests,
        report.complete,
        at(py, report.resumes_at)?,
        tasks(py, &report.todo)?,
        PyAllowance(report.allowance),
        datetime(py, report.now)?,
    );
    module.getattr("SyncReport")?.call1(arguments)
}

fn of_feed<'py>(py: Python<'py>, feed: &FeedReport) -> PyResult<Bound<'py, PyTuple>> {
    let applied = feed.applied;
    (
        &feed.name,
        feed.chains,
        feed.pages,
        applied.inserted,
        applied.revised,
        applied.unchanged,
        applied.flagged,
        feed.sequence,
        at(py, feed.settled_through)?,
        at(py, feed.read_through)?,
    )
        .into_pyobject(py)
}

fn tasks<'py>(py: Python<'py>, tasks: &[Task]) -> PyResult<Bound<'py, PyTuple>> {
    let class = py.import("siteline.sync")?.getattr("Task")?;
    let made = PyList::empty(py);
    for task in tasks {
        let (start, end) = (datetime(py, task.start)?, datetime(py, task.end)?);
        made.append(class.call1((&task.feed, task.why.to_string(), start, end, task.pages))?)?;
    }
    Ok(made.to_tuple())
}

fn at(py: Python<'_>, at: Option<Timestamp>) -> PyResult<Option<Bound<'_, PyAny>>> {
    at.map(|at| datetime(py, at)).transpose()
}

/// The arguments of `client.plan` as Python gave them.
pub(crate) struct Considered<'a, 'py> {
    what: &'a Bound<'py, PyAny>,
    store: Option<&'a Bound<'py, PyAny>>,
    until: Option<Bound<'py, PyAny>>,
    now: Option<Bound<'py, PyAny>>,
    reread: Option<Bound<'py, PyAny>>,
}

impl<'a, 'py> Considered<'a, 'py> {
    /// # Errors
    /// `TypeError` for a keyword that is not known.
    pub(crate) fn with(
        what: &'a Bound<'py, PyAny>,
        store: Option<&'a Bound<'py, PyAny>>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Self> {
        let [until, now, reread] = keywords("plan", ["until", "now", "reread"], options)?;
        Ok(Self { what, store, until, now, reread })
    }
}

impl Considered<'_, '_> {
    /// A `siteline.Plan`.
    ///
    /// # Errors
    /// `QueryError` for wrong arguments, `StoreError`s, `FeedChanged`, what the user's store raises.
    pub(crate) fn plan<'py>(
        &self,
        py: Python<'py>,
        client: &Client,
    ) -> PyResult<Bound<'py, PyAny>> {
        guarded(|| {
            if let Ok(scan) = self.what.cast::<PyScan>() {
                return self.of_scan(py, client, scan.get().scan());
            }
            let feeds = feeds(self.what)?;
            let Some(store) = self.store else {
                let error = Error::new(Kind::Query, "plan() of feeds needs the store.");
                return Err(raise(py, &error.with_hint("client.plan(feeds, store)")));
            };
            let settings = SyncSettings {
                until: self.until.as_ref().map(|until| instant(until, "until")).transpose()?,
                now: self.now.as_ref().map(|now| instant(now, "now")).transpose()?,
                reread: self.reread.as_ref().map(reread).transpose()?.unwrap_or_default(),
                ..SyncSettings::default()
            };
            let home = Home::of(store, &feeds, client)?;
            let target = home.target();
            let plan = home.step(py, || plan(client, &*target, &feeds, &settings))?;
            object(py, &plan, "sync")
        })
    }

    /// Of a scan: one chain. How many pages it takes is known where the store has a feed that asks
    /// the same.
    fn of_scan<'py>(
        &self,
        py: Python<'py>,
        client: &Client,
        scan: &Scan,
    ) -> PyResult<Bound<'py, PyAny>> {
        let expected = match self.store.map(|store| store.cast::<PyStore>()) {
            None => None,
            Some(Err(_)) => {
                let message =
                    "store= is a siteline.Store: what it has seen tells what a scan takes.";
                return Err(raise(py, &Error::new(Kind::Query, message)));
            }
            Some(Ok(store)) => {
                let store = &store.get().0;
                step(py, || expected(store, scan))?.map_err(|error| raise(py, &error))?
            }
        };
        let now = client.time().now();
        let (start, end) = (scan.query().start(), scan.query().end());
        let (name, pages) = expected.unzip();
        let task = Task {
            feed: name.unwrap_or_default(),
            why: Why::Fill,
            start: start.unwrap_or(Timestamp::UNIX_EPOCH),
            end: end.unwrap_or(now),
            pages,
        };
        let allowance = client.allowance().map_err(|error| raise(py, &error))?;
        object(py, &Plan { tasks: vec![task], pages, allowance, reserve: 0, now }, "scan")
    }
}

/// The first feed of the store that asks what the scan asks, and the pages that it makes expect.
fn expected(store: &Store, scan: &Scan) -> Result<Option<(String, u64)>> {
    let query = scan.query().input();
    let (Some(start), Some(end)) = (query.start, query.end) else { return Ok(None) };
    for name in store.feeds()? {
        let Some(state) = store.state(&name)? else { continue };
        let state = State::from_bytes(&state)?;
        if state.feed().query(start, end).is_ok_and(|same| same == *scan.query())
            && let Some(pages) = state.expected_pages(start, end)
        {
            return Ok(Some((name, pages)));
        }
    }
    Ok(None)
}

fn object<'py>(py: Python<'py>, plan: &Plan, kind: &str) -> PyResult<Bound<'py, PyAny>> {
    let arguments = (
        tasks(py, &plan.tasks)?,
        plan.pages,
        PyAllowance(plan.allowance),
        plan.reserve,
        datetime(py, plan.now)?,
        kind,
    );
    py.import("siteline.sync")?.getattr("Plan")?.call1(arguments)
}
