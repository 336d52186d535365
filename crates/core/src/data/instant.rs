//! Instants as users write them.

use jiff::Timestamp;

use super::decode::timestamp::{DateMemo, FIRST_MICROSECOND, IsoFault, parse_iso};
use crate::error::{Error, Kind, Result, excerpt};

/// The valid range: instants that have a local time of a Python `datetime` in every zone.
pub const OUT_OF_RANGE: &str =
    "is out of range. Use a time from 0001-01-02T00:00:00Z to 9999-12-30T22:00:00Z.";
/// The first of these instants.
const FIRST: Timestamp = Timestamp::constant(-62_135_510_400, 0);

/// Rejects a new time before the valid range. jiff has no instant after it.
pub(super) fn check_range(name: &str, at: Timestamp) -> Result<()> {
    if at < FIRST {
        return Err(Error::new(Kind::QueryError, format!("{name} {OUT_OF_RANGE}")));
    }
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    Instant,
    Day,
    LocalTime,
}

/// Parses ISO 8601 with a zone (`2026-11-01T00:00Z`, `2026-11-01T02:00:00+02:00`), or a date, which
/// is midnight in UTC. Rejects fractions finer than a microsecond. If `has_clock`, a text without a
/// zone is read as UTC, otherwise it is rejected.
pub(super) fn parse_written(text: &str, has_clock: bool) -> Result<(Timestamp, Written)> {
    let trimmed = text.trim();
    let mut memo = DateMemo::default();
    let parsed = parse_iso(trimmed.as_bytes(), &mut memo);
    let mut completed = |rest| parse_iso(format!("{trimmed}{rest}").as_bytes(), &mut memo);
    let (parsed, written) = match parsed {
        Err(IsoFault::DateOnly) => (completed("T00:00Z"), Written::Day),
        Err(IsoFault::NoZone) if has_clock => (completed("Z"), Written::LocalTime),
        parsed => (parsed, Written::Instant),
    };
    let refused = |why: &str| Error::new(Kind::QueryError, format!("{:?} {why}", excerpt(text)));
    let parsed = parsed.map_err(|fault| match fault {
        IsoFault::NoZone => refused("has no time zone.").with_hint(format!(
            "Use {:?} for UTC, or add an offset such as +02:00. Reads also accept tz=\"Europe/Berlin\".",
            excerpt(&format!("{trimmed}Z"))
        )),
        IsoFault::OutOfRange => refused(OUT_OF_RANGE),
        IsoFault::DateOnly | IsoFault::Form => {
            refused("is not an ISO 8601 time.").with_hint(
                "Use a time such as \"2026-11-01T00:00Z\", a date such as \"2026-11-01\", or a time \
                 before now such as \"-7d\".",
            )
        }
    })?;
    if parsed.leap_second || parsed.truncated {
        return Err(refused("is a leap second, or finer than a microsecond."));
    }
    let at = Timestamp::from_microsecond(parsed.microseconds).map_err(|_| refused(OUT_OF_RANGE))?;
    Ok((at, written))
}

/// Rejects a bound finer than a second or before year 1. Stored feeds may begin with its first day.
pub(super) fn check_bound(name: &str, bound: Timestamp) -> Result<()> {
    if bound.subsec_nanosecond() != 0 {
        let message = format!("{name} {bound} is finer than a second.");
        return Err(Error::new(Kind::QueryError, message).with_hint("Round it to whole seconds."));
    }
    if bound.as_microsecond() < FIRST_MICROSECOND {
        return Err(Error::new(Kind::QueryError, format!("{name} {OUT_OF_RANGE}")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_utc(text: &str) -> Result<Timestamp> {
        parse_written(text, false).map(|(at, _)| at)
    }

    #[test]
    fn instants_with_a_zone_are_parsed() {
        for text in [
            "2026-11-01T00:00Z",
            "2026-11-01T00:00:00Z",
            " 2026-11-01t00:00:00.000z ",
            "2026-11-01 02:00:00+02:00",
            "2026-10-31T19:00-0500",
            "2026-11-01",
            " 2026-11-01 ",
        ] {
            assert_eq!(parse_utc(text).unwrap().to_string(), "2026-11-01T00:00:00Z", "{text}");
        }
        let fine = parse_utc("2026-11-01T00:00:00.123456Z").unwrap();
        assert_eq!(fine.to_string(), "2026-11-01T00:00:00.123456Z");
        assert_eq!(check_bound("start", fine).unwrap_err().kind(), Kind::QueryError);
    }

    #[test]
    fn k13_the_first_and_the_last_instant_are_named() {
        for text in ["0001-01-02T00:00:00Z", "9999-12-30T22:00:00Z"] {
            assert!(check_bound("end", parse_utc(text).unwrap()).is_ok(), "{text}");
            assert!(OUT_OF_RANGE.contains(text));
        }
        // A stored feed may begin with the day before, a new one may not.
        let first_day = parse_utc("0001-01-01").unwrap();
        assert!(check_bound("start", first_day).is_ok());
        let early = check_range("start", first_day).unwrap_err().to_string();
        assert!(early.starts_with("start is out of range."), "{early}");
        let late = parse_utc("9999-12-31T23:59:59Z").unwrap_err().to_string();
        assert!(late.contains(OUT_OF_RANGE), "{late}");
    }

    #[test]
    fn k13_an_invalid_or_too_fine_instant_is_refused() {
        for text in [
            "",
            "yesterday",
            "2026-13-01T00:00Z",
            "2026-02-29",
            "0000-01-01",
            "2026-11",
            "2026-02-29T00:00Z",
            "2026-11-01T24:01Z",
            "2026-12-31T23:59:60Z",
            "2026-11-01T00:00:00.0000001Z",
            "0000-01-01T00:00Z",
            "9999-12-31T23:59:59Z",
            "2026-11-01T00:00+25:00",
            "ü",
        ] {
            assert_eq!(parse_utc(text).unwrap_err().kind(), Kind::QueryError, "{text}");
        }
    }
}
