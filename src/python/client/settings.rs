//! What `Client.from_env`, `Client.from_profile` and `pickle` make of a client's settings.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyType};

use crate::auth::{Credential, ScopeSet};
use crate::client::ClientSettings;
use crate::error::{Error, Kind};
use crate::http::proxy::has_password;
use crate::http::{BaseUrl, TimeOfDay, Trust, certificates_of};
use crate::python::auth::credential::PyCredential;
use crate::python::bridge::errors::raise;
use crate::python::bridge::process::{detached, guarded};
use crate::python::convert::values::{count, duration_or, octets, path_of, time_of_day, value_of};
use crate::settings::{Form, Given, OPTIONS, Options, Platform, Settings, Surroundings, Value};

/// A file of profiles is not longer than this ...
const LARGEST_CONFIG: u64 = 1 << 20;
/// ... and a bundle of certificates not longer than this.
const LARGEST_BUNDLE: u64 = 1 << 24;

/// A client of what `read` finds; the keywords win.
pub(crate) fn from_outside<'py>(
    cls: &Bound<'py, PyType>,
    options: Option<&Bound<'py, PyDict>>,
    read: impl FnOnce(&Surroundings<'_>, Given) -> crate::Result<Settings>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = cls.py();
    let has = |name: &str| options.map_or(Ok(false), |options| options.contains(name));
    let given = Given { base_url: has("base_url")?, credential: has("credential")? };
    let settings = with_surroundings(|around| {
        guarded(|| read(around, given).map_err(|error| raise(py, &error)))
    })?;
    let profile = settings.profile.clone();
    client_of(cls, settings, options).inspect_err(|error| {
        if let Some((file, name)) = &profile
            && error.is_instance_of::<PyValueError>(py)
        {
            let note = format!("The profile {name:?} of {} was read.", file.display());
            // Where no note can be added, the error stands without it.
            let _ = error.value(py).call_method1("add_note", (note,));
        }
    })
}

/// What lies around this process.
pub(crate) fn with_surroundings<T>(ask: impl FnOnce(&Surroundings<'_>) -> T) -> T {
    ask(&Surroundings {
        variable: &|name| std::env::var_os(name).map(|text| text.to_string_lossy().into_owned()),
        read: &|path| text_of(bounded(path, LARGEST_CONFIG)?),
        platform: Platform::current(),
    })
}

fn client_of<'py>(
    cls: &Bound<'py, PyType>,
    settings: Settings,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = cls.py();
    let keywords = PyDict::new(py);
    if let Some(base_url) = settings.base_url {
        keywords.set_item("base_url", base_url)?;
    }
    if let Some((subject, key)) = settings.credential {
        keywords.set_item("credential", PyCredential::from_settings(py, &subject, key)?)?;
    }
    for (name, value) in &settings.options {
        keywords.set_item(name, value_of(py, value)?)?;
    }
    if let Some(options) = options {
        keywords.update(options.as_mapping())?;
    }
    cls.call((), Some(&keywords))
}

/// The options among the keywords of a client.
///
/// # Errors
/// `TypeError` for one that is not known or of another type, `ConfigError` for a wrong value.
pub(crate) fn options(given: Option<&Bound<'_, PyDict>>) -> PyResult<Options> {
    let mut options = Options::new();
    for (name, value) in given.into_iter().flatten() {
        let known = OPTIONS.iter().find(|(known, _)| name.eq(known).unwrap_or(false));
        let Some((name, form)) = known else {
            let message = format!("Client() got an unexpected keyword argument {}", name.repr()?);
            return Err(PyTypeError::new_err(message));
        };
        if !value.is_none() {
            options.push((*name, option(name, *form, &value)?));
        }
    }
    Ok(options)
}

fn option(name: &str, form: Form, given: &Bound<'_, PyAny>) -> PyResult<Value> {
    let read = match form {
        Form::Text => given.extract().map(Value::Text),
        Form::Words if given.is_instance_of::<PyString>() => given.extract().map(Value::Text),
        Form::Words => given.extract().map(Value::Words),
        Form::Whole => count(given, name, Kind::ConfigError)
            .map(|number| Value::Whole(i64::try_from(number).unwrap_or(i64::MAX))),
        Form::Duration => duration_or(given, name, Kind::ConfigError).map(Value::Duration),
        Form::Flag => given.extract().map(Value::Flag),
        Form::Path => path_of(given, name).map(Value::Path),
        Form::TimeOfDay => time_of_day(given, name).map(|time| Value::Text(time.to_string())),
        Form::Certificates => certificates(given),
    };
    read.inspect_err(|error| {
        if error.is_instance_of::<PyTypeError>(given.py()) {
            // As pyo3 does for arguments that have a place of their own. A note less is no harm.
            let note = format!("while processing '{name}'");
            let _ = error.value(given.py()).call_method1("add_note", (note,));
        }
    })
}

/// The path of a file of certificates, PEM text, or its bytes.
fn certificates(given: &Bound<'_, PyAny>) -> PyResult<Value> {
    if let Some(bytes) = octets(given)? {
        return Ok(Value::Bytes(bytes.to_vec()));
    }
    if let Ok(text) = given.cast::<PyString>()
        && text.to_cow()?.contains("-----BEGIN")
    {
        return Ok(Value::Bytes(text.to_cow()?.as_bytes().to_vec()));
    }
    let path = path_of(given, "ca_bundle")?;
    Ok(Value::Path(std::path::absolute(&path).unwrap_or(path)))
}

/// The settings of a client with these options, its ledger excepted.
///
/// # Errors
/// `ConfigError` for a wrong value.
pub(crate) fn settings_with(
    py: Python<'_>,
    base_url: &str,
    credential: Credential,
    options: &Options,
) -> PyResult<ClientSettings> {
    let refused = |error: Error| raise(py, &error);
    let allow_http = options.contains(&("allow_http", Value::Flag(true)));
    let base = guarded(|| BaseUrl::parse(base_url, allow_http).map_err(refused))?;
    let mut settings = ClientSettings::new(base, credential);
    settings.transport.trust = Trust::from_variables(|name| std::env::var_os(name));
    settings.transport.trust.fallback = certifi(py);
    for (name, value) in options {
        set(py, &mut settings, name, value)?;
    }
    Ok(settings)
}

fn set(py: Python<'_>, settings: &mut ClientSettings, name: &str, value: &Value) -> PyResult<()> {
    let refused = |error: Error| raise(py, &error);
    let transport = &mut settings.transport;
    match (name, value.clone()) {
        ("scopes", Value::Text(text)) => {
            settings.scopes = ScopeSet::parse(&text).map_err(refused)?;
        }
        ("scopes", Value::Words(words)) => {
            settings.scopes = ScopeSet::new(words).map_err(refused)?;
        }
        ("audience", Value::Text(text)) => settings.audience = Some(text),
        ("daily_allowance", Value::Whole(limit)) => {
            settings.daily_allowance = Some(limit.unsigned_abs());
        }
        ("allowance_resets", Value::Text(text)) => {
            settings.allowance_resets = Some(TimeOfDay::parse(&text).map_err(refused)?);
        }
        ("settle_lag", Value::Duration(lag)) => settings.settle_lag = lag,
        ("assertion_lifetime", Value::Duration(time)) => settings.assertion_lifetime = time,
        ("clock_tolerance", Value::Duration(time)) => settings.assertion_tolerance = time,
        ("typ", Value::Flag(typ)) => settings.assertion_typ = typ,
        ("max_retry_after", Value::Duration(most)) => settings.retry.max_retry_after = most,
        ("tries", Value::Whole(tries)) => {
            settings.retry.tries = u32::try_from(tries).unwrap_or(u32::MAX);
        }
        ("connect_timeout", Value::Duration(limit)) => transport.connect_timeout = limit,
        ("response_timeout", Value::Duration(limit)) => transport.response_timeout = limit,
        ("idle_timeout", Value::Duration(limit)) => transport.idle_timeout = limit,
        ("max_body_bytes", Value::Whole(cap)) => {
            transport.body_cap = usize::try_from(cap).unwrap_or(usize::MAX);
        }
        ("application", Value::Text(name)) => transport.application = Some(name),
        ("proxy", Value::Text(proxy)) => transport.proxy = Some(proxy),
        ("ca_bundle", Value::Bytes(bytes)) => {
            transport.trust.ca_bundle = Some(certificates_of(&bytes));
        }
        ("ca_bundle", Value::Path(path)) => {
            transport.trust.ca_bundle = Some(read_bundle(py, &path)?);
            transport.trust.ca_bundle_file = Some(path);
        }
        // `allow_http` and `ledger` are looked at elsewhere.
        _ => {}
    }
    Ok(())
}

fn read_bundle(py: Python<'_>, path: &Path) -> PyResult<Vec<u8>> {
    detached(py, || bounded(path, LARGEST_BUNDLE))?.map_err(|error| {
        let message = format!("ca_bundle={:?} cannot be read: {}.", path.display(), error.kind());
        let hint = "It is a file of certificates in PEM form; SSL_CERT_DIR takes a folder.";
        raise(py, &Error::new(Kind::ConfigError, message).with_hint(hint))
    })
}

/// A file that may be any: a device or a pipe has no end, or keeps us waiting for it.
fn bounded(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(bytes)
}

fn text_of(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// Where the bundle of the package certifi is. The package is only looked for: to import it, and to
/// read its file, is for those who need it.
fn certifi(py: Python<'_>) -> Option<PathBuf> {
    let find = || -> PyResult<PathBuf> {
        let util = py.import("importlib.util")?;
        let module: PathBuf =
            util.call_method1("find_spec", ("certifi",))?.getattr("origin")?.extract()?;
        Ok(module.with_file_name("cacert.pem"))
    };
    find().ok()
}

/// The keywords that make a client like this one in another process, its credential excepted.
///
/// # Errors
/// `TypeError` saying what to do, where something lives in this process only or is secret.
pub(crate) fn keywords<'py>(
    py: Python<'py>,
    settings: &ClientSettings,
    options: &Options,
) -> PyResult<Bound<'py, PyDict>> {
    if settings.clock.is_manual() {
        return Err(PyTypeError::new_err(
            "A client with a clock= is not pickled, for the clock lives in this process: make it \
             without. That of sandbox.client() has one; Client.from_env() with sandbox.env() has none, \
             and Sandbox() without now= runs with the machine's clock.",
        ));
    }
    if settings.transport.proxy.as_deref().is_some_and(has_password) {
        return Err(PyTypeError::new_err(
            "A client whose proxy= has a user or password is not pickled, for they would go wherever \
             the pickle goes: name the proxy in HTTPS_PROXY, in the other process too.",
        ));
    }
    let keywords = PyDict::new(py);
    for (name, value) in options {
        keywords.set_item(name, value_of(py, value)?)?;
    }
    Ok(keywords)
}
