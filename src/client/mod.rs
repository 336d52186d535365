pub(crate) mod agent;
pub(crate) mod once;
pub(crate) mod page;
mod points;
pub(crate) mod query;
pub(crate) mod records;
pub(crate) mod scan;
pub(crate) mod settings;

use crate::auth::authentication;
use crate::bridge::long_work::left_on_interrupt;
use crate::bridge::observers::Observers;
use crate::bridge::process::Inside;
use crate::bridge::runtime::spawn_task;
use crate::client::agent::refuse_settings;
use crate::client::settings::{Found, choose_ledger, named_ledger, settings_with, shape_of};
use crate::convert::clock::PyClock;
use crate::prelude::*;
use siteline_core::auth::Authentication;
use siteline_core::client::Client;
use siteline_core::data::Shape;
use siteline_core::http::BaseUrl;
use siteline_core::settings::{Environment, SANDBOX_CLOCK};

#[pyclass(frozen, weakref, name = "Client", module = "siteline._core")]
pub(crate) struct PyClient {
    pub(crate) client: Client,
    credential: Mutex<Py<PyAny>>,
    pub(crate) notes: Arc<Observers>,
    /// The other keywords, as they are pickled.
    keywords: Py<PyDict>,
    pub(crate) shape: Shape,
    /// It runs as long as the client. It cannot hold the client, so the garbage collector need not visit it.
    pub(crate) sandbox: PyOnceLock<Py<PyAny>>,
}

fn without_credential() -> PyErr {
    let message = "The client cannot be created: credential is missing.";
    let hint = "Write credential=siteline.Credential(\"subject\", \"key.pem\"), or name a profile. With a \
                base_url only credential=, agent= and SITELINE_AGENT are looked at, so that a stored key is \
                never used at another address.";
    Error::new(Kind::ConfigError, message).with_hint(hint).into_py_err()
}

impl PyClient {
    /// A client that `sends_once` is for a diagnosis.
    fn made(
        py: Python<'_>,
        found: &mut Found<'_>,
        clock: Option<&Object<'_>>,
        on_request: Option<Py<PyAny>>,
        sends_once: bool,
    ) -> PyResult<Self> {
        let options = &found.options;
        let given = found.credential.as_ref().map(authentication).transpose()?;
        let allow_http = options.get_item("allow_http")?;
        let allow_http = allow_http.is_some_and(|given| given.is_truthy().unwrap_or(false));
        let base_url = guarded(|| BaseUrl::parse(&found.base_url, allow_http).or_raise())?;
        let agent = found.agent.take().map(|agent| agent.for_client(&base_url, given.as_ref()));
        let agent = agent.transpose().or_raise()?.flatten();
        if agent.is_some() {
            refuse_settings(options)?;
        }
        let authentication = match (&agent, given) {
            (Some(agent), _) => Authentication::Leased(agent.holder.subject.as_str().into()),
            (None, Some(given)) => given,
            (None, None) => return Err(without_credential()),
        };
        let (mut settings, keywords) = settings_with(py, base_url, authentication, options)?;
        if sends_once {
            settings.send_once();
        }
        settings.spawner = Arc::new(spawn_task);
        let notes = Observers::new(on_request);
        settings.transport.observer = Some(Arc::clone(&notes) as _);
        match (clock, Environment::of_process().get(SANDBOX_CLOCK)) {
            (Some(given), _) => {
                let message = || format!("clock= is {}, not a Clock", described(given));
                let clock = handle_of::<PyClock>(given)?;
                let clock = clock.ok_or_else(|| PyTypeError::new_err(message()))?;
                settings.clock = clock.get().0.clone();
            }
            (_, Some(name)) => {
                let (logs, ledger) = (Arc::<Events>::default(), named_ledger(&keywords)?);
                let origin = logs.begin(py, None)?;
                origin.run(|| settings.take_sandbox_clock(&name, ledger.as_deref())).or_raise()?;
                logs.handle(py)?;
            }
            _ => {}
        }
        match agent {
            Some(agent) => {
                let clock = settings.clock.clone();
                let link = step(py, || agent.link(clock))?;
                keywords.set_item("agent", link.address().to_string())?;
                settings.agent = Some(link);
                settings.leave_ledger(|name| Environment::of_process().state_file(name));
            }
            None => choose_ledger(&mut settings, &keywords)?,
        }
        let client = guarded(|| Client::new(settings).or_raise())?;
        let shape = match keywords.get_item("shape")? {
            Some(given) => shape_of(given.cast()?)?,
            None => Shape::default(),
        };
        client.listed().set_shape(shape.discovery.clone());
        let credential =
            found.credential.as_ref().map_or_else(|| py.None(), |given| given.clone().unbind());
        let (credential, keywords) = (Mutex::new(credential), keywords.unbind());
        Ok(Self { client, credential, notes, keywords, shape, sandbox: PyOnceLock::new() })
    }
}

#[pymethods]
impl PyClient {
    /// Without `base_url`, or with `profile`, missing settings are read from variables and a profile.
    #[new]
    #[pyo3(signature = (base_url=None, **options))]
    fn new<'py>(
        py: Python<'py>,
        base_url: Option<Text<'_>>,
        options: Option<Bound<'py, PyDict>>,
    ) -> PyResult<Self> {
        // Finding certifi runs Python code, so the end of the process waits.
        let _inside = Inside::enter(py);
        let options = options.unwrap_or_else(|| PyDict::new(py));
        let taken = |name| options.call_method1("pop", (name, py.None()));
        let (profile, on_request) = (taken("profile")?, taken("on_request")?.extract()?);
        let clock: Given<'py> = taken("clock")?.extract()?;
        let credential = taken("credential")?.extract()?;
        let sends_once = taken("sends_once")?.is_truthy()?;
        let profile = profile.extract::<Option<Text<'_>>>()?.map(|text| text.0);
        let base_url = base_url.map(|text| text.0);
        let mut found = Found::find(base_url, profile, credential, options)?;
        let made = Self::made(py, &mut found, clock.as_ref(), on_request, sends_once);
        made.inspect_err(|error| found.explain(error))
    }

    #[getter]
    fn base_url(&self) -> &str {
        self.client.base_url().as_str()
    }

    #[getter]
    fn subject(&self) -> String {
        self.client.subject()
    }

    fn setting<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Option<Object<'py>>> {
        self.keywords.bind(py).get_item(name)
    }

    fn credential(&self, py: Python<'_>) -> Py<PyAny> {
        self.credential.lock().clone_ref(py)
    }

    fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// The service's clock minus this machine's, in seconds.
    fn clock_skew(&self) -> Option<f64> {
        self.client.time().skew().map(|skew| skew.as_secs_f64())
    }

    fn allowance<'py>(&self, py: Python<'py>) -> PyResult<Object<'py>> {
        let client = self.client.clone();
        dict(py, &left_on_interrupt(py, move || client.allowance())?.or_raise()?)
    }

    fn replace_credential(&self, credential: &Object<'_>) -> PyResult<()> {
        let py = credential.py();
        let new = authentication(credential)?;
        if new.subject() != self.client.subject() {
            let message = "replace_credential() keeps the subject; this credential is for another.";
            let hint =
                "Make another client with it: each subject has its own ledger and bookmarks.";
            return Err(Error::new(Kind::ConfigError, message).with_hint(hint).into_py_err());
        }
        let given = credential.clone().unbind();
        // Dropped after the lock is released, because that may run Python code.
        let _old = detached(py, || {
            let mut known = self.credential.lock();
            self.client.replace_credential(new)?;
            Ok::<_, Error>(std::mem::replace(&mut *known, given))
        })?
        .or_raise()?;
        Ok(())
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || self.client.close())?;
        guarded(|| self.notes.notify_of_left(py))
    }

    /// The credential refers to the place of its key.
    fn __getnewargs_ex__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
        let why_not = self.client.settings().why_not_pickled();
        why_not.map_or(Ok(()), |why_not| Err(PyTypeError::new_err(why_not)))?;
        let keywords = self.keywords.bind(py).copy()?;
        let credential = self.credential.lock().clone_ref(py);
        if !credential.is_none(py) {
            keywords.set_item("credential", credential)?;
        }
        Ok((PyTuple::new(py, [self.client.base_url().as_str()])?, keywords))
    }

    /// `on_request=` may be a method of an object that holds the client.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(self.notes.on_request())
    }
}

/// Sets the instrument of a client, or of all clients.
#[pyfunction]
#[pyo3(signature = (client, instrument))]
pub(crate) fn _instrument(client: Option<&Bound<'_, PyClient>>, instrument: Option<Py<PyAny>>) {
    Observers::set_instrument(client.map(|one| &*one.get().notes), instrument);
}
