//! A sync: fetch and apply, page after page. Fetching waits for the service and can be given up at
//! any time; applying writes, and always completes.

mod arguments;
mod plan;
pub(crate) mod pull;
mod report;
mod target;
mod through_store;

use std::sync::Arc;

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::bridge::errors::OrRaise as _;
use crate::bridge::logging::SharedLogBuffer;
use crate::bridge::notes::{ClientNotes, tell_before};
use crate::bridge::process::guarded;
use crate::bridge::runtime::{block_on, drop_detached, spawn, step};
use crate::client::PyClient;
use crate::client::progress::{ProgressCallback, event, finish};
use crate::sync::arguments::{Begin, SyncArgs, SyncTarget};
use crate::sync::pull::PySyncPages;
use crate::sync::report::report_object;
use siteline_base::lock::Mutex;
use siteline_core::error::{Error, Kind};
use siteline_core::sync::Run;

/// A run of a sync, for `siteline.aio`.
#[pyclass(frozen, name = "_Run", module = "siteline._core")]
pub(crate) struct PyRun {
    target: SyncTarget,
    run: Mutex<Option<Arc<Run>>>,
    callback: Option<ProgressCallback>,
    notes: Arc<ClientNotes>,
    /// A request may be under way between two calls. What is told of requests is told when their page was
    /// applied, so that an exception there costs no page.
    buffer: SharedLogBuffer,
}

impl PyRun {
    fn new(
        target: SyncTarget,
        run: Run,
        callback: Option<ProgressCallback>,
        notes: Arc<ClientNotes>,
    ) -> Self {
        let run = Mutex::new(Some(Arc::new(run)));
        Self { target, run, callback, notes, buffer: SharedLogBuffer::that_tells_later() }
    }

    fn run(&self) -> PyResult<Arc<Run>> {
        let run = self.run.lock().clone();
        run.ok_or_else(|| Error::new(Kind::ClosedError, "this run is over")).or_raise()
    }

    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let run = self.run()?;
        let fetched = || {
            let run = Arc::clone(&run);
            block_on(py, &self.buffer.get(), async move { run.fetch().await })?.or_raise()
        };
        let applied = || {
            let is_pending = fetched()?;
            is_pending.then(|| self.target.step(py, || run.apply())).transpose()
        };
        while let Some(progress) = self.tell_before(py, applied())? {
            if let Some(callback) = &self.callback {
                callback.report(py, &progress)?;
            }
            // If the page had arrived already, no wait has handled signals.
            py.check_signals()?;
        }
        let report = self.target.step(py, || run.keep().and_then(|()| run.report()))?;
        report_object(py, &report)
    }

    fn tell_before<T>(&self, py: Python<'_>, outcome: PyResult<T>) -> PyResult<T> {
        tell_before(py, Some(self.buffer.get().notes()), outcome)
    }

    /// Tells how many points the run has revised.
    fn tell_revised(&self, py: Python<'_>) -> PyResult<()> {
        let (Some(instrument), Some(run)) = (self.notes.instrument(), self.run.lock().clone())
        else {
            return Ok(());
        };
        let revised = step(py, || run.revised())?;
        instrument.call_method1(py, intern!(py, "revised"), (revised,)).map(drop)
    }

    /// Stores what waits for a batch to be full, where the run has failed too, and releases the feeds. An
    /// awaitable where the store is async.
    fn end<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let told = self.tell_revised(py);
        let run = self.run.lock().take();
        let ended = finish(py, self.callback.as_ref()).and(told);
        let under_way = run.as_ref().and_then(|run| run.stop());
        let ended = under_way.map_or(Ok(()), |requests| drop_detached(py, requests)).and(ended);
        let release = || {
            let stored = run.as_ref().map_or(Ok(()), |run| run.flush());
            // The feeds are released even where a cancelled call still holds the run.
            run.inspect(|run| run.release());
            stored
        };
        if self.target.is_async() {
            let released = self.target.spawn(py, release, move |py, ()| ended.map(|()| py.None()));
            return released.map(Some);
        }
        self.target.step(py, release)?;
        ended.map(|()| None)
    }
}

#[pymethods]
impl PyRun {
    /// The callable that is given its progress, or ``None``.
    fn _progress_callback(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.callback.as_ref().map(|callback| callback.0.clone_ref(py))
    }

    /// An awaitable: reads the next page; ``False`` where nothing is left to do. Where it is cancelled,
    /// the run stays where it was.
    fn _fetch<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let run = self.run()?;
        spawn(py, self.buffer.get(), async move { run.fetch().await }, |py, more| {
            Ok(more.or_raise()?.into_pyobject(py)?.to_owned().into_any().unbind())
        })
    }

    /// After the page was applied, or could not be read: tells the requests.
    fn _tell(&self, py: Python<'_>) -> PyResult<()> {
        guarded(|| self.tell_before(py, Ok(())))
    }

    /// An awaitable: applies the page; a ``Progress``. It completes even where it is cancelled.
    fn _apply<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let run = self.run()?;
        self.target.spawn(py, move || run.apply(), |py, now| event(py, &now).map(Bound::unbind))
    }

    /// An awaitable: the ``SyncReport``.
    fn _report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let run = self.run()?;
        let made = |py: Python<'_>, report| report_object(py, &report).map(Bound::unbind);
        self.target.spawn(py, move || run.keep().and_then(|()| run.report()), made)
    }

    /// Releases the feeds: ``None``, or an awaitable where the store is async.
    fn _end<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        guarded(|| self.end(py))
    }

    /// For the garbage collector: ``progress=`` may be a method of whoever keeps the run.
    fn __traverse__(&self, visit: PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
        visit.call(self.callback.as_ref().map(|callback| &callback.0))
    }
}

#[pymethods]
impl PyClient {
    /// Bring feeds up to date in a store: the newest data, what has become due, what was never read.
    ///
    /// A page and its bookmark are stored in one transaction: after a kill at any moment, the next run
    /// continues (§4.5.2). Where the allowance is used up it stops and returns, ``complete`` False.
    /// - ``feeds``: a :class:`Feed` or a list of them, planned together
    /// - ``store``: a :class:`Store`, or an object of yours: :class:`StoreTarget`
    /// - ``until``: read no bucket that begins here or later; ``None`` reads up to now less the settle lag
    /// - ``now``: plan as if it were then; ``None`` is the service's time
    /// - ``reread``: a range ``(start, end)``, or a list of them, to read again even if it was read;
    ///   what lies before a feed's ``since`` or within its ``settle_lag`` of now is left out
    /// - ``shape``, ``progress``: as of :meth:`scan`; ``deadline`` bounds the whole run; ``None`` does not
    /// - ``wait``: how long to wait for feeds that another run writes to (``"5m"``); ``None``: not at all.
    ///   For a :class:`Store`: ``lock()`` of a store of yours may wait itself
    /// - ``concurrency``: at most so many pages are requested and not yet stored, of different feeds; the
    ///   pages are stored one at a time. The allowance, the reserve and the order in which they are spent
    ///   are kept; a kill costs no more than so many requests
    /// - ``max_pages``: at most so many pages are requested, of all feeds together; then it returns,
    ///   ``complete`` False, and the next run continues; ``None`` sets no limit. A repeat of the same page
    ///   is not counted
    /// - ``batch``: so many pages of a chain are stored as one :class:`Page`, or with ``"chain"`` all of a
    ///   chain: fewer and larger transactions, for a store that is slow to commit. They are in memory until
    ///   then, and a kill costs as many requests. ``progress`` counts them when they arrive. Where the run
    ///   ends, for whatever reason, what has arrived is stored; ``None``: each page on its own
    ///
    /// Gives a :class:`SyncReport`. Raises :class:`StoreBusy`, :class:`FeedChanged`, and the errors of
    /// a read and of the store; an error of one range is raised after the others have been read. Where
    /// it is interrupted or fails, all that was committed stays.
    ///
    /// >>> feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h",
    /// ...                      since="2026-11-15T00:00Z")
    /// >>> client.sync(feed, siteline.Store("plant.siteline")).complete
    /// True
    #[pyo3(signature = (feeds, store, **options), text_signature = "($self, feeds, store, *, until=None, \
        now=None, reread=None, shape=None, progress=None, deadline=None, wait=None, concurrency=1, \
        max_pages=None, batch=None)")]
    fn sync<'py>(
        &self,
        py: Python<'py>,
        feeds: &Bound<'py, PyAny>,
        store: &Bound<'py, PyAny>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let SyncArgs { target, callback, begin } =
            SyncArgs::new(&self.client, feeds, store, options)?;
        guarded(|| {
            let run = match begin {
                Begin::AtOnce(begin) => target.step(py, begin)?,
                Begin::WhenFree(begin) => block_on(py, &Arc::default(), begin)?.or_raise()?,
            };
            let run = PyRun::new(target, run, callback, Arc::clone(&self.notes));
            let report = run.finish(py);
            let ended = run.end(py);
            if let (Err(_), Err(ended)) = (&report, &ended) {
                ended.clone_ref(py).write_unraisable(py, None);
            }
            report.and_then(|report| ended.map(|_| report))
        })
    }

    /// The same sync in the pull form: an iterator of pages and states, for whoever is asked for data
    /// instead of asking (dlt, Kafka, Spark), and keeps the states (§4.5.2).
    ///
    /// ``for page, state in client.sync_pages(feeds, states)``: store the page and ``state`` in one
    /// transaction, both or neither, and keep ``states.update(state)`` for the next sync. Asking for the
    /// next page says that this one was stored.
    /// - ``feeds``: a :class:`Feed` or a list of them, planned together
    /// - ``states``: a mapping of feed names to the bytes that were kept last; those of a feed that is
    ///   not in it begin anew. They are opaque, and as secret as a bookmark
    /// - the others: as of :meth:`sync`. ``wait`` is for a :class:`Store`
    ///
    /// ``page`` is a :class:`Page` with ``feed``, ``sequence``, ``first_sequence``, ``is_last`` and
    /// ``query``, or ``None`` where only the state changes: a chain begins again, a range is skipped,
    /// or a feed has no page yet. ``state`` has one item: the feed's name and the bytes. Of a point that
    /// comes twice the page with the higher ``sequence`` counts, then the later row (§4.5.3).
    ///
    /// Two syncs of one feed at a time would spend the allowance twice: nothing here locks it.
    ///
    /// Gives a :class:`SyncPages`. Raises as :meth:`sync`; after an error of a read, asking again goes
    /// on.
    ///
    /// >>> feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h",
    /// ...                      since="2026-11-15T00:00Z")
    /// >>> rows, states = {}, {}
    /// >>> for page, state in client.sync_pages(feed, states):
    /// ...     for record in page.records() if page is not None else ():
    /// ...         rows[tuple(record.values())[:6]] = tuple(record.values())[6:]
    /// ...     states.update(state)
    /// >>> len(rows) > 0, list(states)
    /// (True, ['line-2'])
    #[pyo3(signature = (feeds, states=None, **options), text_signature = "($self, feeds, states=None, *, \
        until=None, now=None, reread=None, shape=None, progress=None, deadline=None, concurrency=1, \
        max_pages=None)")]
    fn sync_pages(
        slf: &Bound<'_, Self>,
        feeds: &Bound<'_, PyAny>,
        states: Option<&Bound<'_, PyAny>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PySyncPages> {
        PySyncPages::new(slf, feeds, states, options)
    }

    /// As ``sync()``, an awaitable of the running asyncio loop: a run.
    fn _begin<'py>(
        &self,
        feeds: &Bound<'py, PyAny>,
        store: &Bound<'py, PyAny>,
        options: &Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let SyncArgs { target, callback, begin } =
            SyncArgs::new(&self.client, feeds, store, Some(options))?;
        let (py, shared) = (options.py(), target.clone());
        let notes = Arc::clone(&self.notes);
        let finish = |py: Python<'_>, run| {
            Ok(Py::new(py, PyRun::new(target, run, callback, notes))?.into_any())
        };
        match begin {
            Begin::AtOnce(begin) => shared.spawn(py, begin, finish),
            Begin::WhenFree(begin) => {
                spawn(py, Arc::default(), begin, move |py, run| finish(py, run.or_raise()?))
            }
        }
    }
}
