//! `siteline.Coverage` and `siteline.Lateness`, which are written in Python: made of what a store
//! holds.

use std::time::Duration;

use jiff::Timestamp;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::clock::Clock;
use crate::error::{Error, Kind, Result};
use crate::python::conversions::datetime;
use crate::python::feed::PyFeed;
use crate::store::{Delays, Store, Target as _};
use crate::sync::{State, Window, WindowState, windows};

/// The state of a feed.
///
/// # Errors
/// `StoreError` for a feed that is not there; the others.
pub(crate) fn state(store: &Store, feed: &str) -> Result<State> {
    match store.state(feed)? {
        Some(state) => State::from_bytes(&state),
        None => Err(unknown(store, feed)),
    }
}

/// The store has no such feed: says which it has.
fn unknown(store: &Store, feed: &str) -> Error {
    let message = format!("the store {} has no feed {feed:?}", store.path().display());
    let known = store.feeds().unwrap_or_default();
    let hint = if known.is_empty() {
        "It has none yet: client.sync(feed, store) makes it.".to_owned()
    } else {
        format!("It has {}.", known.join(", "))
    };
    Error::new(Kind::Store, message).with_hint(hint)
}

/// The windows of a feed at a time; without one: at the machine's, or at the newest reading, where
/// that is later.
pub(crate) fn windows_at(state: &State, now: Option<Timestamp>) -> (Timestamp, Vec<Window>) {
    let now = now.unwrap_or_else(|| {
        let newest = state.newest_read().unwrap_or(Timestamp::MIN);
        Clock::system().wall().max(newest)
    });
    (now, windows(state, now))
}

/// The settled ranges of a feed, microseconds, ascending and apart. They do not depend on the time:
/// what is settled was read after its lateness.
pub(crate) fn settled(state: &State) -> Vec<(i64, i64)> {
    let Some(newest) = state.newest_read() else { return Vec::new() };
    let mut ranges: Vec<(i64, i64)> = Vec::new();
    for window in windows(state, newest) {
        if window.state != WindowState::Settled {
            continue;
        }
        let (start, end) = (window.start.as_microsecond(), window.end.as_microsecond());
        match ranges.last_mut() {
            Some(last) if last.1 == start => last.1 = end,
            _ => ranges.push((start, end)),
        }
    }
    ranges
}

/// What a `siteline.Coverage` is made of.
pub(crate) struct Covered {
    state: State,
    now: Timestamp,
    windows: Vec<Window>,
    holds: Vec<bool>,
}

impl Covered {
    /// # Errors
    /// `StoreError`s.
    pub(crate) fn read(store: &Store, feed: &str, now: Option<Timestamp>) -> Result<Self> {
        let state = state(store, feed)?;
        let (now, windows) = windows_at(&state, now);
        let range = |window: &Window| (window.start.as_microsecond(), window.end.as_microsecond());
        let ranges: Vec<(i64, i64)> = windows.iter().map(range).collect();
        let holds = store.holds(feed, &ranges)?;
        Ok(Self { state, now, windows, holds })
    }

    /// # Errors
    /// Those of Python.
    pub(crate) fn object<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let module = py.import("siteline.coverage")?;
        let class = module.getattr("CoverageWindow")?;
        let windows = PyList::empty(py);
        for (window, holds) in self.windows.iter().zip(&self.holds) {
            windows.append(class.call1(parts(py, window, *holds)?)?)?;
        }
        let feed = PyFeed(self.state.feed().clone());
        module.getattr("Coverage")?.call1((feed, datetime(py, self.now)?, windows))
    }
}

fn parts<'py>(py: Python<'py>, window: &Window, holds: bool) -> PyResult<Bound<'py, PyTuple>> {
    let read_at = window.read_at.map(|at| datetime(py, at)).transpose()?;
    let settled_at = read_at.clone().filter(|_| window.state == WindowState::Settled);
    let empty = window.read_at.map(|_| !holds);
    let state = match window.state {
        WindowState::Unread => "unread",
        WindowState::Provisional => "provisional",
        WindowState::Settling => "settling",
        WindowState::Settled => "settled",
    };
    let (start, end) = (datetime(py, window.start)?, datetime(py, window.end)?);
    (start, end, state, read_at, settled_at, empty).into_pyobject(py)
}

/// What a `siteline.Lateness` is made of.
pub(crate) struct Late {
    state: State,
    delays: Delays,
}

impl Late {
    /// # Errors
    /// `StoreError`s.
    pub(crate) fn read(store: &Store, feed: &str) -> Result<Self> {
        let state = state(store, feed)?;
        let width = i64::from(state.feed().input().interval_seconds.unwrap_or_default());
        let delays = store.delays(feed, width.saturating_mul(1_000_000))?;
        Ok(Self { state, delays })
    }

    /// # Errors
    /// Those of Python.
    pub(crate) fn object<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let settled: i64 = settled(&self.state).iter().map(|(start, end)| end - start).sum();
        let settled = Duration::from_micros(settled.unsigned_abs());
        let feed = PyFeed(self.state.feed().clone());
        let Delays { points, revisions } = self.delays.clone();
        py.import("siteline.lateness")?
            .getattr("Lateness")?
            .call1((feed, points, revisions, settled))
    }
}
