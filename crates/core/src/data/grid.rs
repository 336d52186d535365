//! The grid of buckets. The interface does not document its origin. siteline assumes multiples of
//! the interval since the Unix epoch, in UTC.

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::query::Query;
use super::ranges::{ceil, floor, instant};

const DAY: u64 = 86_400;

const IN_UTC: &str = " Buckets of a day, and dates without tz=, are in UTC.";

impl Query {
    /// `start`, `end`.
    pub(crate) fn bounds_off_grid(&self) -> Vec<&'static str> {
        self.off_grid().map(|(name, ..)| name).collect()
    }

    /// The bounds inside a bucket, each with the next multiple outside the range.
    fn off_grid(&self) -> impl Iterator<Item = (&'static str, Timestamp, Timestamp)> {
        let width = self.interval_seconds().map_or(1, i64::from);
        let bound = |name, at: Option<Timestamp>, outward: fn(i64, i64) -> i64| {
            let whole = instant(outward(at?.as_second(), width));
            at.filter(|at| *at != whole).map(|at| (name, at, whole))
        };
        [bound("start", self.start(), floor), bound("end", self.end(), ceil)].into_iter().flatten()
    }

    /// Suggests other bounds. Days of a zone other than UTC have their own warning. `None` for
    /// bounds on the grid.
    pub(crate) fn grid_warning(&self, zone: Option<&TimeZone>) -> Option<String> {
        if let Some(warning) = zone.and_then(|zone| self.day_warning(zone)) {
            return Some(warning);
        }
        let off = || self.off_grid();
        let given: Vec<String> = off().map(|(name, at, _)| format!("{name}={at}")).collect();
        let whole: Vec<String> =
            off().map(|(name, _, whole)| format!("{name}=\"{whole}\"")).collect();
        let width = seconds(self.interval_seconds()?.into());
        let are = match given.len() {
            0 => return None,
            1 => "is not a multiple",
            _ => "are no multiples",
        };
        let days = if width.as_secs().is_multiple_of(DAY) { IN_UTC } else { "" };
        Some(format!(
            "{} {are} of interval=\"{}\" in UTC, and buckets begin at multiples.{days} For whole \
             buckets use {}.",
            given.join(" and "),
            spelled(width),
            whole.join(", "),
        ))
    }

    /// For buckets of a day and bounds that are days of another zone than UTC.
    fn day_warning(&self, zone: &TimeZone) -> Option<String> {
        let width = seconds(self.interval_seconds()?.into());
        let is_local = |at: Timestamp| zone.to_offset(at).seconds() != 0;
        if !width.as_secs().is_multiple_of(DAY)
            || ![self.start(), self.end()].into_iter().flatten().any(is_local)
        {
            return None;
        }
        let (width, zone) = (spelled(width), zone.iana_name().unwrap_or("the local zone"));
        Some(format!(
            "interval=\"{width}\" returns days of UTC, not of {zone}. For local days use \
             client.read(..., interval=\"1h\").resample(\"{width}\", \"mean\"), or another agg."
        ))
    }
}

fn seconds(count: i64) -> Duration {
    Duration::from_secs(count.unsigned_abs())
}

/// A duration as an argument spells it: `1d`, `1h30m`, `0s`.
pub fn spelled(duration: Duration) -> String {
    let mut seconds = duration.as_secs();
    let mut text = String::new();
    for (unit, length) in [("d", DAY), ("h", 3_600), ("m", 60), ("s", 1)] {
        if seconds >= length {
            text = format!("{text}{}{unit}", seconds / length);
            seconds %= length;
        }
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::QueryInput;

    fn query(start: Option<&str>, end: Option<&str>, width: u32) -> Query {
        let at = |text: &str| text.parse().expect("a time");
        let (start, end, interval_seconds) = (start.map(at), end.map(at), Some(width));
        Query::new(QueryInput { start, end, interval_seconds, ..QueryInput::default() })
            .expect("a query")
    }

    #[test]
    fn k17_bounds_inside_buckets_have_a_warning() {
        let berlin = query(Some("2026-10-31T23:00:00Z"), Some("2026-11-03T23:00:00Z"), 86_400);
        assert_eq!(berlin.bounds_off_grid(), ["start", "end"]);
        assert_eq!(
            berlin.grid_warning(None).expect("a warning"),
            "start=2026-10-31T23:00:00Z and end=2026-11-03T23:00:00Z are no multiples of \
             interval=\"1d\" in UTC, and buckets begin at multiples. Buckets of a day, and dates \
             without tz=, are in UTC. For whole buckets use start=\"2026-10-31T00:00:00Z\", \
             end=\"2026-11-04T00:00:00Z\"."
        );
        let one = query(Some("2026-11-01T00:00:00Z"), Some("2026-11-01T02:00:00Z"), 86_400);
        assert_eq!(one.bounds_off_grid(), ["end"]);
        let text = one.grid_warning(None).expect("a warning");
        assert!(text.starts_with("end=2026-11-01T02:00:00Z is not a multiple of"), "{text}");
        let start = query(Some("2026-11-01T00:00:07Z"), None, 60).grid_warning(None);
        let text = start.expect("a warning");
        assert!(text.ends_with("use start=\"2026-11-01T00:00:00Z\"."), "{text}");
        let end = query(None, Some("1960-01-01T00:00:30Z"), 60).grid_warning(None);
        assert!(end.expect("a warning").ends_with("use end=\"1960-01-01T00:01:00Z\"."));
    }

    #[test]
    fn k17_bounds_on_the_grid_have_no_warning() {
        for (start, end, width) in [
            (Some("2026-11-01T00:00:00Z"), Some("2026-11-02T00:00:00Z"), 86_400),
            (Some("2026-11-01T00:00:00Z"), Some("2026-11-01T12:00:00Z"), 43_200),
            (None, None, 86_400),
        ] {
            let query = query(start, end, width);
            assert_eq!((query.grid_warning(None), query.bounds_off_grid().len()), (None, 0));
        }
        let input = QueryInput { start: "2026-11-01T00:00:07Z".parse().ok(), ..Default::default() };
        let without_interval = Query::new(input).expect("a query");
        assert_eq!(without_interval.grid_warning(None), None);
    }
}
