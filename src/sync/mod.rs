//! A sync reads pages. Python stores them, except in a `siteline.Store`.

mod arguments;
mod pages;

use std::any::Any;
use std::collections::HashMap;

use tokio::sync::Notify;

use crate::client::PyClient;
use crate::client::scan::PyScan;
use crate::frame::Frame;
use crate::prelude::*;
use crate::store::StoreHandle;
use crate::sync::arguments::{RunArgs, plan_settings};
use crate::sync::pages::{Place, page_of};
use siteline_core::client::collect::CollectOnce;
use siteline_core::client::{NamesFor, ReadNames, keep_names, names_are_due};
use siteline_core::http::Deadline;
use siteline_core::store::{Applied, Delivery, Target};
use siteline_core::sync::{Feed, Run, SyncReport, ThroughStore, plan, plan_scans};

#[derive(Debug, Default)]
struct KnownStates(HashMap<String, Vec<u8>>);

impl Target for KnownStates {
    fn lock(&self, _feed: &str) -> Result<Box<dyn Any + Send>> {
        Ok(Box::new(()))
    }

    fn state(&self, feed: &str) -> Result<Option<Vec<u8>>> {
        Ok(self.0.get(feed).cloned())
    }

    fn apply(&self, _: &str, _: Option<&Delivery>, _: &[u8]) -> Result<Applied> {
        Err(Error::new(Kind::InternalError, "Python stores these pages"))
    }
}

/// Feed, page (`None` if only the state changes), and state.
type HandedOver<'py> = (String, Given<'py>, Vec<u8>);

#[pyclass(frozen, module = "siteline._core")]
pub(crate) struct SyncHandle {
    args: RunArgs,
    client: Py<PyClient>,
    /// `None` before the start and after the end.
    run: Arc<Mutex<Option<Arc<Run>>>>,
    place: Mutex<Place>,
    report: Mutex<Option<SyncReport>>,
    buffer: Arc<Events>,
    closed: Arc<Notify>,
    /// The names that the store lacks, until they are settled.
    names: Arc<Mutex<Option<Arc<ReadNames>>>>,
}

impl SyncHandle {
    fn run(&self) -> PyResult<Arc<Run>> {
        let run = self.run.lock().clone();
        run.ok_or_else(|| Error::new(Kind::ClosedError, "this sync is over")).or_raise()
    }

    fn tell_revised(&self, py: Python<'_>, run: &Arc<Run>) -> PyResult<()> {
        let Some(instrument) = self.client.get().notes.instrument() else { return Ok(()) };
        let revised = step(py, || run.revised())?;
        instrument.call_method1(py, intern!(py, "revised"), (revised,)).map(drop)
    }
}

#[pymethods]
impl SyncHandle {
    /// Loads the states, and locks the feeds of a store.
    fn begin(
        &self,
        store: Option<&StoreHandle>,
        states: HashMap<String, Vec<u8>>,
        keeps_names: bool,
    ) -> Call {
        let client = self.client.get().client.clone();
        let named = store.filter(|_| keeps_names).map(|store| Arc::clone(&store.0));
        let (slot, asker) = (Arc::clone(&self.names), client.clone());
        let wanted = move || -> Result<()> {
            let Some(store) = named else { return Ok(()) };
            if names_are_due(&asker, &store)? {
                *slot.lock() = Some(Arc::new(ReadNames::new(asker, NamesFor::Store)));
            }
            Ok(())
        };
        let (feeds, settings) = (self.args.feeds.clone(), self.args.settings.clone());
        let target: Arc<dyn Target> = match store {
            Some(store) => Arc::clone(&store.0) as _,
            None => Arc::new(KnownStates(states)),
        };
        // Stored now, so that a caller that stops waiting can end the run.
        let place = Arc::clone(&self.run);
        let keep = move |run: Run| *place.lock() = Some(Arc::new(run));
        match self.args.wait {
            None => {
                let begin = move || {
                    Run::begin(&client, target, &feeds, settings).map(keep)?;
                    wanted()
                };
                Call::step(begin, |py, ()| Ok(py.None()))
            }
            Some(wait) => Call::giving(Arc::default(), async move {
                let run = Run::begin_when_free(&client, target, &feeds, settings, wait);
                run.await.map(keep)?;
                wanted()
            }),
        }
    }

    /// Reads until there is something to store. Returns false at the end or if the sync is closed.
    fn fetch(&self) -> PyResult<Call> {
        let (run, closed) = (self.run()?, Arc::clone(&self.closed));
        let is_read = self.place.lock().is_read;
        let names = self.names.lock().clone();
        let fetch = async move {
            if let Some(names) = &names {
                names.begin();
            }
            if is_read {
                return Ok(false);
            }
            tokio::select! {
                biased;
                () = closed.notified() => Ok(false),
                is_more = run.fetch() => is_more,
            }
        };
        Ok(Call::giving(Arc::clone(&self.buffer), fetch))
    }

    /// `keep_names()` follows.
    fn settle_names(&self) -> Option<Call> {
        let names = self.names.lock().take()?;
        let run = self.run.lock().clone();
        let deadline = run.map_or(Deadline::NEVER, |run| run.deadline());
        let settle = async move { Ok(names.settle(deadline).await) };
        Some(Call::giving(Arc::clone(&self.buffer), settle))
    }

    /// Stores the names, or the reason why there are none.
    fn keep_names(&self, store: &StoreHandle) -> Call {
        let (client, store) = (self.client.get().client.clone(), Arc::clone(&store.0));
        Call::step(move || keep_names(&client, &store), |py, ()| Ok(py.None()))
    }

    /// Writes the pages to the store; at the end, the states of feeds without a page.
    fn apply(&self, is_end: bool) -> PyResult<Call> {
        let run = self.run()?;
        let write = move || if is_end { run.keep() } else { run.apply().map(drop) };
        Ok(Call::step(write, |py, ()| Ok(py.None())))
    }

    /// The next page or state, if it is ready.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<Option<HandedOver<'py>>> {
        guarded(|| {
            let Some(run) = self.run.lock().clone() else { return Ok(None) };
            let next = step(py, || self.place.lock().next(&run))?.or_raise()?;
            let Some(handed) = next else { return Ok(None) };
            let client = &self.client.get().client;
            let feed = self.args.feeds.iter().find(|feed| feed.name() == handed.feed);
            let unknown = || Error::new(Kind::InternalError, "a page came for another feed");
            let feed = feed.ok_or_else(unknown).or_raise()?;
            let delivery = handed.delivery.as_ref();
            let page = delivery.map(|delivery| page_of(feed, delivery, client));
            let page = page.transpose().or_raise()?;
            let (name, state) = (handed.feed.clone(), handed.state.clone());
            self.place.lock().handed = Some(handed);
            // From here on, an exception loses no page.
            let class = py.import("siteline.page")?.getattr("Page")?;
            let page = page.map(|page| class.call1((Frame::of_page(page),))).transpose()?;
            Ok(Some((name, page, state)))
        })
    }

    /// Returns a page that nobody got.
    fn put_back(&self) {
        self.place.lock().put_back();
    }

    /// Marks the page as stored. Returns false if there was none.
    fn written(&self, py: Python<'_>, counts: Option<(u64, u64, u64, u64)>) -> PyResult<bool> {
        guarded(|| {
            let run = self.run()?;
            run.check_process().or_raise()?;
            let Some(handed) = self.place.lock().handed.take() else { return Ok(false) };
            let applied = counts.map(|(inserted, revised, unchanged, flagged)| Applied {
                inserted,
                revised,
                unchanged,
                flagged,
            });
            step(py, || run.written(handed, applied))?;
            Ok(true)
        })
    }

    /// The target cannot store a value of the page: its range is skipped.
    fn refused(
        &self,
        message: String,
        hint: Option<String>,
        cause: Option<Object<'_>>,
    ) -> PyResult<()> {
        let run = self.run()?;
        let Some(handed) = self.place.lock().handed.take() else { return Ok(()) };
        let mut error = Error::new(Kind::StoreError, message).with(|context| {
            context.hint = hint;
            context.unstorable = true;
            let chain = handed.delivery.as_ref().map(|delivery| delivery.chain);
            context.spans = chain.map(|chain| (chain.start, chain.end)).into_iter().collect();
        });
        if let Some(cause) = cause {
            error = error.with_source(PyErr::from_value(cause));
        }
        run.refused(&handed.feed, error).or_raise()
    }

    /// Prepares the pages that wait for a full batch; at the end, the states without a page. Returns false if
    /// there are none.
    fn flush(&self, py: Python<'_>, is_end: bool) -> PyResult<bool> {
        guarded(|| {
            let Some(run) = self.run.lock().clone() else { return Ok(false) };
            step(py, || self.place.lock().flush(&run, is_end))?.or_raise()
        })
    }

    /// Notifies the observers. After a failure their exceptions are only printed.
    fn tell(&self, py: Python<'_>, has_failed: bool) -> PyResult<()> {
        guarded(|| match self.buffer.handle_all(py) {
            Err(raised) if has_failed => {
                raised.write_unraisable(py, None);
                Ok(())
            }
            told => told,
        })
    }

    fn progress<'py>(&self, py: Python<'py>) -> PyResult<Object<'py>> {
        let run = self.run()?;
        dict(py, &guarded(|| step(py, || run.progress()))?)
    }

    /// The report so far, or the final one.
    fn report(&self) -> PyResult<Call> {
        let finish = |py: Python<'_>, report: SyncReport| dict(py, &report).map(Bound::unbind);
        if let Some(report) = self.report.lock().clone() {
            return Ok(Call::step(move || Ok(report), finish));
        }
        let run = self.run()?;
        Ok(Call::step(move || run.report(), finish))
    }

    fn is_over(&self) -> bool {
        self.run.lock().is_none()
    }

    fn end(&self, py: Python<'_>) -> PyResult<()> {
        guarded(|| {
            let Some(run) = self.run.lock().take() else { return Ok(()) };
            if run.check_process().is_err() {
                // The run continues in the parent.
                return Ok(());
            }
            self.closed.notify_one();
            drop(self.names.lock().take());
            self.buffer.end();
            let told = self.tell_revised(py, &run);
            let under_way = run.stop();
            // Dropping a request may start a task.
            let ended = step_in_runtime(py, &self.buffer, || drop(under_way));
            let report = step(py, || {
                run.release();
                run.report()
            })?;
            let reported = report.map(|report| *self.report.lock() = Some(report));
            told.and(ended)?;
            reported.or_raise()
        })
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.client)
    }
}

impl Drop for SyncHandle {
    fn drop(&mut self) {
        let Some(run) = self.run.lock().take() else { return };
        let mut under_way = run.stop();
        if under_way.is_none() {
            return;
        }
        // If the process is ending, the connections close with it.
        attached(|py| step_in_runtime(py, &self.buffer, || drop(under_way.take())));
        std::mem::forget(under_way);
    }
}

#[pymethods]
impl PyClient {
    /// With `is_push`, observers are notified of requests after the pages are stored, so that an exception
    /// loses no page.
    fn sync<'py>(
        slf: &Bound<'py, Self>,
        feeds: &Object<'py>,
        options: &Bound<'py, PyDict>,
        is_push: bool,
    ) -> PyResult<SyncHandle> {
        let client = slf.get();
        let args = RunArgs::new(&client.client, client.shape.clone(), feeds, options)?;
        let buffer = if is_push { Events::that_defer_requests() } else { Events::default() };
        Ok(SyncHandle {
            place: Mutex::new(Place::new(args.batch)),
            client: slf.clone().unbind(),
            run: Arc::default(),
            report: Mutex::default(),
            closed: Arc::default(),
            names: Arc::default(),
            buffer: Arc::new(buffer),
            args,
        })
    }

    fn plan_feeds<'py>(
        &self,
        py: Python<'py>,
        feeds: &Object<'py>,
        store: Option<&StoreHandle>,
        states: HashMap<String, Vec<u8>>,
        options: &Bound<'py, PyDict>,
    ) -> PyResult<Object<'py>> {
        let feeds: Vec<Feed> = restore(feeds)?;
        let settings = plan_settings(&self.client, options)?;
        guarded(|| {
            let known = KnownStates(states);
            let target = store.map_or(&known as &dyn Target, |store| &*store.0);
            let plan = step(py, || plan(&self.client, target, &feeds, &settings))?;
            dict(py, &plan.or_raise()?)
        })
    }

    /// A store estimates the pages.
    fn plan_scans<'py>(
        &self,
        py: Python<'py>,
        scans: Vec<Py<PyScan>>,
        store: Option<&StoreHandle>,
    ) -> PyResult<Object<'py>> {
        guarded(|| {
            let scans = scans.iter().map(|scan| scan.get().read());
            let scans: Vec<(&CollectOnce, &[Arc<ThroughStore>])> =
                scans.map(|read| (&*read.collect, &*read.through)).collect();
            let store = store.map(|store| &*store.0);
            dict(py, &step(py, || plan_scans(&self.client, store, &scans))?.or_raise()?)
        })
    }
}
