//! `siteline.Scan`: a query and how it is read; nothing is read before it is asked for.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use pyo3::exceptions::PyTypeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyCapsule, PyString};
use serde::{Deserialize, Serialize};

use crate::client::ReadSettings;
use crate::client::collect::{CollectOnce, Step};
use crate::client::scan::{ONTO_HINT, Scan};
use crate::client::split::Cut;
use crate::client::table::{ReadFailure, Table};
use crate::data::{Bookmark, DecodeSettings, Query, QueryInput, Shape, schema};
use crate::error::{Error, Kind, excerpt};
use crate::http::Deadline;
use crate::python::bridge::errors::raise;
use crate::python::bridge::logging::SharedLogBuffer;
use crate::python::bridge::process::guarded;
use crate::python::bridge::runtime::{block_on, spawn, step};
use crate::python::client::PyClient;
use crate::python::client::bookmark::PyBookmark;
use crate::python::client::failure::read_failure;
use crate::python::client::page::PageIterator;
use crate::python::client::page_reader::PageReader;
use crate::python::client::progress::{ProgressArg, ProgressCallback, PyCollecting, event, title};
use crate::python::client::query::PyQuery;
use crate::python::convert::capsule::schema_capsule;
use crate::python::convert::holder::frame_methods;
use crate::python::convert::rows::RecordIterator;
use crate::python::convert::state::{copies_are_itself, dict, restore};
use crate::python::convert::table::PyTable;
use crate::python::convert::values::{count, duration, html, many, refuse};

/// A read that has not happened yet: a query, and how to read it.
///
/// Making one costs no request. ``pages()`` and ``records()`` each start a new chain and give what
/// was read, as it was read. ``collect()`` reads once, merges, and remembers; every way to the whole
/// (``to_pandas()``, ``to_polars()``, ``to_arrow()``, ``pl.DataFrame(scan)``,
/// ``duckdb.sql("from scan")``) goes through it, so the allowance is never spent twice by accident.
/// ``split()`` cuts it into parts that :meth:`Client.gather` reads side by side.
/// DuckDB puts an exception of its own in the place of ours: call ``collect()`` before it where
/// ``.bookmark`` and ``.partial`` are wanted.
///
/// >>> scan = client.data(site="S1", line="L1", start="2026-11-01T00:00:00Z",
/// ...                    end="2026-11-01T01:00:00Z", interval="1m")
/// >>> len(scan.to_pandas().columns)
/// 10
#[pyclass(frozen, name = "Scan", module = "siteline")]
pub(crate) struct PyScan {
    /// The client as Python knows it.
    client: Py<PyClient>,
    pub(crate) collect: Arc<CollectOnce>,
    /// The whole as Python sees it: the same object for all who ask.
    table: PyOnceLock<Py<PyTable>>,
    progress: Option<ProgressArg>,
}

impl PyScan {
    pub(crate) fn new(scan: Scan, client: Py<PyClient>, progress: Option<ProgressArg>) -> Self {
        let (collect, table) = (Arc::new(CollectOnce::new(scan)), PyOnceLock::new());
        Self { client, collect, table, progress }
    }

    fn callback(&self, py: Python<'_>) -> PyResult<Option<ProgressCallback>> {
        let Some(progress) = &self.progress else { return Ok(None) };
        progress.callback(py, &title(self.scan().query()))
    }

    /// A new chain.
    fn reader(&self, py: Python<'_>) -> PyResult<PageReader> {
        let stream = guarded(|| self.scan().pages().map_err(|error| raise(py, &error)))?;
        Ok(PageReader::new(stream, self.callback(py)?))
    }

    pub(crate) fn scan(&self) -> &Scan {
        self.collect.scan()
    }

    /// The table as Python sees it: the same object for all who ask.
    pub(crate) fn remembered(&self, py: Python<'_>, table: Arc<Table>) -> PyResult<Py<PyTable>> {
        let table = self.table.get_or_try_init(py, || Py::new(py, PyTable::new(table)));
        table.map(|table| table.clone_ref(py))
    }

    /// The outcome of a step, as Python sees it: a `Progress`, or the table.
    fn stepped(&self, py: Python<'_>, step: Result<Step, ReadFailure>) -> PyResult<Py<PyAny>> {
        match step {
            Ok(Step::Page(progress)) => event(py, &progress).map(Bound::unbind),
            Ok(Step::Whole(table)) => self.remembered(py, table).map(Py::into_any),
            Err(failure) => Err(read_failure(py, failure)),
        }
    }

    fn step(&self, deadline: Deadline) -> impl Future<Output = Result<Step, ReadFailure>> + use<> {
        let collect = Arc::clone(&self.collect);
        async move { collect.step(deadline).await }
    }

    /// Its `progress=`, where it is still to be read, and the title of a bar.
    pub(crate) fn wants_progress(&self, py: Python<'_>) -> (Option<Py<PyAny>>, String) {
        let progress = self.progress.as_ref().filter(|_| self.table.get(py).is_none());
        (progress.map(|progress| progress.0.clone_ref(py)), title(self.scan().query()))
    }

    /// The same scan with the same `progress=`, going on from a bookmark.
    pub(crate) fn going_on(
        &self,
        py: Python<'_>,
        bookmark: Bookmark,
        onto: Option<Arc<Table>>,
    ) -> PyResult<Self> {
        let scan = self.scan().resume(bookmark, onto).map_err(|error| raise(py, &error))?;
        Ok(self.with_scan(py, scan))
    }

    fn with_scan(&self, py: Python<'_>, scan: Scan) -> Self {
        let progress = self.progress.as_ref().map(|progress| ProgressArg(progress.0.clone_ref(py)));
        Self::new(scan, self.client.clone_ref(py), progress)
    }

    fn schema(&self) -> SchemaRef {
        schema(&self.scan().decode_settings().extra_columns)
    }
}

/// How many parts, or how long each is.
fn cut(by: &Bound<'_, PyAny>) -> PyResult<Cut> {
    let is_length = by.is_instance_of::<PyString>() || by.hasattr("total_seconds")?;
    if is_length {
        duration(by, "by").map(Cut::Length)
    } else if by.hasattr("__index__")? {
        count(by, "by", Kind::QueryError).map(Cut::Parts)
    } else {
        let message = format!(
            "by={} is neither how many parts, a whole number, nor how long a part is, as text \
             (\"1d\") or a timedelta.",
            excerpt(&by.repr()?.to_string()),
        );
        Err(refuse(by.py(), Kind::QueryError, message))
    }
}

/// What is pickled of a scan, besides its client and bookmark.
#[derive(Serialize, Deserialize)]
struct ScanState {
    query: QueryInput,
    shape: Shape,
    extra_columns: Vec<String>,
    settings: ReadSettings,
}

/// The arguments of `_restore`.
type ScanArguments<'py> = (Bound<'py, PyClient>, Bound<'py, PyAny>, Option<PyBookmark>);

/// `siteline._reads`: the loops of `collect()` and `gather()`.
pub(crate) fn reads(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    py.import("siteline._reads")
}

frame_methods!(PyScan);
copies_are_itself!(PyScan);

#[pymethods]
impl PyScan {
    /// The query: immutable, printable, hashable.
    #[getter]
    fn query(&self) -> PyQuery {
        PyQuery(self.scan().query().clone())
    }

    fn __repr__(&self) -> String {
        let before = self.scan().resumed_after_pages();
        let resumed = match before {
            0 => String::new(),
            before => format!(", going on after {}", many(before, "page")),
        };
        format!("<Scan {}{resumed}>", self.scan().query())
    }

    /// What notebooks show.
    #[pyo3(name = "_repr_html_")]
    fn repr_html<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        html(slf.as_any(), "scan")
    }

    /// The whole, where it has been read.
    #[pyo3(name = "_known")]
    fn known(&self, py: Python<'_>) -> Option<Py<PyTable>> {
        self.table.get(py).map(|table| table.clone_ref(py))
    }

    /// Read page by page, on a new chain: an iterator of :class:`Page`.
    ///
    /// From the second page on the next one is prefetched while you work on the one you have: if you
    /// stop early, at most one request was made for a page that you have not seen, and none if you took
    /// only the first page. A request that Ctrl-C, a cancelled task or the end of the process ends stays
    /// counted. An error of a page is raised, and its log records are emitted, when you ask for it.
    fn pages(&self, py: Python<'_>) -> PyResult<PageIterator> {
        self.reader(py).map(PageIterator::new)
    }

    /// Read point by point, on a new chain: an iterator of plain dicts.
    ///
    /// The keys are the column names, times are aware datetimes, nulls are ``None``. With
    /// ``named=True`` each point is a :class:`Record` tuple instead, of the ten columns alone:
    /// ``extra_columns`` are in the dicts. Pages are prefetched as :meth:`pages` does.
    #[pyo3(signature = (*, named=false), text_signature = "($self, *, named=False)")]
    fn records(&self, py: Python<'_>, named: bool) -> PyResult<RecordIterator> {
        Ok(RecordIterator::reading(Box::new(self.reader(py)?), named))
    }

    /// Read the whole once, merged: a :class:`Table`, remembered.
    ///
    /// A failure half way carries ``.bookmark`` and ``.partial``, and is not remembered. Interrupted
    /// (Ctrl-C, a cancelled task, what ``progress=`` raised), it keeps what was read: called again,
    /// it goes on there.
    fn collect(slf: &Bound<'_, Self>) -> PyResult<Py<PyTable>> {
        let (py, scan) = (slf.py(), slf.get());
        if let Some(table) = scan.known(py) {
            return Ok(table);
        }
        guarded(|| {
            if let Some(callback) = scan.callback(py)? {
                let table = reads(py)?.call_method1("collect", (slf, callback.0))?;
                return Ok(table.cast_into()?.unbind());
            }
            let collect = Arc::clone(&scan.collect);
            let read = block_on(py, &Arc::default(), async move { collect.table().await })?;
            scan.remembered(py, read.map_err(|failure| read_failure(py, failure))?)
        })
    }

    /// As ``collect()``, an awaitable of the running asyncio loop.
    fn _collect<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let (collect, this) = (Arc::clone(&slf.get().collect), slf.clone().unbind());
        spawn(slf.py(), Arc::default(), async move { collect.table().await }, move |py, read| {
            this.get().stepped(py, read.map(Step::Whole))
        })
    }

    /// The callback of a read that begins now, or ``None``.
    fn _progress_callback(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let callback = if self.table.get(py).is_some() { None } else { self.callback(py)? };
        Ok(callback.map(|callback| callback.0))
    }

    /// A read that begins now, for ``_wait()`` and ``_step()``.
    fn _collecting(&self) -> PyCollecting {
        PyCollecting { deadline: self.scan().deadline(), buffer: SharedLogBuffer::default() }
    }

    /// Reads one page more, and gives a ``Progress``; or the table, when all is read.
    fn _wait(&self, py: Python<'_>, collecting: &PyCollecting) -> PyResult<Py<PyAny>> {
        guarded(|| {
            let step = self.step(collecting.deadline);
            let step = block_on(py, &collecting.buffer.get(), step)?;
            self.stepped(py, step)
        })
    }

    /// As ``_wait()``, an awaitable of the running asyncio loop.
    fn _step<'py>(
        slf: &Bound<'py, Self>,
        collecting: &PyCollecting,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (step, this) = (slf.get().step(collecting.deadline), slf.clone().unbind());
        let buffer = collecting.buffer.get();
        spawn(slf.py(), buffer, step, move |py, step| this.get().stepped(py, step))
    }

    /// After the last step: drops the request for the page that is prefetched.
    fn _stop_prefetch(&self, py: Python<'_>) -> PyResult<()> {
        step(py, || self.collect.stop_prefetch())
    }

    /// The same scan going on from a bookmark, on top of what had been read (``onto=e.partial``).
    ///
    /// ``onto`` must be the ``.partial`` of the error that carried the bookmark: a
    /// :class:`QueryError` otherwise. Without it the result is the rest only, and says so:
    /// ``report["resumed_after_pages"]`` counts the pages whose points are not in it (0 for a
    /// whole), as does ``frame.attrs["siteline"]``. A bookmark of another query, host or subject is
    /// a :class:`BookmarkError`.
    ///
    /// >>> first = next(client.data(site="S1", start="2026-11-01T00:00:00Z", interval="1h",
    /// ...                          page_size=100).pages())
    /// >>> rest = client.data(site="S1", start="2026-11-01T00:00:00Z", interval="1h",
    /// ...                    page_size=100).resume(first.bookmark)
    /// >>> rest.collect().report["resumed_after_pages"]
    /// 1
    #[pyo3(signature = (bookmark, *, onto=None), text_signature = "($self, bookmark, *, onto=None)")]
    fn resume(
        &self,
        py: Python<'_>,
        bookmark: &PyBookmark,
        onto: Option<&PyTable>,
    ) -> PyResult<Self> {
        let unread = || {
            let error = Error::new(Kind::QueryError, "onto= is a table that no scan read.");
            raise(py, &error.with_hint(ONTO_HINT))
        };
        let onto = onto.map(|table| table.origin.clone().ok_or_else(unread)).transpose()?;
        guarded(|| self.going_on(py, bookmark.0.clone(), onto))
    }

    /// Split into scans of adjoining ranges, in order of time, for :meth:`Client.gather`.
    ///
    /// - ``by``: how many parts, as equal as whole buckets allow; or how long a part is, as text
    ///   (``"1d"``) or a ``timedelta``: a multiple of the interval; the last part may be shorter
    ///
    /// Each part reads by the settings of this scan. Cuts lie on multiples of the interval, counted
    /// from ``start``. It costs no request by itself, but each part ends with a page of its own that
    /// is filled in part, and costs one page at least: :meth:`Client.plan` shows it. Nothing is ever
    /// split unasked. A scan without ``start`` or ``interval``, one that goes on from a bookmark, and
    /// more parts than buckets are a :class:`QueryError`.
    ///
    /// >>> [str(part.query.start.time()) for part in scan.split(3)]
    /// ['00:00:00', '02:00:00', '04:00:00']
    /// >>> len(scan.split("1h"))
    /// 6
    #[pyo3(text_signature = "($self, by, /)")]
    fn split(&self, by: &Bound<'_, PyAny>) -> PyResult<Vec<Self>> {
        let py = by.py();
        let cut = cut(by)?;
        guarded(|| {
            let parts = self.scan().split(cut).map_err(|error| raise(py, &error))?;
            Ok(parts.into_iter().map(|part| self.with_scan(py, part)).collect())
        })
    }

    /// The Arrow PyCapsule interface: reads the whole at the first call, once.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        slf: &Bound<'py, Self>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let table = Self::collect(slf)?;
        table.bind(slf.py()).call_method1("__arrow_c_stream__", (requested_schema,))
    }

    /// The Arrow PyCapsule interface: costs no request.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.schema())
    }

    /// What ``pickle`` makes a scan again with.
    #[staticmethod]
    fn _restore(
        client: &Bound<'_, PyClient>,
        state: &Bound<'_, PyAny>,
        bookmark: Option<&PyBookmark>,
    ) -> PyResult<Self> {
        let core = client.get().client.clone();
        let ScanState { query, shape, extra_columns, settings } = restore(state)?;
        let make = || {
            let query = Query::new(query)?;
            let decode = DecodeSettings::for_query(&query, shape, extra_columns)?;
            let scan = Scan::new(core, query, decode, settings);
            bookmark.map_or(Ok(scan.clone()), |bookmark| scan.resume(bookmark.0.clone(), None))
        };
        let scan = guarded(|| make().map_err(|error| raise(client.py(), &error)))?;
        Ok(Self::new(scan, client.clone().unbind(), None))
    }

    /// Pickles the query and how it is read, with the client. What was read is not pickled.
    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, ScanArguments<'py>)> {
        let (py, scan) = (slf.py(), slf.get().scan());
        if scan.has_partial() {
            return Err(PyTypeError::new_err(
                "A scan that goes on from a partial table (onto=) is not pickled, for the table is \
                 not: keep partial.to_pandas(), and resume(bookmark) without onto= there.",
            ));
        }
        let state = ScanState {
            query: scan.query().input().clone(),
            shape: scan.decode_settings().shape.clone(),
            extra_columns: scan.decode_settings().extra_columns.clone(),
            settings: scan.read_settings().clone(),
        };
        let client = slf.get().client.bind(py).clone();
        let bookmark = scan.bookmark().cloned().map(PyBookmark);
        Ok((slf.get_type().getattr("_restore")?, (client, dict(py, &state)?, bookmark)))
    }

    /// For the garbage collector: ``progress=`` may be a method of whoever keeps the scan.
    #[expect(clippy::needless_pass_by_value, reason = "PyO3 gives it by value")]
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.client)?;
        visit.call(self.progress.as_ref().map(|progress| &progress.0))
    }
}
