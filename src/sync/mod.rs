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

use crate::bridge::call::Call;
use crate::bridge::errors::OrRaise as _;
use crate::bridge::events::{SharedEvents, after_events};
use crate::bridge::observers::Observers;
use crate::bridge::process::guarded;
use crate::bridge::runtime::{drop_detached, step};
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
    notes: Arc<Observers>,
    /// A request may be under way between two calls. What is told of requests is told when their page was
    /// applied, so that an exception there costs no page.
    buffer: SharedEvents,
}

impl PyRun {
    fn new(
        target: SyncTarget,
        run: Run,
        callback: Option<ProgressCallback>,
        notes: Arc<Observers>,
    ) -> Self {
        let run = Mutex::new(Some(Arc::new(run)));
        Self { target, run, callback, notes, buffer: SharedEvents::that_defer_requests() }
    }

    fn run(&self) -> PyResult<Arc<Run>> {
        let run = self.run.lock().clone();
        run.ok_or_else(|| Error::new(Kind::ClosedError, "this run is over")).or_raise()
    }

    fn read(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let applied = || {
            let is_pending = self.fetch()?.wait(py)?.is_truthy(py)?;
            is_pending.then(|| self.apply()?.wait(py)).transpose()
        };
        while let Some(progress) = self.tell_before(py, applied())? {
            if let Some(callback) = &self.callback {
                callback.0.call1(py, (progress,))?;
            }
            // If the page had arrived already, no wait has handled signals.
            py.check_signals()?;
        }
        self.report()?.wait(py)
    }

    fn tell_before<T>(&self, py: Python<'_>, outcome: PyResult<T>) -> PyResult<T> {
        after_events(py, self.buffer.get().handle_all(py), outcome)
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
    /// The callback for its progress, or `None`.
    fn progress_callback(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.callback.as_ref().map(|callback| callback.0.clone_ref(py))
    }

    /// Reads all pages, applies them and ends the run: the `SyncReport`. One call, so that no signal handler
    /// runs between a page and the end.
    fn finish(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        guarded(|| {
            let report = self.read(py);
            let ended = self.end(py);
            if let (Err(_), Err(ended)) = (&report, &ended) {
                ended.clone_ref(py).write_unraisable(py, None);
            }
            report.and_then(|report| ended.map(|_| report))
        })
    }

    /// Reads the next page; gives `False` if nothing is left to do. If it is cancelled, the run stays where it
    /// was.
    fn fetch(&self) -> PyResult<Call> {
        let run = self.run()?;
        Ok(Call::new(self.buffer.get(), async move { run.fetch().await }, |py, more| {
            Ok(more.or_raise()?.into_pyobject(py)?.to_owned().into_any().unbind())
        }))
    }

    /// Notifies the observers of requests, after the page was applied or could not be read.
    fn tell(&self, py: Python<'_>) -> PyResult<()> {
        guarded(|| self.tell_before(py, Ok(())))
    }

    /// Applies the page; gives a `Progress`. Once begun it completes, even if it is cancelled.
    fn apply(&self) -> PyResult<Call> {
        let run = self.run()?;
        let apply = move || run.apply();
        Ok(self.target.call(apply, |py, now| event(py, &now).map(Bound::unbind)))
    }

    /// Gives the `SyncReport`.
    fn report(&self) -> PyResult<Call> {
        let run = self.run()?;
        let report = move || run.keep().and_then(|()| run.report());
        Ok(self.target.call(report, |py, report| report_object(py, &report).map(Bound::unbind)))
    }

    /// Releases the feeds: `None`, or an awaitable if the store is async.
    #[pyo3(name = "end")]
    fn end_run<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        guarded(|| self.end(py))
    }

    /// For the garbage collector: ``progress=`` may be a method of whoever keeps the run.
    fn __traverse__(&self, visit: PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
        visit.call(self.callback.as_ref().map(|callback| &callback.0))
    }
}

#[pymethods]
impl PyClient {
    /// Begins a sync: gives a `_Run`.
    fn sync<'py>(
        &self,
        py: Python<'py>,
        feeds: &Bound<'py, PyAny>,
        store: &Bound<'py, PyAny>,
        options: &Bound<'py, PyDict>,
    ) -> PyResult<Call> {
        let shape = self.shape(py)?;
        let SyncArgs { target, callback, begin } =
            SyncArgs::new(&self.client, shape, feeds, store, options)?;
        let (notes, of_run) = (Arc::clone(&self.notes), target.clone());
        let made = |py: Python<'_>, run| {
            Ok(Py::new(py, PyRun::new(of_run, run, callback, notes))?.into_any())
        };
        Ok(match begin {
            Begin::AtOnce(begin) => target.call(begin, made),
            Begin::WhenFree(begin) => {
                Call::new(Arc::default(), begin, move |py, run| made(py, run.or_raise()?))
            }
        })
    }

    #[pyo3(signature = (feeds, states, options))]
    fn sync_pages(
        slf: &Bound<'_, Self>,
        feeds: &Bound<'_, PyAny>,
        states: Option<&Bound<'_, PyAny>>,
        options: &Bound<'_, PyDict>,
    ) -> PyResult<PySyncPages> {
        PySyncPages::new(slf, feeds, states, options)
    }
}
