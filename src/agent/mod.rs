//! The handle of `siteline.Agent`.

use zeroize::Zeroizing;

use crate::bridge::runtime::block_on;
use crate::client::PyClient;
use crate::prelude::*;
use siteline_core::agent::{Agent, AgentOptions, Listen, Place, TlsListen, forbid_core_dumps};
use siteline_core::settings::{AGENT_SECRET, Environment};

#[pyclass(frozen, name = "AgentHandle", module = "siteline._core")]
pub(crate) struct PyAgent {
    /// Not locked while the agent replies or ends, because a waiting thread may hold the interpreter.
    agent: Mutex<Option<Arc<Agent>>>,
    #[pyo3(get)]
    address: String,
    secret: Option<Zeroizing<String>>,
    logs: Arc<Events>,
}

/// The PEM files of certificate, key, and authority of the clients.
type TlsFiles = [Option<PathBuf>; 3];

#[pymethods]
impl PyAgent {
    #[new]
    fn new(
        py: Python<'_>,
        client: &Bound<'_, PyClient>,
        listen: &str,
        allow_uids: Vec<u32>,
        tls_files: TlsFiles,
        names: Vec<String>,
    ) -> PyResult<Self> {
        let listen = place(listen, tls_files, names).or_raise()?;
        let secret = Environment::of_process().get(AGENT_SECRET).map(Zeroizing::new);
        let logs = Arc::<Events>::default();
        let origin = logs.begin(py, None)?;
        let options = AgentOptions {
            listen,
            allowed_users: allow_uids,
            secret,
            take_step: Arc::new(move |step| without_fork(|| Arc::clone(&origin).run(step))),
        };
        let client = client.get().client.clone();
        let agent = detached(py, || Agent::start(client.lessor()?, options))?.or_raise()?;
        let address = agent.address().to_string();
        let secret = agent.secret().map(|secret| Zeroizing::new(secret.to_owned()));
        Ok(Self { agent: Mutex::new(Some(Arc::new(agent))), address, secret, logs })
    }

    fn is_closed(&self) -> bool {
        self.agent.lock().is_none()
    }

    /// For clients that have no certificate.
    fn secret(&self) -> Option<&str> {
        self.secret.as_ref().map(|secret| secret.as_str())
    }

    fn state<'py>(&self, py: Python<'py>) -> PyResult<Object<'py>> {
        let closed = || Error::new(Kind::ClosedError, "the agent was closed");
        let state =
            step(py, || self.agent.lock().clone().ok_or_else(closed)?.state())?.or_raise()?;
        self.logs.handle(py)?;
        dict(py, &state)
    }

    /// Waits, and emits the log records of the agent.
    fn wait(&self, py: Python<'_>, seconds: f64) -> PyResult<()> {
        let wait = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        let sleep = Box::pin(async move { Clock::system().sleep(wait).await });
        guarded(|| block_on(py, &self.logs, sleep))
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let agent = step(py, || self.agent.lock().take())?;
        detached(py, || drop(agent))?;
        self.logs.handle(py)
    }
}

impl Drop for PyAgent {
    fn drop(&mut self) {
        // The agent cannot run while another thread forks, and that thread may need the interpreter.
        let agent = self.agent.lock().take();
        attached(|py| detached(py, || drop(agent)));
    }
}

fn place(listen: &str, tls_files: TlsFiles, names: Vec<String>) -> Result<Listen, Error> {
    if listen == "systemd" {
        return Ok(Listen::Inherited);
    }
    match (Place::parse(listen)?, tls_files) {
        (Place::Unix(path), _) => Ok(Listen::Unix(path)),
        (Place::Tls { host, port }, [Some(certificate), Some(key), client_authority]) => {
            let name = names.into_iter().next();
            Ok(Listen::Tls(TlsListen { host, port, certificate, key, client_authority, name }))
        }
        (Place::Tls { .. }, _) => {
            let text = "An agent at https:// needs tls_certificate= and tls_key=.";
            let hint = "The certificate is for the name in listen=, with its chain, in PEM form.";
            Err(Error::new(Kind::ConfigError, text).with_hint(hint))
        }
    }
}

#[pyfunction]
pub(crate) fn _forbid_core_dumps() {
    // Without core dumps, only the superuser can read this file later.
    let _read = Clock::system().moment();
    forbid_core_dumps();
}
