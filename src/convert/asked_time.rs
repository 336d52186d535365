//! The bounds of a read, and `tz=`: the zone on whose clock dates and naive times are meant.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::bridge::errors::OrRaise as _;
use crate::convert::values::{instant, prefixed, text};
use crate::convert::zone::zone;
use siteline_core::data::{AskedRange, AskedTime, parse_instant_in};
use siteline_core::error::Kind;

/// A range from the arguments `start`, `end` and `tz`.
///
/// # Errors
/// `QueryError` for what is no time, and for a zone that is none.
pub(crate) fn asked_range(
    start: Option<&Bound<'_, PyAny>>,
    end: Option<&Bound<'_, PyAny>>,
    tz: Option<&Bound<'_, PyAny>>,
) -> PyResult<AskedRange> {
    let zone = clock_of(tz)?;
    let bound = |given: Option<&Bound<'_, PyAny>>, name: &str| {
        given.map(|given| asked_time(given, name, zone.as_ref())).transpose()
    };
    Ok(AskedRange { start: bound(start, "start")?, end: bound(end, "end")? })
}

/// The zone of `tz=`; `None` where none is given, and naive times are refused.
pub(crate) fn clock_of(tz: Option<&Bound<'_, PyAny>>) -> PyResult<Option<TimeZone>> {
    Ok(tz.map(zone).transpose()?.map(|(_, zone)| zone))
}

/// An instant, or one before now: `now`, `-7d`. `now` is called only for these.
///
/// # Errors
/// `QueryError` for what is no time, those of `now`.
pub(crate) fn instant_before(
    value: &Bound<'_, PyAny>,
    name: &str,
    zone: Option<&TimeZone>,
    now: impl FnOnce() -> PyResult<Timestamp>,
) -> PyResult<Timestamp> {
    match asked_time(value, name, zone)? {
        AskedTime::At(at) => Ok(at),
        before @ AskedTime::Before(_) => before.at(now()?, None).or_raise(),
    }
}

/// An instant, or a time before now; with a zone, dates and naive times are of its clock.
pub(crate) fn asked_time(
    value: &Bound<'_, PyAny>,
    name: &str,
    zone: Option<&TimeZone>,
) -> PyResult<AskedTime> {
    let Ok(string) = value.cast::<PyString>() else {
        return instant_on(value, name, zone).map(AskedTime::At);
    };
    AskedTime::parse(&text(string, name, Kind::QueryError)?, zone)
        .map_err(|error| prefixed(value.py(), &format!("{name}="), error))
}

/// As [`instant`]; with a zone, dates and naive times are of its clock.
pub(crate) fn instant_on(
    value: &Bound<'_, PyAny>,
    name: &str,
    zone: Option<&TimeZone>,
) -> PyResult<Timestamp> {
    let py = value.py();
    let written: Option<String> = match (zone, value.cast::<PyString>()) {
        (None, _) => None,
        (Some(_), Ok(string)) => Some(text(string, name, Kind::QueryError)?),
        (Some(_), Err(_)) => {
            let arguments = py.import("siteline._arguments")?;
            arguments.getattr("local_text")?.call1((value,))?.extract()?
        }
    };
    let Some(written) = written else { return instant(value, name) };
    parse_instant_in(&written, zone).map_err(|error| prefixed(py, &format!("{name}="), error))
}
