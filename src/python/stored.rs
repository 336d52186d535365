//! Points of a store on their way out: batch after batch, for Arrow consumers and for records.

use std::sync::{Arc, OnceLock};

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};

use crate::error::{Error, Kind, Result};
use crate::python::process::undivided_anywhere;
use crate::store::Reader;

/// About so many points in a batch: a few megabytes.
pub(crate) const ROWS: usize = 1 << 16;

/// A snapshot that is being read. It belongs to the process that began it.
pub(crate) struct Stored {
    reader: Option<Reader>,
    schema: SchemaRef,
    process: u32,
    failure: Failure,
}

/// Where the consumer of a stream is told why it ended: what it raises itself is its own.
pub(crate) type Failure = Arc<OnceLock<Error>>;

impl Stored {
    pub(crate) fn new(reader: Reader) -> Self {
        let schema = reader.schema();
        let process = std::process::id();
        Self { reader: Some(reader), schema, process, failure: Failure::default() }
    }

    /// Where the failure of this stream will stand.
    pub(crate) fn failure(&self) -> Failure {
        Arc::clone(&self.failure)
    }

    pub(crate) fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// The next points, `None` after the last. Called within a step of the core.
    ///
    /// # Errors
    /// `StoreError`s; `ForkError` in a process that did not begin it.
    pub(crate) fn next_batch(&mut self, rows: usize) -> Result<Option<RecordBatch>> {
        self.check_process()?;
        loop {
            let Some(reader) = &mut self.reader else { return Ok(None) };
            match reader.next_batch(rows) {
                Ok(Some(batch)) if batch.num_rows() == 0 => {}
                Ok(Some(batch)) => return Ok(Some(batch)),
                ended => {
                    // Its connection is given back at once, not when the consumer lets go of it.
                    self.reader = None;
                    return ended;
                }
            }
        }
    }

    /// # Errors
    /// `ForkError` in a process that did not begin it.
    pub(crate) fn check_process(&self) -> Result<()> {
        if self.process == std::process::id() {
            return Ok(());
        }
        let error = Error::new(Kind::Fork, "this read of a store was begun before a fork");
        Err(error.with_hint("The parent's goes on. Begin a new one in the child."))
    }

    fn close(&mut self) {
        let Some(reader) = self.reader.take() else { return };
        if self.process == std::process::id() {
            undivided_anywhere(|| drop(reader));
        } else {
            // The connection is the parent's.
            std::mem::forget(reader);
        }
    }
}

impl Drop for Stored {
    fn drop(&mut self) {
        self.close();
    }
}

impl Iterator for Stored {
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

impl RecordBatchReader for Stored {
    fn schema(&self) -> SchemaRef {
        Self::schema(self)
    }
}
