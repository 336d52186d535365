//! Counts the buckets of each series and period.

use std::collections::HashSet;

use arrow_array::{Float64Array, Int64Array};

use super::super::point_columns::{Identity, PointColumns};
use super::super::ranges::Range;
use super::super::table::TableBuilder;
use super::expected::Expected;
use super::local_grid::LocalGrid;
use super::rebucket::crossing;
use super::series::by_series;
use crate::error::{Error, Kind, Result};

const MOST_ROWS: usize = 1 << 26;

/// One row for each series and period. `buckets`, `missing` and `unread` add up to `expected`.
#[derive(Debug)]
pub struct Completeness {
    /// The rows have no measures.
    pub rows: PointColumns,
    /// `buckets` divided by `expected`.
    pub share: Float64Array,
    pub buckets: Int64Array,
    /// Read and absent.
    pub missing: Int64Array,
    /// Not requested, or never read.
    pub unread: Int64Array,
    /// Buckets that fit into the period.
    pub expected: Int64Array,
}

struct Period {
    range: Range,
    expected: i64,
    read: i64,
}

pub struct Completing<'a> {
    expected: &'a Expected,
    periods: Vec<Period>,
    /// The series with points, and the buckets of each in each period.
    series: Vec<Identity>,
    there: Vec<i64>,
}

impl<'a> Completing<'a> {
    pub fn new(expected: &'a Expected, grid: &mut LocalGrid) -> Result<Self> {
        let periods = periods(expected, grid)?;
        Ok(Self { expected, periods, series: Vec::new(), there: Vec::new() })
    }

    /// The parts of a table must be ordered by series, then time.
    pub fn add(&mut self, points: &PointColumns) -> Result<()> {
        self.expected.check(points)?;
        for series in by_series(points) {
            if self.series.last() != Some(series.identity) {
                self.begin(series.identity.clone())?;
            }
            let start = self.there.len() - self.periods.len();
            count(&series.times, &self.periods, self.expected, &mut self.there[start..]);
        }
        Ok(())
    }

    fn begin(&mut self, series: Identity) -> Result<()> {
        self.series.push(series);
        let rows = self.series.len().saturating_mul(self.periods.len());
        if rows > MOST_ROWS {
            return Err(too_many(self.periods.len(), self.series.len()));
        }
        self.there.resize(rows, 0);
        Ok(())
    }

    /// Series in `silent` are included even without points.
    pub fn finish(mut self, silent: &[Identity]) -> Result<Completeness> {
        let known: HashSet<Identity> = self.series.iter().cloned().collect();
        for series in silent.iter().filter(|series| !known.contains(*series)) {
            self.begin(series.clone())?;
        }
        let mut table = TableBuilder::new(self.there.len());
        for series in &self.series {
            for period in &self.periods {
                table.push(period.range.start, [None; 3], None);
            }
            table.series(series);
        }
        let counts = || self.there.iter().copied().zip(self.periods.iter().cycle());
        let column = |of: fn(i64, &Period) -> i64| -> Int64Array {
            counts().map(|(there, period)| of(there, period)).collect()
        };
        #[expect(clippy::cast_precision_loss, reason = "numbers of buckets")]
        let share = |(there, period): (i64, &Period)| there as f64 / period.expected as f64;
        Ok(Completeness {
            rows: table.finish()?,
            share: counts().map(share).collect(),
            buckets: column(|there, _| there),
            missing: column(|there, period| period.read - there),
            unread: column(|_, period| period.expected - period.read),
            expected: column(|_, period| period.expected),
        })
    }
}

fn too_many(periods: usize, series: usize) -> Error {
    let message = format!("{periods} periods of {series} series are too many rows.");
    Error::new(Kind::QueryError, message).with_hint("Use longer periods or a shorter range.")
}

/// The periods with requested time.
fn periods(expected: &Expected, grid: &mut LocalGrid) -> Result<Vec<Period>> {
    let mut found: Vec<Period> = Vec::new();
    for asked in expected.asked.iter() {
        let known = found.last().map_or(asked.start, |last| last.range.end);
        let mut at = asked.start.max(known);
        while at < asked.end {
            let range = grid.bucket(at);
            let width = expected.width;
            if let Some(cut) = [range.start, range.end].into_iter().find(|cut| cut % width != 0) {
                return Err(crossing(cut - cut.rem_euclid(width), width, cut));
            }
            let read = expected.read_in(range).map(|read| expected.count(read)).sum();
            let fit = expected.count(range);
            at = range.end;
            found.push(Period { range, expected: fit, read });
            if found.len() > MOST_ROWS {
                return Err(too_many(found.len(), 1));
            }
        }
    }
    Ok(found)
}

/// Adds the present and read buckets of each period.
fn count(times: &[i64], periods: &[Period], expected: &Expected, there: &mut [i64]) {
    let (Some(first), Some(last)) = (times.first(), times.last()) else { return };
    let before = |at: i64| times.partition_point(|time| *time < at);
    let from = periods.partition_point(|period| period.range.end <= *first);
    for (period, there) in periods.iter().zip(there).skip(from) {
        if period.range.start > *last {
            break;
        }
        let read = expected.read_in(period.range);
        let count: usize = read.map(|read| before(read.end) - before(read.start)).sum();
        *there += i64::try_from(count).unwrap_or(i64::MAX);
    }
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;
    use proptest::prelude::*;

    use super::super::local_grid::Every;
    use super::*;
    use crate::data::test_points;

    const HOUR: i64 = 3_600_000_000;

    fn points(hours: &[i64]) -> PointColumns {
        let point = |hour| ("a", hour * HOUR, ([Some(1.0), None, None], None));
        test_points::points(hours.iter().map(point))
    }

    /// Adds the hours in parts of seven.
    fn completeness(
        hours: &[i64],
        expected: &Expected,
        grid: &mut LocalGrid,
    ) -> Result<Completeness> {
        let mut counted = Completing::new(expected, grid)?;
        for part in hours.chunks(7) {
            counted.add(&points(part))?;
        }
        counted.finish(&[])
    }

    fn expected(asked: (i64, i64), read: &[(i64, i64)]) -> Expected {
        let hours = |(start, end): &(i64, i64)| start * HOUR..end * HOUR;
        Expected::new(3_600, [hours(&asked)], read.iter().map(hours))
    }

    fn days(zone: &str) -> LocalGrid {
        grid(TimeZone::get(zone).expect("a zone"), 24)
    }

    fn grid(zone: TimeZone, hours: i64) -> LocalGrid {
        LocalGrid::new(zone, Every::Microseconds(hours * HOUR), None).expect("a grid")
    }

    /// Present, missing, unread and expected buckets of each period.
    fn counts(found: &Completeness) -> Vec<[i64; 4]> {
        let columns = [&found.buckets, &found.missing, &found.unread, &found.expected];
        (0..found.rows.rows()).map(|row| columns.map(|column| column.value(row))).collect()
    }

    #[test]
    fn a_local_day_expects_as_many_hours_as_it_has() {
        // 2026-10-25T00:00+02:00 to the next midnight.
        let start = 1_792_879_200 / 3_600;
        let asked = expected((start, start + 25), &[(start, start + 25)]);
        let found = completeness(&[start], &asked, &mut days("Europe/Berlin")).expect("rows");
        assert_eq!(counts(&found), [[1, 24, 0, 25]]);
        let error = completeness(&[start], &asked, &mut days("Asia/Kolkata"));
        let error = error.expect_err("half an hour").to_string();
        assert!(error.contains("overlaps two larger buckets"), "{error}");
    }

    #[test]
    fn no_series_are_no_rows() {
        let found = completeness(&[], &expected((0, 24), &[]), &mut days("UTC"));
        assert_eq!(found.expect("rows").rows.rows(), 0);
    }

    proptest! {
        #[test]
        fn counts_equal_a_plain_loop(
            there in prop::collection::btree_set(-30..130_i64, 1..60),
            (start, size) in (-40..60_i64, 1..100_i64),
            holes in prop::collection::vec((-40..120_i64, 0..30_i64), 0..4),
            width in 1..30_i64,
        ) {
            let is_read = |hour: &i64| {
                (start..start + size).contains(hour)
                    && !holes.iter().any(|(from, length)| (*from..from + length).contains(hour))
            };
            let read: Vec<_> = (-60..200).filter(is_read).map(|hour| (hour, hour + 1)).collect();
            let hours: Vec<i64> = there.iter().copied().collect();
            let mut grid = grid(TimeZone::UTC, width);
            let asked = expected((start, start + size), &read);
            let found = completeness(&hours, &asked, &mut grid).expect("rows");
            let first = start.div_euclid(width);
            let wanted: Vec<_> = (first..=(start + size - 1).div_euclid(width)).map(|period| {
                let hours = period * width..(period + 1) * width;
                let read: Vec<i64> = hours.clone().filter(is_read).collect();
                let has = read.iter().filter(|hour| there.contains(hour)).count();
                let [has, read] = [has, read.len()].map(|count| i64::try_from(count).expect("small"));
                [has, read - has, width - read, width]
            }).collect();
            prop_assert_eq!(counts(&found), wanted);
        }
    }
}
