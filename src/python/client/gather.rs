//! `client.gather`: several scans read side by side. As in a collect, `progress=` is called between two
//! pages, and nothing of Python runs while the core works.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::client::gather::{CONCURRENCY, GatherFailure, Gathering};
use crate::client::progress::Progress;
use crate::client::table::Table;
use crate::error::{Error, Kind};
use crate::python::bridge::errors::raise;
use crate::python::bridge::logging::SharedLogBuffer;
use crate::python::bridge::process::{attached, guarded};
use crate::python::bridge::runtime::{block_on_with, let_go, spawn_with};
use crate::python::client::PyClient;
use crate::python::client::bookmark::PyBookmark;
use crate::python::client::progress::{ProgressCallback, event, module};
use crate::python::client::scan::PyScan;
use crate::python::convert::table::PyTable;
use crate::python::convert::values::{count, items, refuse};

/// Scans that are being gathered, for `client.gather` and `siteline.aio`.
#[pyclass(frozen, name = "_Gathering", module = "siteline._siteline")]
pub(crate) struct PyGathering {
    scans: Vec<Py<PyScan>>,
    callbacks: Vec<Option<ProgressCallback>>,
    /// Which scans have a callback.
    reported: Arc<[bool]>,
    slot: Mutex<Slot>,
    buffer: SharedLogBuffer,
}

struct Slot {
    /// `None` while a step is being taken, and when it is over.
    gathering: Option<Gathering>,
    over: bool,
}

/// A page to report, and the reads themselves, which a step that is given up drops.
type Stepped = (Gathering, Option<(usize, Progress)>);

/// Reads until a page is here that is to be reported, or all is read.
async fn step(mut gathering: Gathering, reported: Arc<[bool]>) -> Result<Stepped, GatherFailure> {
    loop {
        match gathering.step().await? {
            Some((index, _)) if !reported[index] => {}
            page => return Ok((gathering, page)),
        }
    }
}

/// `client.gather`: to the end, on this thread.
pub(crate) fn gather<'py>(
    client: &PyClient,
    scans: &Bound<'py, PyAny>,
    concurrency: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = scans.py();
    let gathering = PyGathering::begun(client, scans, concurrency)?;
    guarded(|| {
        let gathered = gathering.to_the_end(py);
        let finished = gathering.finish(py);
        let gathered = gathered?;
        finished.map(|()| gathered)
    })
}

/// The callbacks of reads side by side; scans that want a bar share one.
fn callbacks(py: Python<'_>, scans: &[Py<PyScan>]) -> PyResult<Vec<Option<ProgressCallback>>> {
    let wanted = scans.iter().map(|scan| scan.get().wants_progress(py));
    let wanted = PyList::new(py, wanted.collect::<Vec<_>>())?;
    let callbacks = module(py)?.getattr("reporters")?.call1((wanted,))?;
    callbacks
        .try_iter()?
        .map(|one| one.map(|one| (!one.is_none()).then(|| ProgressCallback(one.unbind()))))
        .collect()
}

impl PyGathering {
    /// # Errors
    /// `QueryError` for what is no list of scans, and as [`Gathering::new`].
    pub(crate) fn begun(
        client: &PyClient,
        given: &Bound<'_, PyAny>,
        concurrency: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let py = given.py();
        let Some(scans) = items::<PyScan>(given)? else {
            let message = "scans= is a list of this client's scans, as scan.split(4) gives it.";
            return Err(refuse(py, Kind::QueryError, message));
        };
        let concurrency = match concurrency {
            Some(most) => {
                let most = count(most, "concurrency", Kind::QueryError)?;
                usize::try_from(most).unwrap_or(usize::MAX)
            }
            None => CONCURRENCY,
        };
        let collects = scans.iter().map(|scan| Arc::clone(&scan.get().collect)).collect();
        let begun = || Gathering::new(&client.client, collects, concurrency);
        let gathering = guarded(|| begun().map_err(|error| raise(py, &error)))?;
        let callbacks = callbacks(py, &scans)?;
        let reported = callbacks.iter().map(Option::is_some).collect();
        let slot = Mutex::new(Slot { gathering: Some(gathering), over: false });
        Ok(Self { scans, callbacks, reported, slot, buffer: SharedLogBuffer::default() })
    }

    fn to_the_end<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        loop {
            let step = step(self.take(py)?, Arc::clone(&self.reported));
            let (gathering, page) = block_on_with(py, &self.buffer.get(), step)?
                .map_err(|failure| self.failed(py, failure))?;
            let tables = gathering.tables();
            self.put(py, gathering)?;
            match page {
                Some((index, progress)) => self.report(py, index, &progress)?,
                None => return self.gathered(py, tables),
            }
        }
    }

    fn report(&self, py: Python<'_>, index: usize, progress: &Progress) -> PyResult<()> {
        self.callbacks[index].as_ref().map_or(Ok(()), |callback| callback.report(py, progress))
    }

    fn slot(&self) -> MutexGuard<'_, Slot> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, py: Python<'_>) -> PyResult<Gathering> {
        let taken = self.slot().gathering.take();
        taken.ok_or_else(|| raise(py, &Error::new(Kind::ClosedError, "this gathering is over")))
    }

    /// Keeps the reads for the next step. They are over where nobody waits for one any more.
    fn put(&self, py: Python<'_>, gathering: Gathering) -> PyResult<()> {
        let mut slot = self.slot();
        if !slot.over {
            slot.gathering = Some(gathering);
            return Ok(());
        }
        drop(slot);
        let_go(py, gathering)
    }

    /// Drops the open requests: the reads are over.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        let gathering = {
            let mut slot = self.slot();
            slot.over = true;
            slot.gathering.take()
        };
        let dropped = gathering.map_or(Ok(()), |gathering| let_go(py, gathering));
        let finished = self.callbacks.iter().flatten().map(|callback| callback.finish(py));
        finished.fold(dropped, Result::and)
    }

    /// A `siteline.Gathered`.
    fn gathered<'py>(
        &self,
        py: Python<'py>,
        tables: Vec<Arc<Table>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let tables = self.scans.iter().zip(tables);
        let tables = tables.map(|(scan, table)| scan.get().remembered(py, table));
        let tables = PyTuple::new(py, tables.collect::<PyResult<Vec<_>>>()?)?;
        py.import("siteline.gathered")?.getattr("Gathered")?.call1((tables,))
    }

    /// The exception of the scan that failed, with how far each of them has come.
    fn failed(&self, py: Python<'_>, failure: GatherFailure) -> PyErr {
        let exception = raise(py, &failure.error);
        match self.describe(exception.value(py), failure) {
            Ok(()) => exception,
            Err(failure) => failure,
        }
    }

    fn describe(&self, exception: &Bound<'_, PyAny>, failure: GatherFailure) -> PyResult<()> {
        let py = exception.py();
        let (bookmarks, partials) = (PyList::empty(py), PyList::empty(py));
        let scans = PyList::empty(py);
        let failed = failure.index;
        for (number, (scan, read)) in self.scans.iter().zip(failure.scans).enumerate() {
            let partial = match read.table.clone() {
                Some(table) if read.is_whole => Some(scan.get().remembered(py, table)?),
                Some(table) => Some(Py::new(py, PyTable::new(table))?),
                None => None,
            };
            let again = match read.bookmark.clone() {
                // The others have kept what they read.
                Some(bookmark) if read.failed => {
                    Py::new(py, scan.get().going_on(py, bookmark, read.table)?)?
                }
                _ => scan.clone_ref(py),
            };
            let bookmark = read.bookmark.map(PyBookmark).into_pyobject(py)?;
            if number == failed {
                exception.setattr("bookmark", &bookmark)?;
                exception.setattr("partial", &partial)?;
            }
            bookmarks.append(bookmark)?;
            partials.append(partial)?;
            scans.append(again)?;
        }
        exception.setattr("bookmarks", bookmarks)?;
        exception.setattr("partials", partials)?;
        exception.setattr("scans", scans)?;
        exception.setattr("scan_index", failed)
    }
}

#[pymethods]
impl PyClient {
    /// Read several scans of this client side by side: a :class:`Gathered`.
    ///
    /// Under one token, one allowance and one pool of connections, at most ``concurrency`` at a time,
    /// begun in the order asked. What a scan has read already costs nothing; what is read here it
    /// remembers, as from its own ``collect()``. The deadline of each counts from when it is begun.
    ///
    /// The first error cancels the rest (of an allowance that is used up, it waits for what is paid)
    /// and says how to go on: :class:`SitelineError`. Interrupted, gather the same scans again.
    ///
    /// ``scans=`` that is empty, names a scan twice or one of another client is a
    /// :class:`QueryError`. No ``progress=`` may read one of the other scans.
    ///
    /// >>> days = client.data(site="S1", start="2026-11-01T00:00Z", end="2026-11-08T00:00Z",
    /// ...                    interval="1h").split("1d")
    /// >>> client.gather(days)
    /// <Gathered 7 tables, 2007 points, 7 pages>
    #[pyo3(signature = (scans, *, concurrency=None), text_signature = "($self, scans, *, concurrency=8)")]
    fn gather<'py>(
        &self,
        scans: &Bound<'py, PyAny>,
        concurrency: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        gather(self, scans, concurrency)
    }

    /// As ``gather()``, for asyncio.
    fn _gathering(
        &self,
        scans: &Bound<'_, PyAny>,
        concurrency: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyGathering> {
        PyGathering::begun(self, scans, concurrency)
    }
}

#[pymethods]
impl PyGathering {
    /// An awaitable of the running asyncio loop: the callback of one page more, and the ``Progress``;
    /// ``None`` when all is read. Cancelled, it drops the open requests.
    fn _step<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let (py, this) = (slf.py(), slf.clone().unbind());
        let step = step(slf.get().take(py)?, Arc::clone(&slf.get().reported));
        spawn_with(py, slf.get().buffer.get(), step, move |py, step| {
            let own = this.get();
            let (gathering, page) = step.map_err(|failure| own.failed(py, failure))?;
            own.put(py, gathering)?;
            let Some((index, progress)) = page else { return Ok(py.None()) };
            let callback = own.callbacks[index].as_ref().map(|callback| callback.0.clone_ref(py));
            Ok((callback, event(py, &progress)?).into_pyobject(py)?.into_any().unbind())
        })
    }

    /// What was read: a ``Gathered``.
    fn _gathered<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let tables = self.slot().gathering.as_ref().map(Gathering::tables).unwrap_or_default();
        guarded(|| self.gathered(py, tables))
    }

    /// Drops the open requests: the reads are over.
    fn _end(&self, py: Python<'_>) -> PyResult<()> {
        guarded(|| self.finish(py))
    }

    /// For the garbage collector: ``progress=`` may be a method of whoever keeps this.
    #[expect(clippy::needless_pass_by_value, reason = "PyO3 gives it by value")]
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.scans.iter().try_for_each(|scan| visit.call(scan))?;
        self.callbacks.iter().flatten().try_for_each(|callback| visit.call(&callback.0))
    }
}

impl Drop for PyGathering {
    fn drop(&mut self) {
        let mut gathering = self.slot().gathering.take();
        if gathering.is_none() {
            return;
        }
        // An exit meanwhile: nobody drives the connections any more, and they end with the process.
        attached(|py| gathering.take().map(|gathering| let_go(py, gathering)));
        std::mem::forget(gathering);
    }
}
