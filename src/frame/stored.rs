//! Stored points, read in batches.

use std::sync::OnceLock;

use arrow_array::RecordBatchReader;
use arrow_ipc::writer::StreamEncoder;
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::exceptions::PyMemoryError;
use pyo3::types::PyCapsule;

use crate::bridge::process::without_fork_anywhere;
use crate::convert::capsule::{broken, reader_capsule};
use crate::frame::rows::Rows;
use crate::frame::shown::Shown;
use crate::frame::{Data, Frame};
use crate::prelude::*;
use siteline_core::data::{Identity, PointColumns};
use siteline_core::store::{Flagged, Reader, Store};
use siteline_core::sync::PinnedRead;

/// A few megabytes.
pub(super) const ROWS: usize = 1 << 16;

#[derive(Clone)]
pub(crate) struct Stored {
    pub(crate) store: Arc<Store>,
    pub(crate) read: PinnedRead,
}

impl Stored {
    fn opened<T: Send>(
        &self,
        py: Python<'_>,
        flagged: Flagged,
        work: impl FnOnce(Reader) -> Result<T> + Send,
    ) -> PyResult<T> {
        step(py, || self.read.open(&self.store, flagged).and_then(work))?.or_raise()
    }

    fn flagged(&self) -> Flagged {
        self.read.state.spec.flagged
    }

    pub(crate) fn batches(&self, py: Python<'_>, shown: Shown) -> PyResult<BatchStream> {
        self.opened(py, self.flagged(), |reader| Ok(BatchStream::new(reader, shown)))
    }

    pub(crate) fn series(&self, py: Python<'_>) -> PyResult<Vec<Identity>> {
        self.opened(py, self.flagged(), |reader| Ok(reader.picked().cloned().collect()))
    }

    pub(crate) fn count(&self, py: Python<'_>) -> PyResult<u64> {
        self.opened(py, self.flagged(), |mut reader| reader.count_points())
    }

    pub(crate) fn count_withdrawn(&self, py: Python<'_>) -> PyResult<u64> {
        if self.flagged() == Flagged::Drop {
            return Ok(0);
        }
        self.opened(py, Flagged::Only, |mut reader| reader.count_points())
    }

    /// All points, in columns that are allocated once: concatenated batches would need twice the memory.
    pub(crate) fn rows(&self, py: Python<'_>) -> PyResult<Rows> {
        let mut batches = self.batches(py, Shown::default())?;
        let Some(reader) = &mut batches.reader else {
            return Err(refuse(py, Kind::InternalError, "a store has no reader"));
        };
        let points = step(py, || reader.find_blocks().map(|()| reader.allocate()))?;
        let no_memory = |_| PyMemoryError::new_err("no memory for so many points");
        let mut points = points.or_raise()?.map_err(no_memory)?;
        while step(py, || reader.read_into(&mut points, ROWS))?.or_raise()? {
            py.check_signals()?;
        }
        step(py, || -> Result<Rows> {
            batches.reader = None;
            let (points, marks) = points.finish()?;
            let mark = self.read.state.spec.view.mark();
            Ok(Rows::of_points(Arc::new(points)).with(mark.name(), false, marks))
        })?
        .or_raise()
    }
}

pub(crate) struct BatchStream {
    reader: Option<Reader>,
    /// The remaining rows in memory.
    memory: Option<RecordBatch>,
    shown: Shown,
    schema: SchemaRef,
    /// The error that ended the stream, for [`super::Stream::check`].
    pub(super) failure: Arc<OnceLock<Error>>,
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

    /// Call it within a step.
    pub(crate) fn next_batch(&mut self, rows: usize) -> Result<Option<RecordBatch>> {
        if let Some(left) = &mut self.memory {
            let next = left.slice(0, rows.min(left.num_rows()));
            *left = left.slice(next.num_rows(), left.num_rows() - next.num_rows());
            return Ok((next.num_rows() > 0).then_some(next));
        }
        let Some(reader) = &mut self.reader else { return Ok(None) };
        let batch = reader.next_batch(rows);
        if !matches!(batch, Ok(Some(_))) {
            // Closes the connection before the consumer drops the stream.
            self.reader = None;
        }
        let Some(batch) = batch? else { return Ok(None) };
        self.shown.batch(&batch, || Arc::new(PointColumns::from_batch(&batch))).map(Some)
    }
}

impl Frame {
    pub(crate) fn batch_stream(&self, py: Python<'_>, shown: Shown) -> PyResult<BatchStream> {
        let batch = match &self.data {
            Data::Stream(stored) => return stored.batches(py, shown),
            Data::Rows(rows) => detached(py, || rows.batch(&shown)),
            Data::Wide(wide) => {
                detached(py, || wide.batch(self.shown_schema(&shown)?, shown.zone()))
            }
        };
        batch?.map(BatchStream::of_memory).or_raise()
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
        let rows = if self.memory.is_some() { usize::MAX } else { ROWS };
        without_fork_anywhere(|| self.next_batch(rows)).transpose().map(|batch| {
            batch.map_err(|error| {
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

/// `siteline._lazy` selects series after the read is open, so that both belong to one state of the store.
#[pyclass(frozen, name = "_Batches")]
pub(crate) struct Batches {
    open: Mutex<BatchStream>,
    /// `None` after the end or an error.
    encoder: Mutex<Option<StreamEncoder>>,
}

impl Batches {
    pub(super) fn new(batches: BatchStream) -> Result<Self> {
        let encoder = StreamEncoder::try_new(&batches.schema).map_err(|error| broken(&error))?;
        Ok(Self { open: Mutex::new(batches), encoder: Mutex::new(Some(encoder)) })
    }

    fn next_part(&self) -> Result<Option<Vec<u8>>> {
        let mut open = self.encoder.lock();
        let Some(mut encoder) = open.take() else { return Ok(None) };
        let part = match self.open.lock().next_batch(ROWS)? {
            Some(batch) => {
                let part = encoder.encode(&batch);
                *open = Some(encoder);
                part
            }
            None => encoder.finish(),
        };
        let buffers = part.map_err(|error| broken(&error))?;
        Ok(Some(buffers.iter().map(|buffer| &**buffer).collect::<Vec<_>>().concat()))
    }
}

#[pymethods]
impl Batches {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// The next part of an Arrow IPC stream. After an error the end mark is missing, so nobody takes the stream
    /// for complete.
    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        py.check_signals()?;
        let part = step(py, || self.next_part())?.or_raise()?;
        Ok(part.map(|part| PyBytes::new(py, &part)))
    }

    fn series<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        let batches = self.open.lock();
        let all = batches.reader.as_ref().map_or(&[][..], Reader::identities);
        all.iter().map(|one| super::ids(py, one)).collect()
    }

    /// Selects series by their index in `series()`, before `next()`.
    fn keep(&self, py: Python<'_>, places: Vec<usize>) -> PyResult<()> {
        step(py, move || {
            if let Some(reader) = &mut self.open.lock().reader {
                reader.keep_series(&places);
            }
        })
    }

    /// An Arrow stream of these columns of about `rows` further rows, or `None` after the last.
    fn next<'py>(
        &self,
        py: Python<'py>,
        rows: usize,
        columns: Vec<usize>,
    ) -> PyResult<Option<Bound<'py, PyCapsule>>> {
        py.check_signals()?;
        let batch = step(py, move || -> Result<Option<RecordBatch>> {
            let batch = self.open.lock().next_batch(rows)?;
            batch.map(|batch| batch.project(&columns).map_err(|e| broken(&e))).transpose()
        })?
        .or_raise()?;
        let capsule = |batch| reader_capsule(py, Box::new(BatchStream::of_memory(batch)));
        batch.map(capsule).transpose()
    }
}
