//! Times on the clock of a zone. Where clocks are set forward and back there are times that do not exist,
//! and times that come twice: these are refused, with how to write what is meant, never guessed.

use jiff::civil::{Date, DateTime};
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use jiff::{SignedDuration, Timestamp};

use super::instant::{OUT_OF_RANGE, Written, parse_written};
use crate::error::{Error, Kind, Result};

/// As [`parse_instant`](super::parse_instant); with a zone, a date alone is a day of its clock, and a text
/// without an offset a time on it.
///
/// # Errors
/// As `parse_instant`; `Kind::QueryError` too for a day or a time that the clock skips, and for a time that
/// it shows twice.
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

/// The first instant of a day. Midnight is not always one: some zones set their clocks forward over it,
/// others let it come twice.
///
/// # Errors
/// `Kind::QueryError` for a day that a clock skipped as a whole, as Samoa's did on crossing the date line,
/// and for one out of range.
fn day_begins(day: Date, zone: &TimeZone) -> Result<Timestamp> {
    let midnight = zone.to_ambiguous_timestamp(day.to_datetime(jiff::civil::Time::midnight()));
    let is_skipped = matches!(midnight.offset(), AmbiguousOffset::Gap { .. });
    let at = if is_skipped { midnight.later() } else { midnight.earlier() };
    let at = at.map_err(|_| refused(day, OUT_OF_RANGE))?;
    if !is_skipped {
        return Ok(at);
    }
    // The clock was set forward before that, or then.
    let after = at.checked_add(SignedDuration::from_micros(1)).unwrap_or(at);
    let set = zone.preceding(after).next().map_or(at, |transition| transition.timestamp());
    if zone.to_datetime(set).date() == day {
        return Ok(set);
    }
    let why = format!("does not exist in {}: the clock was set forward over all of it", name(zone));
    let next = zone.to_datetime(set).date();
    Err(refused(day, &why)
        .with_hint(format!("The day after it, {next}, begins when it would have.")))
}

/// The instant at which a clock shows this time.
///
/// # Errors
/// `Kind::QueryError` for a time that the clock skips, or shows twice, with how to write both readings;
/// and for one out of range.
fn on_clock(local: DateTime, zone: &TimeZone) -> Result<Timestamp> {
    let found = zone.to_ambiguous_timestamp(local);
    let (why, (first, second)) = match found.offset() {
        AmbiguousOffset::Unambiguous { .. } => {
            return found.earlier().map_err(|_| refused(local, OUT_OF_RANGE));
        }
        AmbiguousOffset::Gap { before, after } => {
            ("does not exist: clocks are set forward over it", (before, after))
        }
        AmbiguousOffset::Fold { before, after } => {
            ("comes twice: clocks are set back over it", (before, after))
        }
    };
    let reading = |offset: Offset| -> Result<(String, DateTime)> {
        let at = offset.to_timestamp(local).map_err(|_| refused(local, OUT_OF_RANGE))?;
        Ok((written(at, offset), zone.to_datetime(at)))
    };
    let ((first, first_shown), (second, second_shown)) = (reading(first)?, reading(second)?);
    let hint = if first_shown == second_shown {
        format!("Write {first:?} for the first time, {second:?} for the second.")
    } else {
        format!(
            "Write {first:?}, which is {first_shown} there, or {second:?}, which is {second_shown}."
        )
    };
    Err(refused(local, &format!("in {} {why}", name(zone))).with_hint(hint))
}

/// An instant as a user can write it: with its offset, if that is whole minutes.
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
            |error| format!("{:?}: {error}", error.kind()).replace('\n', ". "),
            |at| at.to_string(),
        )
    }

    #[test]
    fn a_date_is_a_day_and_a_time_without_an_offset_a_time_of_the_clock() {
        for (text, expected) in [
            ("2026-10-25", "2026-10-24T22:00:00Z"),
            (" 2026-10-26 ", "2026-10-25T23:00:00Z"),
            ("2026-10-25T06:00", "2026-10-25T05:00:00Z"),
            ("2026-07-01 06:00:30", "2026-07-01T04:00:30Z"),
            ("2026-07-01T06:00:00.25", "2026-07-01T04:00:00.25Z"),
            // What has a zone of its own is an instant.
            ("2026-10-25T06:00Z", "2026-10-25T06:00:00Z"),
            ("2026-10-25T06:00+09:00", "2026-10-24T21:00:00Z"),
            // A day as long as others, that ends in another offset than it begins.
            ("2026-03-29T03:00", "2026-03-29T01:00:00Z"),
        ] {
            assert_eq!(read(text, "Europe/Berlin"), expected, "{text}");
        }
    }

    #[test]
    fn k13_a_local_time_that_does_not_exist_or_comes_twice_is_refused_with_both_readings() {
        for (text, name, expected) in [
            (
                "2026-03-29T02:30",
                "Europe/Berlin",
                "QueryError: \"2026-03-29T02:30:00\" in Europe/Berlin does not exist: clocks are set \
                 forward over it. Write \"2026-03-29T02:30:00+01:00\", which is 2026-03-29T03:30:00 \
                 there, or \"2026-03-29T02:30:00+02:00\", which is 2026-03-29T01:30:00.",
            ),
            (
                "2026-10-25T02:30",
                "Europe/Berlin",
                "QueryError: \"2026-10-25T02:30:00\" in Europe/Berlin comes twice: clocks are set back \
                 over it. Write \"2026-10-25T02:30:00+02:00\" for the first time, \
                 \"2026-10-25T02:30:00+01:00\" for the second.",
            ),
            (
                // Liberia's offset of 44 minutes and 30 seconds cannot be written in ISO 8601.
                "1972-01-07T00:10",
                "Africa/Monrovia",
                "QueryError: \"1972-01-07T00:10:00\" in Africa/Monrovia does not exist: clocks are set \
                 forward over it. Write \"1972-01-07T00:54:30Z\", which is 1972-01-07T00:54:30 there, or \
                 \"1972-01-07T00:10:00+00:00\", which is 1972-01-06T23:25:30.",
            ),
        ] {
            assert_eq!(read(text, name), expected);
        }
    }

    #[test]
    fn the_readings_that_are_proposed_are_what_they_say() {
        for (text, first, second) in [
            ("2026-03-29T02:30", "2026-03-29T02:30:00+01:00", "2026-03-29T02:30:00+02:00"),
            ("2026-10-25T02:30", "2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00"),
        ] {
            let error = read(text, "Europe/Berlin");
            assert!(error.contains(first) && error.contains(second), "{error}");
            assert!(read(first, "Europe/Berlin").ends_with('Z'));
        }
    }

    #[test]
    fn a_day_begins_at_its_first_instant_where_midnight_is_skipped_or_comes_twice() {
        for (text, name, expected) in [
            // From midnight to one o'clock.
            ("2018-11-04", "America/Sao_Paulo", "2018-11-04T03:00:00Z"),
            // From half an hour before midnight to half an hour after it.
            ("1919-03-31", "America/Toronto", "1919-03-31T04:30:00Z"),
            // From one o'clock back to midnight, which comes twice.
            ("2026-11-01", "America/Havana", "2026-11-01T04:00:00Z"),
            // From a minute after midnight back to a minute after eleven: the first midnight.
            ("2006-10-29", "America/St_Johns", "2006-10-29T02:30:00Z"),
            // From midnight back to eleven: midnight comes once, an hour later.
            ("2018-02-18", "America/Sao_Paulo", "2018-02-18T03:00:00Z"),
            // The day after the one that Samoa skipped.
            ("2011-12-31", "Pacific/Apia", "2011-12-30T10:00:00Z"),
        ] {
            assert_eq!(read(text, name), expected, "{text} in {name}");
        }
        assert_eq!(
            read("2011-12-30", "Pacific/Apia"),
            "QueryError: \"2011-12-30\" does not exist in Pacific/Apia: the clock was set forward over \
             all of it. The day after it, 2011-12-31, begins when it would have."
        );
    }

    #[test]
    fn what_lies_out_of_range_on_a_clock_is_refused() {
        for text in
            ["9999-12-31", "9999-12-30T23:00", "2026-02-29", "2026-02-29T06:00", "2026-02-28T24:00"]
        {
            let shown = read(text, "Pacific/Honolulu");
            assert!(shown.starts_with("QueryError: "), "{text}: {shown}");
        }
        assert!(read("2026-12-31T23:59:60", "Europe/Berlin").contains("leap second"));
    }

    proptest! {
        /// The end of a day is the beginning of the next; before its beginning the clock shows no time of
        /// it, and it is as long as the clock says.
        #[test]
        fn days_of_a_zone_part_the_time(
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

        /// A time on a clock is the instant at which the clock shows it, or refused.
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
