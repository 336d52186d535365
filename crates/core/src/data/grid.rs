//! The grid of buckets. The interface does not document its origin. siteline assumes multiples of
//! the interval since the Unix epoch, in UTC.

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::query::Query;

const DAY: u64 = 86_400;
/// Minimum length of a proposed smaller interval.
const SHORTEST_PROPOSED: i64 = 60;

const IN_UTC: &str = " Buckets of a day, and dates without tz=, are in UTC.";

struct OffGrid {
    name: &'static str,
    at: i64,
    width: i64,
}

impl Query {
    /// `start`, `end`.
    pub(crate) fn bounds_off_grid(&self) -> Vec<&'static str> {
        self.off_grid().map(|bound| bound.name).collect()
    }

    fn off_grid(&self) -> impl Iterator<Item = OffGrid> {
        let width = self.interval_seconds().map_or(1, i64::from);
        let bounds = [("start", self.start()), ("end", self.end())];
        bounds.into_iter().filter_map(move |(name, at)| {
            let bound = OffGrid { name, at: at?.as_second(), width };
            (bound.at.rem_euclid(width) != 0).then_some(bound)
        })
    }

    /// Describes the returned buckets and suggests other bounds. Days of a zone other than UTC have
    /// their own warning. `None` for bounds on the grid.
    pub(crate) fn grid_warning(&self, zone: Option<&TimeZone>) -> Option<String> {
        if let Some(warning) = zone.and_then(|zone| self.day_warning(zone)) {
            return Some(warning);
        }
        let off: Vec<OffGrid> = self.off_grid().collect();
        let width = off.first()?.width;
        let list = |item: fn(&OffGrid) -> String| off.iter().map(item).collect::<Vec<_>>();
        let given = list(|bound| format!("{}={}", bound.name, shown(bound.at))).join(" and ");
        let whole =
            list(|bound| format!("{}=\"{}\"", bound.name, shown(bound.outward()))).join(", ");
        let (is, a_multiple) =
            if off.len() == 1 { ("is", "not a multiple") } else { ("are", "no multiples") };
        let smaller = smaller_interval(&off).map_or_else(String::new, |smaller| {
            format!(", or keep the range with interval=\"{smaller}\"")
        });
        let days = if seconds(width).as_secs().is_multiple_of(DAY) { IN_UTC } else { "" };
        Some(format!(
            "{given} {is} {a_multiple} of interval=\"{}\" in UTC: {}.{days} For whole buckets use \
             {whole}{smaller}.",
            spelled(seconds(width)),
            self.buckets(width),
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

    /// Describes the buckets that begin in the range.
    fn buckets(&self, width: i64) -> String {
        let bound = |at: Option<Timestamp>| at.map(Timestamp::as_second);
        let (start, end) = (bound(self.start()), bound(self.end()));
        let first = start.map(|start| start + (-start).rem_euclid(width));
        let after = end.map(|end| end + (-end).rem_euclid(width));
        if let (Some(first), Some(end)) = (first, end)
            && first >= end
        {
            return "no bucket begins in this range".to_owned();
        }
        let ends =
            [("first", "begins", first, "start", start), ("last", "ends", after, "end", end)];
        let ends = ends.into_iter().filter_map(|(which, verb, at, name, given)| {
            let (at, late) = (at?, seconds(at? - given?));
            let late = if late.is_zero() {
                String::new()
            } else {
                format!(", {} after {name}", spelled(late))
            };
            Some(format!("the {which} bucket {verb} at {}{late}", shown(at)))
        });
        ends.collect::<Vec<_>>().join(", and ")
    }
}

impl OffGrid {
    /// The next multiple outside the range.
    fn outward(&self) -> i64 {
        let down = self.at - self.at.rem_euclid(self.width);
        if self.name == "end" { down + self.width } else { down }
    }
}

/// The longest interval that fits the bounds, as for days of another time zone.
fn smaller_interval(off: &[OffGrid]) -> Option<String> {
    let fits =
        off.iter().fold(off.first()?.width, |width, bound| greatest_divisor(width, bound.at));
    (fits >= SHORTEST_PROPOSED).then(|| spelled(seconds(fits)))
}

fn greatest_divisor(one: i64, other: i64) -> i64 {
    if other == 0 { one } else { greatest_divisor(other, one.rem_euclid(other)).abs() }
}

fn shown(second: i64) -> String {
    Timestamp::from_second(second).map_or_else(|_| "?".to_owned(), |at| at.to_string())
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
             interval=\"1d\" in UTC: the first bucket begins at 2026-11-01T00:00:00Z, 1h after start, \
             and the last bucket ends at 2026-11-04T00:00:00Z, 1h after end. Buckets of a day, and \
             dates without tz=, are in UTC. For whole buckets use \
             start=\"2026-10-31T00:00:00Z\", end=\"2026-11-04T00:00:00Z\", or keep the range with \
             interval=\"1h\"."
        );
        let one = query(Some("2026-11-01T00:00:00Z"), Some("2026-11-01T02:00:00Z"), 86_400);
        assert_eq!(one.bounds_off_grid(), ["end"]);
        let text = one.grid_warning(None).expect("a warning");
        assert!(text.starts_with("end=2026-11-01T02:00:00Z is not a multiple of"), "{text}");
        assert!(
            text.contains("begins at 2026-11-01T00:00:00Z, and the last bucket ends"),
            "{text}"
        );
        assert!(text.ends_with("or keep the range with interval=\"2h\"."), "{text}");
    }

    #[test]
    fn k17_a_range_without_a_bucket_has_a_warning() {
        let none = query(Some("2026-11-01T00:20:00Z"), Some("2026-11-01T00:40:00Z"), 3_600);
        let text = none.grid_warning(None).expect("a warning");
        assert!(text.contains("UTC: no bucket begins in this range. For"), "{text}");
        let start = query(Some("2026-11-01T00:00:07Z"), None, 60).grid_warning(None);
        let text = start.expect("a warning");
        assert!(
            text.contains("the first bucket begins at 2026-11-01T00:01:00Z, 53s after"),
            "{text}"
        );
        assert!(text.ends_with("use start=\"2026-11-01T00:00:00Z\"."), "{text}");
        let end = query(None, Some("1960-01-01T00:00:30Z"), 60).grid_warning(None);
        assert!(end.expect("a warning").contains("ends at 1960-01-01T00:01:00Z, 30s after end"));
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
