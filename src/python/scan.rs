//! `siteline.Scan`: a recipe that reads when it is asked to.

use std::sync::Arc;
use std::time::Duration;

use arrow_schema::SchemaRef;
use pyo3::exceptions::PyTypeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use pyo3::sync::PyOnceLock;
use pyo3::types::{PyCapsule, PyDict, PyList, PyString, PyTuple};

use crate::client::scan::{ONTO_HINT, ReadFailure, ReadSettings, Scan, Step, Table};
use crate::client::split::Cut;
use crate::client::whole::Whole;
use crate::data::{Bookmark, DecodeSettings, schema};
use crate::error::{Error, Kind, excerpt};
use crate::python::bookmark::PyBookmark;
use crate::python::client::PyClient;
use crate::python::conversions::{count, duration, html, many, refuse};
use crate::python::errors::raise;
use crate::python::page::PageIterator;
use crate::python::progress::{Audience, PyCollecting, Reporter, event, title};
use crate::python::query::PyQuery;
use crate::python::rows::RecordIterator;
use crate::python::runtime::{block_on, block_on_at, guarded, let_go, spawn, spawn_at};
use crate::python::shape::PyShape;
use crate::python::table::{PyTable, call_frames, schema_capsule};

/// The Python exception for a read that failed half way, with ``.bookmark`` and ``.partial``.
pub(crate) fn read_failure(py: Python<'_>, failure: ReadFailure) -> PyErr {
    let exception = raise(py, &failure.error);
    let value = exception.value(py);
    let fill = || -> PyResult<()> {
        if let Some(bookmark) = failure.bookmark {
            value.setattr("bookmark", Py::new(py, PyBookmark(bookmark))?)?;
        }
        if let Some(partial) = failure.partial {
            value.setattr("partial", Py::new(py, PyTable::new(Arc::new(partial)))?)?;
        }
        Ok(())
    };
    match fill() {
        Ok(()) => exception,
        Err(failure) => failure,
    }
}

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
    pub(crate) whole: Arc<Whole>,
    /// The whole as Python sees it: the same object for all who ask.
    table: Arc<PyOnceLock<Py<PyTable>>>,
    /// Who wants to hear how far a read has come.
    audience: Option<Audience>,
}

impl PyScan {
    pub(crate) fn new(scan: Scan, client: Py<PyClient>, audience: Option<Audience>) -> Self {
        let table = Arc::new(PyOnceLock::new());
        Self { client, whole: Arc::new(Whole::new(scan)), table, audience }
    }

    fn reporter(&self, py: Python<'_>) -> PyResult<Option<Reporter>> {
        let audience =
            self.audience.as_ref().map(|some| some.reporter(py, &title(self.scan().query())));
        Ok(audience.transpose()?.flatten())
    }

    /// As `collect()`, telling `reporter` between the pages. What it raises leaves the read where
    /// it is.
    fn collect_telling(&self, py: Python<'_>, reporter: &Reporter) -> PyResult<Arc<Table>> {
        let collecting = self.collecting();
        let steps = || {
            loop {
                let (whole, deadline) = (Arc::clone(&self.whole), collecting.deadline);
                let step = async move { whole.step(deadline).await };
                match block_on_at(py, &collecting.desk.get(), step)? {
                    Ok(Step::Page(progress)) => reporter.tell(py, &progress)?,
                    Ok(Step::Whole(table)) => return Ok(table),
                    Err(failure) => return Err(read_failure(py, failure)),
                }
            }
        };
        let outcome = steps();
        self.rest(py).and(outcome)
    }

    pub(crate) fn scan(&self) -> &Scan {
        self.whole.scan()
    }

    /// The whole as Python sees it, from now on.
    pub(crate) fn remembered(&self, py: Python<'_>, table: Arc<Table>) -> PyResult<Py<PyTable>> {
        remembered(py, &self.table, table)
    }

    /// Whom a read that begins now would tell, and what it is called; `None` where nothing is read.
    pub(crate) fn asks_to_be_told(&self, py: Python<'_>) -> (Option<Py<PyAny>>, String) {
        let audience = self.audience.as_ref().filter(|_| self.table.get(py).is_none());
        (audience.map(|audience| audience.0.clone_ref(py)), title(self.scan().query()))
    }

    /// The same scan, told as this one is, going on from a bookmark.
    pub(crate) fn going_on(
        &self,
        py: Python<'_>,
        bookmark: Bookmark,
        onto: Option<Arc<Table>>,
    ) -> PyResult<Self> {
        let scan = self.scan().resume(bookmark, onto).map_err(|error| raise(py, &error))?;
        Ok(self.alike(py, scan))
    }

    fn alike(&self, py: Python<'_>, scan: Scan) -> Self {
        let audience = self.audience.as_ref().map(|audience| audience.clone_ref(py));
        Self::new(scan, self.client.clone_ref(py), audience)
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
        count(by, "by", Kind::Query).map(Cut::Parts)
    } else {
        let message = format!(
            "by={} is neither how many parts, a whole number, nor how long a part is, as text \
             (\"1d\") or a timedelta.",
            excerpt(&by.repr()?.to_string()),
        );
        Err(refuse(by.py(), Kind::Query, message))
    }
}

fn remembered(
    py: Python<'_>,
    known: &PyOnceLock<Py<PyTable>>,
    table: Arc<Table>,
) -> PyResult<Py<PyTable>> {
    known.get_or_try_init(py, || Py::new(py, PyTable::new(table))).map(|table| table.clone_ref(py))
}

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
    fn _known(&self, py: Python<'_>) -> Option<Py<PyTable>> {
        self.table.get(py).map(|table| table.clone_ref(py))
    }

    /// Read page by page, on a new chain: an iterator of :class:`Page`.
    ///
    /// From the second page on the next one is read while you work on the one you have: who stops
    /// early has spent at most one request unseen, and none where it took only the first page. Cut
    /// short by Ctrl-C, a cancelled task or the end of the process, it stays counted. What goes wrong
    /// with a page is raised when that page is asked for, and what is logged of it comes with it.
    fn pages(&self, py: Python<'_>) -> PyResult<PageIterator> {
        let pages = guarded(|| self.scan().pages().map_err(|error| raise(py, &error)))?;
        Ok(PageIterator::new(pages, self.reporter(py)?))
    }

    /// Read point by point, on a new chain: an iterator of plain dicts.
    ///
    /// The keys are the column names, times are aware datetimes, nulls are ``None``. With
    /// ``named=True`` each point is a :class:`Record` tuple instead, of the ten columns alone:
    /// ``extra_columns`` are in the dicts. Pages are read ahead as :meth:`pages` does.
    #[pyo3(signature = (*, named=false), text_signature = "($self, *, named=False)")]
    fn records(&self, py: Python<'_>, named: bool) -> PyResult<RecordIterator> {
        let pages = guarded(|| self.scan().pages().map_err(|error| raise(py, &error)))?;
        Ok(RecordIterator::reading(pages, named, self.reporter(py)?))
    }

    /// Read the whole once, merged: a :class:`Table`, remembered.
    ///
    /// A failure half way carries ``.bookmark`` and ``.partial``, and is not remembered. Interrupted
    /// (Ctrl-C, a cancelled task, what ``progress=`` raised), it keeps what was read: called again,
    /// it goes on there.
    fn collect(&self, py: Python<'_>) -> PyResult<Py<PyTable>> {
        if let Some(table) = self.table.get(py) {
            return Ok(table.clone_ref(py));
        }
        guarded(|| {
            let table = if let Some(reporter) = self.reporter(py)? {
                let read = self.collect_telling(py, &reporter);
                let ended = reporter.end(py);
                let table = read?;
                ended.map(|()| table)?
            } else {
                let whole = Arc::clone(&self.whole);
                let read = block_on(py, async move { whole.table().await })?;
                read.map_err(|failure| read_failure(py, failure))?
            };
            remembered(py, &self.table, table)
        })
    }

    /// As ``collect()``, an awaitable of the running asyncio loop.
    fn _collect<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (whole, table) = (Arc::clone(&self.whole), Arc::clone(&self.table));
        spawn(py, async move { whole.table().await }, move |py, read| {
            let read = read.map_err(|failure| read_failure(py, failure))?;
            remembered(py, &table, read).map(Py::into_any)
        })
    }

    /// Whom to tell of a read that begins now: a callable or ``None``.
    #[pyo3(name = "_reporter")]
    fn known_reporter(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        if self.table.get(py).is_some() {
            return Ok(None);
        }
        Ok(self.reporter(py)?.map(|reporter| reporter.0))
    }

    /// A read that begins now, for ``_step()``.
    #[pyo3(name = "_collecting")]
    fn collecting(&self) -> PyCollecting {
        PyCollecting::begun(self.scan().deadline())
    }

    /// An awaitable of the running asyncio loop: one page more, as a ``Progress``, or the table.
    fn _step<'py>(
        &self,
        py: Python<'py>,
        collecting: &PyCollecting,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (whole, known) = (Arc::clone(&self.whole), Arc::clone(&self.table));
        let deadline = collecting.deadline;
        let step = async move { whole.step(deadline).await };
        spawn_at(py, collecting.desk.get(), step, move |py, step| match step {
            Ok(Step::Page(progress)) => event(py, &progress).map(Bound::unbind),
            Ok(Step::Whole(table)) => remembered(py, &known, table).map(Py::into_any),
            Err(failure) => Err(read_failure(py, failure)),
        })
    }

    /// After the last ``_step()``: gives up the page that is asked for already.
    #[pyo3(name = "_rest")]
    fn rest(&self, py: Python<'_>) -> PyResult<()> {
        self.whole.rest().map_or(Ok(()), |asked| let_go(py, asked))
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
            let error = Error::new(Kind::Query, "onto= is a table that no scan read.");
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
            Ok(parts.into_iter().map(|part| self.alike(py, part)).collect())
        })
    }

    /// The long pandas frame of the whole. ``ids="category"`` is faster and smaller than ``"str"``.
    #[pyo3(signature = (*, ids="str"), text_signature = "($self, *, ids='str')")]
    fn to_pandas<'py>(slf: &Bound<'py, Self>, ids: &str) -> PyResult<Bound<'py, PyAny>> {
        call_frames(slf.as_any(), "to_pandas", Some(ids))
    }

    /// The long polars frame of the whole, without pyarrow.
    #[pyo3(signature = (*, ids="str"), text_signature = "($self, *, ids='str')")]
    fn to_polars<'py>(slf: &Bound<'py, Self>, ids: &str) -> PyResult<Bound<'py, PyAny>> {
        call_frames(slf.as_any(), "to_polars", Some(ids))
    }

    /// The whole as a ``pyarrow.Table``; the ids are dictionary-coded.
    fn to_arrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        call_frames(slf.as_any(), "to_arrow", None)
    }

    /// The Arrow PyCapsule interface: reads the whole at the first call, once.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let table = self.collect(py)?;
        table
            .bind(py)
            .call_method1("__arrow_c_stream__", (requested_schema,))?
            .cast_into()
            .map_err(PyErr::from)
    }

    /// The Arrow PyCapsule interface: costs no request.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.schema())
    }

    /// What ``pickle`` makes a scan again with.
    #[staticmethod]
    fn _restore(
        client: &Bound<'_, PyClient>,
        query: &PyQuery,
        shape: &PyShape,
        extra_columns: Vec<String>,
        settings: (Option<u64>, Option<Duration>, bool),
        bookmark: Option<&PyBookmark>,
    ) -> PyResult<Self> {
        let (core, query, shape) = (client.get().client.clone(), query.0.clone(), shape.0.clone());
        let (max_pages, deadline, keep_raw) = settings;
        let settings = ReadSettings { max_pages, deadline, keep_raw };
        let make = || {
            let decode = DecodeSettings::for_query(&query, shape, extra_columns)?;
            let scan = Scan::new(core, query, decode, settings);
            bookmark.map_or(Ok(scan.clone()), |bookmark| scan.resume(bookmark.0.clone(), None))
        };
        let scan = guarded(|| make().map_err(|error| raise(client.py(), &error)))?;
        Ok(Self::new(scan, client.clone().unbind(), None))
    }

    /// A scan travels as its recipe, where its client does; what was read stays behind.
    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let scan = self.scan();
        if scan.has_partial() {
            return Err(PyTypeError::new_err(
                "A scan that goes on from a partial table (onto=) is not pickled, for the table is \
                 not: keep partial.to_pandas(), and resume(bookmark) without onto= there.",
            ));
        }
        let ReadSettings { max_pages, deadline, keep_raw } = scan.read_settings().clone();
        let decode = scan.decode_settings();
        let arguments = (
            self.client.bind(py),
            PyQuery(scan.query().clone()),
            PyShape(decode.shape.clone()),
            decode.extra_columns.clone(),
            (max_pages, deadline, keep_raw),
            scan.bookmark().cloned().map(PyBookmark),
        );
        let again = py.get_type::<Self>().getattr("_restore")?;
        Ok((again, arguments.into_pyobject(py)?))
    }

    /// For the garbage collector: ``progress=`` may be a method of whoever keeps the scan.
    #[expect(clippy::needless_pass_by_value, reason = "PyO3 gives it by value")]
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.client)?;
        visit.call(self.audience.as_ref().map(|audience| &audience.0))
    }

    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__(slf: Py<Self>, _memo: Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    // A scan holds points as a page and a table do, so that `frames` refuses a wrong argument or a
    // missing package before it asks for them: before anything is spent.
    fn _columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.collect(py)?.get().columns(py)
    }

    fn _provenance<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.collect(py)?.get().provenance(py)
    }
}
