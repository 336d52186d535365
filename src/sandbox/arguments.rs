//! The arguments of the sandbox's methods.

use std::io::ErrorKind;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping, PyString};
use serde_json::{Map, Value};

use crate::bridge::errors::IntoPyErr;
use crate::bridge::errors::OrRaise as _;
use crate::convert::keywords::{Keyword, keywords, record, unexpected};
use crate::convert::state;
use crate::convert::values::{duration, instant};
use siteline_core::error::{Error, Kind};
use siteline_core::system;
use siteline_sandbox::{Fault, FaultArgs, Identity, Options, SandboxError};

/// A failure of the sandbox is a wrong setting of the test that uses it.
impl IntoPyErr for SandboxError {
    fn into_py_err(self) -> PyErr {
        let Some(error) = self.refusal() else {
            return Error::new(Kind::ConfigError, self.to_string()).into_py_err();
        };
        // This is the error of a thread that could not be started: no other call of the sandbox has it.
        let no_thread = (error.kind() == ErrorKind::WouldBlock).then(system::no_thread);
        let error = no_thread.as_ref().unwrap_or(error);
        let raised = Error::new(Kind::ConfigError, format!("{self}: {}", system::reason(error)));
        match system::advice(error) {
            Some(advice) => raised.with_hint(advice).with(|context| context.passing = true),
            None => raised,
        }
        .into_py_err()
    }
}

/// The options of `Sandbox(...)`.
pub(super) fn options(py: Python<'_>, settings: Option<&Bound<'_, PyDict>>) -> PyResult<Options> {
    let mut keywords = keywords(settings)?;
    for Keyword { name, value } in &mut keywords {
        if matches!(name.as_str(), "interval" | "max_interval" | "max_range") {
            *value = whole_seconds(value, name)?.into_pyobject(py)?.into_any();
        }
    }
    record(py, &keywords)
}

/// The faults of `sandbox.fault(...)`, all for the same requests.
pub(super) fn faults(
    on: Bound<'_, PyAny>,
    what: Option<&Bound<'_, PyDict>>,
) -> PyResult<Vec<Fault>> {
    let py = on.py();
    let on = Keyword { name: "on".to_owned(), value: on }.deserialize()?;
    let mut keywords = keywords(what)?;
    keywords.retain(|keyword| !keyword.value.is_none());
    let mut members = Map::new();
    if let Some(place) = keywords.iter().position(|keyword| keyword.name == "members") {
        let keyword = keywords.remove(place);
        members = json_members(&keyword.value).map_err(|error| keyword.named(error))?;
    }
    for Keyword { name, value } in &mut keywords {
        match name.as_str() {
            "delay" => *value = duration(value, name)?.as_secs_f64().into_pyobject(py)?.into_any(),
            "retry_after" => *value = value.str()?.into_any(),
            _ => {}
        }
    }
    let keywords: FaultArgs = record(py, &keywords)?;
    FaultArgs { members, ..keywords }.faults(on).or_raise()
}

/// The members of a dict, by way of Python's JSON text: serde refuses NaN in it, pythonize would make it
/// null.
fn json_members(value: &Bound<'_, PyAny>) -> PyResult<Map<String, Value>> {
    let members = PyDict::new(value.py());
    members.update(value.cast::<PyMapping>()?)?;
    let json = value.py().import("json")?;
    let text: String = json.call_method1("dumps", (members,))?.extract()?;
    let members = serde_json::from_str(&text);
    members.map_err(|_| SandboxError::new("members= holds something that is not JSON.")).or_raise()
}

/// The series that the keywords name; each has a default.
pub(super) fn identity(ids: Option<&Bound<'_, PyDict>>) -> PyResult<Identity> {
    let names = ["site", "line", "machine", "device", "tag"];
    let mut values = ["S1", "L1", "M1", "D1", "T1"].map(|id| Some(id.into()));
    for Keyword { name, value } in keywords(ids)? {
        let place = names.iter().position(|known| *known == name);
        let id = &mut values[place.ok_or_else(|| unexpected(&name, &names))?];
        *id = if value.is_none() { None } else { Some(value.str()?.to_cow()?.as_ref().into()) };
    }
    let [site, line, machine, device, tag] = values;
    Ok(Identity { site, line, machine, device, tag })
}

/// JSON text: a `str` unchanged, anything else converted.
pub(super) fn json_text(value: &Bound<'_, PyAny>) -> PyResult<String> {
    match value.cast::<PyString>() {
        Ok(text) => Ok(text.to_cow()?.into_owned()),
        Err(_) => state::json_text(value),
    }
}

/// Whole seconds, 1 or more.
pub(super) fn whole_seconds(value: &Bound<'_, PyAny>, name: &str) -> PyResult<u32> {
    let length = duration(value, name)?;
    let seconds = u32::try_from(length.as_secs()).ok().filter(|seconds| *seconds > 0);
    let whole = seconds.filter(|_| length.subsec_nanos() == 0);
    let refused = || SandboxError::new(format!("{name}= is not a whole number of seconds."));
    whole.ok_or_else(refused).or_raise()
}

/// An instant as microseconds since the Unix epoch.
pub(super) fn microseconds(value: &Bound<'_, PyAny>, name: &str) -> PyResult<i64> {
    Ok(instant(value, name)?.as_microsecond())
}
