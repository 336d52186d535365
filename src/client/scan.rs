//! `_core.Scan`: the handle of `Scan` and `AsyncScan`.

use std::sync::OnceLock;

use crate::client::PyClient;
use crate::client::points::{PageReader, Points, Source, read_failure};
use crate::client::records::PyBookmark;
use crate::convert::values::converted;
use crate::frame::{Frame, Origin};
use crate::prelude::*;
use crate::store::StoreHandle;
use siteline_core::client::collect::{CollectOnce, Pace, Step};
use siteline_core::client::scan::{ONTO_HINT, Scan};
use siteline_core::client::split::Cut;
use siteline_core::client::table::{ReadFailure, Table};
use siteline_core::client::{NamesFor, ReadNames, ScanInput};
use siteline_core::data::{Bookmark, Ids, Levels, Selection};
use siteline_core::fork::Process;
use siteline_core::http::Deadline;
use siteline_core::store::Store;
use siteline_core::sync::ThroughStore;

#[pyclass(frozen, name = "Scan", module = "siteline._core")]
pub(crate) struct PyScan {
    client: Py<PyClient>,
    asked: Read,
    /// Replaces `asked` once the names are known.
    selected: OnceLock<Read>,
}

pub(crate) struct Read {
    pub(crate) collect: Arc<CollectOnce>,
    /// One read through the store for each site and line.
    pub(crate) through: Vec<Arc<ThroughStore>>,
}

impl Read {
    fn new(scan: Scan) -> Self {
        Self { collect: Arc::new(CollectOnce::new(scan)), through: Vec::new() }
    }

    fn through(scan: Scan, store: Option<&Arc<Store>>, reads_once: bool) -> PyResult<Self> {
        let (whole, through) = ThroughStore::of_scan(store, &scan, reads_once).or_raise()?;
        Ok(Self { collect: Arc::new(CollectOnce::new(scan).read_by(whole)), through })
    }
}

/// The state of one read: `collect()`, or a chain of pages.
#[pyclass(frozen, name = "_Reading", module = "siteline._core")]
pub(crate) struct PyReading {
    pub(crate) deadline: Deadline,
    pub(crate) buffer: Arc<Events>,
    pub(crate) names: Arc<ReadNames>,
    process: Process,
}

impl PyReading {
    /// Pages of a parent's read would be requested twice.
    fn check_process(&self) -> PyResult<()> {
        if self.process.is_current() {
            return Ok(());
        }
        let message = "this read was begun by the parent process before the fork";
        let hint = "Call collect() of the scan in the child: it begins a read of its own.";
        Err(Error::new(Kind::ForkError, message).with_hint(hint)).or_raise()
    }

    /// The call returns whether to tell the user that there are no names.
    pub(crate) fn settle_by(&self, deadline: Deadline) -> Option<Call> {
        if self.names.is_settled() {
            return None;
        }
        let names = Arc::clone(&self.names);
        let settle = async move { Ok(names.settle(deadline).await) };
        Some(Call::giving(Arc::clone(&self.buffer), settle))
    }
}

#[pymethods]
impl PyReading {
    fn settle(&self) -> Option<Call> {
        self.settle_by(self.deadline)
    }
}

impl PyScan {
    pub(crate) fn new(scan: Scan, client: Py<PyClient>) -> Self {
        Self { client, asked: Read::new(scan), selected: OnceLock::new() }
    }

    pub(crate) fn read(&self) -> &Read {
        self.selected.get().unwrap_or(&self.asked)
    }

    fn collecting(&self) -> &Arc<CollectOnce> {
        &self.read().collect
    }

    pub(crate) fn scan(&self) -> &Scan {
        self.collecting().scan()
    }
}

fn stepped(py: Python<'_>, step: Result<Step, ReadFailure>) -> PyResult<Py<PyAny>> {
    match step {
        Ok(Step::Page(progress)) => dict(py, &progress).map(Bound::unbind),
        Ok(Step::Whole(table)) => Ok(Py::new(py, Frame::of_table(table))?.into_any()),
        Err(failure) => Err(read_failure(py, failure)),
    }
}

pub(crate) fn cut(by: &Object<'_>, name: &str) -> PyResult<Cut> {
    if by.hasattr("__index__")? {
        count(by, name, Kind::QueryError).map(Cut::Parts)
    } else if by.is_instance_of::<PyString>() || !converted(by, "fixed_length")?.is_none() {
        duration(by, name).map(Cut::Length)
    } else {
        let message = format!(
            "{name}={} is neither how many parts to make (a whole number) nor how long each is (text \
             such as \"1d\", or a timedelta).",
            quoted(by),
        );
        Err(refuse(by.py(), Kind::QueryError, message))
    }
}

fn resumed(
    scan: &Scan,
    bookmark: Bookmark,
    onto: Option<Arc<Table>>,
    by_name: bool,
) -> PyResult<Scan> {
    // The chains of a sent filter depend on the names of the selection.
    if by_name && scan.query().input().selection.is_sent() {
        return Ok(scan.resume_later(bookmark, onto));
    }
    scan.resume(bookmark, onto).or_raise()
}

fn read_table(onto: &Object<'_>) -> PyResult<Arc<Table>> {
    let frame = handle_of::<Frame>(onto)?;
    if let Some(Origin::Read(table)) = frame.as_ref().map(|frame| &frame.get().origin) {
        return Ok(Arc::clone(table));
    }
    let message = "onto= must be a table returned by scan.collect().";
    Err(Error::new(Kind::QueryError, message).with_hint(ONTO_HINT)).or_raise()
}

#[pymethods]
impl PyScan {
    fn query<'py>(&self, py: Python<'py>) -> PyResult<Object<'py>> {
        dict(py, self.scan().query().input())
    }

    /// The bookmark that it continues from.
    #[getter]
    fn begin(&self) -> Option<PyBookmark> {
        self.scan().bookmark().cloned().map(PyBookmark)
    }

    /// The title of the progress bar.
    #[getter]
    fn title(&self) -> String {
        self.scan().query().title()
    }

    fn whole(&self) -> Option<Frame> {
        self.collecting().complete().cloned().map(Frame::of_table)
    }

    /// The kept pages and the position after them.
    fn kept(&self) -> PyResult<(Option<Frame>, Option<PyBookmark>)> {
        let kept = guarded(|| self.collecting().partial().or_raise())?;
        Ok((kept.table.map(Frame::of_table), kept.bookmark.map(PyBookmark)))
    }

    /// Pages and points.
    fn kept_counts(&self) -> (u64, u64) {
        self.collecting().kept()
    }

    fn empty(&self) -> PyResult<Frame> {
        Ok(Frame::of_table(Arc::new(self.scan().empty().or_raise()?)))
    }

    /// The ids and names that discovery does not list, if it has been read.
    fn not_listed(&self) -> Vec<String> {
        self.scan().not_listed()
    }

    /// The first points in the order of the pages, if enough are read.
    fn head(&self, count: usize) -> PyResult<Option<Frame>> {
        let head = guarded(|| self.collecting().head(count).or_raise())?;
        Ok(head.map(Frame::of_table))
    }

    fn reading(&self, needs_names: bool) -> PyReading {
        let buffer = Arc::<Events>::default();
        let observers = &self.client.get().notes;
        if observers.exist() {
            buffer.remember(observers);
        }
        let wanted = if needs_names { NamesFor::Labels } else { NamesFor::Nothing };
        let names = Arc::new(ReadNames::new(self.scan().client().clone(), wanted));
        PyReading { deadline: self.scan().deadline(), buffer, names, process: Process::current() }
    }

    /// Reads the rest, or one page: of any chain, or of the first unfinished one.
    fn read_on(&self, reading: &PyReading, by_page: bool, of_first: bool) -> PyResult<Call> {
        reading.check_process()?;
        let (collect, deadline) = (Arc::clone(self.collecting()), reading.deadline);
        // Observers are notified between two pages.
        let by_page = by_page || self.client.get().notes.exist();
        let pace = if of_first { Pace::First } else { Pace::All };
        let names = Arc::clone(&reading.names);
        let read = async move {
            names.begin();
            loop {
                match collect.paced_step(deadline, pace).await? {
                    Step::Page(_) if !by_page => {}
                    step => return Ok(step),
                }
            }
        };
        Ok(Call::new(Arc::clone(&reading.buffer), read, stepped))
    }

    /// Drops the requests of a prefetched page and for names.
    fn end(&self, py: Python<'_>, reading: &PyReading) -> PyResult<()> {
        reading.names.abort();
        reading.buffer.end();
        step_in_runtime(py, &reading.buffer, || self.collecting().stop_prefetch())
    }

    fn chain(&self, py: Python<'_>, reading: Py<PyReading>) -> PyResult<Points> {
        let stream = guarded(|| self.scan().pages().or_raise())?;
        let client = self.client.clone_ref(py);
        Ok(Points::new(Source::Chain(PageReader { stream, reading, client })))
    }

    fn resume(
        &self,
        py: Python<'_>,
        bookmark: PyBookmark,
        onto: Option<&Object<'_>>,
        by_name: bool,
    ) -> PyResult<Self> {
        let onto = onto.map(read_table).transpose()?;
        let scan = guarded(|| resumed(self.asked.collect.scan(), bookmark.0, onto, by_name))?;
        Ok(Self::new(scan, self.client.clone_ref(py)))
    }

    fn split(&self, by: &Object<'_>) -> PyResult<Vec<Self>> {
        let cut = cut(by, "by")?;
        let parts = guarded(|| self.asked.collect.scan().split(cut).or_raise())?;
        Ok(parts.into_iter().map(|part| Self::new(part, self.client.clone_ref(by.py()))).collect())
    }

    #[staticmethod]
    fn _restore<'py>(
        client: &Bound<'py, PyClient>,
        state: &Object<'py>,
        bookmark: Option<PyBookmark>,
    ) -> PyResult<Self> {
        let input: ScanInput = restore(state)?;
        guarded(|| {
            let mut scan = input.scan(&client.get().client).or_raise()?;
            if let Some(bookmark) = bookmark {
                scan = resumed(&scan, bookmark.0, None, true)?;
            }
            Ok(Self::new(scan, client.clone().unbind()))
        })
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Object<'py>, Restored<'py>)> {
        let (py, scan) = (slf.py(), slf.get().asked.collect.scan());
        if scan.has_partial() {
            return Err(PyTypeError::new_err(
                "A scan that continues a partial table (onto=) is not pickled, because the table is \
                 not: keep partial.to_pandas(), and resume(bookmark) without onto= there.",
            ));
        }
        let client = slf.get().client.bind(py).clone();
        let state =
            (client, dict(py, &ScanInput::from(scan))?, scan.bookmark().cloned().map(PyBookmark));
        Ok((slf.get_type().getattr("_restore")?, state))
    }

    /// Reads settled data from this store, and keeps the rest in it. `None` has no file: only a plan.
    fn through(
        &self,
        py: Python<'_>,
        store: Option<&Object<'_>>,
        reads_once: bool,
    ) -> PyResult<Self> {
        let (store, scan) = (store.map(opened).transpose()?, self.scan().clone());
        let asked = guarded(|| Read::through(scan, store.as_ref(), reads_once))?;
        Ok(Self { client: self.client.clone_ref(py), asked, selected: OnceLock::new() })
    }

    /// Ids or names, series, and filter parameters.
    fn selection(&self) -> Option<Selected<'_>> {
        let selection = &self.scan().query().input().selection;
        let Selection { levels, series, parameters } = selection;
        (!selection.is_empty()).then_some((levels, series, parameters))
    }

    /// Selects the named series, and sends these ids.
    fn select(&self, named: Vec<Ids>, sent: Levels, not_listed: Vec<String>) -> PyResult<()> {
        guarded(|| {
            let scan = self.asked.collect.scan().selecting(named, sent, not_listed).or_raise()?;
            let read = match self.asked.through.first() {
                Some(through) => Read::through(scan, through.store(), through.reads_once())?,
                None => Read::new(scan),
            };
            // Another thread may have been first.
            self.selected.set(read).ok();
            Ok(())
        })
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.client)
    }
}

fn opened(given: &Object<'_>) -> PyResult<Arc<Store>> {
    if let Some(store) = handle_of::<StoreHandle>(given)? {
        return Ok(Arc::clone(&store.get().0));
    }
    let message = format!("store= is {}, not a siteline.Store.", described(given));
    let hint =
        "Open the store first: store=siteline.Store(path). Other targets need client.sync().";
    Err(Error::new(Kind::QueryError, message).with_hint(hint)).or_raise()
}

type Selected<'a> = (&'a Levels, &'a Vec<Ids>, &'a [Option<String>; 3]);

type Restored<'py> = (Bound<'py, PyClient>, Object<'py>, Option<PyBookmark>);
