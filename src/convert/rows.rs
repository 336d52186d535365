//! `siteline.types.RecordIterator`: points one by one.

use std::collections::VecDeque;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use crate::bridge::call::Call;
use crate::bridge::process::{self, guarded};
use crate::convert::records::{Known, Rows};
use siteline_base::lock::Mutex;
use siteline_core::data::PointColumns;
use siteline_core::error::Result;

/// Points that are made at a time: locking and guarding once for each would double its cost.
const BATCH: usize = 1 << 6;

/// Where the further points of an iterator come from: the pages of a chain, the batches of a store.
pub(crate) trait PointSource: Send + Sync {
    /// Takes points that have arrived. Does not wait, runs no Python code.
    fn take(&self) -> Taken;

    /// Waits until there are points to take, or none any more.
    ///
    /// # Errors
    /// Why no points arrived, or what Python code raised meanwhile (Ctrl-C). No point is lost.
    fn wait(&self, py: Python<'_>) -> PyResult<()>;

    /// Whether this process may take points.
    ///
    /// # Errors
    /// `ForkError` in a forked child, where they are the parent's.
    fn check_process(&self) -> Result<()> {
        Ok(())
    }

    /// After points were taken: may prefetch the next ones.
    fn prefetch(&self, _py: Python<'_>) {}

    /// Reads further points, for [`PointSource::report`] and [`PointSource::take`].
    fn fill(&self, _py: Python<'_>) -> Call {
        Call::new(Arc::default(), async {}, |py, ()| Ok(py.None()))
    }

    /// Reports points that have arrived to `progress=`. Returns whether any were not reported before.
    ///
    /// # Errors
    /// What the callback raised; no point is lost.
    fn report(&self, _py: Python<'_>) -> PyResult<bool> {
        Ok(false)
    }

    /// After the last points, or a failure: nothing more is reported.
    ///
    /// # Errors
    /// What the callback raised.
    fn finish(&self, _py: Python<'_>) -> PyResult<()> {
        Ok(())
    }

    /// Shows the garbage collector what Python objects it holds.
    ///
    /// # Errors
    /// Those of the visit.
    fn traverse(&self, _visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        Ok(())
    }
}

/// Points at hand, until they are taken.
struct AtHand(Mutex<Option<Arc<PointColumns>>>);

impl PointSource for AtHand {
    fn take(&self) -> Taken {
        self.0.lock().take().map_or(Taken::Ended, Taken::Points)
    }

    fn wait(&self, _py: Python<'_>) -> PyResult<()> {
        Ok(())
    }
}

/// What [`PointSource::take`] finds.
pub(crate) enum Taken {
    Points(Arc<PointColumns>),
    /// There are no further points.
    Ended,
    /// None have arrived yet: [`PointSource::wait`] first.
    Nothing,
}

/// The points of a scan, a table or a store, one by one.
///
/// Safe to share between threads: each point is given once. A failure carries ``.bookmark``; the
/// points before it were given out already. As :class:`PageIterator` it prefetches one page, from the
/// second page on, and holds two at most.
///
/// >>> record = next(scan.records())
/// >>> record["tag_guid"] is not None, record["timestamp"].isoformat()
/// (True, '2026-11-01T00:00:00+00:00')
#[pyclass(frozen, weakref, generic, name = "RecordIterator", module = "siteline.types")]
pub(crate) struct RecordIterator {
    source: Box<dyn PointSource>,
    named: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The page at hand, until its last row is taken.
    rows: Option<Arc<Rows>>,
    /// The next row to make an object of, and its envelope or an earlier one.
    row: usize,
    envelope: usize,
    /// The objects to return next.
    ready: VecDeque<PyResult<Py<PyAny>>>,
    known: Known,
    /// The number of pages taken.
    pages: u64,
    /// [`process::forks`] when the page was taken.
    forks: usize,
}

impl RecordIterator {
    /// Over points that are still to be read.
    pub(crate) fn reading(source: Box<dyn PointSource>, named: bool) -> Self {
        Self { source, named, state: Mutex::default() }
    }

    /// Over points at hand.
    pub(crate) fn over(points: Arc<PointColumns>, named: bool) -> Self {
        Self::reading(Box::new(AtHand(Mutex::new(Some(points)))), named)
    }

    /// The next point that has arrived. Making its object runs Python code, which may itself ask for the
    /// next point: so rows are taken with the lock held, and objects are made without it.
    fn take(&self, py: Python<'_>) -> PyResult<At> {
        loop {
            let (rows, envelope, numbers, mut known) = match self.rows() {
                ControlFlow::Break(at) => return at,
                ControlFlow::Continue(next) => next,
            };
            self.source.prefetch(py);
            let made = guarded(|| Ok(rows.objects(py, envelope, numbers, &mut known, self.named)))?;
            let mut state = self.state.lock();
            state.known = known;
            state.ready.extend(made);
        }
    }

    fn rows(&self) -> ControlFlow<PyResult<At>, NextRows> {
        let mut state = self.state.lock();
        loop {
            // A forked child gets the points of a table, but none of a page: `wait` raises the error.
            if state.forks != process::forks() {
                if self.source.check_process().is_err() {
                    return ControlFlow::Break(Ok(At::Nothing));
                }
                state.forks = process::forks();
            }
            if let Some(point) = state.ready.pop_front() {
                return ControlFlow::Break(point.map(At::Point));
            }
            if let Some(next) = state.take() {
                return ControlFlow::Continue(next);
            }
            match self.source.take() {
                Taken::Points(points) => state.begin(points),
                Taken::Nothing => return ControlFlow::Break(Ok(At::Nothing)),
                Taken::Ended => return ControlFlow::Break(Ok(At::End)),
            }
        }
    }
}

/// What the iterator has next.
enum At {
    Point(Py<PyAny>),
    End,
    /// No point has arrived: the next page is waited for.
    Nothing,
}

/// The rows to make objects of: an envelope, and rows in it or after it.
type NextRows = (Arc<Rows>, usize, Range<usize>, Known);

#[pymethods]
impl RecordIterator {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        loop {
            match self.take(py)? {
                At::Point(point) => return Ok(Some(point)),
                At::Nothing => guarded(|| self.source.wait(py))?,
                At::End => return self.source.finish(py).map(|()| None),
            }
        }
    }

    /// For the garbage collector: ``progress=`` may be a method of whoever keeps the iterator.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.source.traverse(&visit)
    }

    /// After `_fill()`: reports the page to `progress=`.
    fn _report(&self, py: Python<'_>) -> PyResult<()> {
        self.source.report(py).map(drop)
    }

    /// Reads the next page. If it is cancelled, no point is lost.
    fn _fill(&self, py: Python<'_>) -> Call {
        self.source.fill(py)
    }

    /// The next point that is at hand, or ``None``; and whether there is no further one.
    fn _take(&self, py: Python<'_>) -> PyResult<(Option<Py<PyAny>>, bool)> {
        loop {
            match self.take(py)? {
                At::Point(point) => return Ok((Some(point), false)),
                At::End => return self.source.finish(py).map(|()| (None, true)),
                At::Nothing if self.source.report(py)? => {}
                At::Nothing => return Ok((None, false)),
            }
        }
    }
}

impl State {
    /// Continues with these points, after those that are ready.
    fn begin(&mut self, points: Arc<PointColumns>) {
        (self.row, self.envelope, self.forks) = (0, 0, process::forks());
        self.pages += 1;
        self.rows = Rows::new(points, self.pages);
    }

    /// The next rows. The page is dropped with its last row, before the next page is requested.
    fn take(&mut self) -> Option<NextRows> {
        let rows = Arc::clone(self.rows.as_ref()?);
        let (first, envelope) = (self.row, self.envelope);
        self.row = (first + BATCH).min(rows.points.rows());
        if self.row == rows.points.rows() {
            self.rows = None;
        } else {
            while rows.points.envelopes[self.envelope].rows.end <= self.row {
                self.envelope += 1;
            }
        }
        let known = std::mem::take(&mut self.known);
        Some((rows, envelope, first..self.row, known))
    }
}
