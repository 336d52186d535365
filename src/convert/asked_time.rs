//! The bounds of a read, and `tz=`: the zone on whose clock dates and naive times are meant.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::bridge::errors::OrRaise as _;
use crate::convert::values::{instant, prefixed, text};
use siteline_core::data::{AskedRange, AskedTime, parse_instant_in};
use siteline_core::error::{Error, Kind, excerpt};

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

/// A time zone and its name: from a name of the IANA database, a `zoneinfo.ZoneInfo`, a
/// `datetime.timezone` of whole hours.
///
/// # Errors
/// `QueryError` for anything else.
pub(crate) fn zone(given: &Bound<'_, PyAny>) -> PyResult<(String, TimeZone)> {
    zone_or(given, Kind::QueryError)
}

/// As [`zone`], with an error of this kind.
pub(crate) fn zone_or(given: &Bound<'_, PyAny>, kind: Kind) -> PyResult<(String, TimeZone)> {
    let named = match given.cast::<PyString>() {
        Ok(name) => text(name, "tz", kind)?,
        Err(_) => {
            named_offset(given)?.map_or_else(|| given.str().map(|name| name.to_string()), Ok)?
        }
    };
    let zone = TimeZone::get(&named)
        .map_err(|_| {
            let message = format!("tz={:?} is no time zone", excerpt(&named));
            Error::new(kind, message).with_hint(
                "Give a name of the IANA database, such as \"Europe/Berlin\", a ZoneInfo, or an offset of \
                 whole hours.",
            )
        })
        .or_raise()?;
    let name = zone.iana_name().map_or(named, str::to_owned);
    Ok((name, zone))
}

/// The name of a zone of whole hours, such as `datetime.timezone(timedelta(hours=2))`. polars and `zoneinfo`
/// know no other fixed offsets.
fn named_offset(given: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    let py = given.py();
    if !given.get_type().is(&py.import("datetime")?.getattr("timezone")?) {
        return Ok(None);
    }
    let offset: SignedDuration = given.call_method1("utcoffset", (py.None(),))?.extract()?;
    let hours = offset.as_hours();
    Ok(match hours {
        _ if SignedDuration::from_hours(hours) != offset => None,
        0 => Some("UTC".to_owned()),
        -12..=14 => Some(format!("Etc/GMT{:+}", -hours)),
        _ => None,
    })
}
