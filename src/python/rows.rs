//! `siteline.RecordIterator`: points one by one.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use crate::client::pages::{Pages, Taken};
use crate::data::PointColumns;
use crate::error::{Error, Result};
use crate::python::errors::raise;
use crate::python::follower::Follower;
use crate::python::process;
use crate::python::progress::{Reporter, end};
use crate::python::records::{Rows, Times};
use crate::python::runtime::{guarded, spawn, step};
use crate::python::stored::Stored;

/// So many points of a store are held at a time.
const BATCH: usize = 1 << 13;
/// So many points are made at a time: locks and guards cost as much as a point.
const TOGETHER: usize = 1 << 6;

/// The points of a scan, a table or a store, one by one.
///
/// Safe to share between threads: each point is given once. A failure carries ``.bookmark``; the
/// points before it were handed out already. As :class:`PageIterator` it reads one page ahead, from the
/// second page on, and holds two at most.
///
/// >>> record = next(scan.records())
/// >>> record["tag_guid"] is not None, record["timestamp"].isoformat()
/// (True, '2026-11-01T00:00:00+00:00')
#[pyclass(frozen, generic, name = "RecordIterator", module = "siteline")]
pub(crate) struct RecordIterator {
    follower: Option<Arc<Follower>>,
    /// Where further points come from a store.
    stored: Option<Mutex<Stored>>,
    reporter: Option<Reporter>,
    named: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The page at hand, until its last row is taken.
    rows: Option<Arc<Rows>>,
    /// The next row that no object was made of, and the envelope that it is in, or one before it.
    row: usize,
    envelope: usize,
    /// Points that were made and are to be given next.
    ready: VecDeque<PyResult<Py<PyAny>>>,
    times: Times,
    /// The forks of this process when the page was taken.
    forks: usize,
}

impl RecordIterator {
    /// Over pages that are still to be read.
    pub(crate) fn reading(pages: Pages, named: bool, reporter: Option<Reporter>) -> Self {
        let follower = Some(Follower::new(pages));
        Self { follower, reporter, ..Self::of(State::default(), named) }
    }

    /// Over points of a store that are still to be read.
    pub(crate) fn stored(stored: Stored, named: bool) -> Self {
        let stored = Some(Mutex::new(stored));
        Self { stored, ..Self::of(State::default(), named) }
    }

    /// Over points at hand.
    pub(crate) fn over(points: Arc<PointColumns>, named: bool) -> Self {
        let mut state = State::default();
        state.begin(points);
        Self::of(state, named)
    }

    fn of(state: State, named: bool) -> Self {
        Self { follower: None, stored: None, reporter: None, named, state: Mutex::new(state) }
    }

    /// Reads on in the store; `false` where there is nothing more. Whoever waits for the store does so
    /// without the interpreter, and no fork finds its locks held.
    fn read_on(&self, py: Python<'_>) -> PyResult<bool> {
        let Some(stored) = &self.stored else { return Ok(false) };
        py.check_signals()?;
        let read = step(py, || {
            let mut stored = stored.lock().unwrap_or_else(PoisonError::into_inner);
            // Another thread may have been faster.
            if self.lock().has_points() {
                return Ok(true);
            }
            // Without the lock of the state, for which others wait with the interpreter in hand.
            let Some(batch) = stored.next_batch(BATCH)? else { return Ok(false) };
            self.lock().begin(Arc::new(PointColumns::from_batch(&batch)));
            Ok(true)
        })?;
        read.map_err(|error: Error| raise(py, &error))
    }

    /// The next point that is at hand. Making one runs Python code, which may ask for the next one
    /// itself: so rows are taken under the lock, and points made outside.
    fn take(&self, py: Python<'_>) -> PyResult<At> {
        loop {
            let (rows, envelope, numbers, mut times) = match self.rows() {
                Next::Made(point) => return point.map(At::Point),
                Next::Rows(rows, envelope, numbers, times) => (rows, envelope, numbers, times),
                Next::End => return Ok(At::End),
                Next::Nothing => return Ok(At::Nothing),
            };
            if let Some(follower) = &self.follower {
                follower.read_ahead(py);
            }
            let made = guarded(|| Ok(rows.objects(py, envelope, numbers, &mut times, self.named)))?;
            let mut state = self.lock();
            state.times = times;
            state.ready.extend(made);
        }
    }

    /// As [`Follower::hear`].
    fn hear(&self, py: Python<'_>) -> PyResult<bool> {
        let hear = |follower: &Arc<Follower>| follower.hear(py, self.reporter.as_ref());
        self.follower.as_ref().map_or(Ok(false), hear)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn rows(&self) -> Next {
        let mut state = self.lock();
        loop {
            // Of pages the child of a fork gets none: filling says so. Points at hand are there for both.
            if let Some(follower) = &self.follower
                && state.forks != process::forks()
            {
                if follower.check_process().is_err() {
                    return Next::Nothing;
                }
                state.forks = process::forks();
            }
            if let Some(point) = state.ready.pop_front() {
                return Next::Made(point);
            }
            if let Some(next) = state.take() {
                return next;
            }
            match self.follower.as_ref().map(|follower| follower.take()) {
                Some(Taken::Page(page)) => {
                    state.begin(page.points);
                }
                Some(Taken::Nothing) => return Next::Nothing,
                None if self.stored.is_some() => return Next::Nothing,
                Some(Taken::Ended) | None => return Next::End,
            }
        }
    }
}

/// Where the iterator stands.
enum At {
    Point(Py<PyAny>),
    End,
    /// The next page is to be read first.
    Nothing,
}

/// What is to be done for the next point.
enum Next {
    Made(PyResult<Py<PyAny>>),
    /// To be made: an envelope, and rows in it or after it.
    Rows(Arc<Rows>, usize, Range<usize>, Times),
    End,
    Nothing,
}

#[pymethods]
impl RecordIterator {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        loop {
            match (self.take(py)?, &self.follower) {
                (At::Point(point), _) => return Ok(Some(point)),
                (At::End, _) => return end(py, self.reporter.as_ref()).map(|()| None),
                (At::Nothing, Some(follower)) => {
                    guarded(|| follower.wait(py, self.reporter.as_ref()))?;
                }
                (At::Nothing, None) => {
                    if !guarded(|| self.read_on(py))? {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// For the garbage collector: ``progress=`` may be a method of whoever keeps the iterator.
    #[expect(clippy::needless_pass_by_value, reason = "PyO3 gives it by value")]
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(self.reporter.as_ref().map(|reporter| &reporter.0))
    }

    /// As that of :class:`PageIterator`.
    fn _tell(&self, py: Python<'_>) -> PyResult<()> {
        self.hear(py).map(drop)
    }

    /// As that of :class:`PageIterator`.
    fn _end(&self, py: Python<'_>) -> PyResult<()> {
        end(py, self.reporter.as_ref())
    }

    /// As that of :class:`PageIterator`.
    fn _fill<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match &self.follower {
            Some(follower) => follower.awaited(py),
            None => spawn(py, async { Ok::<(), Error>(()) }, |py, _| Ok(py.None())),
        }
    }

    /// The next point that is at hand, or ``None``; and whether there is no further one.
    fn _take(&self, py: Python<'_>) -> PyResult<(Option<Py<PyAny>>, bool)> {
        loop {
            match self.take(py)? {
                At::Point(point) => return Ok((Some(point), false)),
                At::End => return end(py, self.reporter.as_ref()).map(|()| (None, true)),
                At::Nothing => {
                    if !self.hear(py)? {
                        return Ok((None, false));
                    }
                }
            }
        }
    }
}

impl State {
    /// Goes on with these points, after those that are ready.
    fn begin(&mut self, points: Arc<PointColumns>) {
        (self.row, self.envelope, self.forks) = (0, 0, process::forks());
        self.rows = Rows::new(points);
    }

    fn has_points(&self) -> bool {
        self.rows.is_some() || !self.ready.is_empty()
    }

    /// The next rows. With the last one the page is let go, before another is asked for.
    fn take(&mut self) -> Option<Next> {
        let rows = Arc::clone(self.rows.as_ref()?);
        let (first, envelope) = (self.row, self.envelope);
        self.row = (first + TOGETHER).min(rows.points.rows());
        if self.row == rows.points.rows() {
            self.rows = None;
        } else {
            while rows.points.envelopes[self.envelope].rows.end <= self.row {
                self.envelope += 1;
            }
        }
        let times = std::mem::take(&mut self.times);
        Some(Next::Rows(rows, envelope, first..self.row, times))
    }
}
