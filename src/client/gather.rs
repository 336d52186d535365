//! `client.gather`: reads several scans concurrently. The loop over their pages is in `siteline._reads`;
//! no Python code runs while the core works.

use std::sync::Arc;

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use crate::bridge::call::Call;
use crate::bridge::errors::OrRaise as _;
use crate::bridge::errors::raise;
use crate::bridge::events::SharedEvents;
use crate::bridge::observers::Observers;
use crate::bridge::process::{attached, guarded};
use crate::bridge::runtime::drop_detached;
use crate::client::PyClient;
use crate::client::bookmark::PyBookmark;
use crate::client::progress::event;
use crate::client::scan::{PyScan, reads};
use crate::convert::values::{count, items, refuse};
use crate::frame::{Frame, table_object};
use siteline_base::lock::Mutex;
use siteline_core::client::collect::Partial;
use siteline_core::client::gather::{CONCURRENCY, GatherFailure, Gathering};
use siteline_core::client::progress::Progress;
use siteline_core::error::{Error, Kind};

/// Scans that are being gathered.
#[pyclass(frozen, name = "_Gathering", module = "siteline._core")]
pub(crate) struct PyGathering {
    scans: Vec<Py<PyScan>>,
    /// A step takes it; a step that fails or is cancelled drops it.
    gathering: Mutex<Option<Gathering>>,
    notes: Arc<Observers>,
    buffer: SharedEvents,
}

/// The reads, and a page to report; no page after the last one.
type Stepped = (Gathering, Option<(usize, Progress)>);

impl PyGathering {
    /// The page of a step: the number of its scan, and a `Progress`.
    fn stepped(
        &self,
        py: Python<'_>,
        stepped: Result<Stepped, GatherFailure>,
    ) -> PyResult<Option<(usize, Py<PyAny>)>> {
        let (gathering, page) = stepped.map_err(|failure| self.failed(py, failure))?;
        *self.gathering.lock() = Some(gathering);
        page.map(|(index, progress)| Ok((index, event(py, &progress)?.unbind()))).transpose()
    }

    /// The exception of the scan that failed, with the progress of each scan.
    fn failed(&self, py: Python<'_>, failure: GatherFailure) -> PyErr {
        let exception = raise(py, &failure.error);
        let describe = || {
            let scans = self.scans.iter().zip(failure.scans);
            let scans = scans.map(|(scan, read)| left_off(py, scan, read));
            let arguments =
                (exception.value(py), failure.index, scans.collect::<PyResult<Vec<_>>>()?);
            reads(py)?.call_method1("describe", arguments)
        };
        describe().err().unwrap_or(exception)
    }
}

/// Of a scan in a gathering that failed: its bookmark, what it has read, and the scan to gather again.
type LeftOff = (Option<PyBookmark>, Option<Py<PyAny>>, Py<PyScan>);

fn left_off(py: Python<'_>, scan: &Py<PyScan>, read: Partial) -> PyResult<LeftOff> {
    let partial = match read.table.clone() {
        Some(table) if read.is_whole => Some(scan.get().remembered(py, table)?),
        table => {
            let object = |table| table_object(py, Frame::of_table(table), &scan.get().shown);
            table.map(object).transpose()?.map(Bound::unbind)
        }
    };
    let again = match read.bookmark.clone() {
        Some(bookmark) if read.at_limit => {
            Py::new(py, scan.get().going_on(py, bookmark, read.table)?)?
        }
        // The others kept what they read, or begin again.
        _ => scan.clone_ref(py),
    };
    Ok((read.bookmark.map(PyBookmark), partial, again))
}

#[pymethods]
impl PyClient {
    /// Makes the gathering; sends nothing.
    fn gathering(
        &self,
        given: &Bound<'_, PyAny>,
        concurrency: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyGathering> {
        let py = given.py();
        let Some(scans) = items::<PyScan>(given)? else {
            let message = "scans= is a list of this client's scans, as scan.split(4) gives it.";
            return Err(refuse(py, Kind::QueryError, message));
        };
        let most = concurrency.map(|most| count(most, "concurrency", Kind::QueryError));
        let most =
            most.transpose()?.map_or(CONCURRENCY, |most| most.try_into().unwrap_or(usize::MAX));
        let collects = scans.iter().map(|scan| Arc::clone(&scan.get().collect)).collect();
        let gathering = guarded(|| Gathering::new(&self.client, collects, most).or_raise())?;
        let (notes, buffer) = (Arc::clone(&self.notes), SharedEvents::default());
        if notes.exist() {
            buffer.get().remember(&notes);
        }
        Ok(PyGathering { scans, gathering: Mutex::new(Some(gathering)), notes, buffer })
    }
}

#[pymethods]
impl PyGathering {
    /// Of each scan its ``progress=``, unless it has been read, and the title of a bar.
    fn _wanted(&self, py: Python<'_>) -> Vec<(Option<Py<PyAny>>, String)> {
        self.scans.iter().map(|scan| scan.get().wants_progress(py)).collect()
    }

    /// Reads until a page of a scan that is `reported` has arrived: gives the number of the scan and its
    /// `Progress`, or `None` if everything is read. An interrupt drops the open requests.
    fn _step(slf: &Bound<'_, Self>, reported: Vec<bool>) -> Call {
        let this = slf.clone().unbind();
        // An event loop notifies the observers of requests at the end of a step.
        let is_told = slf.get().notes.exist();
        let taken = slf.clone().unbind();
        let step = async move {
            let over = || Error::new(Kind::ClosedError, "this gathering is over");
            let gathering = taken.get().gathering.lock().take();
            let mut gathering = gathering.ok_or_else(over)?;
            Ok::<_, Error>(loop {
                match gathering.step().await {
                    Ok(Some((index, _))) if !is_told && !reported[index] => {}
                    Ok(page) => break Ok((gathering, page)),
                    Err(failure) => break Err(failure),
                }
            })
        };
        Call::new(slf.get().buffer.get(), step, move |py, stepped| {
            let stepped = this.get().stepped(py, stepped.or_raise()?)?;
            Ok(stepped.into_pyobject(py)?.into_any().unbind())
        })
    }

    /// The tables of all scans, after the last step.
    fn _tables(&self, py: Python<'_>) -> PyResult<Vec<Py<PyAny>>> {
        let tables = self.gathering.lock().as_ref().map(Gathering::tables).unwrap_or_default();
        let tables = self.scans.iter().zip(tables);
        guarded(|| tables.map(|(scan, table)| scan.get().remembered(py, table)).collect())
    }

    /// Drops the open requests: the reads are over.
    fn _end(&self, py: Python<'_>) -> PyResult<()> {
        self.buffer.end();
        let gathering = self.gathering.lock().take();
        gathering.map_or(Ok(()), |gathering| drop_detached(py, gathering))
    }

    /// For the garbage collector: ``progress=`` of a scan may be a method of an object that keeps this.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.scans.iter().try_for_each(|scan| visit.call(scan))
    }
}

impl Drop for PyGathering {
    fn drop(&mut self) {
        let mut gathering = self.gathering.get_mut().take();
        if gathering.is_none() {
            return;
        }
        // If the process is ending, the connections are no longer driven, and close with it.
        attached(|py| gathering.take().map(|gathering| drop_detached(py, gathering)));
        std::mem::forget(gathering);
    }
}
