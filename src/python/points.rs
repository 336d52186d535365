//! `siteline.Points`: points of a store, read when they are asked for.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

use crate::data::{PointColumns, Preview, schema};
use crate::python::conversions::html_sync;
use crate::python::errors::raise;
use crate::python::preview;
use crate::python::rows::RecordIterator;
use crate::python::runtime::{detached, step};
use crate::python::selected::{Opened, Selected};
use crate::python::snapshot::Snapshot;
use crate::python::store::PyStore;
use crate::python::stored::{ROWS, Stored};
use crate::python::table::{call_frames, reader_capsule, schema_capsule};
use crate::store::View;

/// What notebooks draw: the first so many.
const SHOWN: usize = 1 << 17;

/// Points of a store, read when they are asked for, and anew each time: a recipe.
///
/// The columns are those of :class:`Table`; those of :meth:`Store.changes` have one more, ``change``:
/// ``"new"``, ``"revised"``, ``"absent"`` (flagged since) or ``"returned"`` (no longer flagged). Rows
/// are sorted by series, then time; each point once, with the values of the latest page request that
/// brought it (§4.5.3).
///
/// It is an Arrow stream that reads while it is consumed (``pl.DataFrame(points)``,
/// ``duckdb.sql("from points")``, ``pyarrow.RecordBatchReader.from_stream(points)``); each consumer
/// reads for itself, at a snapshot: a sync in another process changes nothing under it. ``len()``
/// reads to count. ``frame.attrs["siteline"]`` says what was read: ``store``, ``feed``, ``query``,
/// ``sequence`` (give it to :meth:`Store.as_of` for the same points again), ``start``, ``end``,
/// ``settled_only``, ``flagged``, and ``since`` for changes.
///
/// Raises :class:`StoreError` where the store has no such feed or cannot be read,
/// :class:`StoreCorrupt` where it is damaged. A consumer that raises its own exception instead
/// (DuckDB) says the same in its text.
///
/// >>> store = siteline.Store("plant.siteline")
/// >>> feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h",
/// ...                      since="2026-11-15T00:00Z")
/// >>> report = client.sync(feed, store)
/// >>> points = store.points("line-2", "2026-11-16T00:00Z", "2026-11-17T00:00Z")
/// >>> len(points) == len(points.to_pandas()) > 0
/// True
#[pyclass(frozen, name = "Points", module = "siteline")]
pub(crate) struct PyPoints {
    pub(crate) store: Py<PyStore>,
    pub(crate) selected: Selected,
}

impl PyPoints {
    fn open(&self, py: Python<'_>) -> PyResult<Opened> {
        let store = self.store.get().0.clone();
        step(py, || self.selected.open(&store))?.map_err(|error| raise(py, &error))
    }

    /// A frame of a snapshot that is read once, for it. Where a consumer of its stream fails, our own
    /// error stands in the place of the consumer's.
    fn frame<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        ids: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let opened = self.open(py)?;
        let failure = opened.stored.failure();
        let store = self.store.get().0.path().to_path_buf();
        let snapshot = Bound::new(py, Snapshot::new(opened, self.selected.clone(), store))?;
        call_frames(snapshot.as_any(), name, ids)
            .map_err(|error| failure.get().map_or(error, |failure| raise(py, failure)))
    }
}

#[pymethods]
impl PyPoints {
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        let mut stored = self.open(py)?.stored;
        let mut rows = 0;
        while let Some(batch) = next_batch(py, &mut stored, ROWS)? {
            rows += batch.num_rows();
        }
        Ok(rows)
    }

    fn __repr__(&self) -> String {
        format!("<Points {}>", self.selected)
    }

    /// What notebooks show: the first points.
    #[pyo3(name = "_repr_html_")]
    fn repr_html<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        html_sync(slf.as_any(), "points")
    }

    /// What :mod:`siteline.html_sync` shows: what is asked, the preview of the first points, these
    /// one by one, how many they are, and whether there are more.
    fn _preview<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let opened = self.open(py)?;
        let mut stored = opened.stored;
        let first = next_batch(py, &mut stored, SHOWN)?;
        let more = first.is_some() && next_batch(py, &mut stored, 1)?.is_some();
        let first = first.unwrap_or_else(|| arrow_array::RecordBatch::new_empty(stored.schema()));
        let range = self.selected.start.zip(self.selected.end);
        let width = opened.interval_seconds;
        let rows = first.num_rows();
        let (first, drawn) = detached(py, || {
            let first = Arc::new(PointColumns::from_batch(&first));
            let drawn = Preview::of_points(&first, range, width);
            (first, drawn)
        })?;
        let records = RecordIterator::over(first, false);
        let said = self.selected.to_string();
        (said, preview::dict(py, &drawn)?, records, rows, more).into_pyobject(py)
    }

    /// The long pandas frame. ``ids="category"`` is faster and smaller than ``"str"``.
    #[pyo3(signature = (*, ids="str"), text_signature = "($self, *, ids='str')")]
    fn to_pandas<'py>(&self, py: Python<'py>, ids: &str) -> PyResult<Bound<'py, PyAny>> {
        self.frame(py, "to_pandas", Some(ids))
    }

    /// The long polars frame, without pyarrow.
    #[pyo3(signature = (*, ids="str"), text_signature = "($self, *, ids='str')")]
    fn to_polars<'py>(&self, py: Python<'py>, ids: &str) -> PyResult<Bound<'py, PyAny>> {
        self.frame(py, "to_polars", Some(ids))
    }

    /// A ``pyarrow.Table``; the ids are dictionary-coded.
    fn to_arrow<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.frame(py, "to_arrow", None)
    }

    /// The points one by one, as plain dicts, or as :class:`Record` tuples with ``named=True``, which
    /// have the ten columns alone: ``change`` is in the dicts.
    #[pyo3(signature = (*, named=false), text_signature = "($self, *, named=False)")]
    fn records(&self, py: Python<'_>, named: bool) -> PyResult<RecordIterator> {
        Ok(RecordIterator::stored(self.open(py)?.stored, named))
    }

    /// The Arrow PyCapsule interface: each call begins to read anew, batch after batch.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        reader_capsule(py, Box::new(self.open(py)?.stored))
    }

    /// The Arrow PyCapsule interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        match self.selected.view {
            View::ChangedSince(_) => schema_capsule(py, &self.open(py)?.stored.schema()),
            _ => schema_capsule(py, &schema(&[])),
        }
    }

    /// The recipe travels, with the path of the store.
    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let again = self.store.bind(py).getattr("_points")?;
        Ok((again, self.selected.parts().into_pyobject(py)?))
    }
}

/// The next points, the interpreter released meanwhile; Ctrl-C is heard between two batches.
pub(crate) fn next_batch(
    py: Python<'_>,
    stored: &mut Stored,
    rows: usize,
) -> PyResult<Option<arrow_array::RecordBatch>> {
    py.check_signals()?;
    step(py, || stored.next_batch(rows))?.map_err(|error| raise(py, &error))
}
