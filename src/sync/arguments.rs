//! The arguments of `client.sync` and `client.plan`.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use crate::bridge::call::{Call, Driver};
use crate::bridge::errors::IntoPyErr as _;
use crate::bridge::errors::OrRaise as _;
use crate::bridge::event_loop;
use crate::bridge::process::guarded;
use crate::bridge::runtime::{on_blocking_thread, spawn, spawn_step, step};
use crate::client::progress::{ProgressArg, ProgressCallback};
use crate::convert::asked_time::instant_before;
use crate::convert::values::{count, duration, optional, refuse};
use crate::store::feed::feed_of;
use crate::store::store_of;
use crate::sync::target::PyTarget;
use siteline_core::client::Client;
use siteline_core::data::Shape;
use siteline_core::error::{Error, Kind, Result};
use siteline_core::store::Target;
use siteline_core::sync::{Batch, Feed, Run, SyncSettings};

/// The keywords of `client.sync`.
const KEYWORDS: [&str; 8] =
    ["until", "reread", "progress", "deadline", "wait", "concurrency", "max_pages", "batch"];

/// Most pages that are requested and not yet stored, unless `concurrency` says otherwise.
const CONCURRENCY: usize = 4;

/// The checked arguments of `client.sync`.
pub(crate) struct SyncArgs {
    pub(crate) target: SyncTarget,
    pub(crate) callback: Option<ProgressCallback>,
    pub(crate) begin: Begin,
}

/// The checked arguments but for where the points go.
pub(crate) struct RunArgs {
    pub(crate) feeds: Vec<Feed>,
    pub(crate) settings: SyncSettings,
    pub(crate) callback: Option<ProgressCallback>,
    /// How long to wait for feeds that another run writes to.
    pub(crate) wait: Option<Duration>,
}

/// Begins the run.
pub(crate) enum Begin {
    /// As a step of the target.
    AtOnce(Box<dyn FnOnce() -> Result<Run> + Send>),
    /// When its feeds are free.
    WhenFree(BoxFuture<'static, Result<Run>>),
}

/// Where the points go.
#[derive(Clone)]
pub(crate) struct SyncTarget {
    pub(crate) target: Arc<dyn Target>,
    /// The same where it is no `siteline.Store`, which is used with the interpreter released: a
    /// `siteline.targets.StoreTarget` is called with the interpreter held, and the methods of a
    /// `siteline.targets.AsyncStoreTarget` are awaited on the event loop that runs the sync.
    python: Option<Arc<PyTarget>>,
}

impl SyncTarget {
    /// # Errors
    /// `QueryError` for what is no store, `ConfigError` for an async one in a sync call.
    pub(crate) fn new(store: &Bound<'_, PyAny>, feeds: &[Feed], client: &Client) -> PyResult<Self> {
        if let Some(store) = store_of(store)? {
            return Ok(Self { target: store as _, python: None });
        }
        let python = Arc::new(PyTarget::new(store, feeds, client)?);
        Ok(Self { target: Arc::clone(&python) as _, python: Some(python) })
    }

    pub(crate) fn is_async(&self) -> bool {
        self.python.as_ref().is_some_and(|python| python.is_async)
    }

    /// Runs a step that reads or writes the store, on this thread.
    pub(crate) fn step<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce() -> Result<T> + Send,
    ) -> PyResult<T> {
        match &self.python {
            None => step(py, work)?.or_raise(),
            Some(python) => python.outcome(py, work()),
        }
    }

    /// As [`SyncTarget::spawn`] in asyncio, otherwise as [`SyncTarget::step`].
    pub(crate) fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T> + Send + 'static,
        finish: impl FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> Call {
        let target = self.clone();
        Call::of_work(move |py, driver| match driver {
            Driver::Blocking => target.step(py, work).and_then(|done| finish(py, done)),
            Driver::Asyncio => target.spawn(py, work, finish).map(Bound::unbind),
        })
    }

    /// As [`SyncTarget::step`], as an awaitable of the running asyncio loop, which neither a
    /// `siteline.Store` nor an async target blocks. Once begun it completes.
    pub(crate) fn spawn<'py, T: Send + 'static>(
        &self,
        py: Python<'py>,
        work: impl FnOnce() -> Result<T> + Send + 'static,
        finish: impl FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> PyResult<Bound<'py, PyAny>> {
        match &self.python {
            None => spawn_step(py, work, finish),
            Some(python) if !python.is_async => {
                let outcome = guarded(|| python.outcome(py, work()));
                event_loop::done(py, outcome.and_then(|value| finish(py, value)))
            }
            Some(python) => {
                let python = Arc::clone(python);
                let work = async { on_blocking_thread(work).await? };
                spawn(py, Arc::default(), work, move |py, outcome| {
                    python.outcome(py, outcome).and_then(|value| finish(py, value))
                })
            }
        }
    }
}

impl RunArgs {
    /// # Errors
    /// `QueryError` for wrong arguments, `TypeError` for a keyword that `method` does not know.
    /// `ClosedError` for a closed client: a run with nothing to read would send no request and not
    /// notice it.
    pub(crate) fn new<'py>(
        method: &str,
        client: &Client,
        shape: Shape,
        given: &Bound<'py, PyAny>,
        options: &Bound<'py, PyDict>,
    ) -> PyResult<Self> {
        let py = given.py();
        let [until, again, progress, deadline, wait, most, max_pages, pages] =
            keywords(method, KEYWORDS, options)?;
        let counted = |given: Option<Bound<'_, PyAny>>, name| {
            given.map(|given| count(&given, name, Kind::QueryError)).transpose()
        };
        let most = counted(most, "concurrency")?;
        let wait = optional(wait.as_ref(), "wait", duration)?;
        if client.is_closed() {
            return Err(Error::new(Kind::ClosedError, "the client is closed").into_py_err());
        }
        let feeds = feeds(given, "a siteline.Feed, or a list of them")?;
        let progress = ProgressArg::from_argument(progress.as_ref())?;
        let settings = SyncSettings {
            shape,
            deadline: optional(deadline.as_ref(), "deadline", duration)?,
            max_pages: counted(max_pages, "max_pages")?,
            batch: pages.as_ref().map(batch).transpose()?,
            concurrency: most.map_or(CONCURRENCY, |most| most.try_into().unwrap_or(usize::MAX)),
            ..plan_settings(client, [until, again])?
        };
        let title = feeds.iter().map(Feed::name).collect::<Vec<_>>().join(", ");
        let callback = progress.map(|progress| progress.callback(py, &title)).transpose()?;
        Ok(Self { feeds, settings, callback: callback.flatten(), wait })
    }
}

impl SyncArgs {
    /// # Errors
    /// As [`RunArgs::new`], and as [`SyncTarget::new`].
    pub(crate) fn new<'py>(
        client: &Client,
        shape: Shape,
        given: &Bound<'py, PyAny>,
        store: &Bound<'py, PyAny>,
        options: &Bound<'py, PyDict>,
    ) -> PyResult<Self> {
        let py = given.py();
        let RunArgs { feeds, settings, callback, wait } =
            RunArgs::new("sync", client, shape, given, options)?;
        let target = SyncTarget::new(store, &feeds, client)?;
        let (client, shared) = (client.clone(), Arc::clone(&target.target));
        let begin = match wait {
            None => Begin::AtOnce(Box::new(move || Run::begin(&client, shared, &feeds, settings))),
            Some(_) if target.python.is_some() => {
                let message = "wait= is for a siteline.Store: lock() of a store of yours may wait.";
                return Err(refuse(py, Kind::ConfigError, message));
            }
            Some(wait) => Begin::WhenFree(Box::pin(async move {
                Run::begin_when_free(&client, shared, &feeds, settings, wait).await
            })),
        };
        Ok(Self { target, callback, begin })
    }
}

/// How many pages are stored as one.
fn batch(given: &Bound<'_, PyAny>) -> PyResult<Batch> {
    if given.extract::<&str>().is_ok_and(|word| word == "chain") {
        return Ok(Batch::Chain);
    }
    if given.is_instance_of::<PyString>() {
        let message = "batch= is a number of pages, or \"chain\".";
        return Err(refuse(given.py(), Kind::QueryError, message));
    }
    Ok(Batch::Pages(count(given, "batch", Kind::QueryError)?.try_into().unwrap_or(usize::MAX)))
}

/// The settings that a plan takes: `until` and `reread`.
pub(crate) fn plan_settings(
    client: &Client,
    [until, again]: [Option<Bound<'_, PyAny>>; 2],
) -> PyResult<SyncSettings> {
    Ok(SyncSettings {
        until: optional(until.as_ref(), "until", service_instant(client))?,
        reread: again.map_or_else(|| Ok(Vec::new()), |ranges| reread(client, &ranges))?,
        ..SyncSettings::default()
    })
}

/// The keywords of a method of the client, in the order of `names`; `None` counts as not given.
///
/// # Errors
/// `TypeError` for one that is not known.
pub(crate) fn keywords<'py, const COUNT: usize>(
    method: &str,
    names: [&str; COUNT],
    given: &Bound<'py, PyDict>,
) -> PyResult<[Option<Bound<'py, PyAny>>; COUNT]> {
    let mut values = [const { None }; COUNT];
    for (name, value) in given {
        let Some(place) = names.iter().position(|known| name.eq(known).unwrap_or(false)) else {
            return Err(PyTypeError::new_err(format!(
                "{method}() got an unexpected keyword argument {}: it takes {}.",
                name.repr()?,
                names.join(", ")
            )));
        };
        values[place] = Some(value).filter(|value| !value.is_none());
    }
    Ok(values)
}

/// One feed or several; `known` says what is taken.
pub(crate) fn feeds(given: &Bound<'_, PyAny>, known: &str) -> PyResult<Vec<Feed>> {
    let refused = |what: &str| refuse(given.py(), Kind::QueryError, format!("feeds= is {what}."));
    if let Some(feed) = feed_of(given)? {
        return Ok(vec![feed]);
    }
    let Ok(items) = given.try_iter() else { return Err(refused(known)) };
    let feed = |item: PyResult<Bound<'_, PyAny>>| feed_of(&item?)?.ok_or_else(|| refused(known));
    let feeds = items.map(feed).collect::<PyResult<Vec<_>>>()?;
    if feeds.is_empty() {
        return Err(refused("empty: there is nothing to read"));
    }
    Ok(feeds)
}

/// The start and the end of a range.
type Pair<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>);

/// Reads an instant, or one before the service's time; one without an offset is in UTC.
fn service_instant(client: &Client) -> impl Fn(&Bound<'_, PyAny>, &str) -> PyResult<Timestamp> {
    move |given, name| instant_before(given, name, Some(&TimeZone::UTC), || Ok(client.now()))
}

/// One range or a list of them.
fn reread(client: &Client, ranges: &Bound<'_, PyAny>) -> PyResult<Vec<(Timestamp, Timestamp)>> {
    let refused = |what: &str| refuse(ranges.py(), Kind::QueryError, format!("reread= {what}"));
    let no_ranges = |_| refused("is a range (start, end), or a list of such ranges.");
    let at = service_instant(client);
    let range = |(start, end): Pair<'_>| {
        let (start, end) = (at(&start, "reread")?, at(&end, "reread")?);
        if start >= end {
            let what = format!("has a range whose start, {start}, is not before {end}.");
            return Err(refused(&what));
        }
        Ok((start, end))
    };
    match ranges.extract::<Pair<'_>>() {
        Ok(pair) if !pair.0.is_instance_of::<PyTuple>() => Ok(vec![range(pair)?]),
        Err(error) if ranges.is_instance_of::<PyString>() => Err(no_ranges(error)),
        _ => {
            let ranges = ranges.try_iter().map_err(no_ranges)?;
            ranges.map(|one| range(one?.extract().map_err(no_ranges)?)).collect()
        }
    }
}
