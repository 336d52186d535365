//! `siteline.Client`: the door to the service.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};

use crate::client::{Client, ClientSettings};
use crate::clock::Clock;
use crate::error::Kind;
use crate::http::{BaseUrl, TransportSettings};
use crate::python::allowance::PyAllowance;
use crate::python::clock::PyClock;
use crate::python::conversions::{count, discovery, html};
use crate::python::credential::PyCredential;
use crate::python::errors::raise;
use crate::python::gather::{PyGathering, gather};
use crate::python::ledger::{choose, time_of_day};
use crate::python::logging;
use crate::python::query::Arguments;
use crate::python::recipe::Recipe;
use crate::python::runtime::{begin_task, block_on, detached, guarded, spawn};
use crate::python::scan::PyScan;
use crate::python::settings::{from_outside, keywords, scope_set, set, trust};
use crate::python::shape::PyShape;
use crate::python::summary::Considered;
use crate::python::sync::{Asked, begin, sync};
use crate::settings::Settings;

/// The Customer Data Service, for one integration (§1).
///
/// Signs assertions, keeps one access token for the whole process, counts requests, retries what is
/// worth retrying and reads pages to their end. Safe to share between threads. Making one costs no
/// request.
///
/// - ``base_url``: as ``"https://customer.example.com"``
/// - ``credential``: a :class:`Credential`
/// - ``scopes``: what tokens are asked for (§5.5)
/// - ``audience``: ``aud`` of the assertion, where it is not ``{base_url}/api/customer/oauth/token``
/// - ``daily_allowance``: requests a day; the one that would exceed it is not sent (§8)
/// - ``allowance_resets``: when the service's day begins, as ``"06:00Z"``, ``"08:00+02:00"`` or an
///   aware ``datetime.time``; midnight UTC by default. A long ``Retry-After`` teaches it, and wins
/// - ``ledger``: the file that counts them, for all processes that name it; by default one in your
///   state folder (see below)
/// - ``settle_lag``: how far behind now a query without ``end`` stops (§4.5)
/// - ``assertion_lifetime`` (at most five minutes), ``clock_tolerance`` (``nbf`` before ``iat``, at
///   most a minute), ``typ`` (add the header ``typ``): the assertion (§2.1)
/// - ``max_retry_after``: a longer ``Retry-After`` raises at once
/// - ``tries``: attempts of one page request in all
/// - ``connect_timeout``, ``response_timeout``, ``idle_timeout``: limits of one attempt
/// - ``max_body_bytes``: cap on a decoded body
/// - ``application``: your name, after ``siteline/VERSION`` in ``User-Agent``
/// - ``allow_http``: plain HTTP beyond loopback
/// - ``ca_bundle``: certificates to trust and no others, a path or PEM ``bytes``; else
///   ``SSL_CERT_FILE`` and ``SSL_CERT_DIR``, the machine's store, the package certifi
/// - ``proxy``: else that of ``HTTPS_PROXY`` and its kin, less ``NO_PROXY``; loopback never uses one
/// - ``clock``: a :class:`Clock`, for tests
///
/// Durations are seconds, a ``timedelta`` or text such as ``"5m"``. A wrong setting is a
/// :class:`ConfigError`, before any request.
///
/// Requests are counted in a ledger before they are sent: one small file for each ``base_url`` and
/// subject, shared by processes, threads and clients, exact among them; one that is killed counts one
/// too many at most. It also counts token requests, and holds the pauses that the service asks for
/// (§5.4); never a token. It lies in the folder ``siteline`` in ``$XDG_STATE_HOME``
/// (``~/.local/state``), ``~/Library/Application Support`` or ``%LOCALAPPDATA%``. Where no file can be
/// made, the client counts in memory, with one warning; so it does, without one, where the service is
/// on loopback or a ``clock`` is given. A ``ledger`` that was given and cannot be made is a
/// :class:`StoreError`, a damaged one :class:`StoreCorrupt`.
///
/// A client is pickled as its settings, with a credential that names where its key is, and the path
/// of its ledger; the process that unpickles it makes a token of its own. A secret is never in a
/// pickle: what would need one is a ``TypeError`` that says what to do. Copies are the client itself.
///
/// >>> client.data(site="S1", interval="1m", start="2026-11-01T00:00:00Z").query.site
/// 'S1'
#[pyclass(frozen, name = "Client", module = "siteline")]
pub(crate) struct PyClient {
    pub(crate) client: Client,
    credential: Py<PyCredential>,
    /// The path of its ledger, where it was given.
    ledger: Option<PathBuf>,
}

#[pymethods]
impl PyClient {
    #[new]
    #[pyo3(signature = (base_url, *, credential, scopes=None, audience=None, daily_allowance=None,
        allowance_resets=None, ledger=None, settle_lag=None, assertion_lifetime=None, clock_tolerance=None, typ=false,
        max_retry_after=None, tries=None, connect_timeout=None, response_timeout=None,
        idle_timeout=None, max_body_bytes=None, application=None, allow_http=false, ca_bundle=None,
        proxy=None, clock=None))]
    #[expect(clippy::too_many_arguments, reason = "each is a keyword of the Python class")]
    fn new(
        py: Python<'_>,
        base_url: &str,
        credential: Bound<'_, PyCredential>,
        scopes: Option<&Bound<'_, PyAny>>,
        audience: Option<String>,
        daily_allowance: Option<&Bound<'_, PyAny>>,
        allowance_resets: Option<&Bound<'_, PyAny>>,
        ledger: Option<&Bound<'_, PyAny>>,
        settle_lag: Option<&Bound<'_, PyAny>>,
        assertion_lifetime: Option<&Bound<'_, PyAny>>,
        clock_tolerance: Option<&Bound<'_, PyAny>>,
        typ: bool,
        max_retry_after: Option<&Bound<'_, PyAny>>,
        tries: Option<&Bound<'_, PyAny>>,
        connect_timeout: Option<&Bound<'_, PyAny>>,
        response_timeout: Option<&Bound<'_, PyAny>>,
        idle_timeout: Option<&Bound<'_, PyAny>>,
        max_body_bytes: Option<&Bound<'_, PyAny>>,
        application: Option<String>,
        allow_http: bool,
        ca_bundle: Option<&Bound<'_, PyAny>>,
        proxy: Option<String>,
        clock: Option<&PyClock>,
    ) -> PyResult<Self> {
        logging::import(credential.py())?;
        let base = || BaseUrl::parse(base_url, allow_http);
        let base = guarded(|| base().map_err(|error| raise(py, &error)))?;
        let mut settings = ClientSettings::new(base, credential.get().0.clone());
        settings.begin_task = begin_task;
        settings.clock = clock.map_or_else(Clock::system, |clock| clock.0.clone());
        if let Some(scopes) = scopes {
            settings.scopes = scope_set(scopes)?;
        }
        settings.audience = audience;
        settings.assertion_typ = typ;
        set(&mut settings.assertion_lifetime, assertion_lifetime, "assertion_lifetime")?;
        set(&mut settings.assertion_tolerance, clock_tolerance, "clock_tolerance")?;
        settings.daily_allowance = daily_allowance
            .map(|limit| count(limit, "daily_allowance", Kind::Config))
            .transpose()?;
        settings.allowance_resets =
            allowance_resets.map(|time| time_of_day(time, "allowance_resets")).transpose()?;
        set(&mut settings.settle_lag, settle_lag, "settle_lag")?;
        set(&mut settings.retry.max_retry_after, max_retry_after, "max_retry_after")?;
        if let Some(tries) = tries {
            let tries = count(tries, "tries", Kind::Config)?;
            settings.retry.tries = u32::try_from(tries).unwrap_or(u32::MAX);
        }
        let trust = trust(py, ca_bundle)?;
        settings.transport = TransportSettings { application, trust, proxy, ..settings.transport };
        set(&mut settings.transport.connect_timeout, connect_timeout, "connect_timeout")?;
        set(&mut settings.transport.response_timeout, response_timeout, "response_timeout")?;
        set(&mut settings.transport.idle_timeout, idle_timeout, "idle_timeout")?;
        if let Some(cap) = max_body_bytes {
            let cap = count(cap, "max_body_bytes", Kind::Config)?;
            settings.transport.body_cap = usize::try_from(cap).unwrap_or(usize::MAX);
        }
        let chosen = guarded(|| choose(py, ledger, &settings))?;
        settings.ledger = chosen.ledger;
        let client = guarded(|| Client::new(settings).map_err(|error| raise(py, &error)))?;
        Ok(Self { client, credential: credential.unbind(), ledger: chosen.path })
    }

    /// A client from the ``SITELINE_*`` environment variables, and a profile for what they leave out.
    ///
    /// ``SITELINE_BASE_URL``, ``SITELINE_SUBJECT``, ``SITELINE_PRIVATE_KEY_FILE`` or
    /// ``SITELINE_PRIVATE_KEY`` (the key itself), and where wanted ``SITELINE_PASSPHRASE`` or
    /// ``SITELINE_PASSWORD_COMMAND`` (a command that prints it), ``SITELINE_SCOPES``,
    /// ``SITELINE_AUDIENCE``, ``SITELINE_DAILY_ALLOWANCE``, ``SITELINE_LEDGER`` (a path).
    /// ``SITELINE_PROFILE`` names the profile (``default``), ``SITELINE_CONFIG`` its file: see
    /// :meth:`from_profile`.
    ///
    /// Keywords are those of :class:`Client` and win over variables, these over the profile; what
    /// opens a profile's key opens no other. A :class:`ConfigError` lists what was looked at.
    ///
    /// >>> import os
    /// >>> os.environ.update(sandbox.env())
    /// >>> siteline.Client.from_env(daily_allowance=100).allowance.left
    /// 100
    /// >>> for name in sandbox.env():
    /// ...     del os.environ[name]
    #[classmethod]
    #[pyo3(signature = (**options))]
    fn from_env<'py>(
        cls: &Bound<'py, PyType>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        from_outside(cls, options, Settings::from_variables)
    }

    /// A client from a profile: one table of a TOML file.
    ///
    /// The file is that of ``SITELINE_CONFIG``, else ``siteline/config.toml`` in the platform's
    /// folder (``~/.config``, ``~/Library/Application Support``, ``%APPDATA%``). No other variable is
    /// looked at; keywords are those of :class:`Client` and win. Members are the keywords of
    /// :class:`Client` that a file can hold (not ``credential`` and ``clock``), and ``base_url``,
    /// ``subject``, ``private_key_file``, ``password_command``, ``kid``, ``strict``. Paths begin at
    /// the file's folder, or with ``~/``. A passphrase has no place in it. A :class:`ConfigError`
    /// names what is unknown, wrong or missing, and shows no value.
    ///
    /// >>> import os, pathlib
    /// >>> key = siteline.PrivateKey.generate(2048)
    /// >>> key.save("plant-a.pem")
    /// >>> _ = pathlib.Path("plants.toml").write_text(
    /// ...     '[plant-a]\n'
    /// ...     f'base_url = "{sandbox.base_url}"\n'
    /// ...     'subject = "subject-from-enrollment"\n'
    /// ...     'private_key_file = "plant-a.pem"\n'
    /// ...     'settle_lag = "10m"\n'
    /// ... )
    /// >>> os.environ["SITELINE_CONFIG"] = "plants.toml"
    /// >>> siteline.Client.from_profile("plant-a").subject
    /// 'subject-from-enrollment'
    /// >>> del os.environ["SITELINE_CONFIG"]
    #[classmethod]
    #[pyo3(signature = (name, **options), text_signature = "(name, **options)")]
    fn from_profile<'py>(
        cls: &Bound<'py, PyType>,
        name: &str,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        from_outside(cls, options, |around, given| Settings::from_profile(name, around, given))
    }

    /// The address of the service.
    #[getter]
    fn base_url(&self) -> &str {
        self.client.base_url().as_str()
    }

    /// The credential subject.
    #[getter]
    fn subject(&self) -> String {
        self.client.subject()
    }

    /// The daily request allowance as its ledger knows it: :class:`Allowance`.
    #[getter]
    fn allowance(&self, py: Python<'_>) -> PyResult<PyAllowance> {
        let state = detached(py, || self.client.allowance())?;
        state.map(PyAllowance).map_err(|error| raise(py, &error))
    }

    /// Service clock minus this machine's, in seconds; ``None`` until a reply showed it.
    #[getter]
    fn clock_skew(&self) -> Option<f64> {
        self.client.time().skew().map(|skew| skew.as_secs_f64())
    }

    /// Ask what may be read (§4.2): a :class:`Discovery`, the body as it came.
    fn discover<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let client = self.client.clone();
        guarded(|| discovery(py, block_on(py, async move { client.discover(None).await })?))
    }

    /// As ``discover()``, an awaitable of the running asyncio loop.
    fn _discover<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let client = self.client.clone();
        spawn(py, async move { client.discover(None).await }, |py, body| {
            discovery(py, body).map(Bound::unbind)
        })
    }

    /// A lazy :class:`Scan` over the aggregate data (§4.3). Costs no request.
    ///
    /// - ``site``, ``line``: filters ``siteId`` and ``lineId``: text, or a whole number
    /// - ``start``, ``end``: the range, ``from`` and ``to``: aware datetimes, pandas timestamps or
    ///   ISO text with a zone, whole seconds. Without ``end`` it is now, by the service's time once
    ///   known, less the settle lag, floored to the bucket, fixed here and now
    /// - ``interval``: the bucket width: seconds, a ``timedelta`` or ``"1m"``
    /// - ``page_size``: items a page
    /// - ``filters``: further parameters by name; a list repeats the parameter
    /// - ``lag``: pull an ``end`` that lies ahead back to now less this
    /// - ``shape``: a :class:`Shape`, where you know what the document does not show
    /// - ``extra_columns``: members of points or series to keep, as JSON text
    /// - ``max_pages``: raise after so many pages of one read, never stop quietly
    /// - ``deadline``: bounds one whole read, waits and token exchange included
    /// - ``keep_raw``: keep each page's body in ``page.raw``
    /// - ``progress``: ``True`` for a bar (tqdm's where it is installed) in terminals and notebooks,
    ///   or a callable that is given a :class:`Progress` after each page
    ///
    /// What is not set is not sent, ``end`` excepted. A wrong argument is a :class:`QueryError`.
    ///
    /// >>> scan = client.data(site="S1", start="2026-11-01T00:00Z", end="2026-11-02T00:00Z",
    /// ...                    interval="1h", filters={"machineId": ("M1", "M2")})
    /// >>> scan.query.interval_seconds, scan.query.filters
    /// (3600, {'machineId': ('M1', 'M2')})
    #[pyo3(signature = (*, site=None, line=None, start=None, end=None, interval=None,
        page_size=None, filters=None, lag=None, shape=None, extra_columns=None, max_pages=None,
        deadline=None, keep_raw=false, progress=None),
        text_signature = "($self, *, site=None, line=None, start=None, end=None, interval=None, \
        page_size=None, filters=None, lag=None, shape=None, extra_columns=(), max_pages=None, \
        deadline=None, keep_raw=False, progress=None)")]
    #[expect(clippy::too_many_arguments, reason = "each is a keyword of the Python method")]
    fn data(
        slf: &Bound<'_, Self>,
        site: Option<&Bound<'_, PyAny>>,
        line: Option<&Bound<'_, PyAny>>,
        start: Option<&Bound<'_, PyAny>>,
        end: Option<&Bound<'_, PyAny>>,
        interval: Option<&Bound<'_, PyAny>>,
        page_size: Option<&Bound<'_, PyAny>>,
        filters: Option<&Bound<'_, PyAny>>,
        lag: Option<&Bound<'_, PyAny>>,
        shape: Option<&PyShape>,
        extra_columns: Option<&Bound<'_, PyAny>>,
        max_pages: Option<&Bound<'_, PyAny>>,
        deadline: Option<&Bound<'_, PyAny>>,
        keep_raw: bool,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyScan> {
        let arguments = Arguments { site, line, start, end, interval, page_size, filters };
        let recipe = Recipe { lag, shape, extra_columns, max_pages, deadline, keep_raw, progress };
        guarded(|| recipe.scan(slf, arguments))
    }

    /// Bring feeds up to date in a store: the fresh edge, what has become due, what was never read.
    ///
    /// A page and its bookmark go down in one transaction: killed at any moment, the next run goes on
    /// (§4.5.2). Where the allowance is spent it stops and returns, ``complete`` False.
    /// - ``feeds``: a :class:`Feed` or a list of them, planned together
    /// - ``store``: a :class:`Store`, or an object of yours: :class:`StoreTarget`
    /// - ``until``: read no bucket that begins here or later; ``now``: plan as if it were then
    /// - ``reread``: a range ``(start, end)``, or a list of them, to read again whatever is known; what
    ///   lies before a feed's ``since`` or within its ``settle_lag`` of now is left out
    /// - ``shape``, ``progress``: as of :meth:`data`; ``deadline`` bounds the whole run
    ///
    /// Gives a :class:`SyncReport`. Raises :class:`StoreBusy`, :class:`FeedChanged`, those of a read and
    /// of the store; what is wrong with one range alone is raised when all else has been read.
    /// Interrupted or failed, all that was committed stays.
    ///
    /// >>> feed = siteline.Feed("line-2", site="S1", line="L2", interval="1h",
    /// ...                      since="2026-11-15T00:00Z")
    /// >>> client.sync(feed, siteline.Store("plant.siteline")).complete
    /// True
    #[pyo3(signature = (feeds, store, **options), text_signature = "($self, feeds, store, *, until=None, \
        now=None, reread=None, shape=None, progress=None, deadline=None)")]
    fn sync<'py>(
        &self,
        py: Python<'py>,
        feeds: Bound<'py, PyAny>,
        store: Bound<'py, PyAny>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        sync(py, Asked::with(feeds, store, options)?.order(py, &self.client)?)
    }

    /// As ``sync()``, an awaitable of the running asyncio loop: a run.
    fn _begin<'py>(
        &self,
        feeds: Bound<'py, PyAny>,
        store: Bound<'py, PyAny>,
        options: &Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = options.py();
        begin(py, Asked::with(feeds, store, Some(options))?.order(py, &self.client)?)
    }

    /// Read several scans of this client side by side: a :class:`Gathered`.
    ///
    /// Under one token, one allowance and one pool of connections, at most ``concurrency`` at a time,
    /// begun in the order asked. What a scan has read already costs nothing; what is read here it
    /// remembers, as from its own ``collect()``. The deadline of each counts from when it is begun.
    ///
    /// The first error cancels the rest (of an allowance that is used up, it waits for what is paid)
    /// and says how to go on: :class:`SitelineError`. Interrupted, gather the same scans again.
    ///
    /// ``scans=`` that is empty, names a scan twice or one of another client is a
    /// :class:`QueryError`. No ``progress=`` may read one of the other scans.
    ///
    /// >>> days = client.data(site="S1", start="2026-11-01T00:00Z", end="2026-11-08T00:00Z",
    /// ...                    interval="1h").split("1d")
    /// >>> client.gather(days)
    /// <Gathered 7 tables, 2007 points, 7 pages>
    #[pyo3(signature = (scans, *, concurrency=None), text_signature = "($self, scans, *, concurrency=8)")]
    fn gather<'py>(
        &self,
        scans: &Bound<'py, PyAny>,
        concurrency: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        gather(self, scans, concurrency)
    }

    /// As ``gather()``, for asyncio.
    fn _gathering(
        &self,
        scans: &Bound<'_, PyAny>,
        concurrency: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyGathering> {
        PyGathering::begun(self, scans, concurrency)
    }

    /// What the next sync, or a scan, would read and cost: a :class:`Plan`. Costs no request.
    ///
    /// - ``feeds``: as of :meth:`sync`, with the ``store``; or a :class:`Scan`, or a list of them:
    ///   their pages are known where this client has read a scan or feed that asks the same of
    ///   another range, or a feed of the ``store`` does. What a scan remembers costs nothing
    /// - ``until``, ``now``, ``reread``: as of :meth:`sync`; of feeds alone
    ///
    /// Raises :class:`QueryError`, and of feeds :class:`FeedChanged` and those of the store.
    #[pyo3(signature = (feeds, store=None, **options),
        text_signature = "($self, feeds, store=None, *, until=None, now=None, reread=None)")]
    fn plan<'py>(
        &self,
        py: Python<'py>,
        feeds: &Bound<'py, PyAny>,
        store: Option<&Bound<'py, PyAny>>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        Considered::with(feeds, store, options)?.plan(py, &self.client)
    }

    /// Close: later calls, and calls that wait in other threads, raise :class:`ClosedError`.
    fn close(&self) {
        self.client.close();
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyAny>) {
        self.client.close();
    }

    fn __getnewargs_ex__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
        let keywords = keywords(py, self.client.settings())?;
        keywords.set_item("credential", &self.credential)?;
        if let Some(path) = &self.ledger {
            keywords.set_item("ledger", path.as_os_str())?;
        }
        Ok((PyTuple::new(py, [self.client.base_url().as_str()])?, keywords))
    }

    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__(slf: Py<Self>, _memo: Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    fn __repr__(&self) -> String {
        let closed = if self.client.is_closed() { ", closed" } else { "" };
        let (address, subject) = (self.client.base_url().as_str(), self.client.subject());
        format!("<Client {address} subject={subject:?}{closed}>")
    }

    /// What notebooks show.
    #[pyo3(name = "_repr_html_")]
    fn repr_html<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        html(slf.as_any(), "client")
    }

    /// Whether the client was closed.
    fn _is_closed(&self) -> bool {
        self.client.is_closed()
    }
}
