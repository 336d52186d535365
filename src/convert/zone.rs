//! `tz=`: a time zone.

use jiff::tz::TimeZone;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::bridge::errors::OrRaise as _;
use crate::convert::values::text;
use siteline_core::error::{Error, Kind, excerpt};

/// A time zone and its name: from a name of the IANA database, a `zoneinfo.ZoneInfo`, `datetime.timezone.utc`.
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
        Err(_) => given.str()?.to_string(),
    };
    let zone = TimeZone::get(&named)
        .map_err(|_| {
            let message = format!("tz={:?} is no time zone", excerpt(&named));
            Error::new(kind, message).with_hint(
                "Give a name of the IANA database, such as \"Europe/Berlin\", or a ZoneInfo.",
            )
        })
        .or_raise()?;
    let name = zone.iana_name().map_or(named, str::to_owned);
    Ok((name, zone))
}
