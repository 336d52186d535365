//! `siteline.Coverage` and `siteline.Lateness`, which are written in Python, from what the core reads
//! of a store.

use std::time::Duration;

use jiff::Timestamp;
use pyo3::prelude::*;

use crate::python::convert::state::construct;
use crate::python::store::feed::PyFeed;
use crate::store::Delays;
use crate::sync::{FeedCoverage, FeedLateness, Window, WindowState};

#[derive(IntoPyObject)]
struct WindowArgs {
    start: Timestamp,
    end: Timestamp,
    state: String,
    read_at: Option<Timestamp>,
    settled_at: Option<Timestamp>,
    empty: Option<bool>,
}

#[derive(IntoPyObject)]
struct CoverageArgs<'py> {
    feed: PyFeed,
    now: Timestamp,
    windows: Vec<Bound<'py, PyAny>>,
}

#[derive(IntoPyObject)]
struct LatenessArgs {
    feed: PyFeed,
    points: Vec<(i64, u64)>,
    revisions: Vec<(i64, u64)>,
    settled: Duration,
}

pub(crate) fn coverage(py: Python<'_>, coverage: FeedCoverage) -> PyResult<Bound<'_, PyAny>> {
    let FeedCoverage { feed, now, windows } = coverage;
    let module = py.import("siteline.coverage")?;
    let class = module.getattr("CoverageWindow")?;
    let windows = windows.into_iter().map(|(window, holds)| {
        let Window { start, end, state, read_at } = window;
        let settled_at = read_at.filter(|_| state == WindowState::Settled);
        let (state, empty) = (state.to_string(), read_at.map(|_| !holds));
        construct(&class, WindowArgs { start, end, state, read_at, settled_at, empty })
    });
    let windows = windows.collect::<PyResult<_>>()?;
    construct(&module.getattr("Coverage")?, CoverageArgs { feed: PyFeed(feed), now, windows })
}

pub(crate) fn lateness(py: Python<'_>, lateness: FeedLateness) -> PyResult<Bound<'_, PyAny>> {
    let FeedLateness { feed, delays: Delays { points, revisions }, settled } = lateness;
    let arguments = LatenessArgs { feed: PyFeed(feed), points, revisions, settled };
    construct(&py.import("siteline.lateness")?.getattr("Lateness")?, arguments)
}
