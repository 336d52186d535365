//! Arguments of the sandbox's methods as values of the core.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping, PyString};
use serde_json::{Map, Value};

use super::errors::{checked, refused};
use crate::clock::Clock;
use crate::python::convert::keywords::{Keyword, record, unexpected};
use crate::python::convert::state;
use crate::python::convert::values::{duration, instant};
use crate::sandbox::{Fault, FaultArgs, Identity, Options};

/// The options of `Sandbox(...)`, and its clock: a standing one where `now=` is given.
pub(super) fn options(
    py: Python<'_>,
    settings: Option<&Bound<'_, PyDict>>,
) -> PyResult<(Options, Clock)> {
    let mut clock = Clock::running();
    let mut keywords = Vec::new();
    for mut keyword in all(settings)? {
        match keyword.name.as_str() {
            "now" => {
                if !keyword.value.is_none() {
                    clock = Clock::frozen_at(instant(&keyword.value, "now")?);
                }
                continue;
            }
            name @ ("interval" | "max_interval" | "max_range") => {
                let seconds = whole_seconds(&keyword.value, name)?;
                keyword.value = seconds.into_pyobject(py)?.into_any();
            }
            _ => {}
        }
        keywords.push(keyword);
    }
    Ok((record(py, keywords)?, clock))
}

/// The faults of `sandbox.fault(...)`: one for each thing that goes wrong, at the same requests.
pub(super) fn faults(
    on: Bound<'_, PyAny>,
    what: Option<&Bound<'_, PyDict>>,
) -> PyResult<Vec<Fault>> {
    let py = on.py();
    let on = Keyword { name: "on".to_owned(), value: on }.deserialize()?;
    let mut members = Map::new();
    let mut keywords = Vec::new();
    for mut keyword in all(what)?.into_iter().filter(|keyword| !keyword.value.is_none()) {
        match keyword.name.as_str() {
            "delay" => {
                let seconds = duration(&keyword.value, "delay")?.as_secs_f64();
                keyword.value = seconds.into_pyobject(py)?.into_any();
            }
            "retry_after" => keyword.value = keyword.value.str()?.into_any(),
            "members" => {
                members = json_members(&keyword.value).map_err(|error| keyword.named(error))?;
                continue;
            }
            _ => {}
        }
        keywords.push(keyword);
    }
    let keywords: FaultArgs = record(py, keywords)?;
    checked(py, FaultArgs { members, ..keywords }.faults(on))
}

fn all<'py>(keywords: Option<&Bound<'py, PyDict>>) -> PyResult<Vec<Keyword<'py>>> {
    let keywords = keywords.into_iter().flatten();
    keywords.map(|(name, value)| Ok(Keyword { name: name.extract()?, value })).collect()
}

/// By Python's own JSON, which serde then reads: other than pythonize, it takes NaN for no JSON.
fn json_members(value: &Bound<'_, PyAny>) -> PyResult<Map<String, Value>> {
    let py = value.py();
    let members = PyDict::new(py);
    members.update(value.cast::<PyMapping>()?)?;
    let text: String = py.import("json")?.call_method1("dumps", (members,))?.extract()?;
    let members = serde_json::from_str(&text);
    members.map_err(|_| refused(py, "members= holds something that is not JSON."))
}

/// The series that the keywords name; what is left out has a default.
pub(super) fn identity(ids: Option<&Bound<'_, PyDict>>) -> PyResult<Identity> {
    let mut identity = Identity::new("S1", "L1", "M1", "D1", "T1");
    for Keyword { name, value } in all(ids)? {
        let id = match name.as_str() {
            "site" => &mut identity.site,
            "line" => &mut identity.line,
            "machine" => &mut identity.machine,
            "device" => &mut identity.device,
            "tag" => &mut identity.tag,
            _ => return Err(unexpected(&name, &["site", "line", "machine", "device", "tag"])),
        };
        *id = if value.is_none() { None } else { Some(value.str()?.to_cow()?.as_ref().into()) };
    }
    Ok(identity)
}

/// JSON text as it is; anything else as JSON text.
pub(super) fn json_text(value: &Bound<'_, PyAny>) -> PyResult<String> {
    match value.cast::<PyString>() {
        Ok(text) => Ok(text.to_cow()?.into_owned()),
        Err(_) => state::json_text(value),
    }
}

/// An argument that may be left out.
pub(super) fn optional<'py, T>(
    value: Option<&Bound<'py, PyAny>>,
    name: &str,
    read: impl FnOnce(&Bound<'py, PyAny>, &str) -> PyResult<T>,
) -> PyResult<Option<T>> {
    value.map(|value| read(value, name)).transpose()
}

/// Whole seconds, 1 or more.
pub(super) fn whole_seconds(value: &Bound<'_, PyAny>, name: &str) -> PyResult<u32> {
    let length = duration(value, name)?;
    let seconds = u32::try_from(length.as_secs()).ok();
    seconds
        .filter(|seconds| *seconds > 0 && length.subsec_nanos() == 0)
        .ok_or_else(|| refused(value.py(), format!("{name}= is not a whole number of seconds.")))
}

/// An instant as microseconds since the Unix epoch.
pub(super) fn microseconds(value: &Bound<'_, PyAny>, name: &str) -> PyResult<i64> {
    Ok(instant(value, name)?.as_microsecond())
}
