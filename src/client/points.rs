//! `_core._Points`: the pages of a chain, or the points of a chain or a frame.

use std::task::Poll;
use std::time::Duration;

use crate::client::PyClient;
use crate::client::records::PyBookmark;
use crate::client::scan::PyReading;
use crate::convert::rows::{Times, rows};
use crate::frame::shown::Shown;
use crate::frame::stored::BatchStream;
use crate::frame::{Frame, PageSource};
use crate::prelude::*;
use siteline_core::client::page_stream::PageStream;
use siteline_core::client::table::{Provenance, ReadFailure};
use siteline_core::data::Page;

/// Records made at a time. The garbage collector starts after 700.
const ROWS: usize = 1 << 9;
/// Points taken from a frame at a time.
const FRAMED: usize = 1 << 13;
/// How long a page waits for the names of its series.
const PATIENCE: Duration = Duration::from_secs(1);

/// Log records of a page are emitted when a caller waits for it or takes it.
pub(crate) struct PageReader {
    pub(crate) stream: Arc<PageStream>,
    pub(crate) reading: Py<PyReading>,
    /// It may hold the sandbox that serves the stream.
    pub(crate) client: Py<PyClient>,
}

impl PageReader {
    fn events(&self) -> &Arc<Events> {
        &self.reading.get().buffer
    }

    /// Takes a page that has arrived, and prefetches the next one.
    fn take(&self, py: Python<'_>) -> Poll<Option<Page>> {
        let page = self.stream.take_page();
        if matches!(page, Poll::Ready(Some(_))) && self.stream.may_prefetch() {
            // Otherwise the page is read when it is taken.
            drop(step_in_runtime(py, self.events(), || self.stream.prefetch()));
        }
        page
    }

    /// Returns the progress of a page that has arrived. Raises the error of a prefetched page, and the
    /// exceptions of `logging` handlers.
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Option<Object<'py>>> {
        let mut filled = None;
        if self.stream.has_finished_prefetch() {
            filled = step_in_runtime(py, self.events(), || self.stream.receive_finished())?;
        }
        self.events().handle(py)?;
        filled.unwrap_or(Ok(())).map_err(|failure| read_failure(py, failure))?;
        self.stream.take_progress().map(|progress| dict(py, &progress)).transpose()
    }
}

/// The exception of a failed read, with `.bookmark` and `.partial`.
pub(crate) fn read_failure(py: Python<'_>, failure: ReadFailure) -> PyErr {
    let exception = raise(py, &failure.error);
    let value = exception.value(py).clone();
    let fill = || -> PyResult<()> {
        failure.bookmark.map_or(Ok(()), |at| value.setattr("bookmark", PyBookmark(at)))?;
        failure.partial.map_or(Ok(()), |table| value.setattr("partial", Frame::of_table(table)))
    };
    fill().err().unwrap_or(exception)
}

pub(crate) enum Source {
    Chain(PageReader),
    Frame(Box<Mutex<BatchStream>>),
}

#[pyclass(frozen, name = "_Points", module = "siteline._core")]
pub(crate) struct Points {
    source: Source,
    open: Mutex<Vec<RecordBatch>>,
    times: Mutex<Times>,
}

impl Points {
    pub(crate) fn new(source: Source) -> Self {
        Self { source, open: Mutex::default(), times: Mutex::default() }
    }

    fn reader(&self) -> PyResult<&PageReader> {
        match &self.source {
            Source::Chain(reader) => Ok(reader),
            Source::Frame(_) => {
                Err(Error::new(Kind::InternalError, "these points are not read from pages"))
                    .or_raise()
            }
        }
    }

    /// The next points in memory. Other threads get later ones.
    fn pop(&self) -> Option<RecordBatch> {
        let mut open = self.open.lock();
        let batch = open.pop()?;
        let count = batch.num_rows().min(ROWS);
        if count < batch.num_rows() {
            open.push(batch.slice(count, batch.num_rows() - count));
        }
        Some(batch.slice(0, count))
    }

    /// Returns false after the last points, and `None` if none have arrived.
    fn pull(&self, py: Python<'_>) -> PyResult<Option<bool>> {
        let batch = match &self.source {
            Source::Frame(batches) => step(py, || batches.lock().next_batch(FRAMED))?.or_raise()?,
            Source::Chain(reader) => match reader.take(py) {
                Poll::Ready(page) => page.map(|page| page.points.batch()).transpose().or_raise()?,
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
    /// Appends an iterator over points to `ready`, and returns their number: 0 after the last, `None` if none
    /// have arrived.
    fn _take(&self, py: Python<'_>, ready: &Object<'_>, named: bool) -> PyResult<Option<usize>> {
        loop {
            if let Source::Chain(reader) = &self.source {
                reader.stream.check_process().or_raise()?;
            }
            let Some(batch) = self.pop() else {
                match self.pull(py)? {
                    Some(true) => continue,
                    ended => return Ok(ended.map(|_| 0)),
                }
            };
            if batch.num_rows() == 0 {
                continue;
            }
            // Not locked meanwhile, because the garbage collector may run Python code.
            let mut times = std::mem::take(&mut *self.times.lock());
            let made = rows(py, &batch, &mut times, named).and_then(|rows| rows.try_iter());
            *self.times.lock() = times;
            // An exception loses no point.
            let made = made.inspect_err(|_| self.open.lock().push(batch.clone()))?;
            return ready.call_method1("append", (made,)).map(|_| Some(batch.num_rows()));
        }
    }

    /// A page that has arrived, and whether the chain has ended.
    fn _take_page(&self, py: Python<'_>) -> PyResult<(Option<Frame>, bool)> {
        let reader = self.reader()?;
        let page = match reader.take(py) {
            Poll::Ready(Some(page)) => page,
            other => return Ok((None, other.is_ready())),
        };
        let provenance = Provenance {
            pages: 1,
            resumed_after_pages: page.sequence.saturating_sub(1),
            ..reader.stream.provenance().clone()
        };
        Ok((Some(Frame::of_page(PageSource { page, provenance, synced: None })), false))
    }

    /// A cancelled call loses no page.
    fn _fill(&self) -> PyResult<Call> {
        let reader = self.reader()?;
        let (names, read) = (Arc::clone(&reader.reading.get().names), reader.stream.read_next());
        let fill = async move {
            names.begin();
            read.await
        };
        Ok(Call::new(Arc::clone(reader.events()), fill, |py, filled| {
            filled.map(|()| py.None()).map_err(|failure| read_failure(py, failure))
        }))
    }

    /// The progress after a page that has arrived, once for each page.
    fn _report<'py>(&self, py: Python<'py>) -> PyResult<Option<Object<'py>>> {
        self.reader()?.report(py)
    }

    /// After `_fill()`: waits for the names of series.
    fn _settle(&self) -> PyResult<Option<Call>> {
        let PageReader { stream, reading, .. } = self.reader()?;
        let (soon, last) = (stream.deadline_in(PATIENCE), reading.get().deadline);
        Ok(reading.get().settle_by(if soon.is_before(last) { soon } else { last }))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        let Source::Chain(reader) = &self.source else { return Ok(()) };
        visit.call(&reader.client)
    }
}

#[pymethods]
impl Frame {
    /// By default without labels.
    #[pyo3(signature = (shown=None))]
    fn records(&self, py: Python<'_>, shown: Option<Shown>) -> PyResult<Points> {
        let batches = self.batch_stream(py, shown.unwrap_or_default())?;
        Ok(Points::new(Source::Frame(Box::new(Mutex::new(batches)))))
    }
}
