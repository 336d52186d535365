//! Buckets of local time. When clocks change, a local day has 23 or 25 hours.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan as _};
use serde::{Deserialize, Serialize};

use super::super::ranges::Range;
use crate::error::{Error, Kind, Result};

const DAY: i64 = 86_400_000_000;
/// Buckets of whole weeks begin on Mondays.
const WEEK: i64 = 7 * DAY;
/// From Thursday, 1970-01-01, to Monday.
const MONDAY: i64 = 4 * 86_400_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Every {
    Microseconds(i64),
    Month,
}

impl Every {
    /// The length, if all buckets have the same one.
    pub fn microseconds(self) -> Option<i64> {
        if let Self::Microseconds(width) = self { Some(width) } else { None }
    }
}

/// On the local clock, buckets begin at the origin and at each multiple of the length before and
/// after it. Repeated local time extends a bucket, unless it is a complete bucket, which then
/// occurs twice. Skipped local time shortens a bucket.
pub struct LocalGrid {
    zone: TimeZone,
    every: Every,
    /// Microseconds of the local clock since 1970-01-01T00:00, or since the first midnight of the
    /// month. Less than the width.
    phase: i64,
    /// The stretch of the last instant.
    stretch: Stretch,
}

/// A range of time with one offset from UTC, in microseconds.
#[derive(Clone)]
struct Stretch {
    range: Range,
    offset: i64,
}

impl LocalGrid {
    /// `origin` is in microseconds of the local clock since 1970-01-01T00:00. Less than a day is a
    /// time of day.
    pub fn new(zone: TimeZone, every: Every, origin: Option<i64>) -> Result<Self> {
        let phase = match every {
            Every::Microseconds(width) => {
                let default = if width % WEEK == 0 { MONDAY } else { 0 };
                // A time of day shifts the start of the week, and a date replaces it.
                let of_day = origin.filter(|origin| (0..DAY).contains(origin));
                of_day.map_or(origin.unwrap_or(default), |time| default + time).rem_euclid(width)
            }
            Every::Month => origin.map_or(0, |origin| origin - month(origin, 0)),
        };
        if every == Every::Month && phase >= 28 * DAY {
            let message = "origin= is after the 28th, so some months do not contain it.";
            return Err(Error::new(Kind::QueryError, message));
        }
        Ok(Self { zone, every, phase, stretch: Stretch { range: Range::default(), offset: 0 } })
    }

    /// `instant` is in microseconds since the epoch.
    pub fn bucket(&mut self, instant: i64) -> Range {
        Range::new(self.start(instant), self.end(instant))
    }

    fn start(&mut self, instant: i64) -> i64 {
        let Stretch { range, offset } = self.stretch(instant);
        let local = self.floor(instant + offset);
        let start = local - offset;
        if start >= range.start {
            return start;
        }
        if self.goes_on(range.start, local) { self.start(range.start - 1) } else { range.start }
    }

    fn end(&mut self, instant: i64) -> i64 {
        let Stretch { range, offset } = self.stretch(instant);
        let local = self.floor(instant + offset);
        let end = self.after(local) - offset;
        // A bucket that ends when clocks are set back may continue.
        if end < range.end || range.end == i64::MAX {
            return end;
        }
        if self.goes_on(range.end, local) { self.end(range.end) } else { range.end }
    }

    /// Whether the bucket that starts at `local` continues over the clock change at `set`: not if
    /// it occurs twice completely.
    fn goes_on(&mut self, set: i64, local: i64) -> bool {
        let [before, after] = [set - 1, set].map(|at| self.stretch(at).offset);
        let is_both = self.floor(set - 1 + before) == local && self.floor(set + after) == local;
        let is_twice = set + after <= local && set + before >= self.after(local);
        is_both && !is_twice
    }

    fn floor(&self, local: i64) -> i64 {
        match self.every {
            Every::Microseconds(width) => local - (local - self.phase).rem_euclid(width),
            Every::Month => month(local - self.phase, 0) + self.phase,
        }
    }

    /// On the local clock.
    fn after(&self, local: i64) -> i64 {
        match self.every {
            Every::Microseconds(width) => local.saturating_add(width),
            Every::Month => month(local - self.phase, 1) + self.phase,
        }
    }

    fn stretch(&mut self, instant: i64) -> Stretch {
        if !self.stretch.range.has(instant) {
            let at = timestamp(instant);
            let offset = i64::from(self.zone.to_offset(at).seconds()) * 1_000_000;
            // `preceding` is exclusive, so the next microsecond includes a transition at this
            // instant.
            let after = at.checked_add(SignedDuration::from_micros(1)).unwrap_or(Timestamp::MAX);
            let earlier = self.zone.preceding(after).next();
            let later = self.zone.following(at).next();
            let second = |transition: jiff::tz::TimeZoneTransition<'_>| {
                transition.timestamp().as_microsecond()
            };
            let range =
                Range::new(earlier.map_or(i64::MIN, second), later.map_or(i64::MAX, second));
            self.stretch = Stretch { range, offset };
        }
        self.stretch.clone()
    }
}

/// The first midnight of this month, or of a later one.
fn month(local: i64, later: i64) -> i64 {
    let first = TimeZone::UTC.to_datetime(timestamp(local)).date().first_of_month();
    let first = first.checked_add(later.months()).unwrap_or(first);
    let midnight = TimeZone::UTC.to_timestamp(first.to_datetime(jiff::civil::Time::midnight()));
    midnight.map_or(local, Timestamp::as_microsecond)
}

pub(super) fn timestamp(microseconds: i64) -> Timestamp {
    let end = if microseconds < 0 { Timestamp::MIN } else { Timestamp::MAX };
    Timestamp::from_microsecond(microseconds).unwrap_or(end)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MINUTE: i64 = 60_000_000;
    const HOUR: i64 = 60 * MINUTE;

    fn grid(zone: &str, every: Every, origin: Option<i64>) -> LocalGrid {
        LocalGrid::new(TimeZone::get(zone).expect("a zone"), every, origin).expect("a grid")
    }

    fn at(text: &str) -> i64 {
        text.parse::<Timestamp>().expect("a time").as_microsecond()
    }

    fn bucket(zone: &str, width: i64, origin: Option<i64>, instant: &str) -> (String, String) {
        of_grid(&mut grid(zone, Every::Microseconds(width), origin), instant)
    }

    fn of_grid(grid: &mut LocalGrid, instant: &str) -> (String, String) {
        let Range { start, end } = grid.bucket(at(instant));
        (timestamp(start).to_string(), timestamp(end).to_string())
    }

    #[test]
    fn repeated_hours_are_two_buckets_and_skipped_hours_none() {
        for (width, instant, start, end) in [
            (HOUR, "2026-10-25T00:59:00Z", "2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z"),
            (HOUR, "2026-10-25T01:00:00Z", "2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z"),
            (HOUR, "2026-03-29T01:00:00Z", "2026-03-29T01:00:00Z", "2026-03-29T02:00:00Z"),
            (6 * HOUR, "2026-10-25T01:00:00Z", "2026-10-24T22:00:00Z", "2026-10-25T05:00:00Z"),
            (6 * HOUR, "2026-03-29T02:00:00Z", "2026-03-28T23:00:00Z", "2026-03-29T04:00:00Z"),
            // From two to four.
            (2 * HOUR, "2026-10-25T00:30:00Z", "2026-10-25T00:00:00Z", "2026-10-25T03:00:00Z"),
            (2 * HOUR, "2026-03-29T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-29T02:00:00Z"),
            // From midnight to three. The third hour occurs twice.
            (3 * HOUR, "2026-10-24T23:30:00Z", "2026-10-24T22:00:00Z", "2026-10-25T02:00:00Z"),
            (3 * HOUR, "2026-10-25T01:30:00Z", "2026-10-24T22:00:00Z", "2026-10-25T02:00:00Z"),
        ] {
            let expected = (start.to_owned(), end.to_owned());
            assert_eq!(bucket("Europe/Berlin", width, None, instant), expected, "{instant}");
        }
    }

    #[test]
    fn months_follow_the_local_clock() {
        let mut months = grid("Europe/Berlin", Every::Month, None);
        let march = of_grid(&mut months, "2026-03-31T21:59:59Z");
        assert_eq!(march, ("2026-02-28T23:00:00Z".to_owned(), "2026-03-31T22:00:00Z".to_owned()));
        let mut shifted = grid("UTC", Every::Month, Some(14 * DAY + 6 * HOUR));
        let bill = of_grid(&mut shifted, "2026-01-15T05:59:59Z");
        assert_eq!(bill, ("2025-12-15T06:00:00Z".to_owned(), "2026-01-15T06:00:00Z".to_owned()));
        let late = LocalGrid::new(TimeZone::UTC, Every::Month, Some(28 * DAY));
        assert!(late.is_err_and(|error| error.to_string().contains("after the 28th")));
    }

    #[test]
    fn unusual_offsets_and_a_skipped_day_are_handled() {
        let day = bucket("Asia/Kathmandu", DAY, None, "2026-11-26T00:00:00Z");
        assert_eq!(day, ("2026-11-25T18:15:00Z".to_owned(), "2026-11-26T18:15:00Z".to_owned()));
        // Samoa had no 30 December 2011.
        let day = bucket("Pacific/Apia", DAY, None, "2011-12-30T09:00:00Z");
        assert_eq!(day, ("2011-12-29T10:00:00Z".to_owned(), "2011-12-30T10:00:00Z".to_owned()));
    }

    proptest! {
        /// Each instant is in its bucket, all instants of a bucket return the same bucket, and the
        /// next bucket starts at its end.
        #[test]
        fn buckets_are_consecutive(
            zone in prop::sample::select(vec![
                "UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu",
                "Pacific/Apia", "Africa/Casablanca", "America/Sao_Paulo",
            ]),
            width in prop::sample::select(vec![
                MINUTE, 7 * MINUTE, 15 * MINUTE, 45 * MINUTE, HOUR, 90 * MINUTE, 2 * HOUR, 5 * HOUR, 6 * HOUR,
                3 * HOUR, DAY, 3 * DAY, WEEK, 0,
            ]),
            origin in prop::option::of(0..DAY / MINUTE),
            minutes in 20_000_000..32_000_000_i64,
            part in 0.0..1.0_f64,
        ) {
            let every = if width == 0 { Every::Month } else { Every::Microseconds(width) };
            let mut grid = grid(zone, every, origin.map(|origin| origin * MINUTE));
            let instant = minutes * MINUTE;
            let bucket = grid.bucket(instant);
            prop_assert!(bucket.has(instant));
            #[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "a test's instant")]
            let other = bucket.start + ((bucket.end - bucket.start) as f64 * part) as i64;
            for other in [other.min(bucket.end - 1), bucket.start, bucket.end - 1] {
                prop_assert_eq!(grid.bucket(other), bucket);
            }
            prop_assert_eq!(grid.bucket(bucket.end).start, bucket.end);
            prop_assert_eq!(grid.bucket(bucket.start - 1).end, bucket.start);
        }
    }
}
