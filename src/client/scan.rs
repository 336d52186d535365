//! `siteline.Scan`: a query, and the settings of a read that has not started.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::PyTypeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyCapsule, PyDict, PyString};

use crate::bridge::call::Call;
use crate::bridge::errors::IntoPyErr as _;
use crate::bridge::errors::OrRaise as _;
use crate::bridge::events::SharedEvents;
use crate::bridge::process::guarded;
use crate::bridge::runtime::step_in_runtime;
use crate::client::PyClient;
use crate::client::bookmark::PyBookmark;
use crate::client::failure::read_failure;
use crate::client::page::PageIterator;
use crate::client::page_reader::PageReader;
use crate::client::progress::{ProgressArg, ProgressCallback, PyCollecting, event};
use crate::client::query::PyQuery;
use crate::convert::capsule::schema_capsule;
use crate::convert::patching::{Replaced, methods_can_be_replaced};
use crate::convert::rows::{PointSource, RecordIterator, Taken};
use crate::convert::state::{copies_are_itself, dict, restore};
use crate::convert::values::{count, described, duration, html, many, refuse};
use crate::frame::{Frame, Origin, TableShown, frame_of, table_object};
use siteline_core::client::ScanInput;
use siteline_core::client::collect::{CollectOnce, Step};
use siteline_core::client::scan::{ONTO_HINT, Scan};
use siteline_core::client::split::Cut;
use siteline_core::client::table::{ReadFailure, Table};
use siteline_core::data::{Bookmark, schema};
use siteline_core::error::{Error, Kind, escaped, excerpt};
use siteline_core::http::Deadline;
use siteline_core::sync::ThroughStore;

/// A read that has not started: a query, and the settings of its read.
///
/// Making one sends no request. ``collect()`` reads once, merges and remembers the table.
/// ``to_pandas()``, ``to_polars()``, ``to_arrow()``, ``pl.DataFrame(scan)`` and
/// ``duckdb.sql("from scan")`` use it, and ``records()`` after it, so that no request is sent twice by
/// accident. ``pages()`` always starts a new chain and pays for each page. ``split()`` makes parts that
/// :meth:`Client.gather` reads concurrently. Before DuckDB, call ``collect()``: DuckDB replaces our
/// exception with its own, without ``.bookmark`` and ``.partial``.
///
/// >>> scan = client.scan(site="S1", line="L1", start="2026-11-01T00:00:00Z",
/// ...                    end="2026-11-01T01:00:00Z", interval="1m")
/// >>> len(scan.to_pandas().columns)
/// 10
#[pyclass(frozen, weakref, name = "Scan", module = "siteline")]
pub(crate) struct PyScan {
    client: Py<PyClient>,
    pub(crate) collect: Arc<CollectOnce>,
    /// The complete table: one object for all callers.
    table: PyOnceLock<Py<PyAny>>,
    progress: Option<ProgressArg>,
    /// `tz=` and `labels=`.
    pub(crate) shown: TableShown,
    /// The store that it is read through.
    through: Option<Through>,
    replaced: Replaced,
}

/// A `siteline.Store`, and the read through it.
struct Through {
    store: Py<PyAny>,
    read: Arc<ThroughStore>,
}

impl PyScan {
    pub(crate) fn new(
        scan: Scan,
        client: Py<PyClient>,
        progress: Option<ProgressArg>,
        shown: TableShown,
    ) -> Self {
        let (collect, table) = (Arc::new(CollectOnce::new(scan)), PyOnceLock::new());
        let (through, replaced) = (None, Replaced::nothing());
        Self { client, collect, table, progress, shown, through, replaced }
    }

    /// The same scan, read through a store.
    pub(crate) fn through(
        &self,
        py: Python<'_>,
        store: Py<PyAny>,
        read: Arc<ThroughStore>,
    ) -> Self {
        let collect = CollectOnce::new(self.scan().clone()).read_by(Arc::clone(&read) as _);
        let through = Some(Through { store, read });
        Self { collect: Arc::new(collect), through, ..self.with_scan(py, self.scan().clone()) }
    }

    /// What reads it through a store.
    pub(crate) fn read_through(&self) -> Option<&ThroughStore> {
        self.through.as_ref().map(|through| &*through.read)
    }

    /// Refuses what only a chain of its own has.
    ///
    /// # Errors
    /// `QueryError` for a scan that is read through a store.
    fn check_own_chain(&self, what: &str, hint: &str) -> PyResult<()> {
        let Some(_) = &self.through else { return Ok(()) };
        let message =
            format!("{what} is not for a scan with store=: no chain of its own reads it.");
        Err(Error::new(Kind::QueryError, message).with_hint(hint.to_owned()).into_py_err())
    }

    /// Asks discovery for the names that labels need, unless the client has had a response.
    fn fetch_names(&self, py: Python<'_>) -> PyResult<()> {
        match &self.shown.labels {
            Some(labels) if self.wants_names() => {
                let arguments = (self.client.clone_ref(py), labels.clone_ref(py));
                py.import("siteline._labels")?.call_method1("fetch", arguments).map(drop)
            }
            _ => Ok(()),
        }
    }

    fn wants_names(&self) -> bool {
        self.shown.labels.is_some() && self.client.get().client.listed().raw().is_none()
    }

    fn callback(&self, py: Python<'_>) -> PyResult<Option<ProgressCallback>> {
        let Some(progress) = &self.progress else { return Ok(None) };
        progress.callback(py, &self.scan().query().title())
    }

    /// A new chain.
    fn reader(&self, py: Python<'_>) -> PyResult<PageReader> {
        let stream = guarded(|| self.scan().pages().or_raise())?;
        let shown = self.shown.clone_ref(py);
        Ok(PageReader::new(stream, self.callback(py)?, shown, self.client.clone_ref(py)))
    }

    pub(crate) fn scan(&self) -> &Scan {
        self.collect.scan()
    }

    /// The complete table, which is remembered: one object for all callers.
    pub(crate) fn remembered(&self, py: Python<'_>, table: Arc<Table>) -> PyResult<Py<PyAny>> {
        let object =
            || Ok::<_, PyErr>(table_object(py, Frame::of_table(table), &self.shown)?.unbind());
        self.table.get_or_try_init(py, object).map(|table| table.clone_ref(py))
    }

    /// The Python object for the outcome of a step: a `Progress`, or the table.
    fn stepped(&self, py: Python<'_>, step: Result<Step, ReadFailure>) -> PyResult<Py<PyAny>> {
        match step {
            Ok(Step::Page(progress)) => event(py, &progress).map(Bound::unbind),
            Ok(Step::Whole(table)) => self.remembered(py, table),
            Err(failure) => Err(read_failure(py, failure, &self.shown)),
        }
    }

    fn step(&self, deadline: Deadline) -> impl Future<Output = Result<Step, ReadFailure>> + use<> {
        let collect = Arc::clone(&self.collect);
        async move { collect.step(deadline).await }
    }

    /// A frame of the table. Wrong options are refused before anything is read.
    fn frame<'py>(
        slf: &Bound<'py, Self>,
        way: &str,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Some(options) = options {
            slf.py().import("siteline.frames")?.call_method1("check_options", (options,))?;
        }
        Self::collect(slf)?.bind(slf.py()).call_method(way, (), options)
    }

    /// Its `progress=`, unless it has been read, and the title of a bar.
    pub(crate) fn wants_progress(&self, py: Python<'_>) -> (Option<Py<PyAny>>, String) {
        let progress = self.progress.as_ref().filter(|_| self.table.get(py).is_none());
        (progress.map(|progress| progress.0.clone_ref(py)), self.scan().query().title())
    }

    /// The same scan with the same `progress=`, continuing from a bookmark.
    pub(crate) fn going_on(
        &self,
        py: Python<'_>,
        bookmark: Bookmark,
        onto: Option<Arc<Table>>,
    ) -> PyResult<Self> {
        Ok(self.with_scan(py, self.scan().resume(bookmark, onto).or_raise()?))
    }

    fn with_scan(&self, py: Python<'_>, scan: Scan) -> Self {
        let progress = self.progress.as_ref().map(|progress| ProgressArg(progress.0.clone_ref(py)));
        Self::new(scan, self.client.clone_ref(py), progress, self.shown.clone_ref(py))
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

/// The arguments of `_restore`.
type ScanArguments<'py> = (
    Bound<'py, PyClient>,
    Bound<'py, PyAny>,
    Option<PyBookmark>,
    Option<Bound<'py, PyAny>>,
    Option<String>,
    Option<Py<PyAny>>,
);

const NO_PAGES: &str = "collect() reads through the store. Without store= its pages can be had, and cost a \
    request each.";
const NO_RESUME: &str = "Call collect() again: it goes on with what the store has.";
const NO_PARTS: &str = "What is missing is read in parts that suit the store. Give each range a scan of its \
    own.";

/// `siteline._reads`: the loops of `collect()` and `gather()`.
pub(crate) fn reads(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    py.import("siteline._reads")
}

/// The points of a scan that is collected when the first one is waited for.
struct CollectedPoints {
    scan: Py<PyScan>,
    is_given: AtomicBool,
}

impl PointSource for CollectedPoints {
    fn take(&self) -> Taken {
        match self.scan.get().collect.complete() {
            None => Taken::Nothing,
            Some(_) if self.is_given.swap(true, Ordering::Relaxed) => Taken::Ended,
            Some(table) => Taken::Points(Arc::clone(&table.merged.points)),
        }
    }

    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        PyScan::collect(self.scan.bind(py)).map(drop)
    }

    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.scan)
    }
}

/// The scan, read through a store where there is one.
///
/// # Errors
/// `QueryError` for what is no store, and for a scan that cannot be read through one.
pub(crate) fn with_store<'py>(
    py: Python<'py>,
    scan: PyScan,
    store: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let scan = Bound::new(py, scan)?;
    let Some(store) = store.filter(|store| !store.is_none()) else { return Ok(scan.into_any()) };
    if !store.hasattr("_read_through")? {
        let message = format!("store= is {}, not a siteline.Store.", described(store));
        let error = Error::new(Kind::QueryError, message);
        return Err(error
            .with_hint("For a target of yours use client.sync(feed, target).")
            .into_py_err());
    }
    store.call_method1("_read_through", (scan,))
}

copies_are_itself!(PyScan);

methods_can_be_replaced!(PyScan, replaced);

#[pymethods]
impl PyScan {
    /// The query: immutable, printable, hashable.
    #[getter]
    fn query(&self) -> PyQuery {
        PyQuery(self.scan().query().clone())
    }

    /// What in the query may mean something else than it seems: a dict. Sends no
    /// request. The report of the table has the same, and more.
    #[getter]
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        dict(py, &self.scan().report())
    }

    fn __repr__(&self) -> String {
        let resumed = match self.scan().resumed_after_pages() {
            0 => String::new(),
            before => format!(", going on after {}", many(before, "page")),
        };
        let through = self.read_through().map_or_else(String::new, |read| {
            format!(", through {}", escaped(&read.store().path().to_string_lossy()))
        });
        format!("<Scan {}{resumed}{through}>", self.scan().query())
    }

    /// What notebooks show.
    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        html(slf.as_any(), "scan")
    }

    /// The table, if it has been read.
    #[pyo3(name = "_known")]
    fn known(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.table.get(py).map(|table| table.clone_ref(py))
    }

    /// Read page by page, on a new chain: an iterator of :class:`Page`.
    ///
    /// Each call costs a request for each page, also after ``collect()``, which keeps points, not pages.
    ///
    /// From the second page on, the next page is prefetched while you work on the current one. If you
    /// stop early, at most one request was made for a page that you have not seen, and none if you took
    /// only the first page. A request that is ended by Ctrl-C, a cancelled task or the end of the process
    /// stays counted. The error of a page is raised, and its log records are emitted, when you take it.
    ///
    /// A :class:`QueryError` for a scan with ``store=``.
    fn pages(&self, py: Python<'_>) -> PyResult<PageIterator> {
        self.check_own_chain("pages()", NO_PAGES)?;
        Ok(PageIterator(self.reader(py)?, self.shown.clone_ref(py)))
    }

    /// Read point by point: an iterator of plain dicts.
    ///
    /// The keys are the column names, times are aware datetimes, nulls are ``None``. With
    /// ``named=True`` each point is a :class:`Record` tuple of the ten columns instead, without
    /// ``extra_columns``.
    ///
    /// Once ``collect()`` has read all pages, its points come from memory, without a request or
    /// ``progress=``: merged, by series, then time, those of ``onto`` included. Before that, also after a
    /// ``collect()`` that failed or was interrupted, and always with ``fresh=True``, a new chain costs a
    /// request for each page, as :meth:`pages` does: points come as the pages bring them, unmerged, and
    /// of a resumed scan those after its bookmark. A scan with ``store=`` is collected first, and has no
    /// ``fresh=True``.
    ///
    /// >>> table = scan.collect()
    /// >>> used = client.allowance.used
    /// >>> len(list(scan.records())), client.allowance.used - used
    /// (72, 0)
    /// >>> len(list(scan.records(fresh=True))), client.allowance.used - used
    /// (72, 3)
    #[pyo3(signature = (*, named=false, fresh=false))]
    fn records(slf: &Bound<'_, Self>, named: bool, fresh: bool) -> PyResult<RecordIterator> {
        let scan = slf.get();
        match scan.collect.complete() {
            Some(whole) if !fresh => {
                Ok(RecordIterator::over(Arc::clone(&whole.merged.points), named))
            }
            _ if slf.get().through.is_some() => {
                if fresh {
                    scan.check_own_chain("records(fresh=True)", NO_PAGES)?;
                }
                let points = CollectedPoints { scan: slf.clone().unbind(), is_given: false.into() };
                Ok(RecordIterator::reading(Box::new(points), named))
            }
            _ => Ok(RecordIterator::reading(Box::new(scan.reader(slf.py())?), named)),
        }
    }

    /// Read the complete range once and merge it: a :class:`Table`, which is remembered.
    ///
    /// A read that fails, or is interrupted (Ctrl-C, a cancelled task, an exception of ``progress=``),
    /// keeps its pages: the next call continues after them, or begins again where their cursor cannot be
    /// used (:class:`CursorRejected`). The error has ``.bookmark`` and ``.partial``.
    ///
    /// With ``store=`` what the store has settled is read from it, and what the service sends is stored page
    /// by page: the next call goes on after a failure. Errors have neither bookmark nor partial table. ``report.through`` says which ranges came from where.
    fn collect(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        let (py, scan) = (slf.py(), slf.get());
        if let Some(table) = scan.known(py) {
            return Ok(table);
        }
        scan.fetch_names(py)?;
        guarded(|| {
            if let Some(callback) = scan.callback(py)? {
                let table = reads(py)?.call_method1("collect", (slf, callback.0))?;
                return Ok(table.unbind());
            }
            Ok(Self::_collect(slf).wait(py)?.cast_bound(py)?.clone().unbind())
        })
    }

    /// Gives the table, without `progress=`.
    fn _collect(slf: &Bound<'_, Self>) -> Call {
        let (collect, this) = (Arc::clone(&slf.get().collect), slf.clone().unbind());
        let buffer = SharedEvents::default();
        if slf.get().is_told() {
            buffer.get().remember(&slf.get().client.get().notes);
        }
        Call::new(buffer.get(), async move { collect.table().await }, move |py, read| {
            drop(buffer);
            this.get().stepped(py, read.map(Step::Whole))
        })
    }

    /// The client to ask for the names that labels need, and the labels, for `siteline.aio`.
    fn _wanted_names(&self, py: Python<'_>) -> Option<(Py<PyClient>, Option<Py<PyAny>>)> {
        let labels = self.shown.clone_ref(py).labels;
        self.wants_names().then(|| (self.client.clone_ref(py), labels))
    }

    /// Whether its records come after a read of the whole that is still to be made, for ``siteline.aio``.
    fn _is_collected_first(&self) -> bool {
        self.through.is_some() && self.collect.complete().is_none()
    }

    /// The callback of a read that begins now, or ``None``.
    fn _progress_callback(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let callback = if self.table.get(py).is_some() { None } else { self.callback(py)? };
        Ok(callback.map(|callback| callback.0))
    }

    /// Whether somebody is told of the requests of its client.
    #[pyo3(name = "_is_told")]
    fn is_told(&self) -> bool {
        self.client.get().notes.exist()
    }

    /// A read that begins now, for ``_step()``.
    fn _collecting(&self) -> PyCollecting {
        PyCollecting { deadline: self.scan().deadline(), buffer: SharedEvents::default() }
    }

    /// Reads one more page; gives its `Progress`, or the table after the last one.
    fn _step(slf: &Bound<'_, Self>, collecting: &PyCollecting) -> Call {
        let (step, this) = (slf.get().step(collecting.deadline), slf.clone().unbind());
        Call::new(collecting.buffer.get(), step, move |py, step| this.get().stepped(py, step))
    }

    /// After the last step: drops the request for the page that is prefetched.
    fn _end(&self, py: Python<'_>, collecting: &PyCollecting) -> PyResult<()> {
        collecting.buffer.end();
        step_in_runtime(py, &collecting.buffer.get(), || self.collect.stop_prefetch())
    }

    /// The same scan, continuing from a bookmark.
    ///
    /// ``onto`` adds the points that were read before the bookmark. It must be the ``.partial`` of the
    /// error that had the bookmark: a :class:`QueryError` otherwise. Without it the result has only the
    /// rest, and ``report.resumed_after_pages`` and ``frame.attrs["siteline"]`` say how many pages
    /// are not in it (0 for a complete result). A bookmark of another query, host or subject is a
    /// :class:`BookmarkError`.
    ///
    /// >>> first = next(client.scan(site="S1", start="2026-11-01T00:00:00Z", interval="1h",
    /// ...                          page_size=100).pages())
    /// >>> rest = client.scan(site="S1", start="2026-11-01T00:00:00Z", interval="1h",
    /// ...                    page_size=100).resume(first.bookmark)
    /// >>> rest.collect().report.resumed_after_pages
    /// 1
    #[pyo3(signature = (bookmark, *, onto=None))]
    fn resume(
        &self,
        py: Python<'_>,
        bookmark: &PyBookmark,
        onto: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        self.check_own_chain("resume()", NO_RESUME)?;
        let unread = || {
            Error::new(Kind::QueryError, "onto= is a table that no scan read.").with_hint(ONTO_HINT)
        };
        let read = |table: &Bound<'_, PyAny>| -> PyResult<Arc<Table>> {
            let frame = frame_of(table)?;
            match frame.as_ref().map(|frame| &frame.get().origin) {
                Some(Origin::Read(table)) => Ok(Arc::clone(table)),
                _ => Err(unread()).or_raise(),
            }
        };
        let onto = onto.map(read).transpose()?;
        guarded(|| self.going_on(py, bookmark.0.clone(), onto))
    }

    /// Split into scans of consecutive ranges, in order of time, for :meth:`Client.gather`.
    ///
    /// - ``by``: the number of parts, as equal as whole buckets allow; or the length of a part, as text
    ///   (``"1d"``) or a ``timedelta``: a multiple of the interval; the last part may be shorter
    ///
    /// Each part has the settings of this scan. The ranges are cut at multiples of the interval from
    /// ``start``. Splitting sends no request, but each part costs at least one page, and its last page
    /// is only partly filled: :meth:`Client.plan` shows the cost. Scans are never split automatically. A
    /// scan without ``start`` or ``interval``, or with a bookmark, and more parts than buckets are a
    /// :class:`QueryError`.
    ///
    /// >>> [str(part.query.start.time()) for part in scan.split(3)]
    /// ['00:00:00', '02:00:00', '04:00:00']
    /// >>> len(scan.split("1h"))
    /// 6
    #[pyo3(text_signature = "($self, by, /)")]
    fn split(&self, by: &Bound<'_, PyAny>) -> PyResult<Vec<Self>> {
        let py = by.py();
        self.check_own_chain("split()", NO_PARTS)?;
        let cut = cut(by, "by")?;
        guarded(|| {
            let parts = self.scan().split(cut).or_raise()?;
            Ok(parts.into_iter().map(|part| self.with_scan(py, part)).collect())
        })
    }

    /// The Arrow PyCapsule interface: reads as :meth:`collect` does.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        slf: &Bound<'py, Self>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let table = Self::collect(slf)?;
        table.bind(slf.py()).call_method1("__arrow_c_stream__", (requested_schema,))
    }

    /// The pandas frame of :meth:`collect`: see :meth:`Table.to_pandas`.
    #[pyo3(signature = (**options), text_signature = "($self, *, ids='str', tz=None, labels=None)")]
    fn to_pandas<'py>(
        slf: &Bound<'py, Self>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Self::frame(slf, "to_pandas", options)
    }

    /// The polars frame of :meth:`collect`: see :meth:`Table.to_polars`.
    #[pyo3(signature = (**options), text_signature = "($self, *, ids='str', tz=None, labels=None)")]
    fn to_polars<'py>(
        slf: &Bound<'py, Self>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Self::frame(slf, "to_polars", options)
    }

    /// The ``pyarrow.Table`` of :meth:`collect`: see :meth:`Table.to_arrow`.
    #[pyo3(signature = (**options), text_signature = "($self, *, tz=None, labels=None)")]
    fn to_arrow<'py>(
        slf: &Bound<'py, Self>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Self::frame(slf, "to_arrow", options)
    }

    /// The Arrow PyCapsule interface: sends no request.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &schema(&self.scan().decode_settings().extra_columns))
    }

    /// Makes the scan again for ``pickle``.
    #[staticmethod]
    #[pyo3(signature = (client, state, bookmark=None, store=None, tz=None, labels=None))]
    fn _restore<'py>(
        client: &Bound<'py, PyClient>,
        state: &Bound<'py, PyAny>,
        bookmark: Option<&PyBookmark>,
        store: Option<&Bound<'py, PyAny>>,
        tz: Option<String>,
        labels: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let input: ScanInput = restore(state)?;
        guarded(|| {
            let mut scan = input.scan(&client.get().client).or_raise()?;
            if let Some(bookmark) = bookmark {
                scan = scan.resume(bookmark.0.clone(), None).or_raise()?;
            }
            let shown = TableShown { zone: tz, labels };
            with_store(client.py(), Self::new(scan, client.clone().unbind(), None, shown), store)
        })
    }

    /// The pickle has the query, the settings of the read and the client, but not what was read.
    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, ScanArguments<'py>)> {
        let (py, scan) = (slf.py(), slf.get().scan());
        if scan.has_partial() {
            return Err(PyTypeError::new_err(
                "A scan that continues a partial table (onto=) is not pickled, because the table is \
                 not: keep partial.to_pandas(), and resume(bookmark) without onto= there.",
            ));
        }
        let (client, state) =
            (slf.get().client.bind(py).clone(), dict(py, &ScanInput::from(scan))?);
        let bookmark = scan.bookmark().cloned().map(PyBookmark);
        let store = slf.get().through.as_ref().map(|through| through.store.bind(py).clone());
        let TableShown { zone, labels } = slf.get().shown.clone_ref(py);
        Ok((slf.get_type().getattr("_restore")?, (client, state, bookmark, store, zone, labels)))
    }

    /// For the garbage collector: ``progress=`` may be a method of an object that keeps the scan.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.client)?;
        visit.call(self.through.as_ref().map(|through| &through.store))?;
        visit.call(self.progress.as_ref().map(|progress| &progress.0))
    }
}
