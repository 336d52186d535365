//! `siteline.Agent`: a token and an allowance for many processes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use zeroize::Zeroizing;

use crate::bridge::errors::IntoPyErr as _;
use crate::bridge::errors::OrRaise as _;
use crate::bridge::logging::LogBuffer;
use crate::bridge::process::{attached, detached, guarded, without_fork};
use crate::bridge::runtime::{block_on, step};
use crate::client::ClientArg;
use crate::convert::patching::methods_can_be_replaced;
use crate::convert::state::dict;
use siteline_base::clock::Clock;
use siteline_base::lock::Mutex;
use siteline_core::agent::{
    Agent, AgentOptions, Listen, Place, TlsListen, forbid_core_dumps, give_all_back,
};
use siteline_core::client::ClientLessor;
use siteline_core::error::{Error, Kind, escaped};
use siteline_core::settings::{AGENT, AGENT_SECRET, Environment};

/// The token and the allowance of one client, for many processes (§5.4).
///
/// Token requests are limited for the whole integration, and extra processes give no extra allowance.
/// An agent is a thread of one process that has the key and the ledger; other processes of this machine,
/// or of others, ask it. They see access tokens, never the key. ``siteline agent`` is the same as a
/// command.
///
/// - ``client``: a :class:`Client` with a :class:`Credential`; its settings are the agent's
/// - ``listen``: ``"unix:PATH"``, a socket for this machine, made with mode 0600 in a folder with mode
///   0700; ``"https://HOST:PORT"`` for others, port 0 for any; ``"systemd"``, the socket that systemd
///   opened; ``None`` is a new socket of this process
/// - ``allow_uids``: the numbers of other users who may use the socket
/// - ``tls_certificate``, ``tls_key``: the agent's certificate with its chain, and its key (PEM files)
/// - ``client_authority``: the authority of its clients' certificates (a PEM file); without it, clients
///   tell a secret, which :meth:`env` has
/// - ``names``: names by which clients call it, where ``HOST`` is none of them
///
/// The environment of :meth:`env` makes :class:`Client` in another process use it. Closing it removes its
/// socket; clients then raise :class:`AgentUnavailable`. Pages are counted before they are handed out: a
/// process that is killed counts too many, never too few. A wrong setting is a :class:`ConfigError`.
///
/// >>> with siteline.Agent(client) as agent:
/// ...     with siteline.Client(client.base_url, agent=agent.address) as other:
/// ...         len(other.scan(site="S1", start="2026-11-01T00:00Z", end="2026-11-01T01:00Z",
/// ...                        interval="1h").collect()) > 0
/// ...     agent.state["allowance"]["used"]
/// True
/// 1
#[pyclass(dict, frozen, weakref, name = "Agent", module = "siteline")]
pub(crate) struct PyAgent {
    /// Never locked while it answers or ends, because whoever waits for the lock may hold the interpreter.
    agent: Mutex<Option<Arc<Agent>>>,
    address: String,
    secret: Option<Zeroizing<String>>,
    logs: Arc<LogBuffer>,
}

methods_can_be_replaced!(PyAgent);

#[pymethods]
impl PyAgent {
    #[new]
    #[pyo3(signature = (client, *, listen=None, allow_uids=Vec::new(), tls_certificate=None, tls_key=None,
        client_authority=None, names=Vec::new()))]
    #[pyo3(text_signature = "(client, *, listen=None, allow_uids=(), tls_certificate=None, \
        tls_key=None, client_authority=None, names=())")]
    #[expect(clippy::too_many_arguments, reason = "they are keywords of Python")]
    fn new(
        py: Python<'_>,
        client: ClientArg<'_>,
        listen: Option<&str>,
        allow_uids: Vec<u32>,
        tls_certificate: Option<PathBuf>,
        tls_key: Option<PathBuf>,
        client_authority: Option<PathBuf>,
        names: Vec<String>,
    ) -> PyResult<Self> {
        let listen = match listen {
            None => Listen::Unix(own_socket()),
            Some("systemd") => Listen::Inherited,
            Some(text) => match (Place::parse(text).or_raise()?, tls_certificate, tls_key) {
                (Place::Unix(path), ..) => Listen::Unix(path),
                (Place::Tls { host, port }, Some(certificate), Some(key)) => {
                    Listen::Tls(TlsListen { host, port, certificate, key, client_authority, names })
                }
                (Place::Tls { .. }, ..) => return Err(without_certificate().into_py_err()),
            },
        };
        let secret = Environment::of_process().agent(AGENT_SECRET).map(Zeroizing::new);
        let logs = Arc::<LogBuffer>::default();
        logs.begin(py)?;
        let records = Arc::clone(&logs);
        let options = AgentOptions {
            listen,
            allowed_users: allow_uids,
            secret,
            take_step: Arc::new(move |step| without_fork(|| records.run(step))),
        };
        let client = client.into_core();
        let agent = detached(py, || Agent::start(Box::new(ClientLessor::new(client)?), options))?
            .or_raise()?;
        let address = agent.address().to_string();
        let secret = agent.secret().map(|secret| Zeroizing::new(secret.to_owned()));
        Ok(Self { agent: Mutex::new(Some(Arc::new(agent))), address, secret, logs })
    }

    /// The value of ``SITELINE_AGENT`` and of ``agent=``: where it listens, and whose tokens it has.
    #[getter]
    fn address(&self) -> &str {
        &self.address
    }

    /// The variables for a process that uses the agent: ``SITELINE_AGENT``, and where clients tell a secret,
    /// ``SITELINE_AGENT_SECRET``.
    fn env<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let variables = PyDict::new(py);
        variables.set_item(AGENT, &self.address)?;
        if let Some(secret) = &self.secret {
            variables.set_item(AGENT_SECRET, secret.as_str())?;
        }
        Ok(variables)
    }

    /// What it tells of itself: ``base_url``, ``subject``, ``scopes``, the ``allowance`` as it counts,
    /// ``lent`` (pages of which it has not heard), ``leases``, ``version``.
    #[getter]
    fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let closed = || Error::new(Kind::ClosedError, "the agent was closed");
        let state =
            step(py, || self.agent.lock().clone().ok_or_else(closed)?.state())?.or_raise()?;
        self.logs.flush(py)?;
        dict(py, &state)
    }

    /// Emits what the agent logs, for so many seconds.
    fn _wait(&self, py: Python<'_>, seconds: f64) -> PyResult<()> {
        let wait = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        guarded(|| block_on(py, &self.logs, async move { Clock::system().sleep(wait).await }))
    }

    /// End it and remove its socket. Closing again does nothing.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let agent = step(py, || self.agent.lock().take())?;
        detached(py, || drop(agent))?;
        self.logs.flush(py)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py)
    }

    fn __repr__(&self) -> String {
        let closed = if self.agent.lock().is_none() { ", closed" } else { "" };
        format!("<Agent {}{closed}>", escaped(&self.address))
    }
}

impl Drop for PyAgent {
    fn drop(&mut self) {
        // While a thread is about to fork, the agent cannot run, and that thread may need the
        // interpreter: so it is released until the agent has ended.
        let agent = self.agent.lock().take();
        attached(|py| detached(py, || drop(agent)));
    }
}

/// No core dump of this process is written from now on, where the system can forbid it.
#[pyfunction]
#[pyo3(name = "_forbid_core_dumps")]
fn forbid() {
    // What is read of this process later would be the superuser's.
    let _read = Clock::system().moment();
    forbid_core_dumps();
}

/// Gives back the pages that clients of this process were lent and did not use.
#[pyfunction]
#[pyo3(name = "_give_all_back")]
fn give_back(py: Python<'_>) -> PyResult<()> {
    detached(py, give_all_back)
}

/// Adds functions past `add_function`, which would list them in `__all__`.
pub(crate) fn export(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let any = module.as_any();
    any.setattr("_forbid_core_dumps", wrap_pyfunction!(forbid, module)?)?;
    any.setattr("_give_all_back", wrap_pyfunction!(give_back, module)?)
}

/// A socket that no other process has, in the user's own folder of such files.
fn own_socket() -> PathBuf {
    let folder = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let folder = folder.filter(|folder| folder.is_absolute() && folder.is_dir());
    let name = &uuid::Uuid::new_v4().simple().to_string()[..16];
    let folder = folder.unwrap_or_else(std::env::temp_dir);
    Path::new(&folder).join(format!("siteline-{name}")).join("agent.sock")
}

fn without_certificate() -> Error {
    Error::new(Kind::ConfigError, "An agent at https:// needs tls_certificate= and tls_key=.")
        .with_hint("The certificate is for the name in listen=, with its chain, in PEM form.")
}
