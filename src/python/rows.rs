//! `siteline.RecordIterator`: points one by one.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use crate::client::pages::{Pages, Taken};
use crate::data::PointColumns;
use crate::error::{Error, Result};
use crate::python::errors::raise;
use crate::python::page::fill;
use crate::python::process;
use crate::python::progress::{Reporter, end, told};
use crate::python::records::{Rows, Times};
use crate::python::runtime::{block_on, detached, guarded};
use crate::python::stored::Stored;

/// So many points of a store are held at a time.
const BATCH: usize = 1 << 13;

/// The points of a scan, a table or a store, one by one.
///
/// Safe to share between threads: each point is given once. A failure carries ``.bookmark``; the
/// points before it were handed out already. Holds one page at most.
///
/// >>> record = next(scan.records())
/// >>> record["tag_guid"] is not None, record["timestamp"].isoformat()
/// (True, '2026-11-01T00:00:00+00:00')
#[pyclass(frozen, generic, name = "RecordIterator", module = "siteline")]
pub(crate) struct RecordIterator {
    pages: Option<Arc<Pages>>,
    /// Where further points come from a store.
    stored: Option<Mutex<Stored>>,
    reporter: Option<Reporter>,
    named: bool,
    state: Mutex<State>,
    times: Times,
}

#[derive(Default)]
struct State {
    /// The page at hand, until its last row is taken.
    rows: Option<Arc<Rows>>,
    /// The next row, and the envelope that it is in, or one before it.
    row: usize,
    envelope: usize,
    /// The forks of this process when the page was taken.
    forks: usize,
}

impl RecordIterator {
    /// Over pages that are still to be read.
    pub(crate) fn reading(pages: Pages, named: bool, reporter: Option<Reporter>) -> Self {
        let pages = Some(Arc::new(pages));
        Self { pages, reporter, ..Self::of(State::default(), named) }
    }

    /// Over points of a store that are still to be read.
    pub(crate) fn stored(stored: Stored, named: bool) -> Self {
        let stored = Some(Mutex::new(stored));
        Self { stored, ..Self::of(State::default(), named) }
    }

    /// Over points at hand.
    pub(crate) fn over(points: Arc<PointColumns>, named: bool) -> Self {
        Self::of(State::new(points), named)
    }

    fn of(state: State, named: bool) -> Self {
        let (state, times) = (Mutex::new(state), Times::default());
        Self { pages: None, stored: None, reporter: None, named, state, times }
    }

    /// Reads on in the store; `false` where there is nothing more. Whoever waits for the store does so
    /// without the interpreter.
    fn read_on(&self, py: Python<'_>) -> PyResult<bool> {
        let Some(stored) = &self.stored else { return Ok(false) };
        py.check_signals()?;
        let read = detached(py, || {
            let mut stored = stored.lock().unwrap_or_else(PoisonError::into_inner);
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            // Another thread may have been faster.
            if state.rows.is_none() {
                let Some(batch) = stored.next_batch(BATCH)? else { return Ok(false) };
                *state = State::new(Arc::new(PointColumns::from_batch(&batch)));
            }
            Ok(true)
        })?;
        read.map_err(|error: Error| raise(py, &error))
    }

    /// The next row that is at hand. Building it runs Python code, which may ask for the next row
    /// itself: so it is taken under the lock and built outside.
    fn take(&self) -> At {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            // Of pages the child of a fork gets none: filling says so. Points at hand are there for both.
            if let Some(pages) = &self.pages
                && state.forks != process::forks()
            {
                if pages.check_process().is_err() {
                    return At::Nothing;
                }
                state.forks = process::forks();
            }
            if let Some((rows, place)) = state.take() {
                return At::Row(rows, place);
            }
            match self.pages.as_ref().map(|pages| pages.take()) {
                Some(Taken::Page(page)) => {
                    *state = State::new(page.points);
                }
                Some(Taken::Nothing) => return At::Nothing,
                None if self.stored.is_some() => return At::Nothing,
                Some(Taken::Ended) | None => return At::End,
            }
        }
    }
}

/// Where the iterator stands.
enum At {
    /// Its envelope and its number.
    Row(Arc<Rows>, (usize, usize)),
    End,
    /// The next page is to be read first.
    Nothing,
}

#[pymethods]
impl RecordIterator {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        loop {
            match self.take() {
                At::Row(rows, place) => {
                    return guarded(|| rows.object(py, place, &self.times, self.named)).map(Some);
                }
                At::End => return end(py, self.reporter.as_ref()).map(|()| None),
                At::Nothing => {
                    let Some(pages) = &self.pages else {
                        if guarded(|| self.read_on(py))? {
                            continue;
                        }
                        return Ok(None);
                    };
                    guarded(|| {
                        let filled = block_on(py, pages.fill())?;
                        told(py, pages, self.reporter.as_ref(), filled)
                    })?;
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
        let Some(pages) = &self.pages else { return Ok(()) };
        told(py, pages, self.reporter.as_ref(), Ok(()))
    }

    /// As that of :class:`PageIterator`.
    fn _end(&self, py: Python<'_>) -> PyResult<()> {
        end(py, self.reporter.as_ref())
    }

    /// As that of :class:`PageIterator`.
    fn _fill<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        fill(py, self.pages.clone())
    }

    /// The next point that is at hand, or ``None``; and whether there is no further one.
    fn _take<'py>(&self, py: Python<'py>) -> PyResult<(Option<Bound<'py, PyAny>>, bool)> {
        match self.take() {
            At::Row(rows, place) => guarded(|| rows.object(py, place, &self.times, self.named))
                .map(|object| (Some(object), false)),
            At::End => end(py, self.reporter.as_ref()).map(|()| (None, true)),
            At::Nothing => Ok((None, false)),
        }
    }
}

impl State {
    fn new(points: Arc<PointColumns>) -> Self {
        Self { rows: Rows::new(points), row: 0, envelope: 0, forks: process::forks() }
    }

    /// The next row. With the last one the page is let go, before another is asked for.
    fn take(&mut self) -> Option<(Arc<Rows>, (usize, usize))> {
        let rows = self.rows.as_ref()?;
        let row = self.row;
        self.row += 1;
        while rows.points.envelopes[self.envelope].rows.end <= row {
            self.envelope += 1;
        }
        let place = (self.envelope, row);
        if self.row == rows.points.rows() {
            return self.rows.take().map(|rows| (rows, place));
        }
        Some((Arc::clone(rows), place))
    }
}
