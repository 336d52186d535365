//! `siteline.Client`.

pub(crate) mod agent;
pub(crate) mod bookmark;
mod catalogue;
pub(crate) mod difference;
pub(crate) mod failure;
pub(crate) mod gather;
pub(crate) mod once;
pub(crate) mod own_files;
pub(crate) mod page;
mod page_reader;
mod profile_file;
pub(crate) mod progress;
pub(crate) mod query;
mod recipe;
pub(crate) mod scan;
mod settings;
pub(crate) mod shape;

use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple, PyType};

use crate::auth::authentication;
use crate::bridge::errors::IntoPyErr as _;
use crate::bridge::errors::OrRaise as _;
use crate::bridge::logging::LogBuffer;
use crate::bridge::modules::import_for_clients;
use crate::bridge::notes::ClientNotes;
use crate::bridge::process::{Inside, detached, guarded};
use crate::bridge::runtime::{block_on, spawn, spawn_task, step};
use crate::client::agent::{FoundAgent, refuse_settings};
use crate::client::settings::{choose_ledger, from_outside, named_ledger, settings_with};
use crate::convert::clock::GivenClock;
use crate::convert::patching::{Replaced, methods_can_be_replaced};
use crate::convert::state::{copies_are_itself, record};
use crate::convert::values::{Text, discovery, html};
use siteline_base::lock::Mutex;
use siteline_core::auth::Authentication;
use siteline_core::client::Client;
use siteline_core::error::{Error, Kind};
use siteline_core::http::BaseUrl;
use siteline_core::settings::{Environment, Settings};

const CREDENTIAL_BY_NAME: &str = "Client() takes its credential by name: Client(base_url, \
    credential=siteline.Credential(subject, \"key.pem\")).";

/// The Customer Data Service, for one integration (§1).
///
/// Signs assertions, keeps one access token for the whole process, counts requests, retries transient
/// failures and reads pages to their end. Safe to share between threads. Making one sends no request.
///
/// - ``base_url``: such as ``"https://customer.example.com"``
/// - ``credential``: a :class:`Credential`, or the client certificate of a platform-managed integration,
///   a :class:`MutualTls`; ``None`` for a client of an agent
/// - ``scopes``: the scopes of the token (§5.5)
/// - ``daily_allowance``: requests allowed per day; no more are sent (§8). ``None`` leaves the limit to
///   the service
/// - ``allowance_resets``: when the service's day begins: ``"06:00Z"``, ``"08:00+02:00"`` or an aware
///   ``datetime.time``; ``None`` is midnight UTC. A long ``Retry-After`` that shows another time wins
/// - ``ledger``: the file in which all processes that name it count requests, or ``"memory"``; ``None``
///   is explained below
/// - ``agent``: the address of an :class:`Agent`, which has the credential and the count in the place of
///   this client; ``""`` is none, and ``None`` is explained below
/// - ``settle_lag``: a query without ``end`` ends this long before now (§4.5)
/// - ``max_retry_after``: a longer ``Retry-After`` raises at once
/// - ``tries``: the number of attempts of one page, discovery or token request. Retries that fail also use
///   up a quota of the client: after about ten of them, one a minute is left, and the error says so
/// - ``connect_timeout``, ``response_timeout``, ``idle_timeout``: limits of one attempt. An attempt of a
///   token request ends after 15 seconds, all of them after 60, unless ``response_timeout`` is longer
/// - ``max_connections``: the most data and discovery requests that are under way at once, and so the most
///   connections; further ones wait, those of other processes are not counted
/// - ``max_body_bytes``: the largest decoded body: 64 MiB
/// - ``application``: your name, after ``siteline/VERSION`` in ``User-Agent``; ``None`` adds none
/// - ``allow_http``: allow plain HTTP to hosts other than loopback
/// - ``ca_bundle``: the only certificates to trust, a path or PEM ``bytes``; ``None`` is those of
///   ``SSL_CERT_FILE`` and ``SSL_CERT_DIR``, of the machine's store, or of the package certifi
/// - ``proxy``: ``None`` is that of ``HTTPS_PROXY``, ``HTTP_PROXY`` or ``ALL_PROXY``, unless
///   ``NO_PROXY`` names the host; never used for loopback
/// - ``clock``: a :class:`Clock`, for tests; ``None`` is that of the sandbox at this ``base_url``, if
///   ``SITELINE_SANDBOX_CLOCK`` names one (:meth:`Sandbox.env`), else the machine's
/// - ``on_request``: a callable that gets a :class:`RequestEvent` of each request that has ended; ``None``
///   tells nobody
///
/// Durations are seconds, a ``timedelta`` or text such as ``"5m"``. ``None`` is the default everywhere. A
/// wrong setting is a :class:`ConfigError`, before any request.
///
/// Each request is counted in a ledger before it is sent: a small file for each ``base_url`` and
/// subject, shared by all clients, threads and processes. The count is exact; a process that is killed
/// may count one request too many. The ledger also has the count of token requests and the pauses that
/// the service demanded (§5.4), but no token. By default it is in the folder ``siteline`` of
/// ``$XDG_STATE_HOME``, else of ``~/.local/state`` (on macOS and Windows, not tested, in the platform's
/// folder). If that file cannot be made, the client warns once and counts in memory; with a
/// ``daily_allowance``, which it could not keep, that is a :class:`ConfigError`, unless
/// ``ledger="memory"`` says that each client counts for itself. It also counts in memory, without a
/// warning, if the service is on loopback or a ``clock`` is given (with a sandbox's clock from the
/// variable, a ``ledger`` is a :class:`ConfigError`). If a file that was named cannot be made, that is
/// a :class:`StoreError`; a damaged one is :class:`StoreCorrupt`.
///
/// A new day begins by evidence of the service's time alone, never by a step of this machine's clock
/// or by one reply whose ``Date`` contradicts what is known.
///
/// Where ``SITELINE_AGENT`` names an agent (or ``agent`` does), it signs and counts for all clients of its
/// ``base_url`` and subject: no key and no ledger is read here, and settings that it decides are a
/// :class:`ConfigError`, as is a ``credential`` for the same. Clients of another ``base_url`` or subject
/// ignore the variable. Tokens are used until they expire; pages are counted in batches of up to 16, of
/// which a client that is closed gives back the rest. An agent that does not answer is
/// :class:`AgentUnavailable`: no client goes on by itself.
///
/// The pickle of a client has its settings, the path of its ledger, and a credential that says where
/// the key is; the process that loads it requests its own token. A pickle contains no secret: a client
/// that would need one raises ``TypeError`` that says what to do. It has no ``on_request``. Copies are
/// the client itself.
///
/// >>> client.scan(site="S1", interval="1m", start="2026-11-01T00:00:00Z").query.site
/// 'S1'
#[pyclass(frozen, weakref, name = "Client", module = "siteline")]
pub(crate) struct PyClient {
    pub(crate) client: Client,
    /// The current one.
    credential: Mutex<Py<PyAny>>,
    /// Whom its requests are told to.
    pub(crate) notes: Arc<ClientNotes>,
    /// The other keywords, in the form that is pickled.
    pickled: Py<PyDict>,
    /// The sandbox that handed it out, which serves as long as the client exists. It holds nothing that
    /// could hold the client: the garbage collector need not know of it.
    pub(crate) sandbox: PyOnceLock<Py<PyAny>>,
    replaced: Replaced,
}

copies_are_itself!(PyClient);

/// The agent of a client with this address, credential and keywords.
fn agent_for(
    py: Python<'_>,
    base_url: &str,
    credential: Option<&Authentication>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Option<FoundAgent>> {
    let option = |name| options.map_or(Ok(None), |options| options.get_item(name));
    let named = option("agent")?.filter(|given| !given.is_none());
    let named = named.map(|given| given.extract::<Text<'_>>().map(|text| text.0.to_owned()));
    let allow_http = option("allow_http")?.is_some_and(|given| given.is_truthy().unwrap_or(false));
    let base_url = BaseUrl::parse(base_url, allow_http).or_raise()?;
    let found = FoundAgent::find(py, named.transpose()?, Some(&base_url))?;
    let Some(agent) = found else { return Ok(None) };
    let agent = agent.for_client(&base_url, credential).or_raise()?;
    if let (Some(_), Some(options)) = (&agent, options) {
        refuse_settings(options)?;
    }
    Ok(agent)
}

/// Whom a client's requests are told to.
///
/// # Errors
/// `ConfigError` for anything but a plain callable.
fn client_notes(
    py: Python<'_>,
    on_request: Option<&Bound<'_, PyAny>>,
) -> PyResult<Arc<ClientNotes>> {
    let checked = on_request.map(|given| {
        py.import("siteline._records.requests")?
            .getattr("checked")?
            .call1((given,))
            .map(Bound::unbind)
    });
    Ok(ClientNotes::new(checked.transpose()?, LogBuffer::current_notes))
}

impl PyClient {
    /// The client of these arguments; one that `sends_once` is for a diagnosis.
    pub(super) fn made(
        py: Python<'_>,
        base_url: &str,
        credential: Option<Bound<'_, PyAny>>,
        clock: Option<GivenClock>,
        on_request: Option<&Bound<'_, PyAny>>,
        options: Option<&Bound<'_, PyDict>>,
        sends_once: bool,
    ) -> PyResult<Self> {
        // This runs Python code, to find certifi: the end of the process waits for it.
        let _inside = Inside::enter(py);
        import_for_clients(py)?;
        let credential = credential.filter(|given| !given.is_none());
        let given = credential.as_ref().map(authentication).transpose()?;
        let agent = agent_for(py, base_url, given.as_ref(), options)?;
        let authentication = match (&agent, given) {
            (Some(agent), _) => Authentication::Leased(agent.holder.subject.as_str().into()),
            (None, Some(given)) => given,
            (None, None) => return Err(PyTypeError::new_err(CREDENTIAL_BY_NAME)),
        };
        let (mut settings, pickled) = settings_with(py, base_url, authentication, options)?;
        if sends_once {
            settings.send_once();
        }
        settings.spawner = Arc::new(spawn_task);
        let notes = client_notes(py, on_request)?;
        settings.transport.observer = Some(Arc::clone(&notes) as _);
        match (clock, Environment::of_process().sandbox_clock()) {
            (Some(clock), _) => settings.clock = clock.0,
            (_, Some(name)) => {
                let (logs, ledger) = (LogBuffer::for_call(Arc::default()), named_ledger(&pickled)?);
                logs.run(|| settings.take_sandbox_clock(&name, ledger.as_deref())).or_raise()?;
                logs.flush(py)?;
            }
            _ => {}
        }
        match agent {
            Some(agent) => {
                let clock = settings.clock.clone();
                let link = step(py, || agent.link(clock))?;
                pickled.set_item("agent", link.address().to_string())?;
                settings.agent = Some(link);
                py.import("siteline._pools")?.call_method0("give_back_at_end")?;
            }
            None => choose_ledger(&mut settings, &pickled)?,
        }
        let client = guarded(|| Client::new(settings).or_raise())?;
        let credential = credential.map_or_else(|| py.None(), Bound::unbind);
        let (credential, pickled) = (Mutex::new(credential), pickled.unbind());
        let (sandbox, replaced) = (PyOnceLock::new(), Replaced::nothing());
        Ok(Self { client, credential, notes, pickled, sandbox, replaced })
    }
}

methods_can_be_replaced!(PyClient, replaced);

#[pymethods]
impl PyClient {
    #[new]
    #[pyo3(signature = (base_url, *surplus, credential=None, clock=None, on_request=None,
        **options), text_signature = "(base_url, \
        *, credential=None, scopes=('customer.discovery.read', 'customer.data.read'), \
        daily_allowance=None, allowance_resets=None, ledger=None, agent=None, settle_lag='5m', \
        max_retry_after='1m', tries=4, \
        connect_timeout='5s', response_timeout='30s', idle_timeout='15s', max_connections=64, \
        max_body_bytes=67108864, application=None, allow_http=False, ca_bundle=None, proxy=None, clock=None, \
        on_request=None)")]
    fn new(
        py: Python<'_>,
        base_url: Text<'_>,
        surplus: &Bound<'_, PyTuple>,
        credential: Option<Bound<'_, PyAny>>,
        clock: Option<GivenClock>,
        on_request: Option<&Bound<'_, PyAny>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        if !surplus.is_empty() {
            return Err(PyTypeError::new_err(CREDENTIAL_BY_NAME));
        }
        Self::made(py, base_url.0, credential, clock, on_request, options, false)
    }

    /// A client from the ``SITELINE_*`` environment variables, and from a profile for those not set.
    ///
    /// ``SITELINE_BASE_URL``, ``SITELINE_SUBJECT``, ``SITELINE_PRIVATE_KEY_FILE`` or
    /// ``SITELINE_PRIVATE_KEY`` (the key itself); with mutual TLS, in the place of the subject,
    /// ``SITELINE_CERTIFICATE_FILE`` (with its key in one of those two, or in the same file) and, if the
    /// service issues tokens for it, ``SITELINE_CLIENT_ID``. Optional are ``SITELINE_PASSPHRASE`` or
    /// ``SITELINE_PASSWORD_COMMAND`` (a command that prints it), ``SITELINE_SCOPES``,
    /// ``SITELINE_AUDIENCE``, ``SITELINE_DAILY_ALLOWANCE``, ``SITELINE_LEDGER`` (a path).
    /// ``SITELINE_PROFILE`` names the profile (``default``), ``SITELINE_CONFIG`` its file: see
    /// :meth:`from_profile`.
    ///
    /// Keywords are those of :class:`Client`. They override variables, which override the profile; the
    /// ``password_command`` of a profile is used only for the key of that profile. A
    /// :class:`ConfigError` lists the variables and the file that were read.
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
        from_outside(cls.as_any(), options, Settings::from_variables)
    }

    /// A client from a profile: one table of a TOML file.
    ///
    /// The file is that of ``SITELINE_CONFIG``, else ``siteline/config.toml`` in ``$XDG_CONFIG_HOME``,
    /// else in ``~/.config`` (on macOS and Windows, not tested, in the platform's folder). No other
    /// variable is read. Keywords are those of :class:`Client` and override the profile. Its members are
    /// the keywords of :class:`Client` except ``credential``, ``clock`` and ``on_request``, and ``base_url``,
    /// ``subject`` or ``certificate_file`` (with ``client_id``), ``private_key_file``,
    /// ``password_command``, ``kid``, ``strict``, and the settings of assertions. A path is relative
    /// to the file's folder, or begins with ``~/``. A passphrase is not allowed. A :class:`ConfigError`
    /// names the members that are unknown, wrong or missing, without their values.
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
    #[pyo3(signature = (name, **options))]
    fn from_profile<'py>(
        cls: &Bound<'py, PyType>,
        name: Text<'_>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        from_outside(cls.as_any(), options, |environment, given| {
            Settings::from_profile(name.0, environment, given)
        })
    }

    /// The address of the service.
    #[getter]
    fn base_url(&self) -> &str {
        self.client.base_url().as_str()
    }

    /// The credential subject, or that of the client certificate.
    #[getter]
    fn subject(&self) -> String {
        self.client.subject()
    }

    /// The daily request allowance, as the ledger counts it: an :class:`Allowance`.
    #[getter]
    fn allowance<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let state = detached(py, || self.client.allowance())?.or_raise()?;
        record(py, ("siteline._records.allowance", "Allowance"), &state, [])
    }

    /// The service's clock minus this machine's, in seconds; ``None`` until a reply shows it.
    #[getter]
    fn clock_skew(&self) -> Option<f64> {
        self.client.time().skew().map(|skew| skew.as_secs_f64())
    }

    /// Request the list of readable resources (§4.2): a :class:`Discovery`, the unchanged body.
    fn discover<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let client = self.client.clone();
        let asked = async move { client.discover(None).await };
        guarded(|| discovery(py, block_on(py, &Arc::default(), asked)?))
    }

    /// As ``discover()``, an awaitable of the running asyncio loop.
    fn _discover<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let client = self.client.clone();
        spawn(py, Arc::default(), async move { client.discover(None).await }, |py, body| {
            discovery(py, body).map(Bound::unbind)
        })
    }

    /// Sign with another credential of the same subject from the next token request on: for a key that
    /// is replaced while the program runs.
    ///
    /// The current access token is used until it expires. The next one is requested with the new key,
    /// which must be enrolled by then. A pickle of the client has the new credential. Another subject
    /// is a :class:`ConfigError`, because it needs another client.
    ///
    /// >>> key = siteline.PrivateKey.generate(2048)
    /// >>> sandbox.replace_key(client.subject, key.public_jwk)
    /// >>> client.replace_credential(siteline.Credential(client.subject, key))
    fn replace_credential(&self, credential: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = credential.py();
        let new = authentication(credential)?;
        if new.subject() != self.client.subject() {
            let message = "replace_credential() keeps the subject; this credential is for another.";
            let hint =
                "Make another client with it: each subject has its own ledger and bookmarks.";
            return Err(Error::new(Kind::ConfigError, message).with_hint(hint).into_py_err());
        }
        let given = credential.clone().unbind();
        // The old one is dropped after the lock is released, because that may run Python code.
        let _old = detached(py, || {
            let mut known = self.credential.lock();
            self.client.replace_credential(new)?;
            Ok::<_, Error>(std::mem::replace(&mut *known, given))
        })?
        .or_raise()?;
        Ok(())
    }

    /// Close the client: later calls, and calls that wait in other threads, raise :class:`ClosedError`.
    /// Requests that ``on_request`` was not told of yet are told now.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || self.client.close())?;
        guarded(|| self.notes.tell(py, None))
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyAny>) -> PyResult<()> {
        self.close(py)
    }

    fn __getnewargs_ex__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
        let why_not = self.client.settings().why_not_pickled();
        why_not.map_or(Ok(()), |why_not| Err(PyTypeError::new_err(why_not)))?;
        let keywords = self.pickled.bind(py).copy()?;
        let credential = self.credential.lock().clone_ref(py);
        if !credential.is_none(py) {
            keywords.set_item("credential", credential)?;
        }
        Ok((PyTuple::new(py, [self.client.base_url().as_str()])?, keywords))
    }

    fn __repr__(&self) -> String {
        let closed = if self.client.is_closed() { ", closed" } else { "" };
        let (address, subject) = (self.client.base_url().as_str(), self.client.subject());
        format!("<Client {address} subject={subject:?}{closed}>")
    }

    /// What notebooks show.
    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        html(slf.as_any(), "client")
    }

    /// Traces and counts its requests: `siteline.otel`. ``None`` ends that.
    fn _instrument(&self, instrument: Option<Py<PyAny>>) {
        self.notes.set_instrument(instrument);
    }

    /// For the garbage collector: ``on_request=`` may be a method of an object that keeps the client.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(self.notes.on_request())
    }

    /// Whether the client was closed.
    fn _is_closed(&self) -> bool {
        self.client.is_closed()
    }
}
