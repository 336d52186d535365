//! `siteline.Feed`: a named query without an end, and the settings of its syncs.

use std::time::Duration;

use jiff::Timestamp;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::bridge::errors::IntoPyErr as _;
use crate::bridge::errors::OrRaise as _;
use crate::bridge::errors::warn;
use crate::bridge::process::guarded;
use crate::client::query::{known_filters, query_input};
use crate::convert::patching::methods_can_be_replaced;
use crate::convert::state::{Reduced, reduce, restore};
use crate::convert::values::{Text, described, duration, html_sync, instant, refuse, text};
use siteline_core::error::{Error, Kind, escaped, excerpt};
use siteline_core::sync::{Feed, FeedInput};

/// A named query without an end, and the settings of its syncs (§4.5).
///
/// - ``name``: what the store calls it
/// - ``site``, ``line``, ``interval``, ``page_size``, ``filters``: as of :meth:`Client.scan`
/// - ``since``: where it begins: a time as of :meth:`Client.scan`. A :class:`SitelineWarning` says where
///   it lies within a bucket
/// - ``settle_lag``: how far behind the service's time it is read (§4.5.1): 5 minutes
/// - ``overlap``: how much of the newest known data each sync reads again (§4.5.4): 1 hour
/// - ``lateness``: how long after its end a window is read again for its final values (§4.5.5): 1
///   day. :meth:`Store.lateness` shows whether that is long enough
/// - ``window``: the width of the windows, in UTC: a day, a divisor of a day, or whole days
/// - ``audit_pages``: pages a day for audits: reads of old ranges, before and after their lateness, from
///   which :meth:`Store.lateness` learns when points come. They count as every request; what they find
///   after the lateness is stored, and its window read again
///
/// Durations are seconds, a ``timedelta`` or text such as ``"5m"``. Feeds are immutable, hashable and
/// picklable, and equal where all their parts are. A wrong argument is a :class:`QueryError`.
///
/// A store keeps the definition of each feed. Under the same name another one is refused:
/// :class:`FeedChanged`. Times, page size and window may be changed by :meth:`Store.redefine`; the
/// query may not: another query is another feed, under another name.
///
/// >>> feed = siteline.Feed("line-2", site="S1", line="L2", interval="1m",
/// ...                      since="2026-11-01T00:00Z", lateness="12h")
/// >>> feed
/// <Feed line-2: siteId=S1 lineId=L2 aggregationIntervalSeconds=60, since 2026-11-01T00:00:00Z>
/// >>> feed.lateness, feed.overlap
/// (datetime.timedelta(seconds=43200), datetime.timedelta(seconds=3600))
#[pyclass(dict, frozen, weakref, eq, hash, name = "Feed", module = "siteline")]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct PyFeed(pub(crate) Feed);

methods_can_be_replaced!(PyFeed);

/// The only id of a feed.
fn only(mut ids: Vec<String>, name: &str) -> PyResult<Option<String>> {
    if ids.len() > 1 {
        let message = format!("{name}= has several values: a feed has one {name}.");
        let error = Error::new(Kind::QueryError, message);
        return Err(error.with_hint("Make a feed for each, and sync them together.").into_py_err());
    }
    Ok(ids.pop())
}

#[pymethods]
impl PyFeed {
    #[new]
    #[pyo3(signature = (name, *, since, site=None, line=None, interval=None, page_size=None,
        filters=None, settle_lag=None, overlap=None, lateness=None, window=None,
        audit_pages=None),
        text_signature = "(name, *, since, site=None, line=None, interval=None, page_size=None, \
        filters=None, settle_lag='5m', overlap='1h', lateness='1d', window='1d', \
        audit_pages=0)")]
    #[expect(clippy::too_many_arguments, reason = "each is a keyword of the Python class")]
    fn new(
        py: Python<'_>,
        name: Text<'_>,
        since: &Bound<'_, PyAny>,
        site: Option<&Bound<'_, PyAny>>,
        line: Option<&Bound<'_, PyAny>>,
        interval: Option<&Bound<'_, PyAny>>,
        page_size: Option<&Bound<'_, PyAny>>,
        filters: Option<&Bound<'_, PyAny>>,
        settle_lag: Option<&Bound<'_, PyAny>>,
        overlap: Option<&Bound<'_, PyAny>>,
        lateness: Option<&Bound<'_, PyAny>>,
        window: Option<&Bound<'_, PyAny>>,
        audit_pages: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let since = instant(since, "since")?;
        let asked = query_input([site, line, interval, page_size, filters])?;
        let usual = FeedInput::new(name.0, since);
        let time = |given: Option<&Bound<'_, PyAny>>, name: &str, usual: Duration| {
            given.map_or(Ok(usual), |given| duration(given, name))
        };
        let input = FeedInput {
            site: only(asked.site, "site")?,
            line: only(asked.line, "line")?,
            filters: asked.filters,
            interval_seconds: asked.interval_seconds,
            page_size: asked.page_size,
            settle_lag: time(settle_lag, "settle_lag", usual.settle_lag)?,
            overlap: time(overlap, "overlap", usual.overlap)?,
            lateness: time(lateness, "lateness", usual.lateness)?,
            window: time(window, "window", usual.window)?,
            audit_pages: audit_pages.map_or(Ok(0), pages)?,
            ..usual
        };
        let feed = guarded(|| Feed::new(input).or_raise())?;
        warn(py, feed.warning().as_slice())?;
        Ok(Self(feed))
    }

    /// What the store calls it.
    #[getter]
    pub(crate) fn name(&self) -> &str {
        &self.0.input().name
    }

    /// The site filter, ``siteId`` on the wire.
    #[getter]
    fn site(&self) -> Option<&str> {
        self.0.input().site.as_deref()
    }

    /// The line filter, ``lineId`` on the wire.
    #[getter]
    fn line(&self) -> Option<&str> {
        self.0.input().line.as_deref()
    }

    /// The bucket width, a ``timedelta``; ``aggregationIntervalSeconds`` on the wire.
    #[getter]
    fn interval(&self) -> Option<Duration> {
        self.0.input().interval_seconds.map(|seconds| Duration::from_secs(seconds.into()))
    }

    /// Where it begins, an aware ``datetime`` in UTC.
    #[getter]
    fn since(&self) -> Timestamp {
        self.0.input().since
    }

    /// Items asked for on each page; ``pageSize`` on the wire.
    #[getter]
    fn page_size(&self) -> Option<u32> {
        self.0.input().page_size
    }

    /// Further filters: parameter name to the tuple of its values.
    #[getter]
    fn filters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        known_filters(py, &self.0.input().filters)
    }

    /// How far behind the service's time it is read, a ``timedelta``.
    #[getter]
    fn settle_lag(&self) -> Duration {
        self.0.input().settle_lag
    }

    /// How much of the newest known data each sync reads again, a ``timedelta``.
    #[getter]
    fn overlap(&self) -> Duration {
        self.0.input().overlap
    }

    /// How long after its end a window is read again for its final values, a ``timedelta``.
    #[getter]
    fn lateness(&self) -> Duration {
        self.0.input().lateness
    }

    /// The width of the windows, a ``timedelta``.
    #[getter]
    fn window(&self) -> Duration {
        self.0.input().window
    }

    /// Pages a day for audits.
    #[getter]
    fn audit_pages(&self) -> u32 {
        self.0.input().audit_pages
    }

    /// Makes a feed from its pickled state.
    #[staticmethod]
    fn _restore(state: &Bound<'_, PyAny>) -> PyResult<Self> {
        let input = restore(state)?;
        guarded(|| Ok(Self(Feed::new(input).or_raise()?)))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        reduce(slf, slf.get().0.input())
    }

    fn __repr__(&self) -> String {
        format!(
            "<Feed {}: {}, since {}>",
            escaped(self.name()),
            self.0.parameters(),
            self.0.input().since
        )
    }

    /// The parameters of its queries but for their range.
    fn _asks(&self) -> String {
        self.0.parameters()
    }

    /// What notebooks show.
    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        html_sync(slf.as_any(), "feed")
    }
}

/// The name of a feed, given as the feed or as its name.
pub(crate) fn feed_name(feed: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(feed) = feed.cast::<PyFeed>() {
        return Ok(feed.get().name().to_owned());
    }
    if let Ok(name) = feed.cast::<PyString>() {
        return text(name, "feed", Kind::QueryError);
    }
    let message = format!("feed= is {}: give a siteline.Feed or the name of one.", described(feed));
    Err(refuse(feed.py(), Kind::QueryError, message))
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
