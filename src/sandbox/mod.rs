//! `siteline.Sandbox`: the complete service on loopback, for demos and for users' tests.

mod access;
mod arguments;
mod frame;
mod integration;
mod truth;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping, PyTuple};

use crate::bridge::errors::OrRaise as _;
use crate::bridge::process::{attached, detached, without_fork};
use crate::bridge::runtime::step;
use crate::convert::clock::PyClock;
use crate::convert::patching::methods_can_be_replaced;
use crate::convert::state::dict;
use crate::convert::values::{instant, optional};
use crate::frame::{Frame, TableShown, table_object};
use siteline_base::clock::Clock;
use siteline_sandbox::{AsOf, Point, Sandbox};

use arguments::{identity, microseconds, whole_seconds};
use integration::Integration;

/// The complete Customer Data Service on loopback: strict, deterministic, with faults on request.
///
/// It is a real HTTP service on a port of 127.0.0.1 that shares no code with the client. It
/// verifies each assertion strictly (§2.1) and accepts a ``jti`` once, issues tokens for 600 seconds,
/// encrypts its cursors and binds them to the query, counts the daily allowance, and has points that
/// arrive late and are revised (§4.4.6). It serves a generated plant (site ``S1`` with lines ``L1``
/// and ``L2``, ``S2`` with ``L3``, six series per line), which depends only on ``seed``, or your own
/// data: see :meth:`load`.
///
/// - ``port``: the port to listen on, a :class:`ConfigError` where it is taken; ``None`` or 0: any free
///   one, which :attr:`base_url` names
/// - ``seed``: the seed of the generated plant
/// - ``now``: the service's time (ISO text, aware ``datetime``), which then stands still
/// - ``daily_allowance``: data requests per UTC day, then 429 until midnight (§8)
/// - ``token_rate``: token requests per minute, then 429 (§5.4)
/// - ``approved``: if ``False``, an enrolled key waits for :meth:`approve` (§1)
/// - ``late``: if ``False``, generated data are final two minutes after their bucket
/// - ``record_wire``: keep the bytes of every request in :attr:`wire`
/// - ``tls``: speak TLS, with a certificate of :attr:`ca`; ``"1.2"`` or ``"1.3"`` offers that version alone
/// - ``mutual_tls``: a platform-managed service (§5.6), for clients with a certificate of
///   :meth:`certificate`: ``"data"``, where it alone authorises requests, or ``"token"``, where it
///   authenticates token requests (RFC 8705)
/// - ``certificate_refusal``: ``"page"``, status 400 as nginx answers, or ``"alert"`` of the handshake
/// - ``page_size``, ``max_page_size``, ``interval``, ``max_interval``, ``max_range``: limits that the
///   document does not specify
///
/// One option for each of the other things that the document does not specify:
///
/// - ``array``: the name of the top-level array
/// - ``timestamps``: ``"iso"``, ``"iso_offset"``, ``"iso_fraction"``, ``"epoch_s"`` or ``"epoch_ms"``
/// - ``order``: ``"series"`` (series, then time) or ``"time"``
/// - ``page_counts``: ``"points"`` or ``"envelopes"``, of up to ``envelope_points`` buckets each
/// - ``end_inclusive``: a bucket that begins at ``to`` belongs to the range
/// - ``invalid_client_status``, ``unavailable_status``
/// - ``error_body``: ``"oauth"`` or ``"problem"``
/// - ``extra_members`` that the document does not name; ``integer_ids`` of machines, devices and
///   tags; ``omit_nulls`` in points; ``omit_last_cursor`` in place of null; ``spaced`` JSON
///
/// A context manager that calls :meth:`close`. Wrong settings raise :class:`ConfigError`.
///
/// >>> with siteline.Sandbox(now="2026-11-20T00:00:00Z", daily_allowance=100) as service:
/// ...     mine = service.client()
/// ...     scan = mine.scan(site="S1", start="2026-11-01T00:00Z", end="2026-11-02T00:00Z",
/// ...                      interval="1h")
/// ...     len(scan.collect()) == len(service.truth(site="S1", start="2026-11-01T00:00Z",
/// ...                                              end="2026-11-02T00:00Z", interval="1h"))
/// True
#[pyclass(dict, frozen, weakref, name = "Sandbox", module = "siteline")]
pub(crate) struct PySandbox {
    sandbox: Sandbox,
    clock: Py<PyClock>,
    integration: Integration,
}

methods_can_be_replaced!(PySandbox);

#[pymethods]
impl PySandbox {
    #[new]
    #[pyo3(signature = (*, now=None, **settings), text_signature = "(*, port=None, seed=7, now=None, \
        daily_allowance=None, token_rate=30, approved=True, late=True, record_wire=False, tls=False, \
        mutual_tls=None, certificate_refusal='page', \
        page_size=1000, max_page_size=10000, interval='1m', max_interval='1d', max_range='366d', \
        array='series', timestamps='iso', order='series', page_counts='points', \
        envelope_points=60, end_inclusive=False, invalid_client_status=401, \
        unavailable_status=503, error_body='oauth', extra_members=False, integer_ids=False, \
        omit_nulls=False, omit_last_cursor=False, spaced=False)")]
    fn new(
        py: Python<'_>,
        now: Option<&Bound<'_, PyAny>>,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let clock = optional(now, "now", instant)?.map_or_else(Clock::running, Clock::frozen_at);
        let mut options = arguments::options(py, settings)?;
        options.take_step = |step| without_fork(step);
        let sandbox = Sandbox::start(options, clock.clone()).or_raise()?;
        let clock = Py::new(py, PyClock(clock))?;
        Ok(Self { sandbox, clock, integration: Integration::default() })
    }

    /// The service's address, ``http://127.0.0.1:PORT``, or ``https://…`` with ``tls``.
    #[getter]
    fn base_url(&self) -> &str {
        self.sandbox.base_url()
    }

    /// The :class:`Clock` of the service and of the clients that :meth:`client` returns:
    /// ``sandbox.clock.advance("1d")`` moves them all without a wait.
    #[getter]
    fn clock(&self, py: Python<'_>) -> Py<PyClock> {
        self.clock.clone_ref(py)
    }

    /// Serve your own data; the first load replaces the generated plant.
    ///
    /// ``frame`` is a pandas frame or any Arrow stream (polars, pyarrow, DuckDB, a siteline table)
    /// with ``timestamp`` and ``value``. Its rows are either
    ///
    /// - aggregated points, if it has ``minimum``, ``maximum`` or ``sample_count``. ``bucket`` is their
    ///   width (by default the widest grid of all timestamps, at most a day). Queries of multiples of it
    ///   get them re-aggregated, weighted by ``sample_count``; or
    /// - raw readings, if it has none of the three. They are aggregated by the interval of the query:
    ///   mean, minimum, maximum and count over ``[t, t + interval)``, on a grid from the Unix epoch;
    ///   repeated and unsorted timestamps all count. ``bucket`` is required: the interval of queries
    ///   without one.
    ///
    /// Ids are read from the columns ``site_id``, ``line_id``, ``machine_id``, ``device_id``,
    /// ``tag_guid``, or else from the keywords. A column ``available_at`` says when the service gets
    /// each row, for data that arrive late. Timestamps have a zone, or are ISO text with one. A missing
    /// value or NaN is null; infinities are refused. Returns the number of rows. After a
    /// :class:`ConfigError`, which says what is wrong, nothing is loaded.
    ///
    /// >>> import pandas as pd
    /// >>> times = pd.date_range("2026-11-01", periods=3, freq="1min", tz="UTC")
    /// >>> with siteline.Sandbox(now="2026-11-20T00:00:00Z") as service:
    /// ...     service.load(pd.DataFrame({"timestamp": times, "value": [1.0, 2.0, 6.0]}), bucket="1m")
    /// ...     service.truth(interval="3m").to_pandas().value.tolist()
    /// 3
    /// [3.0]
    #[pyo3(
        signature = (frame, *, bucket=None, **ids),
        text_signature = "($self, frame, *, bucket=None, site='S1', line='L1', machine='M1', \
            device='D1', tag='T1')"
    )]
    fn load(
        &self,
        py: Python<'_>,
        frame: &Bound<'_, PyAny>,
        bucket: Option<&Bound<'_, PyAny>>,
        ids: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<usize> {
        let ids = identity(ids)?;
        let bucket = optional(bucket, "bucket", whole_seconds)?;
        let frame = frame::read(frame, ids)?;
        step(py, || self.sandbox.load_frame(frame, bucket))?.or_raise()
    }

    /// Change the values of a loaded point, or add a point.
    ///
    /// The service gets it at ``at`` (ISO text, aware ``datetime``), by default now. By default
    /// ``minimum`` and ``maximum`` are ``value``, and ``sample_count`` is 1; a ``value`` of ``None``
    /// makes all four null. The series is named as in :meth:`load`. A point that is added before the
    /// position of a cursor shifts those after it: pages then repeat a point (§4.4.6).
    #[pyo3(
        signature = (timestamp, value, *, minimum=None, maximum=None, sample_count=None, at=None,
            **ids),
        text_signature = "($self, timestamp, value, *, minimum=None, maximum=None, \
            sample_count=None, at=None, site='S1', line='L1', machine='M1', device='D1', tag='T1')"
    )]
    #[expect(clippy::too_many_arguments, reason = "each is an argument of the Python method")]
    fn revise(
        &self,
        timestamp: &Bound<'_, PyAny>,
        value: Option<f64>,
        minimum: Option<f64>,
        maximum: Option<f64>,
        sample_count: Option<i64>,
        at: Option<&Bound<'_, PyAny>>,
        ids: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let point = Point {
            timestamp: microseconds(timestamp, "timestamp")?,
            value,
            minimum: minimum.or(value),
            maximum: maximum.or(value),
            sample_count: sample_count.or(value.map(|_| 1)),
            available_at: optional(at, "at", microseconds)?,
        };
        self.sandbox.revise(&identity(ids)?, point).or_raise()
    }

    /// Remove a loaded point, at ``at`` or now: the pages of an older cursor then omit a point
    /// (§4.4.6). The series is named as in :meth:`load`.
    #[pyo3(
        signature = (timestamp, *, at=None, **ids),
        text_signature = "($self, timestamp, *, at=None, site='S1', line='L1', machine='M1', \
            device='D1', tag='T1')"
    )]
    fn withdraw(
        &self,
        timestamp: &Bound<'_, PyAny>,
        at: Option<&Bound<'_, PyAny>>,
        ids: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let timestamp = microseconds(timestamp, "timestamp")?;
        let at = optional(at, "at", microseconds)?;
        self.sandbox.withdraw(&identity(ids)?, timestamp, at).or_raise()
    }

    /// The correct result of a read, as a :class:`Table`, computed without requests.
    ///
    /// ``site``, ``line``, ``start``, ``end``, ``interval`` and ``filters`` as in
    /// :meth:`Client.scan`; the default range is that of the loaded data, or the last day of generated
    /// data. The result is as of ``at``: now by default, a time, or ``"final"``, after all points have
    /// arrived and been revised (generated data are final a day after their bucket).
    #[pyo3(
        signature = (*, site=None, line=None, start=None, end=None, interval=None, filters=None,
            at=None)
    )]
    #[expect(clippy::too_many_arguments, reason = "each is a keyword of the Python method")]
    fn truth(
        &self,
        py: Python<'_>,
        site: Option<String>,
        line: Option<String>,
        start: Option<&Bound<'_, PyAny>>,
        end: Option<&Bound<'_, PyAny>>,
        interval: Option<&Bound<'_, PyAny>>,
        filters: Option<&Bound<'_, PyMapping>>,
        at: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let selection = truth::selection(site, line, filters)?;
        let start = optional(start, "start", microseconds)?;
        let end = optional(end, "end", microseconds)?;
        let interval = optional(interval, "interval", whole_seconds)?;
        let as_of = optional(at, "at", truth::as_of)?.unwrap_or(AsOf::Now);
        let truth =
            step(py, || self.sandbox.truth(selection, start, end, interval, as_of))?.or_raise()?;
        let points = truth::points(&truth).or_raise()?;
        Ok(table_object(py, Frame::unread(points), &TableShown::default())?.unbind())
    }

    /// Counts and logs of the requests so far: a new dict each time, :class:`SandboxStats`.
    ///
    /// ``token_requests``, ``tokens_issued``, ``discovery_requests``, ``data_requests``,
    /// ``data_requests_by_day`` (ISO date to count, of all integrations, refused ones too),
    /// ``points_sent``, ``requests`` (endpoint to status to count; status 0: no complete reply),
    /// ``jtis`` and ``refusals`` (the reasons, which the service does not send) in order,
    /// ``user_agents``, and ``log``: a dict for each request with ``at``, ``method``, ``path``,
    /// ``query`` (cursors hidden) and ``status``. Of ``refusals`` and ``log`` the last 10,000 are kept.
    ///
    /// >>> sandbox.stats.get("data_requests")
    /// 0
    #[getter]
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let stats = self.sandbox.stats();
        let record = dict(py, &stats)?;
        for (line, request) in record.get_item("log")?.try_iter()?.zip(&stats.log) {
            line?.set_item("at", request.at)?;
        }
        Ok(record)
    }

    /// With ``record_wire=True``: the bytes of each request as text, in order.
    ///
    /// They contain assertions and access tokens. Bytes that are not UTF-8 become ``\ufffd``.
    #[getter]
    fn wire(&self) -> Vec<String> {
        let requests = self.sandbox.wire();
        requests.iter().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect()
    }

    /// Cause faults in requests to ``on``: ``"token"``, ``"discovery"`` or ``"data"``.
    ///
    /// Which requests, counted from now: the next one, or ``times=n`` in a row after ``skip=m``
    /// without fault, or ``nth=n``, or ``every=k``, or each with ``chance=p`` (drawn from ``seed``).
    ///
    /// One or several faults:
    ///
    /// - ``status``, ``error`` (a JSON error body), ``body`` (text or bytes), ``headers``,
    ///   ``retry_after``: this reply instead of the correct one
    /// - ``unavailable=True``: ``temporarily_unavailable``, with ``status`` or the sandbox's own
    /// - ``members={"nextCursor": None, ...}``: changes members of the correct reply's JSON;
    ///   ``drop=["scope", ...]`` removes them
    /// - ``headers`` alone: sets headers of the correct reply; ``None`` removes one, even ``Date``
    /// - ``delay="1m"``: moves the clock before the request is processed
    /// - ``cut=n``, ``stall=n``: n bytes of the body, then the connection ends, or stays silent;
    ///   ``hang=True``: no reply; ``reset=True``: a TCP reset; ``raw=b"..."``: these bytes, no HTTP
    /// - ``repeat_cursor=True`` (from the second page on), ``cycle_cursors=n``: an earlier cursor;
    ///   ``empty_page=True``; ``forget_cursors=True``: all cursors become invalid
    /// - ``forget_tokens=True``: all tokens become invalid; ``grant=["customer.data.read"]``: only
    ///   these scopes are granted
    ///
    /// A request with a fault is processed nevertheless: its jti is used up, its page is counted.
    ///
    /// >>> sandbox.fault(on="data", status=503, times=2)
    /// >>> len(client.scan(site="S1", start="2026-11-01T00:00Z", end="2026-11-01T01:00Z",
    /// ...                 interval="1h").collect()) > 0
    /// True
    /// >>> client.allowance.used
    /// 3
    #[pyo3(
        signature = (*, on, **what),
        text_signature = "($self, *, on, nth=None, every=None, times=None, skip=0, chance=None, \
            seed=0, status=None, error=None, body=None, headers=None, retry_after=None, \
            unavailable=False, members=None, drop=None, delay=None, cut=None, stall=None, \
            hang=False, reset=False, raw=None, repeat_cursor=False, cycle_cursors=None, \
            empty_page=False, forget_cursors=False, forget_tokens=False, grant=None)"
    )]
    fn fault(&self, on: Bound<'_, PyAny>, what: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        arguments::faults(on, what)?.into_iter().for_each(|fault| self.sandbox.fault(fault));
        Ok(())
    }

    /// End all faults.
    fn clear_faults(&self) {
        self.sandbox.clear_faults();
    }

    /// Forget every access token: the next request with one gets 401.
    fn forget_tokens(&self) {
        self.sandbox.forget_tokens();
    }

    /// Refuse every cursor that was issued, as after a restart of the service.
    fn forget_cursors(&self) {
        self.sandbox.forget_cursors();
    }

    /// Stop the service. :attr:`stats`, :attr:`wire` and :meth:`truth` still work. Closing
    /// again does nothing.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || self.sandbox.close())
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py)
    }

    fn __repr__(&self) -> String {
        let state = if self.sandbox.is_closed() { "closed" } else { self.sandbox.base_url() };
        format!("<Sandbox {state}, {}>", self.sandbox.clock().wall())
    }
}

impl Drop for PySandbox {
    fn drop(&mut self) {
        // While a thread is about to fork, the service cannot run, and that thread may need the
        // interpreter: so it is released until the service has stopped.
        attached(|py| detached(py, || self.sandbox.close()));
    }
}
