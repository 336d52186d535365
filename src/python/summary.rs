//! What a sync did and what it would do, as `siteline.sync` shows it.

use jiff::Timestamp;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::client::Client;
use crate::client::whole::Whole;
use crate::data::Query;
use crate::error::{Error, Kind, Result};
use crate::python::allowance::PyAllowance;
use crate::python::conversions::{datetime, instant};
use crate::python::errors::raise;
use crate::python::gather::scans;
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
                return self.of_scans(py, client, &[scan.clone().unbind()]);
            }
            // Feeds may come from a generator, which is asked once.
            let what = listed(self.what)?;
            if let Some(scans) = scans(&what)?.filter(|scans| !scans.is_empty()) {
                return self.of_scans(py, client, &scans);
            }
            let known = "a siteline.Feed or a siteline.Scan, or a list of the one or the other";
            let feeds = feeds(&what, known)?;
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

    /// Of scans: a chain each. How many pages one takes is known where this client has read its like,
    /// or the store has a feed that asks the same; what a scan has read costs nothing.
    fn of_scans<'py>(
        &self,
        py: Python<'py>,
        client: &Client,
        scans: &[Py<PyScan>],
    ) -> PyResult<Bound<'py, PyAny>> {
        if [&self.until, &self.now, &self.reread].iter().any(|given| given.is_some()) {
            let message = "until=, now= and reread= belong to plans of feeds: a scan has a range.";
            return Err(raise(py, &Error::new(Kind::Query, message)));
        }
        let store = match self.store.map(|store| store.cast::<PyStore>()) {
            None => None,
            Some(Err(_)) => {
                let message =
                    "store= is a siteline.Store: what it has seen tells what a scan takes.";
                return Err(raise(py, &Error::new(Kind::Query, message)));
            }
            Some(Ok(store)) => Some(&*store.get().0),
        };
        let now = client.time().now();
        let wholes: Vec<&Whole> = scans.iter().map(|scan| &*scan.get().whole).collect();
        let tasks = step(py, || {
            let states = store.map_or(Ok(Vec::new()), states)?;
            Ok(wholes.iter().map(|whole| task(client, &states, whole, now)).collect())
        })?;
        let tasks: Vec<Task> = tasks.map_err(|error: Error| raise(py, &error))?;
        let pages = tasks.iter().map(|task| task.pages).sum();
        let allowance = client.allowance().map_err(|error| raise(py, &error))?;
        object(py, &Plan { tasks, pages, allowance, reserve: 0, now }, "scan")
    }
}

/// An iterator's items in a list; everything else as it is.
fn listed<'py>(what: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if what.hasattr("__next__")? {
        return Ok(
            PyList::new(what.py(), what.try_iter()?.collect::<PyResult<Vec<_>>>()?)?.into_any()
        );
    }
    Ok(what.clone())
}

/// The feeds of a store and what it knows of them.
fn states(store: &Store) -> Result<Vec<(String, State)>> {
    let mut states = Vec::new();
    for name in store.feeds()? {
        if let Some(state) = store.state(&name)? {
            states.push((name, State::from_bytes(&state)?));
        }
    }
    Ok(states)
}

/// What a scan still costs.
fn task(client: &Client, states: &[(String, State)], whole: &Whole, now: Timestamp) -> Task {
    let query = whole.scan().query();
    let of_feed = expected(states, query);
    let known = of_feed.as_ref().map(|(_, pages)| *pages);
    let pages = whole.pages_left(known.or_else(|| client.expected_pages(query)));
    Task {
        feed: of_feed.map(|(name, _)| name).unwrap_or_default(),
        why: Why::Fill,
        start: query.start().unwrap_or(Timestamp::UNIX_EPOCH),
        end: query.end().unwrap_or(now),
        pages,
    }
}

/// The first feed that asks what the query asks, and the pages that it makes expect.
fn expected(states: &[(String, State)], query: &Query) -> Option<(String, u64)> {
    let (start, end) = (query.start()?, query.end()?);
    states.iter().find_map(|(name, state)| {
        state.feed().query(start, end).ok().filter(|same| same == query)?;
        Some((name.clone(), state.expected_pages(start, end)?))
    })
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
