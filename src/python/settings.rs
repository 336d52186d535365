//! What `Client.from_env`, `Client.from_profile` and `pickle` make of a client's settings.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyType};

use crate::auth::ScopeSet;
use crate::client::ClientSettings;
use crate::error::{Error, Kind};
use crate::http::proxy::has_password;
use crate::http::{Trust, certificates_of};
use crate::python::conversions::duration_or;
use crate::python::credential::PyCredential;
use crate::python::errors::raise;
use crate::python::private_key::{described, octets};
use crate::python::runtime::{detached, guarded};
use crate::settings::{Given, Platform, Settings, Surroundings, Value};

/// A file of profiles is not longer than this ...
const LARGEST_CONFIG: u64 = 1 << 20;
/// ... and a bundle of certificates not longer than this.
const LARGEST_BUNDLE: u64 = 1 << 24;

/// A client of what `read` finds; the keywords win.
pub(super) fn from_outside<'py>(
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
pub(super) fn with_surroundings<T>(ask: impl FnOnce(&Surroundings<'_>) -> T) -> T {
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

/// A value of a profile as Python has it.
pub(super) fn value_of<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Text(text) => text.into_pyobject(py)?.into_any(),
        Value::Words(words) => words.into_pyobject(py)?.into_any(),
        Value::Whole(number) => number.into_pyobject(py)?.into_any(),
        Value::Number(number) => number.into_pyobject(py)?.into_any(),
        Value::Flag(flag) => flag.into_pyobject(py)?.to_owned().into_any(),
        Value::Path(path) => path.as_os_str().into_pyobject(py)?.into_any(),
    })
}

/// The certificates to trust: those of `ca_bundle=`, a path or PEM, else those of the variables,
/// else the machine's, else those of the package certifi where it can be imported.
pub(super) fn trust(py: Python<'_>, ca_bundle: Option<&Bound<'_, PyAny>>) -> PyResult<Trust> {
    let mut trust = Trust::from_variables(|name| std::env::var_os(name));
    trust.fallback = certifi(py);
    let Some(given) = ca_bundle else { return Ok(trust) };
    if let Some(bytes) = octets(given)? {
        trust.ca_bundle = Some(certificates_of(&bytes));
    } else if let Ok(text) = given.cast::<PyString>()
        && text.to_cow()?.contains("-----BEGIN")
    {
        trust.ca_bundle = Some(certificates_of(text.to_cow()?.as_bytes()));
    } else if given.is_instance_of::<PyString>() || given.hasattr("__fspath__")? {
        let path: PathBuf = given.extract()?;
        trust.ca_bundle = Some(read_bundle(py, &path)?);
        trust.ca_bundle_file = Some(std::path::absolute(&path).unwrap_or(path));
    } else {
        return Err(PyTypeError::new_err(format!(
            "ca_bundle= is the path of a PEM file, or its bytes; this is {}.",
            described(given)?
        )));
    }
    Ok(trust)
}

fn read_bundle(py: Python<'_>, path: &Path) -> PyResult<Vec<u8>> {
    detached(py, || bounded(path, LARGEST_BUNDLE))?.map_err(|error| {
        let message = format!("ca_bundle={:?} cannot be read: {}.", path.display(), error.kind());
        let hint = "It is a file of certificates in PEM form; SSL_CERT_DIR takes a folder.";
        raise(py, &Error::new(Kind::Config, message).with_hint(hint))
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

/// Scopes as one text or as several.
pub(super) fn scope_set(scopes: &Bound<'_, PyAny>) -> PyResult<ScopeSet> {
    let py = scopes.py();
    let set = match scopes.cast::<PyString>() {
        Ok(text) => ScopeSet::parse(&text.to_cow()?),
        Err(_) => ScopeSet::new(scopes.extract::<Vec<String>>()?),
    };
    set.map_err(|error| raise(py, &error))
}

/// The keywords that make a client like this one in another process, its credential excepted.
///
/// # Errors
/// `TypeError` saying what to do, where something lives in this process only or is secret.
pub(super) fn keywords<'py>(
    py: Python<'py>,
    settings: &ClientSettings,
) -> PyResult<Bound<'py, PyDict>> {
    if settings.clock.is_manual() {
        return Err(PyTypeError::new_err(
            "A client with a clock= is not pickled, for the clock lives in this process: make it \
             without. That of sandbox.client() has one; Client.from_env() with sandbox.env() has none, \
             and Sandbox() without now= runs with the machine's clock.",
        ));
    }
    let transport = &settings.transport;
    if transport.proxy.as_deref().is_some_and(has_password) {
        return Err(PyTypeError::new_err(
            "A client whose proxy= has a user or password is not pickled, for they would go wherever \
             the pickle goes: name the proxy in HTTPS_PROXY, in the other process too.",
        ));
    }
    let all = PyDict::new(py);
    all.set_item("scopes", settings.scopes.to_string())?;
    all.set_item("audience", &settings.audience)?;
    all.set_item("daily_allowance", settings.daily_allowance)?;
    all.set_item("allowance_resets", settings.allowance_resets.map(|time| time.to_string()))?;
    all.set_item("settle_lag", settings.settle_lag)?;
    all.set_item("assertion_lifetime", settings.assertion_lifetime)?;
    all.set_item("clock_tolerance", settings.assertion_tolerance)?;
    all.set_item("typ", settings.assertion_typ)?;
    all.set_item("max_retry_after", settings.retry.max_retry_after)?;
    all.set_item("tries", settings.retry.tries)?;
    all.set_item("connect_timeout", transport.connect_timeout)?;
    all.set_item("response_timeout", transport.response_timeout)?;
    all.set_item("idle_timeout", transport.idle_timeout)?;
    all.set_item("max_body_bytes", transport.body_cap)?;
    all.set_item("application", &transport.application)?;
    all.set_item("allow_http", settings.base_url.is_plain())?;
    all.set_item("proxy", &transport.proxy)?;
    match (&transport.trust.ca_bundle_file, &transport.trust.ca_bundle) {
        (Some(path), _) => all.set_item("ca_bundle", path.as_os_str())?,
        (None, Some(bundle)) => all.set_item("ca_bundle", pyo3::types::PyBytes::new(py, bundle))?,
        (None, None) => {}
    }
    Ok(all)
}

/// A duration, where it was given.
pub(super) fn set(
    slot: &mut Duration,
    given: Option<&Bound<'_, PyAny>>,
    name: &str,
) -> PyResult<()> {
    if let Some(given) = given {
        *slot = duration_or(given, name, Kind::Config)?;
    }
    Ok(())
}
