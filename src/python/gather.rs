//! `client.gather`: several scans read side by side; as in a collect, whoever is told of progress is
//! told between two pages, and nothing of Python runs while the core works.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

use crate::client::gather::{CONCURRENCY, GatherFailure, Gathering};
use crate::client::progress::Progress;
use crate::client::scan::Table;
use crate::error::{Error, Kind};
use crate::python::bookmark::PyBookmark;
use crate::python::client::PyClient;
use crate::python::conversions::{count, refuse};
use crate::python::errors::raise;
use crate::python::logging::CommonDesk;
use crate::python::process::attached;
use crate::python::progress::{Reporter, event, reporters};
use crate::python::runtime::{block_on_at, guarded, let_go, spawn_at};
use crate::python::scan::PyScan;
use crate::python::table::PyTable;

/// Scans that are being gathered, for `client.gather` and `siteline.aio`.
#[pyclass(frozen, name = "_Gathering", module = "siteline._siteline")]
pub(crate) struct PyGathering {
    scans: Vec<Py<PyScan>>,
    reporters: Vec<Option<Reporter>>,
    /// For which scans somebody listens.
    heard: Arc<[bool]>,
    slot: Mutex<Slot>,
    desk: CommonDesk,
}

struct Slot {
    /// `None` while a step is being taken, and when it is over.
    gathering: Option<Gathering>,
    over: bool,
}

/// A step, and the reads themselves, which a step that is given up drops.
type News = (Gathering, Option<(usize, Progress)>);

/// Reads until a page is here that somebody wants to hear of, or all is read.
async fn news(mut gathering: Gathering, heard: Arc<[bool]>) -> Result<News, GatherFailure> {
    loop {
        match gathering.step().await? {
            Some((index, _)) if !heard[index] => {}
            news => return Ok((gathering, news)),
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
        let ended = gathering.end(py);
        let gathered = gathered?;
        ended.map(|()| gathered)
    })
}

/// Scans as Python gave them, or `None` for anything else.
pub(crate) fn scans(given: &Bound<'_, PyAny>) -> PyResult<Option<Vec<Py<PyScan>>>> {
    if given.is_instance_of::<PyString>() {
        return Ok(None);
    }
    let Ok(items) = given.try_iter() else { return Ok(None) };
    let mut scans = Vec::new();
    for item in items {
        let Ok(scan) = item?.cast_into::<PyScan>() else { return Ok(None) };
        scans.push(scan.unbind());
    }
    Ok(Some(scans))
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
        let Some(scans) = scans(given)? else {
            let message = "scans= is a list of this client's scans, as scan.split(4) gives it.";
            return Err(refuse(py, Kind::Query, message));
        };
        let concurrency = match concurrency {
            Some(most) => {
                let most = count(most, "concurrency", Kind::Query)?;
                usize::try_from(most).unwrap_or(usize::MAX)
            }
            None => CONCURRENCY,
        };
        let wholes = scans.iter().map(|scan| Arc::clone(&scan.get().whole)).collect();
        let begun = || Gathering::new(&client.client, wholes, concurrency);
        let gathering = guarded(|| begun().map_err(|error| raise(py, &error)))?;
        let reporters = reporters(py, &scans)?;
        let heard = reporters.iter().map(Option::is_some).collect();
        let slot = Mutex::new(Slot { gathering: Some(gathering), over: false });
        Ok(Self { scans, reporters, heard, slot, desk: CommonDesk::default() })
    }

    fn to_the_end<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        loop {
            let step = news(self.take(py)?, Arc::clone(&self.heard));
            let (gathering, news) = block_on_at(py, &self.desk.get(), step)?
                .map_err(|failure| self.failed(py, failure))?;
            let tables = gathering.tables();
            self.put(py, gathering)?;
            match news {
                Some((index, progress)) => self.tell(py, index, &progress)?,
                None => return self.gathered(py, tables),
            }
        }
    }

    fn tell(&self, py: Python<'_>, index: usize, progress: &Progress) -> PyResult<()> {
        self.reporters[index].as_ref().map_or(Ok(()), |reporter| reporter.tell(py, progress))
    }

    fn slot(&self) -> MutexGuard<'_, Slot> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, py: Python<'_>) -> PyResult<Gathering> {
        let taken = self.slot().gathering.take();
        taken.ok_or_else(|| raise(py, &Error::new(Kind::Closed, "this gathering is over")))
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
    fn end(&self, py: Python<'_>) -> PyResult<()> {
        let gathering = {
            let mut slot = self.slot();
            slot.over = true;
            slot.gathering.take()
        };
        let dropped = gathering.map_or(Ok(()), |gathering| let_go(py, gathering));
        let ended = self.reporters.iter().flatten().map(|reporter| reporter.end(py));
        ended.fold(dropped, Result::and)
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
        for (number, (scan, so_far)) in self.scans.iter().zip(failure.scans).enumerate() {
            let partial = match so_far.partial.clone() {
                Some(table) if so_far.is_whole => Some(scan.get().remembered(py, table)?),
                Some(table) => Some(Py::new(py, PyTable::new(table))?),
                None => None,
            };
            let again = match so_far.bookmark.clone() {
                // The others have kept what they read.
                Some(bookmark) if so_far.failed => {
                    Py::new(py, scan.get().going_on(py, bookmark, so_far.partial)?)?
                }
                _ => scan.clone_ref(py),
            };
            let bookmark = so_far.bookmark.map(PyBookmark).into_pyobject(py)?;
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
impl PyGathering {
    /// An awaitable of the running asyncio loop: whom to tell of one page more, and the ``Progress``;
    /// ``None`` when all is read. Cancelled, it drops the open requests.
    fn _step<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let (py, this) = (slf.py(), slf.clone().unbind());
        let step = news(slf.get().take(py)?, Arc::clone(&slf.get().heard));
        spawn_at(py, slf.get().desk.get(), step, move |py, step| {
            let own = this.get();
            let (gathering, news) = step.map_err(|failure| own.failed(py, failure))?;
            own.put(py, gathering)?;
            let Some((index, progress)) = news else { return Ok(py.None()) };
            let told = own.reporters[index].as_ref().map(|reporter| reporter.0.clone_ref(py));
            Ok((told, event(py, &progress)?).into_pyobject(py)?.into_any().unbind())
        })
    }

    /// What was read: a ``Gathered``.
    fn _gathered<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let tables = self.slot().gathering.as_ref().map(Gathering::tables).unwrap_or_default();
        guarded(|| self.gathered(py, tables))
    }

    /// Drops the open requests: the reads are over.
    fn _end(&self, py: Python<'_>) -> PyResult<()> {
        guarded(|| self.end(py))
    }

    /// For the garbage collector: ``progress=`` may be a method of whoever keeps this.
    #[expect(clippy::needless_pass_by_value, reason = "PyO3 gives it by value")]
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.scans.iter().try_for_each(|scan| visit.call(scan))?;
        self.reporters.iter().flatten().try_for_each(|reporter| visit.call(&reporter.0))
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
