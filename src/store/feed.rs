//! The handle of a `siteline.Feed`.

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::bridge::errors::{IntoPyErr as _, OrRaise as _, warn};
use crate::bridge::process::guarded;
use crate::client::query::{known_filters, query_input};
use crate::convert::asked_time::asked_time;
use crate::convert::state::{dict, restore};
use crate::convert::values::{Text, described, duration, refuse};
use siteline_base::clock::Clock;
use siteline_core::error::{Error, Kind, excerpt};
use siteline_core::sync::{Feed, FeedInput};

#[pyclass(frozen, eq, hash, module = "siteline._core")]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct FeedHandle(pub(crate) Feed);

/// An argument of the constructor that may be left out.
type Given<'py> = Option<Bound<'py, PyAny>>;

/// The attributes of a feed, as a dict.
#[derive(IntoPyObject)]
struct FeedParts<'a, 'py> {
    name: &'a str,
    site: Option<&'a str>,
    line: Option<&'a str>,
    interval: Option<Duration>,
    start: Timestamp,
    page_size: Option<u32>,
    filters: Bound<'py, PyDict>,
    settle_lag: Duration,
    overlap: Duration,
    lateness: Duration,
    window: Duration,
    audit_pages: u32,
    query: String,
}

/// Refuses several ids, which a read may have.
fn check_one(given: &Given<'_>, name: &str) -> PyResult<()> {
    let Some(given) = given else { return Ok(()) };
    if given.is_instance_of::<PyString>() || !given.hasattr("__iter__")? {
        return Ok(());
    }
    let message = format!("{name}= is {}: a feed has one {name}.", described(given));
    let error = Error::new(Kind::QueryError, message);
    Err(error.with_hint("Make a feed for each, and sync them together.").into_py_err())
}

#[pymethods]
impl FeedHandle {
    /// `query` is site, line, interval, page size and filters; `times` is settle lag, overlap, lateness and
    /// window.
    #[new]
    fn new<'py>(
        py: Python<'py>,
        name: Text<'_>,
        start: &Bound<'py, PyAny>,
        query: [Given<'py>; 5],
        times: [Given<'py>; 4],
        audit_pages: &Bound<'py, PyAny>,
    ) -> PyResult<Self> {
        check_one(&query[0], "site")?;
        check_one(&query[1], "line")?;
        let mut asked = query_input(query.each_ref().map(Option::as_ref))?;
        let start = asked_time(start, "start", Some(&TimeZone::UTC))?;
        let start = start.at(Clock::system().wall(), asked.interval_seconds).or_raise()?;
        let mut input = FeedInput::new(name.0, start);
        let [settle_lag, overlap, lateness, window] = times;
        for (name, given, time) in [
            ("settle_lag", settle_lag, &mut input.settle_lag),
            ("overlap", overlap, &mut input.overlap),
            ("lateness", lateness, &mut input.lateness),
            ("window", window, &mut input.window),
        ] {
            if let Some(given) = given {
                *time = duration(&given, name)?;
            }
        }
        input.site = asked.site.pop();
        input.line = asked.line.pop();
        input.filters = asked.filters;
        input.interval_seconds = asked.interval_seconds;
        input.page_size = asked.page_size;
        input.audit_pages = pages(audit_pages)?;
        let feed = guarded(|| Feed::new(input).or_raise())?;
        warn(py, feed.warning().as_slice())?;
        Ok(Self(feed))
    }

    #[staticmethod]
    fn restore(state: &Bound<'_, PyAny>) -> PyResult<Self> {
        let input = restore(state)?;
        guarded(|| Ok(Self(Feed::new(input).or_raise()?)))
    }

    fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        dict(py, self.0.input())
    }

    fn parts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let input = self.0.input();
        let interval = input.interval_seconds.map(|width| Duration::from_secs(width.into()));
        FeedParts {
            name: &input.name,
            site: input.site.as_deref(),
            line: input.line.as_deref(),
            interval,
            start: input.since,
            page_size: input.page_size,
            filters: known_filters(py, &input.filters)?,
            settle_lag: input.settle_lag,
            overlap: input.overlap,
            lateness: input.lateness,
            window: input.window,
            audit_pages: input.audit_pages,
            query: self.0.parameters(),
        }
        .into_pyobject(py)
    }
}

/// A number of pages a day, or none.
fn pages(value: &Bound<'_, PyAny>) -> PyResult<u32> {
    value.extract().map_err(|_| {
        let shown = value.repr().map_or_else(|_| "this".to_owned(), |repr| repr.to_string());
        let shown = excerpt(&shown);
        let message =
            format!("audit_pages={shown} is not a whole number of 0 or more pages a day.");
        refuse(value.py(), Kind::QueryError, message)
    })
}
