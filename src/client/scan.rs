//! `_core.Scan`: the handle of `siteline.Scan` and `siteline.types.AsyncScan`.

use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::bridge::call::Call;
use crate::bridge::errors::{IntoPyErr as _, OrRaise as _};
use crate::bridge::events::Events;
use crate::bridge::process::guarded;
use crate::bridge::runtime::step_in_runtime;
use crate::client::PyClient;
use crate::client::bookmark::PyBookmark;
use crate::client::page::Pages;
use crate::client::page_reader::PageReader;
use crate::client::page_reader::read_failure;
use crate::client::points::{Points, Source};
use crate::client::progress::{ProgressCallback, event};
use crate::client::query::query_object;
use crate::convert::state::{dict, restore};
use crate::convert::values::{count, described, duration, refuse};
use crate::frame::{Frame, Origin, frame_of};
use crate::store::store_of;
use siteline_core::client::ScanInput;
use siteline_core::client::collect::{CollectOnce, Pace, Step, WholeRead};
use siteline_core::client::scan::{ONTO_HINT, Scan};
use siteline_core::client::split::Cut;
use siteline_core::client::table::{ReadFailure, Table};
use siteline_core::error::{Error, Kind, excerpt};
use siteline_core::http::Deadline;
use siteline_core::sync::ThroughStore;

/// A scan, and the table that it reads once.
#[pyclass(frozen, name = "Scan", module = "siteline._core")]
pub(crate) struct PyScan {
    client: Py<PyClient>,
    pub(crate) collect: Arc<CollectOnce>,
    /// Its reads through a store, one for each site and line.
    through: Vec<Arc<ThroughStore>>,
}

/// One `collect()`: its deadline, and its log records.
#[pyclass(frozen, name = "_Reading", module = "siteline._core")]
pub(crate) struct PyReading {
    deadline: Deadline,
    buffer: Arc<Events>,
}

impl PyScan {
    pub(crate) fn new(scan: Scan, client: Py<PyClient>) -> Self {
        Self { client, collect: Arc::new(CollectOnce::new(scan)), through: Vec::new() }
    }

    /// The same scan, read through a store.
    pub(crate) fn read_by(
        &self,
        py: Python<'_>,
        (whole, through): (Arc<dyn WholeRead>, Vec<Arc<ThroughStore>>),
    ) -> Self {
        let collect = CollectOnce::new(self.scan().clone()).read_by(whole);
        Self { client: self.client.clone_ref(py), collect: Arc::new(collect), through }
    }

    pub(crate) fn read_through(&self) -> &[Arc<ThroughStore>] {
        &self.through
    }

    pub(crate) fn scan(&self) -> &Scan {
        self.collect.scan()
    }

    /// A new chain, whose pages are reported to `callback`.
    fn reader(&self, py: Python<'_>, callback: Option<Py<PyAny>>) -> PyResult<PageReader> {
        let stream = guarded(|| self.scan().pages().or_raise())?;
        let callback = callback.map(ProgressCallback);
        Ok(PageReader::new(stream, callback, self.client.clone_ref(py)))
    }
}

/// A `Progress`, or the frame of the complete table.
fn stepped(py: Python<'_>, step: Result<Step, ReadFailure>) -> PyResult<Py<PyAny>> {
    match step {
        Ok(Step::Page(progress)) => event(py, &progress).map(Bound::unbind),
        Ok(Step::Whole(table)) => Ok(Py::new(py, Frame::of_table(table))?.into_any()),
        Err(failure) => Err(read_failure(py, failure)),
    }
}

/// The argument `by` of `split()`.
pub(crate) fn cut(by: &Bound<'_, PyAny>, name: &str) -> PyResult<Cut> {
    let is_length = by.is_instance_of::<PyString>() || by.hasattr("total_seconds")?;
    if is_length {
        duration(by, name).map(Cut::Length)
    } else if by.hasattr("__index__")? {
        count(by, name, Kind::QueryError).map(Cut::Parts)
    } else {
        let message = format!(
            "{name}={} is neither how many parts to make (a whole number) nor how long each is (text \
             such as \"1d\", or a timedelta).",
            excerpt(&by.repr()?.to_string()),
        );
        Err(refuse(by.py(), Kind::QueryError, message))
    }
}

/// The table that a resumed read continues.
fn read_table(onto: &Bound<'_, PyAny>) -> PyResult<Arc<Table>> {
    if let Some(Origin::Read(table)) = frame_of(onto)?.as_ref().map(|frame| &frame.get().origin) {
        return Ok(Arc::clone(table));
    }
    let message = "onto= must be a table returned by scan.collect().";
    Err(Error::new(Kind::QueryError, message).with_hint(ONTO_HINT)).or_raise()
}

#[pymethods]
impl PyScan {
    #[getter]
    fn query<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        query_object(py, self.scan().query())
    }

    /// The bookmark that it continues from.
    #[getter]
    fn begin(&self) -> Option<PyBookmark> {
        self.scan().bookmark().cloned().map(PyBookmark)
    }

    /// What a bar of its progress is called.
    #[getter]
    fn title(&self) -> String {
        self.scan().query().title()
    }

    /// Whether anyone observes the requests of its client.
    #[getter]
    fn is_observed(&self) -> bool {
        self.client.get().notes.exist()
    }

    /// The complete table, if it has been read.
    fn whole(&self) -> Option<Frame> {
        self.collect.complete().cloned().map(Frame::of_table)
    }

    /// The kept pages, if there are any, and the position after them.
    fn kept(&self) -> PyResult<(Option<Frame>, Option<PyBookmark>)> {
        let kept = guarded(|| self.collect.partial().or_raise())?;
        Ok((kept.table.map(Frame::of_table), kept.bookmark.map(PyBookmark)))
    }

    /// A table without points.
    fn empty(&self) -> PyResult<Frame> {
        Ok(Frame::of_table(Arc::new(self.scan().empty().or_raise()?)))
    }

    /// The first points in the order of the pages, if so many, or all, have been read.
    fn head(&self, count: usize) -> PyResult<Option<Frame>> {
        let head = guarded(|| self.collect.head(count).or_raise())?;
        Ok(head.map(Frame::of_table))
    }

    /// A request for the names of series, unless the client has had a response.
    fn names(&self, reading: &PyReading) -> Option<Call> {
        self.client.get().names(reading.deadline)
    }

    /// A read that begins now.
    fn reading(&self) -> PyReading {
        let buffer = Arc::<Events>::default();
        if self.is_observed() {
            buffer.remember(&self.client.get().notes);
        }
        PyReading { deadline: self.scan().deadline(), buffer }
    }

    /// Reads all pages.
    fn collect(&self, reading: &Bound<'_, PyReading>) -> Call {
        let (collect, deadline) = (Arc::clone(&self.collect), reading.get().deadline);
        let read = async move {
            loop {
                if let whole @ Step::Whole(_) = collect.step(deadline).await? {
                    return Ok(whole);
                }
            }
        };
        Call::new(Arc::clone(&reading.get().buffer), read, stepped)
    }

    /// Reads one more page: of any chain, or of the first one that is not whole.
    fn step(&self, reading: &PyReading, of_first: bool) -> Call {
        let (collect, deadline) = (Arc::clone(&self.collect), reading.deadline);
        let pace = if of_first { Pace::First } else { Pace::All };
        let step = async move { collect.paced_step(deadline, pace).await };
        Call::new(Arc::clone(&reading.buffer), step, stepped)
    }

    /// After the last step: drops the request for the page that is prefetched.
    fn end(&self, py: Python<'_>, reading: &PyReading) -> PyResult<()> {
        reading.buffer.end();
        step_in_runtime(py, &reading.buffer, || self.collect.stop_prefetch())
    }

    fn pages(&self, py: Python<'_>, callback: Option<Py<PyAny>>) -> PyResult<Pages> {
        self.reader(py, callback).map(Pages)
    }

    fn records(&self, py: Python<'_>, callback: Option<Py<PyAny>>) -> PyResult<Points> {
        Ok(Points::new(Source::Pages(self.reader(py, callback)?)))
    }

    fn resume(
        &self,
        py: Python<'_>,
        bookmark: PyBookmark,
        onto: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let onto = onto.map(read_table).transpose()?;
        let resume = || self.scan().resume(bookmark.0, onto).or_raise();
        Ok(Self::new(guarded(resume)?, self.client.clone_ref(py)))
    }

    fn split(&self, by: &Bound<'_, PyAny>) -> PyResult<Vec<Self>> {
        let cut = cut(by, "by")?;
        let parts = guarded(|| self.scan().split(cut).or_raise())?;
        Ok(parts.into_iter().map(|part| Self::new(part, self.client.clone_ref(by.py()))).collect())
    }

    /// Makes the scan again for `pickle`.
    #[staticmethod]
    fn _restore<'py>(
        client: &Bound<'py, PyClient>,
        state: &Bound<'py, PyAny>,
        bookmark: Option<PyBookmark>,
    ) -> PyResult<Self> {
        let input: ScanInput = restore(state)?;
        guarded(|| {
            let mut scan = input.scan(&client.get().client).or_raise()?;
            if let Some(bookmark) = bookmark {
                scan = scan.resume(bookmark.0, None).or_raise()?;
            }
            Ok(Self::new(scan, client.clone().unbind()))
        })
    }

    /// The pickle has the query, the settings of the read and the client, but no points.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Restored<'py>)> {
        let (py, scan) = (slf.py(), slf.get().scan());
        if scan.has_partial() {
            return Err(PyTypeError::new_err(
                "A scan that continues a partial table (onto=) is not pickled, because the table is \
                 not: keep partial.to_pandas(), and resume(bookmark) without onto= there.",
            ));
        }
        let client = slf.get().client.bind(py).clone();
        let state = (client, dict(py, &ScanInput::from(scan))?, slf.get().begin());
        Ok((slf.get_type().getattr("_restore")?, state))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.client)
    }
}

/// The arguments of `_restore`.
type Restored<'py> = (Bound<'py, PyClient>, Bound<'py, PyAny>, Option<PyBookmark>);

#[pymethods]
impl PyScan {
    /// The same scan, which reads settled data from this store, and keeps the rest in it.
    ///
    /// # Errors
    /// `QueryError` for another object, and for a scan that cannot be read through a store.
    fn through(&self, py: Python<'_>, store: &Bound<'_, PyAny>) -> PyResult<Self> {
        let Some(store) = store_of(store)? else {
            let message = format!("store= is {}, not a siteline.Store.", described(store));
            let hint = "For a target of yours use client.sync(feed, target).";
            return Err(Error::new(Kind::QueryError, message).with_hint(hint).into_py_err());
        };
        let read = guarded(|| ThroughStore::of_scan(&store, self.scan()).or_raise())?;
        Ok(self.read_by(py, read))
    }
}
