//! Combines points into larger buckets, and counts the buckets in each.

use arrow_array::{BooleanArray, Int64Array};
use serde::Deserialize;

use super::super::choice::Choice;
use super::super::point_columns::{Identity, PointColumns, Values};
use super::super::ranges::Range;
use super::super::table::TableBuilder;
use super::expected::Coverage;
use super::local_grid::{LocalGrid, timestamp};
use super::series::by_series;
use crate::error::{Error, Kind, Result};

/// The source of a bucket's value, whose meaning the interface does not document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reduction {
    /// Weighted by counts; unweighted if a value has no count.
    Mean,
    Sum,
    First,
    Last,
    /// The increase of a counter's maximum.
    Increase,
}

/// The treatment of a bucket that was not read completely.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Partial {
    Null,
    Keep,
    Drop,
}

#[derive(Debug)]
pub struct Rebucketed {
    /// Their timestamps are the starts of the buckets.
    pub points: PointColumns,
    /// Number of the table's buckets in each.
    pub buckets: Int64Array,
    /// Buckets that fit into each; null if their width is unknown.
    pub expected: Int64Array,
    pub partial: BooleanArray,
    /// Means that are unweighted because a value has no count.
    pub unweighted: usize,
}

impl Choice for Reduction {
    const OPTION: &'static str = "agg";
    const CHOICES: &'static str = "\"mean\", \"sum\", \"first\", \"last\" and \"increase\"";
}

impl Choice for Partial {
    const OPTION: &'static str = "partial";
    const CHOICES: &'static str = "\"null\", \"keep\" and \"drop\"";
}

/// Neumaier's sum, which keeps the digits that a double loses.
#[derive(Default)]
struct Sum {
    sum: f64,
    lost: f64,
}

impl Sum {
    fn add(&mut self, number: f64) {
        let sum = self.sum + number;
        let (larger, smaller) =
            if self.sum.abs() >= number.abs() { (self.sum, number) } else { (number, self.sum) };
        self.lost += (larger - sum) + smaller;
        self.sum = sum;
    }

    fn total(&self) -> f64 {
        // NaN if the sum is infinite.
        if self.lost.is_nan() { self.sum } else { self.sum + self.lost }
    }
}

#[derive(Default)]
struct Bucket {
    range: Range,
    buckets: i64,
    minimum: Option<f64>,
    maximum: Option<f64>,
    count: Option<i64>,
    /// The sum of values or increases.
    sum: Sum,
    values: u32,
    /// The sum of values multiplied by their counts.
    weighted: Sum,
    weight: Sum,
    first: Option<f64>,
    last: Option<f64>,
    is_unweighted: bool,
}

impl Bucket {
    /// `number` is its value, or the increase up to it.
    fn add(&mut self, ([_, minimum, maximum], count): Values, number: Option<f64>) -> Result<()> {
        self.buckets += 1;
        self.minimum = self.minimum.into_iter().chain(minimum).reduce(f64::min);
        self.maximum = self.maximum.into_iter().chain(maximum).reduce(f64::max);
        if let Some(count) = count {
            let sum = self.count.unwrap_or_default().checked_add(count);
            self.count = Some(sum.ok_or_else(|| {
                Error::new(Kind::QueryError, "The counts of a bucket exceed 64 bits.")
            })?);
        }
        let Some(number) = number else { return Ok(()) };
        self.first = self.first.or(Some(number));
        self.last = Some(number);
        self.sum.add(number);
        self.values += 1;
        #[expect(clippy::cast_precision_loss, reason = "a weight of 53 bits")]
        match count.filter(|count| *count >= 0) {
            None => self.is_unweighted = true,
            Some(0) => {}
            Some(count) => {
                self.weighted.add(number * count as f64);
                self.weight.add(count as f64);
            }
        }
        Ok(())
    }

    fn value(&self, reduction: Reduction) -> Option<f64> {
        let any = self.first.map(|_| self.sum.total());
        match reduction {
            Reduction::First => self.first,
            Reduction::Last => self.last,
            Reduction::Sum | Reduction::Increase => any,
            Reduction::Mean if self.is_unweighted => any.map(|sum| sum / f64::from(self.values)),
            Reduction::Mean => {
                let weight = self.weight.total();
                (weight > 0.0).then(|| self.weighted.total() / weight)
            }
        }
    }
}

#[derive(Default)]
struct Counter(Option<(i64, f64)>);

impl Counter {
    /// The increase up to a point. A decrease is a reset to zero. The first point of a series, and
    /// the first after unread time, counts from its minimum.
    fn rise(&mut self, time: i64, values: &Values, coverage: &Coverage) -> Option<f64> {
        let [_, minimum, maximum] = values.0;
        let maximum = maximum?;
        let before = self.0.filter(|(seen, _)| !coverage.lacks(Range::new(*seen, time)));
        self.0 = Some((time, maximum));
        Some(match before {
            Some((_, before)) if before <= maximum => maximum - before,
            Some(_) => maximum,
            None => maximum - minimum.unwrap_or(maximum),
        })
    }
}

pub struct Rebucket<'a> {
    /// The width of the points' own buckets, in microseconds.
    pub width: Option<i64>,
    pub grid: &'a mut LocalGrid,
    pub reduction: Reduction,
    pub coverage: &'a Coverage,
    pub partial: Partial,
}

/// The buckets by series, then time.
pub struct Rebucketing<'a> {
    /// The last series, with its unfinished bucket.
    last: Option<(Identity, Option<Bucket>, Counter)>,
    table: TableBuilder,
    buckets: Vec<i64>,
    expected: Vec<Option<i64>>,
    partial: Vec<bool>,
    unweighted: usize,
    how: Rebucket<'a>,
}

impl<'a> Rebucketing<'a> {
    #[must_use]
    pub fn new(how: Rebucket<'a>) -> Self {
        Self {
            last: None,
            table: TableBuilder::new(0),
            buckets: Vec::new(),
            expected: Vec::new(),
            partial: Vec::new(),
            unweighted: 0,
            how,
        }
    }

    /// The parts of a table must be ordered by series, then time.
    pub fn add(&mut self, points: &PointColumns) -> Result<()> {
        for series in by_series(points) {
            let same = self.last.take_if(|last| last.0 == *series.identity);
            let (_, mut open, mut counter) = same.unwrap_or_else(|| {
                self.end_series();
                (series.identity.clone(), None, Counter::default())
            });
            for (place, time) in series.times.iter().enumerate() {
                let bucket = match &mut open {
                    Some(bucket) if *time < bucket.range.end => bucket,
                    ended => {
                        if let Some(bucket) = ended {
                            self.push(bucket);
                        }
                        let range = self.how.grid.bucket(*time);
                        ended.insert(Bucket { range, ..Bucket::default() })
                    }
                };
                self.check(*time, bucket.range)?;
                let values = points.values(series.rows.row(place));
                let number = match self.how.reduction {
                    Reduction::Increase => counter.rise(*time, &values, self.how.coverage),
                    _ => values.0[0],
                };
                bucket.add(values, number)?;
            }
            self.last = Some((series.identity.clone(), open, counter));
        }
        Ok(())
    }

    pub fn finish(mut self) -> Result<Rebucketed> {
        self.end_series();
        Ok(Rebucketed {
            points: self.table.finish()?,
            buckets: self.buckets.into(),
            expected: self.expected.into(),
            partial: self.partial.into(),
            unweighted: self.unweighted,
        })
    }

    fn end_series(&mut self) {
        let Some((identity, open, _)) = self.last.take() else { return };
        if let Some(bucket) = open {
            self.push(&bucket);
        }
        self.table.series(&identity);
    }

    fn push(&mut self, bucket: &Bucket) {
        let is_partial = !self.how.coverage.has(bucket.range);
        if is_partial && self.how.partial == Partial::Drop {
            return;
        }
        let is_null = is_partial && self.how.partial == Partial::Null;
        let value = bucket.value(self.how.reduction);
        let numbers = [value, bucket.minimum, bucket.maximum];
        let (numbers, count) = if is_null { ([None; 3], None) } else { (numbers, bucket.count) };
        self.table.push(bucket.range.start, numbers, count);
        self.buckets.push(bucket.buckets);
        self.partial.push(is_partial);
        let is_mean = self.how.reduction == Reduction::Mean && !is_null;
        self.unweighted += usize::from(is_mean && bucket.is_unweighted);
        // The multiples of the width in the range.
        let before = |at: i64| self.how.width.map(|width| (at - 1).div_euclid(width));
        let [first, last] = [bucket.range.start, bucket.range.end].map(before);
        self.expected.push(last.zip(first).map(|(last, first)| last - first));
    }

    fn check(&self, time: i64, range: Range) -> Result<()> {
        let crossed = self.how.width.filter(|width| time.saturating_add(*width) > range.end);
        let Some(width) = crossed else { return Ok(()) };
        Err(crossing(time, width, range.end))
    }
}

pub(super) fn crossing(time: i64, width: i64, end: i64) -> Error {
    let [time, end] = [time, end].map(timestamp);
    let seconds = width / 1_000_000;
    let message = format!(
        "The bucket of {time} is {seconds} s wide and overlaps two larger buckets. The second begins at {end}."
    );
    Error::new(Kind::QueryError, message)
        .with_hint("Read with a smaller interval= that divides both, or set another origin=.")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::ops::Add as _;

    use jiff::tz::TimeZone;
    use proptest::prelude::*;

    use super::super::expected::Expected;
    use super::super::local_grid::Every;
    use super::*;
    use crate::data::test_points;

    const MINUTE: i64 = 60_000_000;
    const HOUR: i64 = 60 * MINUTE;

    type Point = (&'static str, i64, [Option<f64>; 3], Option<i64>);
    type Shown = (String, i64, [Option<f64>; 3], Option<i64>, i64, Option<i64>);

    fn points(of: &[Point]) -> PointColumns {
        let point = |&(tag, time, numbers, count): &Point| (tag, time * MINUTE, (numbers, count));
        test_points::points(of.iter().map(point))
    }

    fn hours(origin: i64) -> LocalGrid {
        LocalGrid::new(TimeZone::UTC, Every::Microseconds(HOUR), Some(origin)).expect("a grid")
    }

    fn made(
        of: &[Point],
        (width, origin): (Option<i64>, i64),
        reduction: Reduction,
        (coverage, partial): (&Coverage, Partial),
    ) -> Result<Rebucketed> {
        let mut grid = hours(origin);
        let how = Rebucket { width, grid: &mut grid, reduction, coverage, partial };
        let mut made = Rebucketing::new(how);
        // Points by series and time may come in any parts.
        let ordered = of.is_sorted_by_key(|(tag, time, ..)| (*tag, *time));
        for part in of.chunks(if ordered { 7 } else { of.len().max(1) }) {
            made.add(&points(part))?;
        }
        made.finish()
    }

    fn rebucketed(of: &[Point], width: Option<i64>, reduction: Reduction) -> Vec<Shown> {
        let made = made(of, (width, 0), reduction, (&Coverage::All, Partial::Null));
        let Rebucketed { points, buckets, expected, .. } = made.expect("buckets");
        let rows = test_points::rows(&points).into_iter().zip(buckets.values()).zip(&expected);
        rows.map(|(((tag, time, (numbers, count)), buckets), expected)| {
            (tag, time / MINUTE, numbers, count, *buckets, expected)
        })
        .collect()
    }

    fn point(tag: &'static str, time: i64, value: f64, count: i64) -> Point {
        (tag, time, [Some(value), Some(value - 1.0), Some(value + 1.0)], Some(count))
    }

    #[test]
    fn each_measure_is_combined_and_buckets_are_counted() {
        let of = [
            point("a", 0, 1.0, 1),
            point("a", 15, 4.0, 3),
            ("a", 30, [None; 3], None),
            point("a", 60, 7.0, 2),
            point("b", 45, 9.0, 1),
        ];
        for (reduction, values) in [
            (Reduction::Mean, [Some(3.25), Some(7.0), Some(9.0)]),
            (Reduction::Sum, [Some(5.0), Some(7.0), Some(9.0)]),
            (Reduction::First, [Some(1.0), Some(7.0), Some(9.0)]),
            (Reduction::Last, [Some(4.0), Some(7.0), Some(9.0)]),
            (Reduction::Increase, [Some(5.0), Some(3.0), Some(2.0)]),
        ] {
            let row = |tag: &str, time, numbers, count, buckets| {
                (tag.to_owned(), time, numbers, Some(count), buckets, Some(4))
            };
            assert_eq!(
                rebucketed(&of, Some(15 * MINUTE), reduction),
                [
                    row("a", 0, [values[0], Some(0.0), Some(5.0)], 4, 3),
                    row("a", 60, [values[1], Some(6.0), Some(8.0)], 2, 1),
                    row("b", 0, [values[2], Some(8.0), Some(10.0)], 1, 1),
                ],
                "{reduction:?}"
            );
        }
    }

    #[test]
    fn a_mean_without_counts_is_unweighted_and_counted() {
        let value = |count| ("a", 0, [Some(1.0), None, None], count);
        let mean = |of: &[Point]| {
            let whole = (&Coverage::All, Partial::Null);
            let made = made(of, (None, 0), Reduction::Mean, whole).expect("buckets");
            (made.points.values(0).0[0], made.unweighted)
        };
        assert_eq!(mean(&[value(None), point("a", 1, 5.0, 3)]), (Some(3.0), 1));
        assert_eq!(mean(&[value(Some(-1)), point("a", 1, 5.0, 3)]), (Some(3.0), 1));
        assert_eq!(mean(&[value(Some(0)), point("a", 1, 5.0, 3)]), (Some(5.0), 0), "weight 0");
        assert_eq!(mean(&[value(Some(0))]), (None, 0));
        assert_eq!(rebucketed(&[value(Some(0))], None, Reduction::Sum)[0].5, None, "no width");
    }

    #[test]
    fn a_partial_bucket_has_no_value_unless_kept() {
        let of: Vec<Point> = [0, 30, 60, 120, 150].map(|time| point("a", time, 1.0, 1)).into();
        // The second bucket of the first hour was not read. The second hour lacks a point, but is
        // complete.
        let read = vec![0..30 * MINUTE, HOUR..3 * HOUR];
        let read = Coverage::Known(Expected::new(1_800, std::iter::once(0..3 * HOUR), read));
        let rows = |coverage: &Coverage, partial| {
            let made = made(&of, (Some(30 * MINUTE), 0), Reduction::Sum, (coverage, partial));
            let made = made.expect("buckets");
            let values = (0..made.points.rows()).map(|row| made.points.values(row));
            let values: Vec<_> = values.map(|(numbers, count)| (numbers[0], count)).collect();
            (values, made.partial.values().iter().collect::<Vec<_>>())
        };
        let [one, two] = [(Some(1.0), Some(1)), (Some(2.0), Some(2))];
        let marks = vec![true, false, false];
        assert_eq!(rows(&read, Partial::Null), (vec![(None, None), one, two], marks.clone()));
        assert_eq!(rows(&read, Partial::Keep), (vec![two, one, two], marks));
        assert_eq!(rows(&read, Partial::Drop), (vec![one, two], vec![false; 2]));
        assert_eq!(rows(&Coverage::part("", ""), Partial::Drop).0, []);
    }

    #[test]
    fn a_rise_over_unread_time_is_not_counted() {
        let of = [point("a", 0, 10.0, 1), point("a", 120, 50.0, 1), point("a", 150, 52.0, 1)];
        let rise = |read: Vec<std::ops::Range<i64>>| {
            let coverage = Coverage::Known(Expected::new(1_800, Vec::<Range>::new(), read));
            let whole = (&coverage, Partial::Keep);
            let made = made(&of, (None, 0), Reduction::Increase, whole).expect("buckets");
            [0, 1].map(|row| made.points.values(row).0[0])
        };
        let day = || std::iter::once(0..24 * HOUR).collect();
        assert_eq!(rise(day()), [Some(2.0), Some(42.0)], "points are missing");
        assert_eq!(rise(vec![0..HOUR, 2 * HOUR..3 * HOUR]), [Some(2.0), Some(4.0)]);
    }

    #[test]
    fn a_bucket_that_overlaps_two_is_refused() {
        let of = [point("a", 60, 1.0, 1)];
        let of_width = |width| {
            let whole = (&Coverage::All, Partial::Null);
            made(&of, (Some(width), 30 * MINUTE), Reduction::Sum, whole)
        };
        let error = of_width(HOUR).expect_err("in two").to_string();
        assert!(error.contains("The bucket of 1970-01-01T01:00:00Z is 3600 s wide"), "{error}");
        assert!(error.contains("begins at 1970-01-01T01:30:00Z"), "{error}");
        assert!(of_width(30 * MINUTE).is_ok(), "it fits");
    }

    #[test]
    fn counts_that_exceed_64_bits_are_an_error() {
        let of = [point("a", 0, 1.0, i64::MAX), point("a", 1, 1.0, 1)];
        let made = made(&of, (None, 0), Reduction::Sum, (&Coverage::All, Partial::Null));
        let error = made.expect_err("too many").to_string();
        assert!(error.contains("64 bits"), "{error}");
    }

    #[test]
    fn a_sum_keeps_small_next_to_large_numbers() {
        let values = [1e16, 1.0, -1e16, 1.0];
        let of: Vec<Point> =
            (0..).zip(values).map(|(time, value)| point("a", time, value, 1)).collect();
        assert_eq!(rebucketed(&of, None, Reduction::Sum)[0].2[0], Some(2.0));
    }

    proptest! {
        #[test]
        fn sums_equal_a_plain_loop(
            of in prop::collection::btree_map(
                (0..3_usize, 0..500_i64),
                (prop::option::of(-99..99_i32), prop::option::of(0..9_i64)),
                0..60,
            ),
            turn in 0..60_usize,
        ) {
            let tags = ["a", "b", "c"];
            let mut given: Vec<Point> = of
                .iter()
                .map(|((tag, time), (value, count))| {
                    let value = value.map(f64::from);
                    (tags[*tag], *time, [value, value, value], *count)
                })
                .collect();
            let turn = turn.min(given.len());
            given.rotate_left(turn);
            let mut made = rebucketed(&given, Some(MINUTE), Reduction::Sum);
            made.sort_by(|one, other| (&one.0, one.1).cmp(&(&other.0, other.1)));
            let mut hours = BTreeMap::<_, Vec<&Point>>::new();
            for point in &given {
                hours.entry((point.0, point.1 / 60 * 60)).or_default().push(point);
            }
            let expected = hours.into_iter().map(|((tag, start), own)| {
                let values = || own.iter().filter_map(|one| one.2[0]);
                let reductions = [f64::add as fn(f64, f64) -> f64, f64::min, f64::max];
                let numbers = reductions.map(|one| values().reduce(one));
                let count = own.iter().filter_map(|one| one.3).reduce(i64::add);
                (tag.to_owned(), start, numbers, count, i64::try_from(own.len()).unwrap(), Some(60))
            });
            prop_assert_eq!(made, expected.collect::<Vec<_>>());
        }

        #[test]
        fn increases_equal_a_plain_loop(
            of in prop::collection::btree_map(
                0..500_i64, (prop::option::of(0..99_i32), prop::option::of(0..99_i32)), 0..60
            ),
        ) {
            let given = of.iter().map(|(time, (minimum, maximum))| {
                ("a", *time, [None, minimum.map(f64::from), maximum.map(f64::from)], None)
            });
            let given: Vec<Point> = given.collect();
            let mut hours = BTreeMap::new();
            let mut before: Option<f64> = None;
            for (_, time, [_, minimum, maximum], _) in &given {
                let total = hours.entry(time / 60 * 60).or_insert(None);
                let Some(maximum) = maximum else { continue };
                let from = match before {
                    None => minimum.unwrap_or(*maximum),
                    Some(before) if *maximum < before => 0.0,
                    Some(before) => before,
                };
                *total = Some(total.unwrap_or(0.0) + maximum - from);
                before = Some(*maximum);
            }
            let made = rebucketed(&given, Some(MINUTE), Reduction::Increase);
            let made: Vec<_> = made.into_iter().map(|row| (row.1, row.2[0])).collect();
            prop_assert_eq!(made, hours.into_iter().collect::<Vec<_>>());
        }
    }
}
