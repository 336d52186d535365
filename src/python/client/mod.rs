//! `siteline.Client`.

pub(crate) mod allowance;
pub(crate) mod bookmark;
pub(crate) mod failure;
pub(crate) mod gather;
mod ledger;
pub(crate) mod page;
mod page_reader;
pub(crate) mod progress;
pub(crate) mod query;
mod recipe;
pub(crate) mod scan;
mod settings;
pub(crate) mod shape;

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};

use crate::client::Client;
use crate::clock::Clock;
use crate::error::{Error, Kind};
use crate::lock::Mutex;
use crate::python::auth::credential::PyCredential;
use crate::python::bridge::errors::raise;
use crate::python::bridge::logging;
use crate::python::bridge::process::{Inside, detached, guarded};
use crate::python::bridge::runtime::{block_on, spawn, spawn_task};
use crate::python::client::allowance::PyAllowance;
use crate::python::client::ledger::choose;
use crate::python::client::settings::{check_pickled, from_outside, settings_with};
use crate::python::convert::clock::PyClock;
use crate::python::convert::state::copies_are_itself;
use crate::python::convert::values::{discovery, html};
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
///   aware ``datetime.time``; midnight UTC by default. A long ``Retry-After`` shows when it is, and wins
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
/// (§5.4); never a token. It lies in the folder ``siteline`` in ``$XDG_STATE_HOME``, else
/// ``~/.local/state`` (on macOS and Windows, which were not tried, in their usual places). Where no file
/// can be made, the client counts in memory, with one warning; so it does, without one, where the service is
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
    /// The one that signs now.
    credential: Mutex<Py<PyCredential>>,
    /// The other keywords, as they are pickled.
    pickled: Py<PyDict>,
}

copies_are_itself!(PyClient);

#[pymethods]
impl PyClient {
    #[new]
    #[pyo3(signature = (base_url, *, credential, clock=None, **options), text_signature = "(base_url, \
        *, credential, scopes=None, audience=None, daily_allowance=None, allowance_resets=None, \
        ledger=None, settle_lag=None, assertion_lifetime=None, clock_tolerance=None, typ=False, \
        max_retry_after=None, tries=None, connect_timeout=None, response_timeout=None, \
        idle_timeout=None, max_body_bytes=None, application=None, allow_http=False, \
        ca_bundle=None, proxy=None, clock=None)")]
    fn new(
        py: Python<'_>,
        base_url: &str,
        credential: Bound<'_, PyCredential>,
        clock: Option<&PyClock>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        // Python code runs here, that of certifi: the end of the process waits for it.
        let _inside = Inside::enter(py);
        logging::import(py)?;
        let signing = credential.get().0.clone();
        let (mut settings, pickled) = settings_with(py, base_url, signing, options)?;
        settings.spawner = Arc::new(spawn_task);
        settings.clock = clock.map_or_else(Clock::system, |clock| clock.0.clone());
        settings.ledger = guarded(|| choose(&pickled, &settings))?;
        let client = guarded(|| Client::new(settings).map_err(|error| raise(py, &error)))?;
        Ok(Self { client, credential: Mutex::new(credential.unbind()), pickled: pickled.unbind() })
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
    /// The file is that of ``SITELINE_CONFIG``, else ``siteline/config.toml`` in ``$XDG_CONFIG_HOME``,
    /// else ``~/.config`` (on macOS and Windows, which were not tried, in their usual places). No other
    /// variable is looked at; keywords are those of :class:`Client` and win. Members are the keywords of
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
        guarded(|| {
            discovery(
                py,
                block_on(py, &Arc::default(), async move { client.discover(None).await })?,
            )
        })
    }

    /// As ``discover()``, an awaitable of the running asyncio loop.
    fn _discover<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let client = self.client.clone();
        spawn(py, Arc::default(), async move { client.discover(None).await }, |py, body| {
            discovery(py, body).map(Bound::unbind)
        })
    }

    /// Sign with another credential of the same subject from the next token request on, without a
    /// pause: for a key that is replaced while the program runs.
    ///
    /// The access token is used to its end; the next one is asked for with the new key, which must be
    /// enrolled by then. A pickle of the client carries the new credential. For another subject make
    /// another client: this raises :class:`ConfigError`.
    ///
    /// >>> key = siteline.PrivateKey.generate(2048)
    /// >>> sandbox.replace_key(client.subject, key.public_jwk)
    /// >>> client.replace_credential(siteline.Credential(client.subject, key))
    fn replace_credential(&self, credential: &Bound<'_, PyCredential>) -> PyResult<()> {
        let py = credential.py();
        let new = credential.get().0.clone();
        if new.subject() != self.client.subject() {
            let message = "replace_credential() keeps the subject; this credential is for another.";
            let error = Error::new(Kind::ConfigError, message)
                .with_hint("Make a client with it: its ledger and its bookmarks are its own.");
            return Err(raise(py, &error));
        }
        let given = credential.clone().unbind();
        // The old one is dropped after the lock, for that may run Python code.
        let _old = detached(py, || {
            let mut known = self.credential.lock();
            self.client.replace_credential(new);
            std::mem::replace(&mut *known, given)
        })?;
        Ok(())
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
        check_pickled(self.client.settings())?;
        let keywords = self.pickled.bind(py).copy()?;
        keywords.set_item("credential", self.credential.lock().clone_ref(py))?;
        Ok((PyTuple::new(py, [self.client.base_url().as_str()])?, keywords))
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
