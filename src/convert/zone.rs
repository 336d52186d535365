//! `tz=`: a time zone.

use jiff::SignedDuration;
use jiff::tz::TimeZone;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::bridge::errors::OrRaise as _;
use crate::convert::values::text;
use siteline_core::error::{Error, Kind, excerpt};

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
