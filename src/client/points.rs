//! `_core._Points`: the points of a scan, a table or a store, some at a time.

use std::task::Poll;

use arrow_array::RecordBatch;
use arrow_schema::DataType;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use crate::bridge::call::Call;
use crate::bridge::errors::OrRaise as _;
use crate::bridge::runtime::step;
use crate::client::page_reader::PageReader;
use crate::convert::rows::lists;
use crate::convert::values::refuse;
use crate::frame::rows::WITHDRAWN;
use crate::frame::shown::Shown;
use crate::frame::stored::BatchStream;
use crate::frame::{Data, Frame};
use siteline_base::lock::Mutex;
use siteline_core::error::Kind;

/// Points that become Python objects at a time.
const ROWS: usize = 1 << 10;
/// Points that are read from a store at a time.
const STORED: usize = 1 << 13;

pub(crate) enum Source {
    Memory,
    Pages(PageReader),
    Store(Box<Mutex<BatchStream>>),
}

#[pyclass(frozen, name = "_Points", module = "siteline._core")]
pub(crate) struct Points {
    source: Source,
    /// The points that have arrived.
    open: Mutex<Vec<RecordBatch>>,
}

impl Points {
    pub(crate) fn new(source: Source) -> Self {
        Self { source, open: Mutex::default() }
    }

    /// The next points that have arrived. Other threads get the points after them.
    fn pop(&self) -> Option<RecordBatch> {
        let mut open = self.open.lock();
        let batch = open.pop()?;
        let count = batch.num_rows().min(ROWS);
        if count < batch.num_rows() {
            open.push(batch.slice(count, batch.num_rows() - count));
        }
        Some(batch.slice(0, count))
    }

    /// Takes points that have arrived from the source. Returns false after the last ones, and `None` if the
    /// next ones have not arrived yet.
    fn pull(&self, py: Python<'_>) -> PyResult<Option<bool>> {
        let batch = match &self.source {
            Source::Memory => None,
            Source::Store(batches) => {
                step(py, || batches.lock().next_batch(STORED))?.or_raise()?.map(unmarked)
            }
            Source::Pages(reader) => match reader.take_page() {
                Poll::Ready(Some(page)) => {
                    reader.prefetch(py);
                    Some(page.points.batch().or_raise()?)
                }
                Poll::Ready(None) => return reader.finish(py).map(|()| Some(false)),
                Poll::Pending if reader.report(py)? => return Ok(Some(true)),
                Poll::Pending => return Ok(None),
            },
        };
        let is_there = batch.is_some();
        self.open.lock().extend(batch);
        Ok(Some(is_there))
    }
}

#[pymethods]
impl Points {
    /// Appends an iterator over the next points to `ready`. `make` makes these from the names and the values of
    /// the columns. Returns false after the last points, and `None` if the next ones have not arrived yet.
    fn _take(
        &self,
        py: Python<'_>,
        ready: &Bound<'_, PyAny>,
        make: &Bound<'_, PyAny>,
    ) -> PyResult<Option<bool>> {
        loop {
            if let Source::Pages(reader) = &self.source {
                reader.check_process().or_raise()?;
            }
            let Some(batch) = self.pop() else {
                match self.pull(py)? {
                    Some(true) => continue,
                    ended => return Ok(ended),
                }
            };
            if batch.num_rows() == 0 {
                continue;
            }
            // An exception of a signal handler loses no point.
            let points = lists(py, &batch).and_then(|lists| make.call1(lists)?.try_iter());
            let points = points.inspect_err(|_| self.open.lock().push(batch))?;
            return ready.call_method1("append", (points,)).map(|_| Some(true));
        }
    }

    /// Reads the next page. If it is cancelled, no point is lost.
    fn _fill(&self, py: Python<'_>) -> PyResult<Call> {
        match &self.source {
            Source::Pages(reader) => Ok(reader.fill(py)),
            _ => Err(refuse(py, Kind::InternalError, "these points are not read from pages")),
        }
    }

    /// After `_fill()`: reports the page to `progress=`.
    fn _report(&self, py: Python<'_>) -> PyResult<()> {
        if let Source::Pages(reader) = &self.source {
            reader.report(py)?;
        }
        Ok(())
    }

    /// `progress=` may be a method of an object that keeps this.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        if let Source::Pages(reader) = &self.source { reader.traverse(&visit) } else { Ok(()) }
    }
}

/// Records do not say which points are withdrawn.
fn unmarked(mut batch: RecordBatch) -> RecordBatch {
    let schema = batch.schema();
    let mark = schema.fields().iter().position(|field| field.name() == WITHDRAWN);
    if let Some(place) = mark.filter(|place| *schema.field(*place).data_type() == DataType::Boolean)
    {
        batch.remove_column(place);
    }
    batch
}

#[pymethods]
impl Frame {
    /// The points one by one.
    fn records(&self, py: Python<'_>) -> PyResult<Points> {
        if let (Data::Stream, Some(stored)) = (&self.data, self.stored()) {
            let batches = stored.batches(py, Shown::default())?;
            return Ok(Points::new(Source::Store(Box::new(Mutex::new(batches)))));
        }
        let points = Points::new(Source::Memory);
        let batch = self.batch(&Shown::default()).or_raise()?;
        points.open.lock().push(unmarked(batch));
        Ok(points)
    }
}
