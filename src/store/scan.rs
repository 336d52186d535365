//! `Store.scan`, which `siteline._lazy` makes of polars, and the snapshot that it reads.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchIterator, StringArray};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::bridge::errors::OrRaise as _;
use crate::bridge::process::guarded;
use crate::bridge::runtime::step;
use crate::convert::capsule::reader_capsule;
use crate::store::PyStore;
use crate::store::feed::feed_name;
use crate::store::snapshot::BatchStream;
use siteline_base::lock::Mutex;
use siteline_core::data::{Identity, schema};
use siteline_core::error::{Error, Kind, Result};

/// A snapshot that is read batch by batch, of series that are picked once it is open: which series there
/// are, and their points, are of one state of the store.
#[pyclass(frozen, name = "_Batches")]
pub(crate) struct PyBatches(Mutex<BatchStream>);

impl PyBatches {
    pub(crate) fn new(batches: BatchStream) -> Self {
        Self(Mutex::new(batches))
    }
}

#[pymethods]
impl PyBatches {
    /// An Arrow stream of the five ids of each series of the feed.
    fn series<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        capsule(py, step(py, || series_batch(self.0.lock().identities()))?.or_raise()?)
    }

    /// Reads these alone of the series that :meth:`series` lists. Called before :meth:`next`.
    fn keep(&self, py: Python<'_>, places: Vec<usize>) -> PyResult<()> {
        step(py, move || self.0.lock().keep_series(&places))
    }

    /// An Arrow stream of these columns of the next points, about so many; ``None`` after the last.
    fn next<'py>(
        &self,
        py: Python<'py>,
        rows: usize,
        columns: Vec<usize>,
    ) -> PyResult<Option<Bound<'py, PyCapsule>>> {
        py.check_signals()?;
        let batch = step(py, move || -> Result<Option<RecordBatch>> {
            let batch = self.0.lock().next_batch(rows)?;
            batch.map(|batch| batch.project(&columns).map_err(|error| refused(&error))).transpose()
        })?
        .or_raise()?;
        batch.map(|batch| capsule(py, batch)).transpose()
    }
}

fn capsule(py: Python<'_>, batch: RecordBatch) -> PyResult<Bound<'_, PyCapsule>> {
    let schema = batch.schema();
    reader_capsule(py, Box::new(RecordBatchIterator::new([Ok(batch)], schema)))
}

fn series_batch(all: &[Identity]) -> Result<RecordBatch> {
    let ids = |place: usize| -> ArrayRef {
        Arc::new(all.iter().map(|ids| ids.0[place].as_deref()).collect::<StringArray>())
    };
    let text = |field: &Arc<Field>| Field::new(field.name(), DataType::Utf8, true);
    let fields: Vec<Field> = schema(&[]).fields()[..5].iter().map(text).collect();
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), (0..5).map(ids).collect());
    batch.map_err(|error| refused(&error))
}

fn refused(error: &ArrowError) -> Error {
    Error::new(Kind::InternalError, format!("Arrow refused its own data: {error}"))
}

#[pymethods]
impl PyStore {
    /// The points of a feed as a polars ``LazyFrame``: nothing is read before it is collected, and then no
    /// more than the query needs.
    ///
    /// - ``settled_only``, ``flagged``, ``unread``: as of :meth:`points`
    ///
    /// The columns are those of :meth:`Points.to_polars`. What is read of the store:
    ///
    /// - the range that a filter names: ``timestamp`` beside an instant with ``>=``, ``>``, ``<``, ``<=``,
    ///   ``==`` or ``is_between``. It is the range of :meth:`points`, so that one that is not wholly read
    ///   is an :class:`UnreadRange`. Without such a filter no range is named: unread parts are left out,
    ///   with a :class:`SitelineWarning`
    /// - the series whose ids pass the filters that are of the five ids alone, of whatever kind. An id that
    ///   no series has gives no rows, as in each frame; :meth:`points` refuses it
    /// - batch after batch of the columns that are used: ``head(n)`` ends the read, and with
    ///   ``collect(engine="streaming")`` few batches are in memory
    ///
    /// Parts of a filter that are joined with ``&`` count one by one. All others, such as ranges joined
    /// with ``|``, narrow nothing and are applied to what was read, as the recognised ones are again.
    ///
    /// Each collection reads a snapshot; a query that has the frame twice, as in a join, reads two. DuckDB
    /// (with polars and pyarrow) takes it by its name, and hands its ``WHERE`` on: ``duckdb.sql("SELECT …
    /// FROM lazy WHERE timestamp >= '2026-11-16T00:00:00Z' AND tag_guid = '…'")``.
    ///
    /// An error of the read is raised as it is; polars 1.32 and DuckDB raise their own, with its text.
    ///
    /// >>> import polars as pl
    /// >>> feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h",
    /// ...                      since="2026-11-15T00:00Z")
    /// >>> store = siteline.Store("plant.siteline")
    /// >>> report = client.sync(feed, store)
    /// >>> lazy = store.scan("line-2")
    /// >>> noon = pl.datetime(2026, 11, 16, 12, time_zone="UTC")
    /// >>> lazy.filter(timestamp=noon).select("machine_id", "value").collect().height
    /// 6
    #[pyo3(signature = (feed, *, settled_only=false, flagged="keep", unread="error"))]
    fn scan<'py>(
        slf: &Bound<'py, Self>,
        feed: &Bound<'py, PyAny>,
        settled_only: bool,
        flagged: &str,
        unread: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, feed) = (slf.py(), feed_name(feed)?);
        guarded(|| {
            let scan = py.import("siteline._lazy")?.getattr("scan")?;
            scan.call1((slf, feed, settled_only, flagged, unread))
        })
    }
}
