//! The points of a snapshot, batch after batch, for Arrow consumers and for records.

use std::mem;
use std::sync::{Arc, OnceLock};

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::prelude::*;

use crate::data::PointColumns;
use crate::error::{Error, Result};
use crate::lock::Mutex;
use crate::python::bridge::process::undivided_anywhere;
use crate::python::bridge::runtime::step;
use crate::python::convert::rows::{PointSource, Taken};
use crate::store::Reader;

/// Points of a batch, about: a few megabytes.
pub(crate) const ROWS: usize = 1 << 16;

/// Reads a snapshot. In a process that did not begin the read, it gives a `ForkError`.
pub(crate) struct BatchStream {
    reader: Option<Reader>,
    pub(crate) schema: SchemaRef,
    /// The error that ended the stream: its consumer raises an exception of its own.
    pub(crate) failure: Arc<OnceLock<Error>>,
}

impl BatchStream {
    pub(crate) fn new(reader: Reader) -> Self {
        Self { schema: reader.schema(), reader: Some(reader), failure: Arc::default() }
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
}

impl Drop for BatchStream {
    fn drop(&mut self) {
        if let Some(reader) = self.reader.take() {
            undivided_anywhere(|| drop(reader));
        }
    }
}

impl Iterator for BatchStream {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        undivided_anywhere(|| self.next_batch(ROWS)).transpose().map(|batch| {
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
    Ok(step(py, || batches.next_batch(rows))??)
}

/// Points that records read at a time.
const RECORDS: usize = 1 << 13;

/// The points of a store for [`RecordIterator`](crate::python::convert::rows::RecordIterator).
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

    /// Without the interpreter; a fork finds no lock held.
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        py.check_signals()?;
        step(py, || -> Result<()> {
            let mut batches = self.batches.lock();
            // Another thread may have been faster.
            if matches!(*self.next.lock(), Taken::Nothing) {
                // `next` is not locked meanwhile: others wait for it and hold the interpreter.
                let read = batches.next_batch(RECORDS)?;
                let points = read.map(|batch| Arc::new(PointColumns::from_batch(&batch)));
                *self.next.lock() = points.map_or(Taken::Ended, Taken::Points);
            }
            Ok(())
        })??;
        Ok(())
    }
}
