//! Discovery, and the parts of `siteline.doctor`.

use crate::client::PyClient;
use crate::client::settings::read_settings;
use crate::frame::ids;
use crate::prelude::*;
use siteline_core::settings::Given;

#[pymethods]
impl PyClient {
    /// The body.
    fn discover(&self) -> Call {
        let client = self.client.clone();
        let asked = async move { client.discover(None).await.map(|body| body.to_vec()) };
        Call::giving(Arc::default(), asked)
    }

    /// The shape of a body, the ids of the series seen in pages, and whether these are all.
    fn seen<'py>(&self, py: Python<'py>) -> PyResult<(Object<'py>, Vec<Object<'py>>, bool)> {
        let shape = self.client.listed().raw().and_then(|(_, shape)| shape);
        let (seen, is_all) = self.client.seen().all();
        let seen = seen.iter().map(|one| ids(py, one).map(Bound::into_any));
        Ok((dict(py, &shape)?, seen.collect::<PyResult<_>>()?, is_all))
    }

    /// A client with the same ledger and tokens that sends each request once.
    fn sending_once(&self, py: Python<'_>) -> PyResult<Self> {
        Ok(Self {
            client: self.client.sending_once().or_raise()?,
            credential: Mutex::new(self.credential.lock().clone_ref(py)),
            notes: Arc::clone(&self.notes),
            keywords: self.keywords.clone_ref(py),
            shape: self.shape.clone(),
            sandbox: PyOnceLock::new(),
        })
    }

    /// Without secrets.
    fn settings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let settings = self.client.settings();
        let told = PyDict::new(py);
        told.set_item("given", self.keywords.bind(py).keys())?;
        told.set_item("scopes", settings.scopes.iter().collect::<Vec<_>>())?;
        let audience = self.client.assertion().and_then(|assertion| assertion.audience);
        told.set_item("audience", audience)?;
        told.set_item("ledger", settings.ledger_file.clone().map(PathBuf::into_os_string))?;
        told.set_item("agent", self.keywords.bind(py).get_item("agent")?)?;
        told.set_item("now", self.client.time().clock().wall())?;
        let skew = self.client.time().measured();
        told.set_item("skew_error", skew.map(|skew| skew.error().as_secs_f64()))?;
        Ok(told)
    }

    /// The state of the agent; whether the ledger file exists, `None` if there is no file; or the proxy and
    /// the certificates. Opens no connection to the service.
    fn look_at<'py>(&self, py: Python<'py>, part: &str) -> PyResult<Object<'py>> {
        let client = &self.client;
        match part {
            "agent" => {
                let agent = client.settings().agent.clone();
                let state = detached(py, || agent.map(|agent| agent.state()).transpose())?;
                dict(py, &state.or_raise()?)
            }
            "ledger" => dict(py, &detached(py, || client.look_at_ledger())?.or_raise()?),
            _ => dict(py, &guarded(|| client.planned_path().or_raise())?),
        }
    }

    /// The cached token, without its text.
    fn token_facts(&self) -> Call {
        let client = self.client.clone();
        Call::new(Arc::default(), async move { client.token_facts().await }, |py, facts| {
            dict(py, &facts.or_raise()?).map(Bound::unbind)
        })
    }

    /// The steps of a connection to the service, and the exception of the one that failed.
    fn walk_path(&self) -> Call {
        let client = self.client.clone();
        Call::new(Arc::default(), async move { client.walk_path().await }, |py, (path, error)| {
            let raised = |error: Error| raise(py, &error).into_value(py).into_bound(py).into_any();
            Ok((dict(py, &path)?, error.map(raised)).into_pyobject(py)?.into_any().unbind())
        })
    }
}

/// The settings of the profile or the variables, and in `settings` the variable that set each.
#[pyfunction]
#[pyo3(signature = (profile=None))]
pub(crate) fn _sources<'py>(
    py: Python<'py>,
    profile: Option<Text<'_>>,
) -> PyResult<Bound<'py, PyDict>> {
    let name = profile.as_ref().map(|name| name.0);
    let settings = read_settings(py, name, Given::default())?.complete().or_raise()?;
    let (file, name) = settings.profile.clone().unzip();
    let told = PyDict::new(py);
    told.set_item("file", file.map(PathBuf::into_os_string))?;
    told.set_item("profile", name)?;
    told.set_item("subject", settings.subject())?;
    told.set_item("settings", settings.sources)?;
    Ok(told)
}
