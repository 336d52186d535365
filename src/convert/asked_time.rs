//! Times of users. Dates and times without an offset are in a zone: that of the read, or UTC.

use jiff::SignedDuration;
use jiff::tz::TimeZone;

use crate::convert::values::{plain, prefixed, text};
use crate::prelude::*;
use siteline_core::data::{AskedRange, AskedTime, OUT_OF_RANGE};

const INSTANT_HINT: &str = "Give an aware datetime, a pandas Timestamp with a zone, ISO text such as \
    \"2026-11-01T00:00:00Z\", a date, or a time before now such as \"-7d\". Reads also take tz=, the zone of naive times.";

pub(crate) fn asked_range(
    [start, end]: [Option<&Object<'_>>; 2],
    zone: &TimeZone,
) -> PyResult<AskedRange> {
    let bound = |given: &Object<'_>, name: &str| asked_time(given, name, zone);
    Ok(AskedRange { start: optional(start, "start", bound)?, end: optional(end, "end", bound)? })
}

/// Calls `now` only for a relative time.
pub(crate) fn instant_before(
    value: &Object<'_>,
    name: &str,
    zone: &TimeZone,
    now: impl FnOnce() -> PyResult<Timestamp>,
) -> PyResult<Timestamp> {
    let asked = asked_time(value, name, zone)?;
    let now = if let AskedTime::At(at) = asked { at } else { now()? };
    asked.resolve(name, now, None).or_raise()
}

pub(crate) fn asked_time(value: &Object<'_>, name: &str, zone: &TimeZone) -> PyResult<AskedTime> {
    let py = value.py();
    let refused = |what: &str| {
        let error = Error::new(Kind::QueryError, format!("{name}= {what}"));
        error.with_hint(INSTANT_HINT).into_py_err()
    };
    let is_text = value.is_instance_of::<PyString>();
    let given = if is_text { value.clone() } else { plain(value, "instant", refused)? };
    if let Ok(written) = given.cast::<PyString>() {
        return AskedTime::parse(&text(written, name, Kind::QueryError)?, Some(zone))
            .map_err(|error| prefixed(py, &format!("{name}="), error));
    }
    let at = Timestamp::from_nanosecond(given.extract()?).map_err(|_| refused(OUT_OF_RANGE))?;
    Ok(AskedTime::At(at))
}

/// The name and the zone.
pub(crate) fn zone(given: &Object<'_>) -> PyResult<(String, TimeZone)> {
    zone_or(given, Kind::QueryError)
}

pub(crate) fn zone_or(given: &Object<'_>, kind: Kind) -> PyResult<(String, TimeZone)> {
    let named = match given.cast::<PyString>() {
        Ok(name) => text(name, "tz", kind)?,
        Err(_) => {
            named_offset(given)?.map_or_else(|| given.str().map(|name| name.to_string()), Ok)?
        }
    };
    let zone = TimeZone::get(&named).or_else(|_| {
        let module = given.py().import("siteline._selection")?;
        let near = module.call_method1("nearest_zones", (&named,))?;
        let hint = format!(
            "{near}Give a name of the IANA database, such as \"Europe/Berlin\", a ZoneInfo, or an offset of \
             whole hours."
        );
        let message = format!("tz={:?} is no time zone", excerpt(&named));
        Err(Error::new(kind, message).with_hint(hint)).or_raise()
    })?;
    let name = zone.iana_name().map_or(named, str::to_owned);
    Ok((name, zone))
}

/// The IANA name of a fixed offset. polars and `zoneinfo` know only whole hours.
fn named_offset(given: &Object<'_>) -> PyResult<Option<String>> {
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
