//! Points of a store that are read batch after batch: for frames, Arrow consumers and records.

use std::collections::TryReserveError;
use std::sync::OnceLock;

use arrow_array::{RecordBatchIterator, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::exceptions::PyMemoryError;
use pyo3::types::PyCapsule;

use crate::bridge::process::without_fork_anywhere;
use crate::convert::capsule::reader_capsule;
use crate::convert::rows::{Times, rows};
use crate::frame::rows::Rows;
use crate::frame::shown::Shown;
use crate::frame::{Data, Frame};
use crate::prelude::*;
use siteline_core::data::{Identity, PointColumns};
use siteline_core::store::{Flagged, Reader, ShownPoints, Store};
use siteline_core::sync::PinnedRead;

/// Points of a batch: a few megabytes.
const ROWS: usize = 1 << 16;

/// A pinned read of a store.
#[derive(Clone)]
pub(crate) struct Stored {
    pub(crate) store: Arc<Store>,
    pub(crate) read: PinnedRead,
}

impl Stored {
    fn open(&self, flagged: Flagged) -> Result<Reader> {
        self.read.open(&self.store, flagged)
    }

    /// A new read of all points.
    pub(crate) fn batches(&self, py: Python<'_>, shown: Shown) -> PyResult<BatchStream> {
        let reader = step(py, || self.open(self.read.spec.flagged))?.or_raise()?;
        Ok(BatchStream::new(reader, shown))
    }

    /// The series that the read picks.
    pub(crate) fn series(&self, py: Python<'_>) -> PyResult<Vec<Identity>> {
        let read = || -> Result<Vec<Identity>> {
            Ok(self.open(self.read.spec.flagged)?.picked().cloned().collect())
        };
        step(py, read)?.or_raise()
    }

    /// How many points there are.
    pub(crate) fn count(&self, py: Python<'_>) -> PyResult<u64> {
        step(py, || self.open(self.read.spec.flagged)?.count_points())?.or_raise()
    }

    /// How many of them are withdrawn.
    pub(crate) fn count_withdrawn(&self, py: Python<'_>) -> PyResult<u64> {
        if self.read.spec.flagged == Flagged::Drop {
            return Ok(0);
        }
        step(py, || self.open(Flagged::Only)?.count_points())?.or_raise()
    }

    /// All points, each column in memory of its final size from the start: batches that are concatenated
    /// would need twice the memory. Signals are handled between two batches.
    pub(crate) fn rows(&self, py: Python<'_>) -> PyResult<Rows> {
        let mut batches = self.batches(py, Shown::default())?;
        step(py, || batches.find_blocks())?.or_raise()?;
        let points = step(py, || batches.allocate())?;
        let points = points.map_err(|_| PyMemoryError::new_err("no memory for so many points"))?;
        let mut points =
            points.ok_or_else(|| refuse(py, Kind::InternalError, "a reader was read twice"))?;
        loop {
            py.check_signals()?;
            if step(py, || batches.read_into(&mut points))?.or_raise()? {
                continue;
            }
            return step(py, || -> Result<Rows> {
                let (points, marks) = points.finish()?;
                let mark = self.read.spec.view.mark();
                Ok(Rows::of_points(Arc::new(points)).with(mark.name(), false, marks))
            })?
            .or_raise();
        }
    }
}

/// Rows that are read batch after batch: in memory, or points of a store. In a process that did not begin the
/// read of a store, it gives a `ForkError`.
pub(crate) struct BatchStream {
    reader: Option<Reader>,
    /// The rows in memory that are left, as they are shown.
    memory: Option<RecordBatch>,
    shown: Shown,
    schema: SchemaRef,
    /// The error that ended the stream: its consumer raises an exception of its own.
    failure: Arc<OnceLock<Error>>,
}

impl BatchStream {
    fn new(reader: Reader, shown: Shown) -> Self {
        let schema = shown.schema(&reader.schema());
        Self { reader: Some(reader), memory: None, shown, schema, failure: Arc::default() }
    }

    fn of_memory(batch: RecordBatch) -> Self {
        let (shown, schema) = (Shown::default(), batch.schema());
        Self { reader: None, memory: Some(batch), shown, schema, failure: Arc::default() }
    }

    pub(crate) fn failing_into(mut self, failure: Arc<OnceLock<Error>>) -> Self {
        self.failure = failure;
        self
    }

    /// The next rows, `None` after the last. Called within a step of the core.
    pub(crate) fn next_batch(&mut self, rows: usize) -> Result<Option<RecordBatch>> {
        if let Some(left) = &mut self.memory {
            let next = left.slice(0, rows.min(left.num_rows()));
            *left = left.slice(next.num_rows(), left.num_rows() - next.num_rows());
            return Ok((next.num_rows() > 0).then_some(next));
        }
        let Some(reader) = &mut self.reader else { return Ok(None) };
        let batch = reader.next_batch(rows);
        if !matches!(batch, Ok(Some(_))) {
            // The connection is closed at once, not when the consumer drops the stream.
            self.reader = None;
        }
        let Some(batch) = batch? else { return Ok(None) };
        self.shown.batch(&batch, || Arc::new(PointColumns::from_batch(&batch))).map(Some)
    }

    /// Called within a step of the core, before [`BatchStream::allocate`].
    fn find_blocks(&mut self) -> Result<()> {
        self.reader.as_mut().map_or(Ok(()), Reader::find_blocks)
    }

    /// No points yet, with the capacity for all. Called within a step of the core.
    fn allocate(&mut self) -> Result<Option<ShownPoints>, TryReserveError> {
        self.reader.as_ref().map(Reader::allocate).transpose()
    }

    /// Adds the next points; false after the last. Called within a step of the core.
    fn read_into(&mut self, shown: &mut ShownPoints) -> Result<bool> {
        let read = self.reader.as_mut().map_or(Ok(false), |reader| reader.read_into(shown, ROWS));
        if !matches!(read, Ok(true)) {
            self.reader = None;
        }
        read
    }
}

impl Frame {
    /// Its rows as they are shown.
    pub(crate) fn batch_stream(&self, py: Python<'_>, shown: Shown) -> PyResult<BatchStream> {
        if let (Data::Stream, Some(stored)) = (&self.data, self.stored()) {
            return stored.batches(py, shown);
        }
        detached(py, || self.batch(&shown).map(BatchStream::of_memory))?.or_raise()
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
        // Rows in memory are one batch.
        let rows = if self.memory.is_some() { usize::MAX } else { ROWS };
        without_fork_anywhere(|| self.next_batch(rows)).transpose().map(|batch| {
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

/// Rows that Python takes batch by batch. For `siteline._lazy`, series of a store are picked after the read was
/// opened, so that they and their points are of one state of the store.
#[pyclass(frozen, name = "_Batches")]
pub(crate) struct Batches(pub(super) Mutex<BatchStream>);

#[pymethods]
impl Batches {
    /// The five ids of each series of the feed.
    fn series<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        let batches = self.0.lock();
        let all = batches.reader.as_ref().map_or(&[][..], Reader::identities);
        all.iter().map(|one| super::ids(py, one)).collect()
    }

    /// Reads only these of the series that `series()` lists. Called before `next()`.
    fn keep(&self, py: Python<'_>, places: Vec<usize>) -> PyResult<()> {
        step(py, move || {
            if let Some(reader) = &mut self.0.lock().reader {
                reader.keep_series(&places);
            }
        })
    }

    /// The next rows as dicts, about so many; none after the last.
    fn dicts<'py>(&self, py: Python<'py>, count: usize) -> PyResult<Option<Bound<'py, PyList>>> {
        py.check_signals()?;
        let batch = step(py, || self.0.lock().next_batch(count))?.or_raise()?;
        batch.map(|batch| rows(py, &batch, &mut Times::default(), false)).transpose()
    }

    /// An Arrow stream of these columns of the next points, about so many; `None` after the last.
    fn next<'py>(
        &self,
        py: Python<'py>,
        rows: usize,
        columns: Vec<usize>,
    ) -> PyResult<Option<Bound<'py, PyCapsule>>> {
        py.check_signals()?;
        let batch = step(py, move || -> Result<Option<RecordBatch>> {
            let batch = self.0.lock().next_batch(rows)?;
            batch.map(|batch| batch.project(&columns).map_err(|e| super::broken(&e))).transpose()
        })?
        .or_raise()?;
        batch.map(|batch| capsule(py, batch)).transpose()
    }
}

/// The capsule of a stream of one batch.
pub(crate) fn capsule(py: Python<'_>, batch: RecordBatch) -> PyResult<Bound<'_, PyCapsule>> {
    let schema = batch.schema();
    reader_capsule(py, Box::new(RecordBatchIterator::new([Ok(batch)], schema)))
}
