//! The arguments of the sandbox's methods.

use std::io::ErrorKind;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::bridge::errors::IntoPyErr;
use crate::bridge::errors::OrRaise as _;
use crate::convert::clock::on_clock;
use crate::convert::keywords::{Keyword, keywords, record};
use crate::convert::values::{duration, optional};
use siteline_base::clock::Clock;
use siteline_core::error::{Error, Kind};
use siteline_core::system;
use siteline_sandbox::{Fault, FaultArgs, Identity, Options, SandboxError};

/// A failure of the sandbox is a wrong setting of the test that uses it.
impl IntoPyErr for SandboxError {
    fn into_py_err(self) -> PyErr {
        let Some(error) = self.refusal() else {
            return Error::new(Kind::ConfigError, self.to_string()).into_py_err();
        };
        // Only the start of a thread fails with this error.
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

/// Site, line, machine, device, tag.
pub(super) type Ids = [Option<String>; 5];

pub(super) fn identity(ids: Ids) -> Identity {
    let [site, line, machine, device, tag] = ids.map(|id| id.map(Into::into));
    Identity { site, line, machine, device, tag }
}

/// The options of `Sandbox(...)` and of its `Variant(...)`.
pub(super) fn options(given: &Bound<'_, PyDict>) -> PyResult<Options> {
    let py = given.py();
    let mut keywords = keywords(Some(given))?;
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
    delay: Option<&Bound<'_, PyAny>>,
    options: &Bound<'_, PyDict>,
) -> PyResult<Vec<Fault>> {
    let on = Keyword { name: "on".to_owned(), value: on }.deserialize()?;
    let delay = optional(delay, "delay", duration)?.map(|delay| delay.as_secs_f64());
    let arguments: FaultArgs = record(options.py(), &keywords(Some(options))?)?;
    FaultArgs { delay, ..arguments }.faults(on).or_raise()
}

/// Whole seconds, 1 or more.
pub(super) fn whole_seconds(value: &Bound<'_, PyAny>, name: &str) -> PyResult<u32> {
    let length = duration(value, name)?;
    let seconds = u32::try_from(length.as_secs()).ok().filter(|seconds| *seconds > 0);
    let whole = seconds.filter(|_| length.subsec_nanos() == 0);
    let refused = || SandboxError::new(format!("{name}= is not a whole number of seconds."));
    whole.ok_or_else(refused).or_raise()
}

/// Reads an instant, or one before the sandbox's time, as microseconds since the Unix epoch.
pub(super) fn microseconds(clock: &Clock) -> impl Fn(&Bound<'_, PyAny>, &str) -> PyResult<i64> {
    move |value, name| Ok(on_clock(clock, value, name)?.as_microsecond())
}
