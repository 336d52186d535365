//! The settings of a client: keywords, variables and profiles.

use std::path::Path;

use pyo3::IntoPyObjectExt;

use crate::auth::from_settings;
use crate::bridge::long_work::left_on_interrupt;
use crate::client::agent::{FoundAgent, is_of_the_agent};
use crate::convert::asked_time::zone_or;
use crate::convert::state::keywords;
use crate::convert::values::{duration_or, octets, time_of_day, value_of};
use crate::prelude::*;
use siteline_core::auth::{Authentication, ScopeSet};
use siteline_core::client::ClientSettings;
use siteline_core::data::Shape;
use siteline_core::http::{BaseUrl, Policy, TransportSettings, Trust};
use siteline_core::settings::{
    Environment, Given, Settings, Value, read_certificates, read_profiles,
};

/// Completed from variables and a profile.
pub(crate) struct Found<'py> {
    pub(crate) base_url: String,
    pub(crate) credential: Option<Object<'py>>,
    pub(crate) options: Bound<'py, PyDict>,
    pub(crate) agent: Option<FoundAgent>,
    profile: Option<(PathBuf, String)>,
}

/// With an agent, address and credential may be missing, and a file that is not needed unreadable. Variables
/// are read with the interpreter, because Python changes them without a lock.
pub(crate) fn read_settings(
    py: Python<'_>,
    profile: Option<&str>,
    given: Given,
) -> PyResult<Settings> {
    let own = Environment::of_process();
    // The file may be a pipe, so it is read once, and Ctrl-C ends the wait. An error occurs again.
    let text = match own.config_file() {
        Some(file) => left_on_interrupt(py, move || read_profiles(&file))?.ok(),
        None => None,
    };
    let read = |path: &Path| text.clone().map_or_else(|| read_profiles(path), Ok);
    let environment = Environment { read: &read, ..own };
    let find = |given| match profile {
        Some(name) => Settings::from_profile(name, &environment, given),
        None => Settings::from_variables(&environment, given),
    };
    let unneeded = |missing: Error| match find(Given { base_url: true, credential: true }) {
        Ok(settings) => Ok(Settings { missing: Some(missing), ..settings }),
        Err(_) => Err(missing),
    };
    guarded(|| find(given).or_else(unneeded).or_raise())
}

impl<'py> Found<'py> {
    /// Reads variables and profiles only without `base_url` or with `profile`, so that a stored key is never
    /// used at another address.
    pub(crate) fn find(
        base_url: Option<&str>,
        profile: Option<&str>,
        credential: Option<Object<'py>>,
        options: Bound<'py, PyDict>,
    ) -> PyResult<Self> {
        let py = options.py();
        if let (Some(address), None) = (base_url, profile) {
            let agent = FoundAgent::find(py, agent_of(&options, &[])?, Some(address))?;
            let base_url = address.to_owned();
            return Ok(Self { base_url, credential, options, agent, profile: None });
        }
        let given = Given { base_url: base_url.is_some(), credential: credential.is_some() };
        let mut settings = read_settings(py, profile, given)?;
        if given.credential {
            settings = settings.complete().or_raise()?;
        }
        let named = agent_of(&options, &settings.options)?;
        let agent = FoundAgent::find(py, named, base_url.or(settings.base_url.as_deref()))?;
        let serves = |agent: &&FoundAgent| !given.credential && agent.serves(&settings, base_url);
        if let Some(agent) = agent.as_ref().filter(serves) {
            // The key is not read.
            (settings.credential, settings.missing) = (None, None);
            settings.base_url.get_or_insert_with(|| agent.holder.base_url.clone());
            settings.options.retain(|(name, _)| !is_of_the_agent(name));
        }
        let mut settings = settings.complete().or_raise()?;
        let address = base_url.map(ToOwned::to_owned).or(settings.base_url.take());
        let all = PyDict::new(py);
        for (name, value) in &settings.options {
            all.set_item(name, value_of(py, value)?)?;
        }
        all.update(options.as_mapping())?;
        let base_url = address.unwrap_or_default();
        let profile = settings.profile;
        let mut found = Self { base_url, credential, options: all, agent, profile };
        if let (None, Some(named)) = (&found.credential, settings.credential) {
            let opened = from_settings(py, named).inspect_err(|error| found.explain(error))?;
            found.credential = Some(opened);
        }
        Ok(found)
    }

    pub(crate) fn explain(&self, error: &PyErr) {
        let py = self.options.py();
        if let Some((file, name)) = &self.profile
            && error.is_instance_of::<PyValueError>(py)
        {
            add_note(py, error, &format!("The profile {name:?} of {} was read.", file.display()));
        }
    }
}

fn agent_of(
    given: &Bound<'_, PyDict>,
    settings: &[(&'static str, Value)],
) -> PyResult<Option<String>> {
    match given.get_item("agent")? {
        Some(given) => Ok(Some(given.extract::<Text<'_>>()?.0.to_owned())),
        None => Ok(settings.iter().find_map(|(name, value)| match (*name, value) {
            ("agent", Value::Text(text)) => Some(text.clone()),
            _ => None,
        })),
    }
}

fn add_note(py: Python<'_>, error: &PyErr, note: &str) {
    let _ = error.value(py).call_method1("add_note", (note,));
}

/// Without the ledger; and the keywords as they are pickled.
pub(crate) fn settings_with<'py>(
    py: Python<'py>,
    base_url: BaseUrl,
    credential: Authentication,
    options: &Bound<'py, PyDict>,
) -> PyResult<(ClientSettings, Bound<'py, PyDict>)> {
    let mut settings = ClientSettings::new(base_url, credential);
    settings.page_size = Some(10_000);
    settings.transport.trust = Trust::from_variables(|name| std::env::var_os(name));
    settings.transport.trust.fallback = certifi(py);
    let pickled = PyDict::new(py);
    for (name, value) in options {
        let name: String = name.extract()?;
        let set = set(&mut settings, &name, &value).inspect_err(|error| {
            if error.is_instance_of::<PyTypeError>(py) {
                // As pyo3 does for a listed argument.
                add_note(py, error, &format!("while processing '{name}'"));
            }
        });
        pickled.set_item(name, set?)?;
    }
    settings.hold_for_tokens();
    Ok((settings, pickled))
}

/// Pickles its absolute path.
pub(crate) fn choose_ledger(
    settings: &mut ClientSettings,
    pickled: &Bound<'_, PyDict>,
) -> PyResult<()> {
    let named = named_ledger(pickled)?;
    let folder = Environment::of_process().state_folder();
    let default = |name: &str| Some(folder?.join(name));
    let choose = || settings.choose_ledger(named.as_deref(), default);
    match detached(pickled.py(), choose)?.or_raise()? {
        Some(path) => pickled.set_item("ledger", path.as_os_str()),
        None => Ok(()),
    }
}

pub(crate) fn named_ledger(pickled: &Bound<'_, PyDict>) -> PyResult<Option<PathBuf>> {
    pickled.get_item("ledger")?.map(|path| path.extract()).transpose()
}

/// Returns the value as it is pickled.
fn set<'py>(
    settings: &mut ClientSettings,
    name: &str,
    given: &Object<'py>,
) -> PyResult<Object<'py>> {
    let py = given.py();
    match name {
        "scopes" => {
            let scopes = match given.cast::<PyString>() {
                Ok(text) => ScopeSet::parse(&text.to_cow()?),
                Err(_) => ScopeSet::new(given.extract::<Vec<String>>()?),
            };
            settings.scopes = scopes.or_raise()?;
            return settings.scopes.to_string().into_bound_py_any(py);
        }
        "ca_bundle" => return set_bundle(&mut settings.transport.trust, given),
        "ledger" => return path_of(given, name)?.as_os_str().into_bound_py_any(py),
        "labels" => return py.import("siteline._labels")?.call_method1("checked", (given,)),
        "filter_names" => {
            return py.import("siteline._selection")?.call_method1("filter_names", (given,));
        }
        "allowance_resets" => settings.allowance_resets = Some(time_of_day(given, name)?),
        "daily_allowance" => {
            settings.daily_allowance = Some(count(given, name, Kind::ConfigError)?);
        }
        "settle_lag" => settings.settle_lag = duration_or(given, name, Kind::ConfigError)?,
        "proxy" => settings.transport.proxy = Some(given.extract()?),
        "tz" => drop(zone_or(given, Kind::ConfigError)?),
        "shape" => drop(shape_of(given.cast()?)?),
        "agent" => drop(given.extract::<String>()?),
        _ => set_http((&mut settings.transport, &mut settings.retry), name, given)?,
    }
    Ok(given.clone())
}

fn set_http(
    (transport, retry): (&mut TransportSettings, &mut Policy),
    name: &str,
    given: &Object<'_>,
) -> PyResult<()> {
    let duration = || duration_or(given, name, Kind::ConfigError);
    let timeout = || {
        let positive = Some(duration()?).filter(|length| !length.is_zero());
        let message = || format!("{name}= is 0. A timeout is longer than that.");
        positive.ok_or_else(|| refuse(given.py(), Kind::ConfigError, message()))
    };
    let whole = || count(given, name, Kind::ConfigError);
    let size = || Ok::<_, PyErr>(usize::try_from(whole()?).unwrap_or(usize::MAX));
    match name {
        "max_retry_after" => retry.max_retry_after = duration()?,
        "tries" => retry.tries = u32::try_from(whole()?).unwrap_or(u32::MAX),
        "connect_timeout" => transport.connect_timeout = timeout()?,
        "response_timeout" => transport.response_timeout = timeout()?,
        "idle_timeout" => transport.idle_timeout = timeout()?,
        "max_connections" => transport.max_connections = size()?,
        "max_body_bytes" => transport.body_cap = size()?,
        "application" => transport.application = Some(given.extract()?),
        // A setting of the address.
        "allow_http" => drop(given.extract::<bool>()?),
        _ => {
            let message = format!("Client() got an unexpected keyword argument '{name}'");
            return Err(PyTypeError::new_err(message));
        }
    }
    Ok(())
}

/// Checks an `Http`, or otherwise a `Shape`.
#[pyfunction]
pub(crate) fn _check(fields: &Bound<'_, PyDict>, is_http: bool) -> PyResult<()> {
    if !is_http {
        return shape_of(fields).map(drop);
    }
    let (mut transport, mut retry) = (TransportSettings::default(), Policy::data());
    fields.iter().try_for_each(|(name, given)| {
        set_http((&mut transport, &mut retry), name.extract()?, &given)
    })?;
    guarded(|| transport.check().or_raise())
}

fn set_bundle<'py>(trust: &mut Trust, given: &Object<'py>) -> PyResult<Object<'py>> {
    let py = given.py();
    let pem = match given.cast::<PyString>() {
        Ok(text) if text.to_cow()?.contains("-----BEGIN") => {
            Some(text.to_cow()?.as_bytes().to_vec())
        }
        _ => octets(given)?.map(|bytes| bytes.to_vec()),
    };
    if let Some(pem) = pem {
        trust.set_bundle(&pem, None).or_raise()?;
        return Ok(PyBytes::new(py, trust.ca_bundle.as_deref().unwrap_or_default()).into_any());
    }
    let path = path_of(given, "ca_bundle")?;
    let path = std::path::absolute(&path).unwrap_or(path);
    let read = path.clone();
    let bytes = left_on_interrupt(py, move || read_certificates(&read))?.or_raise()?;
    trust.set_bundle(&bytes, Some(&path)).or_raise()?;
    path.as_os_str().into_bound_py_any(py)
}

/// Neither the package nor its file is read.
fn certifi(py: Python<'_>) -> Option<PathBuf> {
    let find = || -> PyResult<PathBuf> {
        let util = py.import("importlib.util")?;
        util.call_method1("find_spec", ("certifi",))?.getattr("origin")?.extract()
    };
    Some(find().ok()?.with_file_name("cacert.pem"))
}

pub(crate) fn shape_of(members: &Bound<'_, PyDict>) -> PyResult<Shape> {
    let shape: Shape = keywords(members)?;
    guarded(|| shape.check().or_raise())?;
    Ok(shape)
}
