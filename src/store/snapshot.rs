//! A snapshot of a store: its points batch after batch, for frames, Arrow consumers and records.

use std::collections::{HashMap, TryReserveError};
use std::mem;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList, PyTuple};

use crate::bridge::errors::OrRaise as _;
use crate::bridge::process::{detached, without_fork_anywhere};
use crate::bridge::runtime::step;
use crate::convert::capsule::reader_capsule;
use crate::convert::columns::of_points;
use crate::convert::labels::{FramePoints, changes_for_frames};
use crate::convert::rows::{PointSource, Taken};
use crate::convert::state::dict;
use crate::convert::values::refuse;
use siteline_base::lock::Mutex;
use siteline_core::data::reshape::{Expected, with_gaps};
use siteline_core::data::{Identity, PointColumns};
use siteline_core::error::{Error, Kind, Result};
use siteline_core::store::{Reader, SeriesIds, ShownPoints, View};
use siteline_core::sync::{ReadSpec, Snapshot};

/// Points of a batch: a few megabytes.
const ROWS: usize = 1 << 16;

/// The key of the coverage in the schema's metadata.
const COVERAGE: &str = "siteline.coverage";

/// Reads a snapshot. In a process that did not begin the read, it gives a `ForkError`.
pub(crate) struct BatchStream {
    reader: Option<Reader>,
    pub(crate) schema: SchemaRef,
    /// The error that ended the stream: its consumer raises an exception of its own.
    pub(crate) failure: Arc<OnceLock<Error>>,
}

impl BatchStream {
    pub(crate) fn new(snapshot: Snapshot) -> Self {
        // Text, flags and times always serialise.
        let read = serde_json::to_string(&snapshot.coverage).unwrap_or_default();
        let metadata = HashMap::from([(COVERAGE.to_owned(), read)]);
        let schema = snapshot.reader.schema().as_ref().clone().with_metadata(metadata);
        Self { schema: Arc::new(schema), reader: Some(snapshot.reader), failure: Arc::default() }
    }

    /// The next points, `None` after the last. Called within a step of the core.
    ///
    /// # Errors
    /// `StoreError`s; `ForkError` in a process that did not begin the read.
    pub(crate) fn next_batch(&mut self, rows: usize) -> Result<Option<RecordBatch>> {
        let Some(reader) = &mut self.reader else { return Ok(None) };
        let batch = reader.next_batch(rows);
        if !matches!(batch, Ok(Some(_))) {
            // The connection is closed at once, not when the consumer drops the stream.
            self.reader = None;
        }
        batch
    }

    /// The ids of all series of the feed, in the order of the points.
    pub(crate) fn identities(&self) -> &[Identity] {
        self.reader.as_ref().map_or(&[], Reader::identities)
    }

    /// As [`Reader::keep_series`].
    pub(crate) fn keep_series(&mut self, places: &[usize]) {
        if let Some(reader) = &mut self.reader {
            reader.keep_series(places);
        }
    }

    /// Called within a step of the core, before [`BatchStream::allocate`].
    ///
    /// # Errors
    /// As [`BatchStream::next_batch`].
    fn find_blocks(&mut self) -> Result<()> {
        self.reader.as_mut().map_or(Ok(()), Reader::find_blocks)
    }

    /// No points yet, with the capacity for all. Called within a step of the core.
    fn allocate(&mut self) -> Result<Option<ShownPoints>, TryReserveError> {
        self.reader.as_ref().map(Reader::allocate).transpose()
    }

    /// Adds the next points; false after the last. Called within a step of the core.
    ///
    /// # Errors
    /// As [`BatchStream::next_batch`].
    fn read_into(&mut self, shown: &mut ShownPoints) -> Result<bool> {
        let read = self.reader.as_mut().map_or(Ok(false), |reader| reader.read_into(shown, ROWS));
        if !matches!(read, Ok(true)) {
            self.reader = None;
        }
        read
    }

    /// How many points there are. Called within a step of the core.
    ///
    /// # Errors
    /// As [`BatchStream::next_batch`].
    pub(crate) fn count_points(&mut self) -> Result<usize> {
        let count = self.reader.as_mut().map_or(Ok(0), Reader::count_points);
        self.reader = None;
        Ok(usize::try_from(count?).unwrap_or(usize::MAX))
    }
}

impl Drop for BatchStream {
    fn drop(&mut self) {
        if let Some(reader) = self.reader.take() {
            without_fork_anywhere(|| drop(reader));
        }
    }
}

impl Iterator for BatchStream {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        without_fork_anywhere(|| self.next_batch(ROWS)).transpose().map(|batch| {
            batch.map_err(|error| {
                // After the first one the stream has ended.
                let _ = self.failure.set(error.clone());
                ArrowError::ExternalError(Box::new(error))
            })
        })
    }
}

impl RecordBatchReader for BatchStream {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// The next points, the interpreter released meanwhile; signals are handled between two batches.
pub(crate) fn next_batch(
    py: Python<'_>,
    batches: &mut BatchStream,
    rows: usize,
) -> PyResult<Option<RecordBatch>> {
    py.check_signals()?;
    step(py, || batches.next_batch(rows))?.or_raise()
}

/// All points, each column in memory of its final size from the start: batches that are concatenated
/// would need twice the memory. As in [`next_batch`], signals are handled meanwhile.
fn read_all(
    py: Python<'_>,
    batches: &mut BatchStream,
) -> PyResult<(PointColumns, Option<Vec<u8>>)> {
    step(py, || batches.find_blocks())?.or_raise()?;
    let shown = step(py, || batches.allocate())?;
    let shown = shown.map_err(|_| PyMemoryError::new_err("no memory for so many points"))?;
    let mut shown =
        shown.ok_or_else(|| refuse(py, Kind::InternalError, "a snapshot was read twice"))?;
    loop {
        py.check_signals()?;
        if !step(py, || batches.read_into(&mut shown))?.or_raise()? {
            return step(py, || shown.finish())?.or_raise();
        }
    }
}

/// A snapshot for one frame, as `siteline.frames` reads it: once, by `_columns()` or by the stream.
#[pyclass(frozen, name = "_Snapshot")]
pub(crate) struct PySnapshot {
    batches: Mutex<Option<BatchStream>>,
    /// What `frame.attrs["siteline"]` says.
    provenance: Py<PyDict>,
    /// Of the feed.
    pub(crate) interval_seconds: Option<u32>,
    /// The buckets that its points can have, where that is known.
    expected: Option<Expected>,
    /// The error that ended its stream.
    pub(crate) failure: Arc<OnceLock<Error>>,
}

impl PySnapshot {
    pub(crate) fn new(
        py: Python<'_>,
        snapshot: Snapshot,
        spec: &ReadSpec,
        store: &Path,
    ) -> PyResult<Self> {
        let provenance = PyDict::new(py);
        provenance.set_item("store", store.to_string_lossy())?;
        provenance.set_item("feed", &spec.feed)?;
        provenance.set_item("query", snapshot.feed.parameters())?;
        provenance.set_item("sequence", snapshot.sequence)?;
        provenance.set_item("start", spec.start)?;
        provenance.set_item("end", spec.end)?;
        for (name, _, list) in spec.series.lists() {
            provenance.set_item(name, list)?;
        }
        let tuples = |all: &Vec<SeriesIds>| {
            let tuples = all.iter().map(|ids| PyTuple::new(py, ids));
            tuples.collect::<PyResult<Vec<_>>>()
        };
        provenance.set_item("series", spec.series.series.as_ref().map(tuples).transpose()?)?;
        provenance.set_item("settled_only", spec.settled_only)?;
        provenance.set_item("flagged", spec.flagged.to_string())?;
        provenance.set_item("unread", spec.unread.to_string())?;
        provenance.set_item("coverage", dict(py, &snapshot.coverage)?)?;
        if let View::ChangedSince(since) = spec.view {
            provenance.set_item("since", since)?;
        }
        let interval_seconds = snapshot.feed.input().interval_seconds;
        let expected = snapshot.expected(spec);
        let batches = BatchStream::new(snapshot);
        let failure = Arc::clone(&batches.failure);
        let (batches, provenance) = (Mutex::new(Some(batches)), provenance.unbind());
        Ok(Self { batches, provenance, interval_seconds, expected, failure })
    }

    fn take(&self, py: Python<'_>) -> PyResult<BatchStream> {
        let batches = self.batches.lock().take();
        batches.ok_or_else(|| refuse(py, Kind::InternalError, "a snapshot was read twice"))
    }

    /// The buckets that its points can have: those of the range that were read.
    ///
    /// # Errors
    /// `QueryError` for changes, for flagged points alone, and for a feed without an interval.
    pub(crate) fn expected(&self) -> Result<Expected> {
        let expected = self.expected.clone();
        expected.ok_or_else(|| {
            let message = "which buckets are missing is not known: these are a part of the points.";
            let hint = "Ask store.points(...) of their range, with flagged=\"keep\" or \"drop\".";
            Error::new(Kind::QueryError, message).with_hint(hint)
        })
    }

    /// All points, with a row for each bucket that is missing.
    ///
    /// # Errors
    /// As [`PySnapshot::expected`] and [`with_gaps`].
    pub(crate) fn filled(&self, py: Python<'_>) -> PyResult<PointColumns> {
        let (expected, points) = (self.expected().or_raise()?, self.points(py)?);
        detached(py, || with_gaps(&points, &expected))?.or_raise()
    }

    /// All points.
    pub(crate) fn points(&self, py: Python<'_>) -> PyResult<PointColumns> {
        Ok(read_all(py, &mut self.take(py)?)?.0)
    }
}

#[pymethods]
impl PySnapshot {
    fn _columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let mut stream = self.take(py)?;
        let (points, changes) = read_all(py, &mut stream)?;
        let columns = of_points(py, &points)?;
        if let Some(changes) = changes {
            columns.append(changes_for_frames(py, &changes)?)?;
        }
        Ok(columns)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        reader_capsule(py, Box::new(self.take(py)?))
    }

    /// The same with names, or rows for gaps: they need all points, so that all is read first.
    fn _shown(
        &self,
        py: Python<'_>,
        labels: Option<&Bound<'_, PyAny>>,
        gaps: bool,
    ) -> PyResult<FramePoints> {
        let (points, changes) =
            if gaps { (self.filled(py)?, None) } else { read_all(py, &mut self.take(py)?)? };
        FramePoints::labelled(&points, changes, labels, None, self.provenance(py))
    }

    #[pyo3(name = "_provenance")]
    pub(crate) fn provenance(&self, py: Python<'_>) -> Py<PyDict> {
        self.provenance.clone_ref(py)
    }
}

/// Points that records read at a time.
const RECORDS: usize = 1 << 13;

/// The points of a store for [`RecordIterator`](crate::convert::rows::RecordIterator).
pub(crate) struct StoredPoints {
    batches: Mutex<BatchStream>,
    /// What was read and not yet taken.
    next: Mutex<Taken>,
}

impl StoredPoints {
    pub(crate) fn new(batches: BatchStream) -> Self {
        Self { batches: Mutex::new(batches), next: Mutex::new(Taken::Nothing) }
    }
}

impl PointSource for StoredPoints {
    fn take(&self) -> Taken {
        let mut next = self.next.lock();
        let after = if matches!(*next, Taken::Ended) { Taken::Ended } else { Taken::Nothing };
        mem::replace(&mut *next, after)
    }

    /// With the interpreter released; no fork finds a lock held.
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        py.check_signals()?;
        step(py, || -> Result<()> {
            let mut batches = self.batches.lock();
            // Another thread may have been faster.
            if matches!(*self.next.lock(), Taken::Nothing) {
                // `next` is not locked during the read: other threads lock it with the interpreter held.
                let read = batches.next_batch(RECORDS)?;
                let points = read.map(|batch| Arc::new(PointColumns::from_batch(&batch)));
                *self.next.lock() = points.map_or(Taken::Ended, Taken::Points);
            }
            Ok(())
        })?
        .or_raise()?;
        Ok(())
    }
}
