//! `siteline.Scan`: a recipe that reads when it is asked to.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyCapsule, PyDict, PyList, PyTuple};

use crate::client::scan::{ONTO_HINT, ReadFailure, ReadSettings, Scan, Table};
use crate::client::whole::Whole;
use crate::data::schema;
use crate::error::{Error, Kind};
use crate::python::bookmark::PyBookmark;
use crate::python::client::PyClient;
use crate::python::errors::raise;
use crate::python::page::PageIterator;
use crate::python::query::PyQuery;
use crate::python::rows::RecordIterator;
use crate::python::runtime::{block_on, guarded, spawn};
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
    whole: Arc<Whole>,
    /// The whole as Python sees it: the same object for all who ask.
    table: Arc<PyOnceLock<Py<PyTable>>>,
}

impl PyScan {
    pub(crate) fn new(scan: Scan, client: Py<PyClient>) -> Self {
        Self { client, whole: Arc::new(Whole::new(scan)), table: Arc::new(PyOnceLock::new()) }
    }

    fn scan(&self) -> &Scan {
        self.whole.scan()
    }

    fn schema(&self) -> SchemaRef {
        schema(&self.scan().decode_settings().extra_columns)
    }
}

fn remembered(
    py: Python<'_>,
    known: &PyOnceLock<Py<PyTable>>,
    read: Result<Arc<Table>, ReadFailure>,
) -> PyResult<Py<PyTable>> {
    let table = read.map_err(|failure| read_failure(py, failure))?;
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
        format!("<Scan {}>", self.scan().query())
    }

    /// Read page by page, on a new chain: an iterator of :class:`Page`.
    fn pages(&self, py: Python<'_>) -> PyResult<PageIterator> {
        guarded(|| self.scan().pages().map(PageIterator::new).map_err(|error| raise(py, &error)))
    }

    /// Read point by point, on a new chain: an iterator of plain dicts.
    ///
    /// The keys are the ten column names, times are aware datetimes, nulls are ``None``. With
    /// ``named=True`` each point is a :class:`Record` tuple instead.
    #[pyo3(signature = (*, named=false), text_signature = "($self, *, named=False)")]
    fn records(&self, py: Python<'_>, named: bool) -> PyResult<RecordIterator> {
        let pages = guarded(|| self.scan().pages().map_err(|error| raise(py, &error)))?;
        Ok(RecordIterator::reading(pages, named))
    }

    /// Read the whole once, merged: a :class:`Table`, remembered.
    ///
    /// A failure half way carries ``.bookmark`` and ``.partial``, and is not remembered.
    fn collect(&self, py: Python<'_>) -> PyResult<Py<PyTable>> {
        guarded(|| remembered(py, &self.table, block_on(py, self.whole.table())?))
    }

    /// As ``collect()``, an awaitable of the running asyncio loop.
    fn _collect<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (whole, table) = (Arc::clone(&self.whole), Arc::clone(&self.table));
        spawn(py, async move { whole.table().await }, move |py, read| {
            remembered(py, &table, read).map(Py::into_any)
        })
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
        guarded(|| {
            let scan = self.scan().resume(bookmark.0.clone(), onto);
            let client = self.client.clone_ref(py);
            scan.map(|scan| Self::new(scan, client)).map_err(|error| raise(py, &error))
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
            PyQuery(scan.query().clone()),
            PyShape(decode.shape.clone()),
            decode.extra_columns.clone(),
            max_pages,
            deadline,
            keep_raw,
            scan.bookmark().cloned().map(PyBookmark),
        );
        Ok((self.client.bind(py).getattr("_scan")?, arguments.into_pyobject(py)?))
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
