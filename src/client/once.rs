//! A client that sends each request once, and what it can tell of its settings and of the way to the
//! service: for `siteline.doctor`, which is Python.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

use crate::bridge::errors::OrRaise as _;
use crate::bridge::errors::raise;
use crate::bridge::process::{detached, guarded};
use crate::bridge::runtime::block_on;
use crate::client::PyClient;
use crate::client::profile_file::ProfileFile;
use crate::client::settings::from_outside;
use crate::convert::clock::GivenClock;
use crate::convert::patching::Replaced;
use crate::convert::state::dict;
use crate::convert::values::Text;
use siteline_base::lock::Mutex;
use siteline_core::error::Error;
use siteline_core::settings::{Environment, Given, Settings};

/// The settings that a client of this profile has, or of the variables: `file` and `profile` that were
/// read, `subject`, and `settings` with the variable that set each, or ``None`` for the profile.
#[pyfunction]
#[pyo3(signature = (profile=None))]
pub(super) fn _sources<'py>(
    py: Python<'py>,
    profile: Option<Text<'_>>,
) -> PyResult<Bound<'py, PyDict>> {
    let name = profile.as_ref().map(|name| name.0);
    let settings = ProfileFile::new(py)
        .used(|environment| guarded(|| read(name, environment, Given::default()).or_raise()))??;
    let (file, name) = settings.profile.clone().unzip();
    let told = PyDict::new(py);
    told.set_item("file", file.map(PathBuf::into_os_string))?;
    told.set_item("profile", name)?;
    told.set_item("subject", settings.subject())?;
    told.set_item("settings", settings.sources)?;
    Ok(told)
}

fn read(
    profile: Option<&str>,
    environment: &Environment<'_>,
    given: Given,
) -> siteline_core::Result<Settings> {
    match profile {
        Some(name) => Settings::from_profile(name, environment, given),
        None => Settings::from_variables(environment, given),
    }
}

#[pymethods]
impl PyClient {
    /// As ``Client()``, a client that sends each request once.
    #[staticmethod]
    #[pyo3(signature = (base_url, *, credential=None, clock=None, **options))]
    fn _once(
        py: Python<'_>,
        base_url: Text<'_>,
        credential: Option<Bound<'_, PyAny>>,
        clock: Option<GivenClock>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        Self::made(py, base_url.0, credential, clock, None, options, true)
    }

    /// Such a client as ``from_profile()``, or without a name as ``from_env()``.
    #[staticmethod]
    #[pyo3(signature = (profile=None, **options))]
    fn _once_from<'py>(
        py: Python<'py>,
        profile: Option<Text<'_>>,
        options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let make = py.get_type::<Self>().getattr("_once")?;
        let name = profile.as_ref().map(|name| name.0);
        from_outside(&make, options, |environment, given| read(name, environment, given))
    }

    /// Such a client with the settings, the ledger and the tokens of this one.
    fn _sending_once(&self, py: Python<'_>) -> PyResult<Self> {
        Ok(Self {
            client: self.client.sending_once().or_raise()?,
            credential: Mutex::new(self.credential.lock().clone_ref(py)),
            notes: Arc::clone(&self.notes),
            pickled: self.pickled.clone_ref(py),
            sandbox: PyOnceLock::new(),
            replaced: Replaced::nothing(),
        })
    }

    /// Its :class:`Credential` or :class:`MutualTls`.
    #[getter]
    fn _credential(&self, py: Python<'_>) -> Py<PyAny> {
        self.credential.lock().clone_ref(py)
    }

    /// Its settings as far as they are no secret.
    fn _settings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let settings = self.client.settings();
        let told = PyDict::new(py);
        told.set_item("given", self.pickled.bind(py).keys())?;
        told.set_item("scopes", settings.scopes.iter().collect::<Vec<_>>())?;
        told.set_item("audience", self.client.audience())?;
        told.set_item("ledger", settings.ledger_file.clone().map(PathBuf::into_os_string))?;
        told.set_item("agent", self.pickled.bind(py).get_item("agent")?)?;
        told.set_item("now", self.client.time().clock().wall())?;
        Ok(told)
    }

    /// What the client's agent tells of itself, in the form of :attr:`Agent.state`.
    fn _agent_state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let agent = self.client.settings().agent.clone();
        let state = detached(py, || agent.map(|agent| agent.state()).transpose())?.or_raise()?;
        dict(py, &state)
    }

    /// The header and the claims of an assertion of ours, which is not sent; ``None`` for a certificate.
    fn _own_assertion<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let client = self.client.clone();
        let made = block_on(py, &Arc::default(), async move { client.own_assertion().await })?;
        dict(py, &made.or_raise()?)
    }

    /// What is known of the token, by one token request at most; ``None`` if none is needed.
    fn _token_once<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let client = self.client.clone();
        let asked = block_on(py, &Arc::default(), async move { client.token_once().await })?;
        dict(py, &asked.or_raise()?)
    }

    /// The seconds of the clocks' difference that its measurement may explain.
    fn _skew_error(&self) -> Option<f64> {
        self.client.time().measured().map(|skew| skew.error().as_secs_f64())
    }

    /// The proxy and the trusted certificates that requests use. Opens nothing.
    fn _planned_path<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        dict(py, &guarded(|| self.client.planned_path().or_raise())?)
    }

    /// How far the way to the service goes, and the exception of the step that failed.
    fn _walk_path<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, Option<Bound<'py, PyAny>>)> {
        let client = self.client.clone();
        let walk = async move { client.walk_path().await };
        let (path, error) = block_on(py, &Arc::default(), walk)?;
        let raised = |error: Error| raise(py, &error).into_value(py).into_bound(py).into_any();
        Ok((dict(py, &path)?, error.map(raised)))
    }

    /// Whether the file of the ledger is there; ``None`` if requests are counted in memory.
    fn _look_at_ledger(&self, py: Python<'_>) -> PyResult<Option<bool>> {
        detached(py, || self.client.look_at_ledger())?.or_raise()
    }
}
