//! `client.data`: makes a scan from its arguments.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::bridge::errors::IntoPyErr as _;
use crate::bridge::errors::OrRaise as _;
use crate::bridge::errors::warn;
use crate::bridge::process::guarded;
use crate::client::PyClient;
use crate::client::progress::ProgressArg;
use crate::client::query::{Argument, Start, names, query_input};
use crate::client::scan::{PyScan, with_store};
use crate::client::shape::PyShape;
use crate::convert::asked_time::asked_range;
use crate::convert::values::{count, duration, optional};
use crate::convert::zone::zone;
use crate::frame::TableShown;
use siteline_core::auth::Checked;
use siteline_core::client::{ReadSettings, ScanInput, start_left_out};
use siteline_core::data::Shape;
use siteline_core::error::Kind;

#[pymethods]
impl PyClient {
    /// A lazy :class:`Scan` over the aggregate data (§4.3). Sends no request.
    ///
    /// - ``site``, ``line``: the filters ``siteId`` and ``lineId``: text, or a whole number
    /// - ``start``, ``end``: the range, ``from`` and ``to``: aware datetimes, pandas timestamps, ISO text
    ///   with a zone, in whole seconds; or dates (``"2026-11-01"``), which are days in UTC. ``start`` must
    ///   be written; ``None`` lets the service decide, which may cost years of pages. Without ``end`` this
    ///   call fixes it: now (the service's time once it is known) minus the settle lag, rounded down to a
    ///   bucket. ``"-7d"``, ``"-90m"`` and ``"now"`` count from now too, are rounded down to a bucket, and
    ///   are fixed by this call: ``query`` has them as times
    /// - ``tz``: the zone on whose clock dates and times without an offset are meant, such as
    ///   ``"Europe/Berlin"``, or a ``ZoneInfo``; ``None`` refuses such times, and takes dates as days in
    ///   UTC. A day begins at its first instant, and has 23 or 25 hours when clocks are set. A time that
    ///   clocks skip or show twice is a :class:`QueryError` that says how to write each. It is also the zone of the
    ///   timestamps in frames, files and pictures of the table
    /// - ``interval``: the bucket width: seconds, a ``timedelta`` or ``"1m"``; the service decides if it is
    ///   ``None``. Buckets begin at its multiples in UTC: a :class:`SitelineWarning` says which are given
    ///   where ``start`` or ``end`` lies between them
    /// - ``page_size``: the number of items on a page; the service decides if it is ``None``
    /// - ``filters``: further parameters by name; a list repeats the parameter
    /// - ``lag``: limits ``end`` to now minus this duration; ``None`` leaves a given ``end`` as it is
    /// - ``shape``: a :class:`Shape`, if you know what the document does not specify; ``None`` is
    ///   ``Shape()``
    /// - ``extra_columns``: members of points or series to keep, as JSON text
    /// - ``max_pages``: a read that has more pages raises an error; ``None`` sets no limit
    /// - ``deadline``: the longest time of one read, including waits and token exchange; ``None`` sets none
    /// - ``keep_raw``: keep each page's body in ``page.raw``
    /// - ``progress``: ``True`` for a bar in terminals and notebooks (tqdm's if it is installed), or a
    ///   callable that gets a :class:`Progress` after each page; ``None`` reports nothing
    /// - ``store``: a :class:`Store`: what its feeds with the same ``site``, ``line``, ``filters`` and
    ///   ``interval`` have settled is read from it without a request (§4.5.5), the rest from the service, and
    ///   kept there; ``None`` reads all from the service
    ///
    /// - ``labels``: the names of series in tables: ``"machine"``, ``"device"``, ``"name"``, ``"line"`` or
    ///   ``"site"`` (the first part of a name), a mapping, or a :class:`Catalogue`; ``False`` for none. A word
    ///   needs a discovery response: the read sends one discovery request if the client has had none
    ///
    /// With ``store=`` the points are those of the buckets that begin from ``start`` on and before ``end``.
    /// What is missing is read by a feed that it continues, in pages of its size; where there is none, by one
    /// that the store gets for such reads, named after the parameters, with the usual lateness: a sync of it
    /// would fill what was never asked for. ``max_pages`` counts the pages that are requested. A feed that
    /// another read or sync has is waited for, until the ``deadline``, or for a minute: then it is a
    /// :class:`StoreBusy`. A range of which a sync has set a part aside is an :class:`UnreadRange`, before
    /// any request.
    ///
    /// Parameters that are not set are not sent, except ``end``. A wrong argument is a
    /// :class:`QueryError`.
    ///
    /// >>> scan = client.scan(site="S1", start="2026-11-01T00:00Z", end="2026-11-02T00:00Z",
    /// ...                    interval="1h", filters={"machineId": ("M1", "M2")})
    /// >>> scan.query.interval_seconds, scan.query.filters
    /// (3600, {'machineId': ('M1', 'M2')})
    /// >>> print(client.scan(start="2026-10-25", end="2026-10-26", tz="Europe/Berlin").query)
    /// from=2026-10-24T22:00:00Z to=2026-10-25T23:00:00Z
    /// >>> store = siteline.Store("plant.siteline")
    /// >>> again = {"site": "S1", "interval": "1h", "start": "2026-11-01", "end": "2026-11-02"}
    /// >>> [client.scan(**again, store=store).collect().report.pages for _ in range(2)]
    /// [1, 0]
    #[pyo3(signature = (*, site=None, line=None, start=Start::LeftOut, end=None, tz=None, interval=None,
        page_size=None, filters=None, lag=None, shape=None, extra_columns=None, max_pages=None,
        deadline=None, keep_raw=false, progress=None, store=None, labels=None, **unknown),
        text_signature = "($self, *, start, site=None, line=None, end=None, tz=None, interval=None, \
        page_size=None, filters=None, lag=None, shape=None, extra_columns=(), max_pages=None, \
        deadline=None, keep_raw=False, progress=None, store=None, labels=False)")]
    #[expect(clippy::too_many_arguments, reason = "each is a keyword of the Python method")]
    fn scan<'py>(
        slf: &Bound<'py, Self>,
        site: Argument<'_, '_>,
        line: Argument<'_, '_>,
        start: Start<'_>,
        end: Argument<'_, '_>,
        tz: Argument<'_, '_>,
        interval: Argument<'_, '_>,
        page_size: Argument<'_, '_>,
        filters: Argument<'_, '_>,
        lag: Argument<'_, '_>,
        shape: Option<&PyShape>,
        extra_columns: Argument<'_, '_>,
        max_pages: Argument<'_, '_>,
        deadline: Argument<'_, '_>,
        keep_raw: bool,
        progress: Argument<'_, '_>,
        store: Option<&Bound<'py, PyAny>>,
        labels: Option<&Bound<'py, PyAny>>,
        unknown: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Some(unknown) = unknown {
            slf.py().import("siteline._arguments")?.call_method1("unknown_in_data", (unknown,))?;
        }
        let pages = |most: &Bound<'_, PyAny>, name: &str| count(most, name, Kind::QueryError);
        guarded(|| {
            let Start::Given(start) = start else { return Err(start_left_out().into_py_err()) };
            let progress = ProgressArg::from_argument(progress)?;
            let range = asked_range(start.as_ref(), end, tz)?;
            let query = query_input([site, line, interval, page_size, filters])?;
            let lag = optional(lag, "lag", duration)?;
            let extra_columns = extra_columns.map(names).transpose()?.unwrap_or_default();
            let shape = shape.map_or_else(Shape::default, |shape| shape.0.clone());
            let max_pages = optional(max_pages, "max_pages", pages)?;
            let deadline = optional(deadline, "deadline", duration)?;
            let settings = ReadSettings { max_pages, deadline, keep_raw };
            let input = ScanInput { query, shape, extra_columns, settings };
            let Checked { value, warnings } =
                input.scan_from_now(&slf.get().client, range, lag).or_raise()?;
            warn(slf.py(), &warnings)?;
            if let Some(labels) = labels {
                slf.py().import("siteline._labels")?.call_method1("checked", (labels,))?;
            }
            let zone = tz.map(zone).transpose()?.map(|(name, _)| name);
            let shown = TableShown { zone, labels: labels.map(|labels| labels.clone().unbind()) };
            let scan = PyScan::new(value, slf.clone().unbind(), progress, shown);
            with_store(slf.py(), scan, store)
        })
    }
}
