use std::io::ErrorKind;

use crate::convert::clock::on_clock;
use crate::convert::state::keywords;
use crate::prelude::*;
use siteline_core::data::Ids;
use siteline_core::system;
use siteline_sandbox::{Fault, FaultArgs, Identity, Options, SandboxError};

pub(super) fn refused(failure: SandboxError) -> Error {
    let Some(error) = failure.refusal() else {
        return Error::new(Kind::ConfigError, failure.to_string());
    };
    // Only the start of a thread fails with this error.
    let no_thread = (error.kind() == ErrorKind::WouldBlock).then(system::no_thread);
    let error = no_thread.as_ref().unwrap_or(error);
    let refused = Error::new(Kind::ConfigError, format!("{failure}: {}", system::reason(error)));
    match system::advice(error) {
        Some(advice) => refused.with_hint(advice).with(|context| context.passing = true),
        None => refused,
    }
}

impl IntoPyErr for SandboxError {
    fn into_py_err(self) -> PyErr {
        refused(self).into_py_err()
    }
}

pub(super) fn identity(ids: Ids) -> Identity {
    let [site, line, machine, device, tag] = ids.map(|id| id.map(Into::into));
    Identity { site, line, machine, device, tag }
}

pub(super) fn options(given: &Bound<'_, PyDict>) -> PyResult<Options> {
    for name in ["interval", "max_interval", "max_range"] {
        if let Some(value) = given.get_item(name)? {
            given.set_item(name, whole_seconds(&value, name)?)?;
        }
    }
    keywords(given)
}

pub(super) fn faults(
    on: &Object<'_>,
    delay: Option<&Object<'_>>,
    options: &Bound<'_, PyDict>,
) -> PyResult<Vec<Fault>> {
    let delay = optional(delay, "delay", duration)?.map(|delay| delay.as_secs_f64());
    let arguments: FaultArgs = keywords(options)?;
    FaultArgs { delay, ..arguments }.faults(restore(on)?).or_raise()
}

/// 1 or more.
pub(super) fn whole_seconds(value: &Object<'_>, name: &str) -> PyResult<u32> {
    let length = duration(value, name)?;
    let seconds = u32::try_from(length.as_secs()).ok().filter(|seconds| *seconds > 0);
    let whole = seconds.filter(|_| length.subsec_nanos() == 0);
    let refused = || SandboxError::new(format!("{name}= is not a whole number of seconds."));
    whole.ok_or_else(refused).or_raise()
}

/// A relative time counts from the sandbox's.
pub(super) fn microseconds(clock: &Clock) -> impl Fn(&Object<'_>, &str) -> PyResult<i64> {
    move |value, name| Ok(on_clock(clock, value, name)?.as_microsecond())
}
