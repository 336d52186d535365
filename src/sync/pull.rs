//! `siteline.types.SyncPages`: a sync in the pull form. Its pages and states are handed to whoever asks for the
//! next one, and asking says that the one before was stored.

use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use tokio::sync::Notify;

use crate::bridge::errors::IntoPyErr as _;
use crate::bridge::errors::OrRaise as _;
use crate::bridge::events::SharedEvents;
use crate::bridge::process::{attached, guarded};
use crate::bridge::runtime::{block_on, drop_detached, spawn, step};
use crate::client::PyClient;
use crate::client::progress::{ProgressCallback, finish};
use crate::frame::PageSource;
use crate::sync::arguments::RunArgs;
use crate::sync::report::report_object;
use crate::sync::target::{SyncedPages, bytes_or_none};
use siteline_base::lock::Mutex;
use siteline_core::error::{Error, Kind, Result};
use siteline_core::store::{Applied, Delivery, Target};
use siteline_core::sync::{NextWrite, Run, SyncReport};

/// The states with which a pull begins; what follows from them is the caller's.
#[derive(Debug)]
struct KnownStates(HashMap<String, Vec<u8>>);

impl Target for KnownStates {
    fn lock(&self, _feed: &str) -> Result<Box<dyn Any + Send>> {
        Ok(Box::new(()))
    }

    fn state(&self, feed: &str) -> Result<Option<Vec<u8>>> {
        Ok(self.0.get(feed).cloned())
    }

    fn apply(&self, _: &str, _: Option<&Delivery<'_>>, _: &[u8]) -> Result<Applied> {
        Err(Error::new(Kind::InternalError, "the pages of a pull are stored by its caller"))
    }
}

/// What is handed over: a page, or none where only a state changes, and the state of its feed.
type Handed<'py> = (Option<PageSource>, Bound<'py, PyDict>);

/// The pages of a sync, one after the other, each with the state to store with it.
///
/// Made by :meth:`Client.sync_pages`. Asking for the next page says that the one before was stored, with
/// its state. For one thread: where two ask at a time, one gets a ``RuntimeError``.
///
/// >>> feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h",
/// ...                      start="2026-11-15T00:00Z")
/// >>> with client.sync_pages(feed, {}) as pages:
/// ...     rows = sum(0 if page is None else len(page) for page, state in pages)
/// >>> pages.report.complete, pages.report.inserted == rows > 0
/// (True, True)
#[pyclass(frozen, weakref, name = "SyncPages", module = "siteline.types")]
pub(crate) struct PySyncPages {
    run: Mutex<Option<Arc<Run>>>,
    pages: SyncedPages,
    callback: Option<ProgressCallback>,
    client: Py<PyClient>,
    buffer: SharedEvents,
    place: Mutex<Place>,
    /// Whether a call asks for the next page.
    is_asked: AtomicBool,
    /// Ends the wait for a page.
    closed: Arc<Notify>,
}

/// Where a pull is.
#[derive(Default)]
struct Place {
    /// What was handed over, and is stored when the next is asked for.
    handed: Option<NextWrite>,
    /// What its caller said of its points.
    counts: Option<Applied>,
    /// At the end: the states of feeds without a page, once they are known.
    last: Option<VecDeque<(String, Vec<u8>)>>,
    report: Option<SyncReport>,
}

impl PySyncPages {
    /// # Errors
    /// As [`RunArgs::new`]; `TypeError` for states that are none, those of [`Run::begin`].
    pub(crate) fn new(
        client: &Bound<'_, PyClient>,
        feeds: &Bound<'_, PyAny>,
        states: Option<&Bound<'_, PyAny>>,
        options: &Bound<'_, PyDict>,
    ) -> PyResult<Self> {
        let (py, core) = (feeds.py(), &client.get().client);
        let RunArgs { feeds, settings, callback, .. } =
            RunArgs::new("sync_pages", core, client.get().shape(py)?, feeds, options)?;
        let names = feeds.iter().map(siteline_core::sync::Feed::name);
        let known = states.map_or_else(|| Ok(HashMap::new()), |states| known(states, names))?;
        let begin = || Run::begin(core, Arc::new(KnownStates(known)), &feeds, settings);
        let run = guarded(|| step(py, begin)?.or_raise())?;
        Ok(Self {
            run: Mutex::new(Some(Arc::new(run))),
            pages: SyncedPages::new(&feeds, core),
            callback,
            client: client.clone().unbind(),
            buffer: SharedEvents::default(),
            place: Mutex::default(),
            is_asked: AtomicBool::new(false),
            closed: Arc::default(),
        })
    }

    /// The run; `None` after its end.
    fn run(&self) -> Option<Arc<Run>> {
        self.run.lock().clone()
    }

    /// What was handed over is stored.
    fn store(&self, py: Python<'_>, run: &Arc<Run>) -> PyResult<()> {
        run.check_process().or_raise()?;
        let (handed, counts) = {
            let mut place = self.place.lock();
            (place.handed.take(), place.counts.take())
        };
        let Some(handed) = handed else { return Ok(()) };
        let progress = step(py, || {
            run.written(handed, counts);
            run.progress()
        })?;
        self.callback.as_ref().map_or(Ok(()), |callback| callback.report(py, &progress))
    }

    /// Takes what is to be stored next, after a fetch that said whether there is something.
    fn take<'py>(
        &self,
        py: Python<'py>,
        run: &Run,
        is_more: bool,
    ) -> PyResult<Option<Handed<'py>>> {
        if is_more && let Some(write) = run.next_write() {
            let delivery = write.delivery();
            let page = delivery.map(|delivery| self.pages.page(write.feed(), &delivery));
            let handed = (page.transpose().or_raise()?, state(py, write.feed(), &write.state())?);
            let mut place = self.place.lock();
            (place.handed, place.counts) = (Some(write), None);
            return Ok(Some(handed));
        }
        if !self.is_read() {
            let new = step(py, || run.new_states())?.or_raise()?;
            self.place.lock().last = Some(new.into());
        }
        let last = self.place.lock().last.as_mut().and_then(VecDeque::pop_front);
        last.map(|(feed, bytes)| Ok((None, state(py, &feed, &bytes)?))).transpose()
    }

    /// Whether all pages were handed over: what is left are states. Nothing is read after that, because a
    /// page that came then would have a later state.
    fn is_read(&self) -> bool {
        self.place.lock().last.is_some()
    }

    /// Reads until there is something to store; `false` where nothing is left, or it was closed meanwhile.
    fn fetch(&self, run: Arc<Run>) -> impl Future<Output = Result<bool>> + Send + use<> {
        let (closed, is_read) = (Arc::clone(&self.closed), self.is_read());
        async move {
            if is_read {
                return Ok(false);
            }
            tokio::select! {
                biased;
                () = closed.notified() => Ok(false),
                is_more = run.fetch() => is_more,
            }
        }
    }

    fn next<'py>(&self, py: Python<'py>) -> PyResult<Option<Handed<'py>>> {
        let Some(_asked) = Asked::begin(&self.is_asked) else {
            let message =
                "the next page is being asked for already: a SyncPages is for one thread.";
            return Err(PyRuntimeError::new_err(message));
        };
        let Some(run) = self.run() else { return Ok(None) };
        self.store(py, &run)?;
        // If the page has arrived already, no wait handles signals.
        py.check_signals()?;
        let is_more = block_on(py, &self.buffer.get(), self.fetch(run))?.or_raise()?;
        self.hand_over(py, is_more)
    }

    /// Hands over what is to be stored next, and ends the sync where there is nothing.
    fn hand_over<'py>(&self, py: Python<'py>, is_more: bool) -> PyResult<Option<Handed<'py>>> {
        // It may have been closed meanwhile.
        let Some(run) = self.run() else { return Ok(None) };
        let handed = self.take(py, &run, is_more)?;
        if handed.is_none() {
            self.end(py)?;
        }
        Ok(handed)
    }

    /// Ends the run, and keeps its report.
    fn end(&self, py: Python<'_>) -> PyResult<()> {
        let Some(run) = self.run.lock().take() else { return Ok(()) };
        if run.check_process().is_err() {
            // A forked child has nothing to end: the run goes on in its parent.
            return Ok(());
        }
        self.closed.notify_one();
        self.buffer.end();
        let told = self.tell_revised(py, &run);
        let under_way = run.stop();
        let ended = under_way.map_or(Ok(()), |requests| drop_detached(py, requests));
        let report = step(py, || {
            run.release();
            run.report()
        })?;
        let reported = report.map(|report| self.place.lock().report = Some(report));
        finish(py, self.callback.as_ref()).and(told).and(ended)?;
        reported.or_raise()
    }

    /// Tells how many points the run has revised, where its caller said so.
    fn tell_revised(&self, py: Python<'_>, run: &Arc<Run>) -> PyResult<()> {
        let Some(instrument) = self.client.get().notes.instrument() else { return Ok(()) };
        let revised = step(py, || run.revised())?;
        instrument.call_method1(py, intern!(py, "revised"), (revised,)).map(drop)
    }
}

/// Marks that a call asks for the next page.
struct Asked<'a>(&'a AtomicBool);

impl<'a> Asked<'a> {
    /// `None` while another call does.
    fn begin(is_asked: &'a AtomicBool) -> Option<Self> {
        (!is_asked.swap(true, Ordering::Acquire)).then(|| Self(is_asked))
    }
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// The states of these feeds in a mapping.
fn known<'a>(
    states: &Bound<'_, PyAny>,
    names: impl Iterator<Item = &'a str>,
) -> PyResult<HashMap<String, Vec<u8>>> {
    let mut known = HashMap::new();
    for name in names {
        let get = states.getattr(intern!(states.py(), "get")).map_err(|_| {
            PyTypeError::new_err("states= is a mapping of feed names to the bytes of their states.")
        })?;
        if let Some(state) = bytes_or_none("states= has", &get.call1((name,))?)? {
            known.insert(name.to_owned(), state);
        }
    }
    Ok(known)
}

fn state<'py>(py: Python<'py>, feed: &str, bytes: &[u8]) -> PyResult<Bound<'py, PyDict>> {
    let state = PyDict::new(py);
    state.set_item(feed, PyBytes::new(py, bytes))?;
    Ok(state)
}

#[pymethods]
impl PySyncPages {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Handed<'py>>> {
        guarded(|| self.next(py))
    }

    /// Say what the page that was handed over last has changed where you keep it: for ``report``, and
    /// for audits, which read a range again where something came after its lateness.
    ///
    /// ``withdrawn`` are those that a complete read of their range no longer brought. Where nothing is said,
    /// all points of a page count as inserted.
    #[pyo3(signature = (inserted, revised, unchanged, withdrawn=0))]
    fn applied(&self, inserted: u64, revised: u64, unchanged: u64, withdrawn: u64) {
        self.place.lock().counts =
            Some(Applied { inserted, revised, unchanged, flagged: withdrawn });
    }

    /// What the sync has done so far, or had done at its end: a :class:`SyncReport`. The page that was
    /// handed over last counts when the next is asked for.
    #[getter]
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let known = self.place.lock().report.clone();
        let report = match (known, self.run()) {
            (Some(report), _) => report,
            (None, Some(run)) => guarded(|| step(py, || run.report())?.or_raise())?,
            (None, None) => {
                return Err(Error::new(Kind::ClosedError, "this sync is over").into_py_err());
            }
        };
        report_object(py, &report)
    }

    /// End the sync here. The page that was handed over last counts as not stored: a sync that begins
    /// with the states before it reads it again. Closing again does nothing.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        guarded(|| self.end(py))
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyAny>) -> PyResult<()> {
        self.close(py)
    }

    /// For asyncio: what was handed over is stored; an awaitable that reads on, and says whether there
    /// is more.
    fn _fetch<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let over = || Error::new(Kind::ClosedError, "this sync is over");
        let run = self.run().ok_or_else(over).or_raise()?;
        guarded(|| self.store(py, &run))?;
        spawn(py, self.buffer.get(), self.fetch(run), |py, more| {
            Ok(more.or_raise()?.into_pyobject(py)?.to_owned().into_any().unbind())
        })
    }

    /// After ``_fetch()``: the next page and state; ``None`` at the end.
    fn _take<'py>(&self, py: Python<'py>, is_more: bool) -> PyResult<Option<Handed<'py>>> {
        guarded(|| self.hand_over(py, is_more))
    }

    /// Whether it has ended.
    fn _is_over(&self) -> bool {
        self.run.lock().is_none()
    }

    /// For the garbage collector: ``progress=`` may be a method of whoever keeps this.
    fn __traverse__(&self, visit: PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
        visit.call(&self.client)?;
        visit.call(self.callback.as_ref().map(|callback| &callback.0))
    }
}

impl Drop for PySyncPages {
    fn drop(&mut self) {
        let Some(run) = self.run.get_mut().take() else { return };
        let mut under_way = run.stop();
        if under_way.is_none() {
            return;
        }
        // If the process is ending, the connections are no longer driven, and close with it.
        attached(|py| under_way.take().map(|requests| drop_detached(py, requests)));
        std::mem::forget(under_way);
    }
}
