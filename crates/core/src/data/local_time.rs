//! Times in a zone. When clocks change, some local times are skipped and others occur twice. Their
//! errors contain the unambiguous forms.

use jiff::civil::{Date, DateTime};
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use jiff::{SignedDuration, Timestamp};

use super::instant::{OUT_OF_RANGE, Written, parse_written};
use crate::error::{Error, Kind, Result};

/// With a zone, a date is a local day, and a text without an offset is a local time. A day or time
/// that the clock skips and a time that occurs twice are a `QueryError`.
pub fn parse_instant_in(text: &str, zone: Option<&TimeZone>) -> Result<Timestamp> {
    let (at, written) = parse_written(text, zone.is_some())?;
    let Some(zone) = zone else { return Ok(at) };
    let local = TimeZone::UTC.to_datetime(at);
    match written {
        Written::Instant => Ok(at),
        Written::Day => day_begins(local.date(), zone),
        Written::LocalTime => on_clock(local, zone),
    }
}

/// Some zones set their clocks forward over midnight, others repeat it. A skipped day is a
/// `QueryError`: Samoa skipped one when it crossed the date line.
fn day_begins(day: Date, zone: &TimeZone) -> Result<Timestamp> {
    let midnight = zone.to_ambiguous_timestamp(day.to_datetime(jiff::civil::Time::midnight()));
    let is_skipped = matches!(midnight.offset(), AmbiguousOffset::Gap { .. });
    let at = if is_skipped { midnight.later() } else { midnight.earlier() };
    let at = at.map_err(|_| refused(day, OUT_OF_RANGE))?;
    if !is_skipped {
        return Ok(at);
    }
    // The clock was set forward at this instant, or earlier.
    let after = at.checked_add(SignedDuration::from_micros(1)).unwrap_or(at);
    let set = zone.preceding(after).next().map_or(at, |transition| transition.timestamp());
    if zone.to_datetime(set).date() == day {
        return Ok(set);
    }
    let why = format!("does not exist in {}: the clock skipped the whole day.", name(zone));
    let next = zone.to_datetime(set).date();
    Err(refused(day, &why).with_hint(format!("The next day is {next}.")))
}

/// The `QueryError` for a skipped or repeated time has both readings in its hint.
fn on_clock(local: DateTime, zone: &TimeZone) -> Result<Timestamp> {
    let found = zone.to_ambiguous_timestamp(local);
    let (why, (first, second)) = match found.offset() {
        AmbiguousOffset::Unambiguous { .. } => {
            return found.earlier().map_err(|_| refused(local, OUT_OF_RANGE));
        }
        AmbiguousOffset::Gap { before, after } => {
            ("does not exist: clocks are set forward over it.", (before, after))
        }
        AmbiguousOffset::Fold { before, after } => {
            ("occurs twice: clocks are set back over it.", (before, after))
        }
    };
    let reading = |offset: Offset| -> Result<(String, DateTime)> {
        let at = offset.to_timestamp(local).map_err(|_| refused(local, OUT_OF_RANGE))?;
        Ok((written(at, offset), zone.to_datetime(at)))
    };
    let ((first, first_shown), (second, second_shown)) = (reading(first)?, reading(second)?);
    let hint = if first_shown == second_shown {
        format!("Use {first:?} for the first time, {second:?} for the second.")
    } else {
        format!("Use {first:?} ({first_shown} there) or {second:?} ({second_shown} there).")
    };
    Err(refused(local, &format!("in {} {why}", name(zone))).with_hint(hint))
}

/// The instant with its offset if that is whole minutes, otherwise in UTC.
fn written(at: Timestamp, offset: Offset) -> String {
    if offset.seconds() % 60 == 0 {
        at.display_with_offset(offset).to_string()
    } else {
        at.to_string()
    }
}

fn name(zone: &TimeZone) -> &str {
    zone.iana_name().unwrap_or("this zone")
}

fn refused(what: impl std::fmt::Display, why: &str) -> Error {
    Error::new(Kind::QueryError, format!("\"{what}\" {why}"))
}

#[cfg(test)]
mod tests {
    use jiff::ToSpan as _;
    use proptest::prelude::*;

    use super::*;

    fn zone(name: &str) -> TimeZone {
        TimeZone::get(name).expect("a zone")
    }

    fn read(text: &str, name: &str) -> String {
        parse_instant_in(text, Some(&zone(name))).map_or_else(
            |error| format!("{:?}: {error}", error.kind()).replace('\n', " "),
            |at| at.to_string(),
        )
    }

    #[test]
    fn dates_and_times_without_an_offset_are_local() {
        for (text, expected) in [
            ("2026-10-25", "2026-10-24T22:00:00Z"),
            (" 2026-10-26 ", "2026-10-25T23:00:00Z"),
            ("2026-10-25T06:00", "2026-10-25T05:00:00Z"),
            ("2026-07-01 06:00:30", "2026-07-01T04:00:30Z"),
            ("2026-07-01T06:00:00.25", "2026-07-01T04:00:00.25Z"),
            // A text with its own zone is an instant.
            ("2026-10-25T06:00Z", "2026-10-25T06:00:00Z"),
            ("2026-10-25T06:00+09:00", "2026-10-24T21:00:00Z"),
            // The offset changed earlier on this day.
            ("2026-03-29T03:00", "2026-03-29T01:00:00Z"),
        ] {
            assert_eq!(read(text, "Europe/Berlin"), expected, "{text}");
        }
    }

    #[test]
    fn k13_a_skipped_or_repeated_local_time_is_refused() {
        for (text, name, expected) in [
            (
                "2026-03-29T02:30",
                "Europe/Berlin",
                "QueryError: \"2026-03-29T02:30:00\" in Europe/Berlin does not exist: clocks are set \
                 forward over it. Use \"2026-03-29T02:30:00+01:00\" (2026-03-29T03:30:00 there) or \
                 \"2026-03-29T02:30:00+02:00\" (2026-03-29T01:30:00 there).",
            ),
            (
                "2026-10-25T02:30",
                "Europe/Berlin",
                "QueryError: \"2026-10-25T02:30:00\" in Europe/Berlin occurs twice: clocks are set back \
                 over it. Use \"2026-10-25T02:30:00+02:00\" for the first time, \
                 \"2026-10-25T02:30:00+01:00\" for the second.",
            ),
            (
                // Liberia's offset of 44 minutes and 30 seconds cannot be written in ISO 8601.
                "1972-01-07T00:10",
                "Africa/Monrovia",
                "QueryError: \"1972-01-07T00:10:00\" in Africa/Monrovia does not exist: clocks are set \
                 forward over it. Use \"1972-01-07T00:54:30Z\" (1972-01-07T00:54:30 there) or \
                 \"1972-01-07T00:10:00+00:00\" (1972-01-06T23:25:30 there).",
            ),
        ] {
            assert_eq!(read(text, name), expected);
        }
    }

    #[test]
    fn a_day_begins_at_its_first_instant() {
        for (text, name, expected) in [
            // Forward from midnight to one o'clock.
            ("2018-11-04", "America/Sao_Paulo", "2018-11-04T03:00:00Z"),
            // Forward from half an hour before midnight to half an hour after it.
            ("1919-03-31", "America/Toronto", "1919-03-31T04:30:00Z"),
            // Back from one o'clock to midnight, which occurs twice.
            ("2026-11-01", "America/Havana", "2026-11-01T04:00:00Z"),
            // Back from a minute after midnight to a minute after eleven: the first midnight.
            ("2006-10-29", "America/St_Johns", "2006-10-29T02:30:00Z"),
            // Back from midnight to eleven: midnight occurs once, an hour later.
            ("2018-02-18", "America/Sao_Paulo", "2018-02-18T03:00:00Z"),
            // The day after the one that Samoa skipped.
            ("2011-12-31", "Pacific/Apia", "2011-12-30T10:00:00Z"),
        ] {
            assert_eq!(read(text, name), expected, "{text} in {name}");
        }
        assert_eq!(
            read("2011-12-30", "Pacific/Apia"),
            "QueryError: \"2011-12-30\" does not exist in Pacific/Apia: the clock skipped the whole \
             day. The next day is 2011-12-31."
        );
    }

    #[test]
    fn a_local_time_out_of_range_is_refused() {
        for text in
            ["9999-12-31", "9999-12-30T23:00", "2026-02-29", "2026-02-29T06:00", "2026-02-28T24:00"]
        {
            let shown = read(text, "Pacific/Honolulu");
            assert!(shown.starts_with("QueryError: "), "{text}: {shown}");
        }
        assert!(read("2026-12-31T23:59:60", "Europe/Berlin").contains("leap second"));
    }

    proptest! {
        /// The end of a day is the start of the next. No local time of the day precedes its start,
        /// and its length is plausible.
        #[test]
        fn days_of_a_zone_are_consecutive(
            name in prop::sample::select(vec![
                "Europe/Berlin", "America/New_York", "America/Sao_Paulo", "America/Havana",
                "America/St_Johns", "Australia/Lord_Howe", "Africa/Cairo", "Asia/Beirut",
                "Asia/Kathmandu", "Asia/Tokyo", "Pacific/Chatham", "America/Asuncion",
            ]),
            day in 0..30_i32 * 366,
        ) {
            let zone = zone(name);
            let day = jiff::civil::date(1996, 1, 1).checked_add(day.days()).expect("a day");
            let next = day.tomorrow().expect("a day");
            let (begins, ends) = (day_begins(day, &zone).expect("begins"), day_begins(next, &zone).expect("ends"));
            let hours = ends.duration_since(begins).as_secs_f64() / 3_600.0;
            prop_assert!([23.0, 23.5, 24.0, 24.5, 25.0].contains(&hours), "{day} has {hours} h");
            let shown = |at: Timestamp| zone.to_datetime(at).date();
            prop_assert_eq!(shown(begins), day);
            let before = begins.checked_sub(SignedDuration::from_secs(1)).expect("a time");
            prop_assert!(shown(before) < day);
            let written = parse_instant_in(&day.to_string(), Some(&zone)).expect("a day");
            prop_assert_eq!(written, begins);
        }

        #[test]
        fn a_time_on_a_clock_is_when_the_clock_shows_it(
            name in prop::sample::select(vec!["Europe/Berlin", "Australia/Lord_Howe", "America/St_Johns"]),
            minute in 0..30_i64 * 366 * 1_440,
        ) {
            let zone = zone(name);
            let local = jiff::civil::date(1996, 1, 1).at(0, 0, 0, 0).checked_add(minute.minutes()).expect("a time");
            match on_clock(local, &zone) {
                Ok(at) => prop_assert_eq!(zone.to_datetime(at), local),
                Err(_) => prop_assert!(zone.to_ambiguous_timestamp(local).is_ambiguous()),
            }
        }
    }
}
