//! A sync: fetch and apply, page after page. Fetching waits for the service and can be given up at
//! any time; applying writes, and is done to its end.

use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use pyo3::exceptions::PyTypeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use crate::client::Client;
use crate::client::progress::Progress;
use crate::error::{Error, Kind, Result};
use crate::python::awaitable;
use crate::python::conversions::{duration, instant, refuse};
use crate::python::errors::raise;
use crate::python::feed::PyFeed;
use crate::python::progress::{Audience, Reporter, end, event};
use crate::python::runtime::{block_on, guarded, spawn, spawn_step, step};
use crate::python::shape::PyShape;
use crate::python::store::PyStore;
use crate::python::summary;
use crate::python::target::PyTarget;
use crate::store::{Store, Target};
use crate::sync::{Feed, Run, SyncSettings};

/// The arguments of `client.sync` as Python gave them.
pub(crate) struct Asked<'py> {
    pub(crate) feeds: Bound<'py, PyAny>,
    pub(crate) store: Bound<'py, PyAny>,
    pub(crate) until: Option<Bound<'py, PyAny>>,
    pub(crate) now: Option<Bound<'py, PyAny>>,
    pub(crate) reread: Option<Bound<'py, PyAny>>,
    pub(crate) shape: Option<Bound<'py, PyShape>>,
    pub(crate) progress: Option<Bound<'py, PyAny>>,
    pub(crate) deadline: Option<Bound<'py, PyAny>>,
}

/// What a run is begun with.
pub(crate) struct Order {
    client: Client,
    pub(crate) home: Home,
    pub(crate) feeds: Vec<Feed>,
    pub(crate) settings: SyncSettings,
    reporter: Option<Reporter>,
}

/// Where the points go.
#[derive(Clone)]
pub(crate) enum Home {
    /// A store of ours: it is used with the interpreter released.
    Own(Arc<Store>),
    /// The user's: it is called with the interpreter held.
    Foreign(Arc<PyTarget>),
}

impl Home {
    /// # Errors
    /// `QueryError` for what is no store.
    pub(crate) fn of(store: &Bound<'_, PyAny>, feeds: &[Feed], client: &Client) -> PyResult<Self> {
        if let Ok(store) = store.cast::<PyStore>() {
            return Ok(Self::Own(Arc::clone(&store.get().0)));
        }
        let host = client.base_url().host().to_owned();
        Ok(Self::Foreign(Arc::new(PyTarget::new(store, feeds, host)?)))
    }

    pub(crate) fn target(&self) -> Arc<dyn Target> {
        match self {
            Self::Own(store) => Arc::clone(store) as Arc<dyn Target>,
            Self::Foreign(target) => Arc::clone(target) as Arc<dyn Target>,
        }
    }

    /// Runs a step that reads or writes the store, on this thread.
    pub(crate) fn step<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce() -> Result<T> + Send,
    ) -> PyResult<T> {
        match self {
            Self::Own(_) => step(py, work)?.map_err(|error| raise(py, &error)),
            Self::Foreign(target) => target.outcome(py, work()),
        }
    }

    /// As [`Home::step`], as an awaitable of the running asyncio loop, which a store of ours does not
    /// hold up.
    fn spawn<'py, T: Send + 'static>(
        &self,
        py: Python<'py>,
        work: impl FnOnce() -> Result<T> + Send + 'static,
        finish: impl FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Self::Own(_) => spawn_step(py, work, finish),
            Self::Foreign(target) => {
                let outcome = guarded(|| target.outcome(py, work()));
                awaitable::done(py, outcome.and_then(|value| finish(py, value)))
            }
        }
    }
}

impl<'py> Asked<'py> {
    /// # Errors
    /// `TypeError` for a keyword that is not known, and for a shape that is none.
    pub(crate) fn with(
        feeds: Bound<'py, PyAny>,
        store: Bound<'py, PyAny>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Self> {
        let names = ["until", "now", "reread", "shape", "progress", "deadline"];
        let [until, now, reread, shape, progress, deadline] = keywords("sync", names, options)?;
        let shape = shape.map(Bound::cast_into).transpose()?;
        Ok(Self { feeds, store, until, now, reread, shape, progress, deadline })
    }

    /// # Errors
    /// `QueryError` for wrong arguments, `ClosedError` for a client that was closed: a run that has
    /// nothing to read would not notice it.
    pub(crate) fn order(self, py: Python<'_>, client: &Client) -> PyResult<Order> {
        if client.is_closed() {
            return Err(raise(py, &Error::new(Kind::Closed, "the client is closed")));
        }
        let feeds = feeds(&self.feeds, "a siteline.Feed, or a list of them")?;
        let audience = Audience::from_argument(self.progress.as_ref())?;
        let at = |given: Option<Bound<'_, PyAny>>, name| {
            given.map(|given| instant(&given, name)).transpose()
        };
        let settings = SyncSettings {
            until: at(self.until, "until")?,
            now: at(self.now, "now")?,
            reread: self.reread.map(|ranges| reread(&ranges)).transpose()?.unwrap_or_default(),
            shape: self.shape.map(|shape| shape.get().0.clone()).unwrap_or_default(),
            deadline: self.deadline.map(|deadline| duration(&deadline, "deadline")).transpose()?,
        };
        let home = Home::of(&self.store, &feeds, client)?;
        let names: Vec<&str> = feeds.iter().map(|feed| feed.input().name.as_str()).collect();
        let title = names.join(", ");
        let reporter = audience.map(|audience| audience.reporter(py, &title)).transpose()?;
        let reporter = reporter.flatten();
        Ok(Order { client: client.clone(), home, feeds, settings, reporter })
    }
}

/// The keywords of a method of the client, by name; what is `None` was not given.
///
/// # Errors
/// `TypeError` for one that is not known: a misspelt bound would bound nothing.
pub(crate) fn keywords<'py, const COUNT: usize>(
    method: &str,
    names: [&str; COUNT],
    given: Option<&Bound<'py, PyDict>>,
) -> PyResult<[Option<Bound<'py, PyAny>>; COUNT]> {
    let mut values = [const { None }; COUNT];
    for (name, value) in given.into_iter().flatten() {
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
pub(crate) fn feeds(feeds: &Bound<'_, PyAny>, known: &str) -> PyResult<Vec<Feed>> {
    let py = feeds.py();
    if let Ok(feed) = feeds.cast::<PyFeed>() {
        return Ok(vec![feed.get().0.clone()]);
    }
    let refused = || refuse(py, Kind::Query, format!("feeds= is {known}."));
    if feeds.is_instance_of::<PyString>() {
        return Err(refused());
    }
    let one = |feed: PyResult<Bound<'_, PyAny>>| {
        Ok(feed?.cast::<PyFeed>().map_err(|_| refused())?.get().0.clone())
    };
    let feeds = feeds.try_iter().map_err(|_| refused())?.map(one).collect::<PyResult<Vec<_>>>()?;
    if feeds.is_empty() {
        return Err(refuse(py, Kind::Query, "feeds= is empty: there is nothing to read."));
    }
    Ok(feeds)
}

/// One range or a list of them.
pub(crate) fn reread(ranges: &Bound<'_, PyAny>) -> PyResult<Vec<(Timestamp, Timestamp)>> {
    let py = ranges.py();
    let refused = || {
        let message = "reread= is a range (start, end), or a list of such ranges.";
        refuse(py, Kind::Query, message)
    };
    let range = |range: &Bound<'_, PyAny>| -> PyResult<(Timestamp, Timestamp)> {
        let (start, end): (Bound<'_, PyAny>, Bound<'_, PyAny>) =
            range.extract().map_err(|_| refused())?;
        let (start, end) = (instant(&start, "reread")?, instant(&end, "reread")?);
        if start >= end {
            let message = format!("reread= has a range whose start, {start}, is not before {end}.");
            return Err(refuse(py, Kind::Query, message));
        }
        Ok((start, end))
    };
    if let Ok(pair) = ranges.cast::<PyTuple>()
        && pair.len() == 2
        && !pair.get_item(0)?.is_instance_of::<PyTuple>()
    {
        return Ok(vec![range(ranges)?]);
    }
    if ranges.is_instance_of::<PyString>() {
        return Err(refused());
    }
    ranges.try_iter().map_err(|_| refused())?.map(|one| range(&one?)).collect()
}

/// `client.sync`: to the end, on this thread.
pub(crate) fn sync(py: Python<'_>, order: Order) -> PyResult<Bound<'_, PyAny>> {
    guarded(|| {
        let run = PyRun::begun(
            order.home.clone(),
            order.home.step(py, || order.begin())?,
            order.reporter,
        );
        let report = run.to_the_end(py);
        run.end(py)?;
        report
    })
}

/// `client.sync` for asyncio: an awaitable of a `_Run`.
pub(crate) fn begin(py: Python<'_>, order: Order) -> PyResult<Bound<'_, PyAny>> {
    let home = order.home.clone();
    let Order { client, home: to, feeds, settings, reporter } = order;
    let work = move || Run::begin(&client, to.target(), &feeds, settings);
    let kept = home.clone();
    home.spawn(py, work, move |py, run| {
        Ok(Py::new(py, PyRun::begun(kept, run, reporter))?.into_any())
    })
}

impl Order {
    fn begin(&self) -> Result<Run> {
        Run::begin(&self.client, self.home.target(), &self.feeds, self.settings.clone())
    }
}

/// A run under way, for `siteline.aio`.
#[pyclass(frozen, name = "_Run", module = "siteline._siteline")]
pub(crate) struct PyRun {
    home: Home,
    run: Mutex<Option<Arc<Run>>>,
    reporter: Option<Reporter>,
}

impl PyRun {
    fn begun(home: Home, run: Run, reporter: Option<Reporter>) -> Self {
        Self { home, run: Mutex::new(Some(Arc::new(run))), reporter }
    }

    fn run(&self, py: Python<'_>) -> PyResult<Arc<Run>> {
        let run = self.run.lock().unwrap_or_else(PoisonError::into_inner).clone();
        run.ok_or_else(|| raise(py, &Error::new(Kind::Closed, "this run is over")))
    }

    fn to_the_end<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let run = self.run(py)?;
        let fetched = || {
            let run = Arc::clone(&run);
            block_on(py, async move { run.fetch().await })?.map_err(|error| raise(py, &error))
        };
        while fetched()? {
            let progress = self.home.step(py, || run.apply())?;
            if let Some(reporter) = &self.reporter {
                reporter.tell(py, &progress)?;
            }
            // Pages that come at once leave no wait in which it would be heard.
            py.check_signals()?;
        }
        let report = self.home.step(py, || run.keep().and_then(|()| run.report()))?;
        summary::report(py, &report)
    }

    /// Lets go of the feeds, for the next one.
    fn end(&self, py: Python<'_>) -> PyResult<()> {
        let run = self.run.lock().unwrap_or_else(PoisonError::into_inner).take();
        let ended = end(py, self.reporter.as_ref());
        self.home.step(py, || {
            // Where a cancelled call still holds the run, too.
            run.inspect(|run| run.release());
            Ok(())
        })?;
        ended
    }
}

#[pymethods]
impl PyRun {
    /// Whom to tell of it: a callable or ``None``.
    fn _reporter(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.reporter.as_ref().map(|reporter| reporter.0.clone_ref(py))
    }

    /// An awaitable: reads the next page; ``False`` where nothing is left to do. Cancelled, it leaves
    /// the run where it was.
    fn _fetch<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let run = self.run(py)?;
        spawn(py, async move { run.fetch().await }, |py, more| {
            let more = more.map_err(|error| raise(py, &error))?;
            Ok(more.into_pyobject(py)?.to_owned().into_any().unbind())
        })
    }

    /// An awaitable: applies the page; a ``Progress``. Cancelled, it is done to its end all the same.
    fn _apply<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let run = self.run(py)?;
        let tell = |py: Python<'_>, now: Progress| event(py, &now).map(Bound::unbind);
        self.home.spawn(py, move || run.apply(), tell)
    }

    /// An awaitable: the ``SyncReport``.
    fn _report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let run = self.run(py)?;
        let made = |py: Python<'_>, report| summary::report(py, &report).map(Bound::unbind);
        self.home.spawn(py, move || run.keep().and_then(|()| run.report()), made)
    }

    /// Lets go of the feeds, for the next one.
    fn _end(&self, py: Python<'_>) -> PyResult<()> {
        guarded(|| self.end(py))
    }

    /// For the garbage collector: ``progress=`` may be a method of whoever keeps the run.
    #[expect(clippy::needless_pass_by_value, reason = "PyO3 gives it by value")]
    fn __traverse__(&self, visit: PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
        visit.call(self.reporter.as_ref().map(|reporter| &reporter.0))
    }
}
