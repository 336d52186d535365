//! `siteline.Table` and what every holder of points shares: the Arrow hand-off and the columns.

use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow_schema::SchemaRef;
use arrow_schema::ffi::FFI_ArrowSchema;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList, PyTuple};

use crate::client::scan::{Provenance, Table};
use crate::data::{PointColumns, Preview};
use crate::error::{Error, Kind};
use crate::python::columns::of_points;
use crate::python::conversions::{datetime, html, many};
use crate::python::errors::{frames, raise};
use crate::python::preview;
use crate::python::report::table_report;
use crate::python::rows::RecordIterator;
use crate::python::runtime::{detached, guarded};

/// The Arrow stream of some batches, as the PyCapsule interface wants it. The stream is released
/// once, by the consumer or with the capsule.
pub(crate) fn stream_capsule(
    py: Python<'_>,
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
) -> PyResult<Bound<'_, PyCapsule>> {
    let reader = RecordBatchIterator::new(batches.into_iter().map(Ok), schema);
    reader_capsule(py, Box::new(reader))
}

/// As [`stream_capsule`], of batches that are read when the consumer asks for them.
pub(crate) fn reader_capsule(
    py: Python<'_>,
    reader: Box<dyn RecordBatchReader + Send>,
) -> PyResult<Bound<'_, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), c"arrow_array_stream")
}

/// The Arrow schema alone, as the PyCapsule interface wants it.
pub(crate) fn schema_capsule<'py>(
    py: Python<'py>,
    schema: &SchemaRef,
) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(schema.as_ref()).map_err(|error| arrow(py, &error))?;
    PyCapsule::new_with_value(py, schema, c"arrow_schema")
}

fn arrow(py: Python<'_>, error: &arrow_schema::ArrowError) -> PyErr {
    raise(py, &Error::new(Kind::Internal, format!("Arrow refused its own data: {error}")))
}

/// The points as an Arrow batch.
pub(crate) fn batch(py: Python<'_>, points: &PointColumns) -> PyResult<RecordBatch> {
    detached(py, || points.batch())?.map_err(|error| raise(py, &error))
}

/// What `frame.attrs["siteline"]` says.
pub(crate) fn provenance<'py>(
    py: Python<'py>,
    provenance: &Provenance,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    if provenance.further.is_empty() {
        dict.set_item("query", provenance.query.to_string())?;
    } else {
        let queries = [&provenance.query].into_iter().chain(&provenance.further);
        dict.set_item("query", queries.map(ToString::to_string).collect::<Vec<_>>())?;
    }
    dict.set_item("host", &provenance.host)?;
    dict.set_item("read_at", datetime(py, provenance.read_at)?)?;
    dict.set_item("pages", provenance.pages)?;
    dict.set_item("resumed_after_pages", provenance.resumed_after_pages)?;
    Ok(dict)
}

/// A whole read: every point once, series merged over pages, in canonical order.
///
/// Ten columns: ``site_id``, ``line_id``, ``machine_id``, ``device_id``, ``tag_guid`` (text),
/// ``timestamp`` (microseconds, UTC: the start of the bucket as the service names it), ``value``,
/// ``minimum``, ``maximum`` (double), ``sample_count`` (integer); rows sorted by series, then time.
/// Where a point came several times the one of the latest page request stands (§4.5.3).
///
/// A table is an Arrow stream (``pl.DataFrame(table)``, ``duckdb.sql("from table")``,
/// ``pyarrow.table(table)``); the ids are dictionary-coded in it.
///
/// >>> table = scan.collect()
/// >>> table, table.report["revised"]
/// (<Table 72 points, 12 series, 3 pages>, 0)
/// >>> table.to_pandas(ids="category")["machine_id"].nunique()
/// 4
#[pyclass(frozen, name = "Table", module = "siteline")]
pub(crate) struct PyTable {
    pub(crate) points: Arc<PointColumns>,
    pub(crate) origin: Option<Arc<Table>>,
}

impl PyTable {
    pub(crate) fn new(table: Arc<Table>) -> Self {
        Self { points: Arc::clone(&table.merged.points), origin: Some(table) }
    }

    /// A table of other origin than a read: the sandbox's truth.
    pub(crate) fn unread(points: PointColumns) -> Self {
        Self { points: Arc::new(points), origin: None }
    }
}

#[pymethods]
impl PyTable {
    fn __len__(&self) -> usize {
        self.points.rows()
    }

    fn __repr__(&self) -> String {
        let points = many(self.points.rows() as u64, "point");
        let Some(table) = &self.origin else {
            return format!("<Table {points}>");
        };
        let pages = many(table.provenance.pages, "page");
        let missing = match table.provenance.resumed_after_pages {
            0 => String::new(),
            before => format!(" after {before} that are not in it"),
        };
        let series = table.merged.report.series;
        format!("<Table {points}, {series} series, {pages}{missing}>")
    }

    /// What notebooks show.
    #[pyo3(name = "_repr_html_")]
    fn repr_html<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        html(slf.as_any(), "table")
    }

    /// What :mod:`siteline.html` draws.
    fn _preview<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let source = self.origin.as_ref().map(|table| &table.provenance);
        let range = source.and_then(preview::asked);
        let interval = source.and_then(|source| source.query.interval_seconds());
        let preview = detached(py, || Preview::of_points(&self.points, range, interval))?;
        preview::dict(py, &preview)
    }

    /// What was assumed, seen and counted while reading: a dict.
    ///
    /// ``pages``, ``resumed_after_pages`` (pages before these whose points are not here: 0 for the
    /// whole), ``points_read``, ``points``, ``series``, ``repeated`` (came again unchanged),
    /// ``revised`` (came again with other values; the later stands), and the sums of the pages'
    /// own reports (see :attr:`Page.report`).
    #[getter]
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        match &self.origin {
            Some(table) => table_report(py, table),
            None => Ok(PyDict::new(py)),
        }
    }

    /// What :class:`Gathered` is of several tables: one.
    #[staticmethod]
    fn _together(tables: &Bound<'_, PyTuple>) -> PyResult<Self> {
        let py = tables.py();
        let origin = |one: Bound<'_, PyAny>| Ok(one.cast::<Self>()?.get().origin.clone());
        let tables: Vec<_> =
            tables.iter().filter_map(|one| origin(one).transpose()).collect::<PyResult<_>>()?;
        let table = detached(py, || Table::together(&tables))?;
        table.map(|table| Self::new(Arc::new(table))).map_err(|error| raise(py, &error))
    }

    /// The long pandas frame. ``ids="category"`` is faster and smaller than ``"str"``.
    #[pyo3(signature = (*, ids="str"), text_signature = "($self, *, ids='str')")]
    fn to_pandas<'py>(slf: &Bound<'py, Self>, ids: &str) -> PyResult<Bound<'py, PyAny>> {
        call_frames(slf.as_any(), "to_pandas", Some(ids))
    }

    /// The long polars frame, without pyarrow.
    #[pyo3(signature = (*, ids="str"), text_signature = "($self, *, ids='str')")]
    fn to_polars<'py>(slf: &Bound<'py, Self>, ids: &str) -> PyResult<Bound<'py, PyAny>> {
        call_frames(slf.as_any(), "to_polars", Some(ids))
    }

    /// A ``pyarrow.Table``; the ids are dictionary-coded.
    fn to_arrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        call_frames(slf.as_any(), "to_arrow", None)
    }

    /// The points one by one, as plain dicts, or as :class:`Record` tuples with ``named=True``, which
    /// have the ten columns alone: ``extra_columns`` are in the dicts.
    #[pyo3(signature = (*, named=false), text_signature = "($self, *, named=False)")]
    fn records(&self, named: bool) -> RecordIterator {
        RecordIterator::over(Arc::clone(&self.points), named)
    }

    /// The Arrow PyCapsule interface.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface lets a producer keep its own schema; consumers cast.
        drop(requested_schema);
        let batch = batch(py, &self.points)?;
        stream_capsule(py, batch.schema(), vec![batch])
    }

    /// The Arrow PyCapsule interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.points.schema())
    }

    #[pyo3(name = "_columns")]
    pub(crate) fn columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        of_points(py, &self.points)
    }

    #[pyo3(name = "_provenance")]
    pub(crate) fn provenance<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        match &self.origin {
            Some(table) => provenance(py, &table.provenance),
            None => Ok(PyDict::new(py)),
        }
    }
}

/// Calls `siteline.frames.NAME(holder, ids=…)`.
pub(crate) fn call_frames<'py>(
    holder: &Bound<'py, PyAny>,
    name: &str,
    ids: Option<&str>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = holder.py();
    let options = PyDict::new(py);
    if let Some(ids) = ids {
        options.set_item("ids", ids)?;
    }
    guarded(|| frames(py, name)?.call((holder,), Some(&options)))
}
