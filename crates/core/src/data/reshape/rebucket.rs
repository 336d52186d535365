//! [`rebucket`]: larger buckets of the points that are there, each with the number of those that it has.

use std::ops::Range;

use arrow_array::Int64Array;

use super::super::point_columns::{PointColumns, Values};
use super::super::table::TableBuilder;
use super::local_grid::LocalGrid;
use super::series::by_series;
use crate::error::{Error, Kind, Result};

/// What the value of a larger bucket is made of. The interface does not show what a value is (§2.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reduction {
    /// The mean, each value weighted by its count.
    Mean,
    Sum,
    First,
    Last,
}

/// Larger buckets.
#[derive(Debug)]
pub struct Rebucketed {
    /// Their points; the timestamp is the instant at which the bucket begins.
    pub points: PointColumns,
    /// How many buckets of the table each has.
    pub buckets: Int64Array,
    /// How many fit into it; null where the width of the table's buckets is not known.
    pub expected: Int64Array,
}

impl Reduction {
    /// # Errors
    /// `QueryError` for any other name.
    pub fn parse(name: &str) -> Result<Self> {
        match name {
            "mean" => Ok(Self::Mean),
            "sum" => Ok(Self::Sum),
            "first" => Ok(Self::First),
            "last" => Ok(Self::Last),
            _ => Err(Error::new(
                Kind::QueryError,
                format!("agg={name:?} is unknown: give \"mean\", \"sum\", \"first\" or \"last\""),
            )),
        }
    }
}

/// A sum that keeps what a double loses when it is added to a larger one (Neumaier).
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
        // Not a number where the sum is infinite.
        if self.lost.is_nan() { self.sum } else { self.sum + self.lost }
    }
}

/// A larger bucket of one series, being filled.
struct Bucket {
    range: Range<i64>,
    buckets: i64,
    minimum: Option<f64>,
    maximum: Option<f64>,
    count: Option<i64>,
    /// Of values, weighted for a mean, and of their weights; the first or last value.
    sum: Sum,
    weight: Sum,
    value: Option<f64>,
    /// Whether a value has no count, so that the mean is not known.
    is_unweighted: bool,
}

impl Bucket {
    fn new(range: Range<i64>) -> Self {
        Self {
            range,
            buckets: 0,
            minimum: None,
            maximum: None,
            count: None,
            sum: Sum::default(),
            weight: Sum::default(),
            value: None,
            is_unweighted: false,
        }
    }

    fn add(
        &mut self,
        ([value, minimum, maximum], count): Values,
        reduction: Option<Reduction>,
    ) -> Result<()> {
        self.buckets += 1;
        if let Some(minimum) = minimum {
            self.minimum = Some(self.minimum.map_or(minimum, |known| known.min(minimum)));
        }
        if let Some(maximum) = maximum {
            self.maximum = Some(self.maximum.map_or(maximum, |known| known.max(maximum)));
        }
        if let Some(count) = count {
            let sum = self.count.unwrap_or_default().checked_add(count);
            self.count = Some(sum.ok_or_else(|| {
                Error::new(Kind::QueryError, "the counts of a bucket exceed 64 bits")
            })?);
        }
        let Some(value) = value else { return Ok(()) };
        match reduction {
            None => {}
            Some(Reduction::First) => self.value = self.value.or(Some(value)),
            Some(Reduction::Last) => self.value = Some(value),
            Some(Reduction::Sum) => {
                self.sum.add(value);
                self.value = Some(self.sum.total());
            }
            Some(Reduction::Mean) => self.weigh(value, count),
        }
        Ok(())
    }

    fn weigh(&mut self, value: f64, count: Option<i64>) {
        let Some(count) = count.filter(|count| *count >= 0) else {
            self.is_unweighted = true;
            return;
        };
        #[expect(clippy::cast_precision_loss, reason = "a weight of 53 bits")]
        let weight = count as f64;
        if weight > 0.0 {
            self.sum.add(value * weight);
            self.weight.add(weight);
            self.value = Some(self.sum.total() / self.weight.total());
        }
    }

    fn numbers(&self) -> [Option<f64>; 3] {
        [self.value.filter(|_| !self.is_unweighted), self.minimum, self.maximum]
    }
}

/// The larger buckets, by series, then time.
struct Builder<'a> {
    table: TableBuilder,
    buckets: Vec<i64>,
    expected: Vec<Option<i64>>,
    /// Of the table's buckets, in microseconds.
    width: Option<i64>,
    grid: &'a mut LocalGrid,
    reduction: Option<Reduction>,
}

impl Builder<'_> {
    fn push(&mut self, bucket: &Bucket) {
        self.table.push(bucket.range.start, bucket.numbers(), bucket.count);
        self.buckets.push(bucket.buckets);
        // The multiples of the width that are in the range (the grid of §4.3, as siteline understands it).
        let before = |at: i64| self.width.map(|width| (at - 1).div_euclid(width));
        let [first, last] = [bucket.range.start, bucket.range.end].map(before);
        self.expected.push(last.zip(first).map(|(last, first)| last - first));
    }

    /// Opens the bucket of a point.
    fn open(&mut self, time: i64) -> Bucket {
        Bucket::new(self.grid.bucket(time))
    }

    /// # Errors
    /// `QueryError` where a bucket of the table is in two of the larger ones.
    fn check(&self, time: i64, range: &Range<i64>) -> Result<()> {
        let crossed = self.width.filter(|width| time.saturating_add(*width) > range.end);
        let Some(width) = crossed else { return Ok(()) };
        Err(crossing(time, width, range.end))
    }
}

/// The error for a bucket that would be in two larger ones.
pub(super) fn crossing(time: i64, width: i64, end: i64) -> Error {
    let [time, end] = [time, end].map(super::local_grid::timestamp);
    let seconds = width / 1_000_000;
    let message = format!(
        "the bucket of {time} is {seconds} s wide, and would be in two: the next one begins at {end}"
    );
    Error::new(Kind::QueryError, message)
        .with_hint("Read with a smaller interval=, which divides both, or give another origin=.")
}

/// The points in larger buckets. `width` is that of the points' own, in microseconds.
///
/// # Errors
/// `QueryError` where a bucket would be in two of the larger ones, and where counts exceed 64 bits.
pub fn rebucket(
    points: &PointColumns,
    width: Option<i64>,
    grid: &mut LocalGrid,
    reduction: Option<Reduction>,
) -> Result<Rebucketed> {
    let table = TableBuilder::new(0);
    let mut builder =
        Builder { table, buckets: Vec::new(), expected: Vec::new(), width, grid, reduction };
    for series in by_series(points) {
        let mut open: Option<Bucket> = None;
        for (place, time) in series.times.iter().enumerate() {
            let bucket = match &mut open {
                Some(bucket) if *time < bucket.range.end => bucket,
                ended => {
                    if let Some(bucket) = ended {
                        builder.push(bucket);
                    }
                    ended.insert(builder.open(*time))
                }
            };
            builder.check(*time, &bucket.range)?;
            bucket.add(points.values(series.rows.row(place)), builder.reduction)?;
        }
        if let Some(bucket) = &open {
            builder.push(bucket);
        }
        builder.table.series(series.identity);
    }
    Ok(Rebucketed {
        points: builder.table.finish()?,
        buckets: builder.buckets.into(),
        expected: builder.expected.into(),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use jiff::tz::TimeZone;
    use proptest::prelude::*;

    use super::super::super::point_columns::Identity;
    use super::*;

    const MINUTE: i64 = 60_000_000;
    const HOUR: i64 = 60 * MINUTE;

    type Point = (&'static str, i64, [Option<f64>; 3], Option<i64>);
    type Shown = (String, i64, [Option<f64>; 3], Option<i64>, i64, Option<i64>);

    fn points(of: &[Point]) -> PointColumns {
        let mut table = TableBuilder::new(0);
        for (tag, time, numbers, count) in of {
            table.push(time * MINUTE, *numbers, *count);
            table.series(&Identity::from([None, None, None, None, Some(Arc::from(*tag))]));
        }
        table.finish().expect("points")
    }

    fn rebucketed(of: &[Point], width: Option<i64>, reduction: Option<Reduction>) -> Vec<Shown> {
        let mut grid = LocalGrid::new(TimeZone::UTC, HOUR, None);
        let made = rebucket(&points(of), width, &mut grid, reduction).expect("buckets");
        let Rebucketed { points, buckets, expected } = made;
        let expected: Vec<_> = expected.iter().collect();
        let mut shown = Vec::new();
        for (identity, rows) in points.identified() {
            let tag = identity.0[4].as_deref().unwrap_or_default();
            shown.extend(rows.map(|row| {
                let ((numbers, count), time) = (points.values(row), points.timestamps.value(row));
                (tag.to_owned(), time / MINUTE, numbers, count, buckets.value(row), expected[row])
            }));
        }
        shown
    }

    fn point(tag: &'static str, time: i64, value: f64, count: i64) -> Point {
        (tag, time, [Some(value), Some(value - 1.0), Some(value + 1.0)], Some(count))
    }

    #[test]
    fn each_measure_is_what_the_buckets_have_and_how_many_they_are_is_counted() {
        let of = [
            point("a", 0, 1.0, 1),
            point("a", 15, 4.0, 3),
            ("a", 30, [None; 3], None),
            point("a", 60, 7.0, 2),
            point("b", 45, 9.0, 1),
        ];
        for (reduction, values) in [
            (None, [None, None, None]),
            (Some(Reduction::Mean), [Some(3.25), Some(7.0), Some(9.0)]),
            (Some(Reduction::Sum), [Some(5.0), Some(7.0), Some(9.0)]),
            (Some(Reduction::First), [Some(1.0), Some(7.0), Some(9.0)]),
            (Some(Reduction::Last), [Some(4.0), Some(7.0), Some(9.0)]),
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
    fn a_mean_is_null_where_a_value_has_no_count_and_where_no_value_has_any() {
        let value = |count| ("a", 0, [Some(1.0), None, None], count);
        let mean = |of: &[Point]| rebucketed(of, None, Some(Reduction::Mean))[0].2[0];
        assert_eq!(mean(&[value(None), point("a", 1, 5.0, 1)]), None);
        assert_eq!(mean(&[value(Some(-1)), point("a", 1, 5.0, 1)]), None);
        assert_eq!(mean(&[value(Some(0)), point("a", 1, 5.0, 1)]), Some(5.0), "of no weight");
        assert_eq!(mean(&[value(Some(0))]), None);
        assert_eq!(rebucketed(&[value(Some(0))], None, None)[0].5, None, "an unknown width");
    }

    #[test]
    fn a_bucket_that_would_be_in_two_is_refused_with_both() {
        let mut grid = LocalGrid::new(TimeZone::UTC, HOUR, Some(30 * MINUTE));
        let of = points(&[point("a", 60, 1.0, 1)]);
        let error = rebucket(&of, Some(HOUR), &mut grid, None).expect_err("in two").to_string();
        assert!(error.contains("the bucket of 1970-01-01T01:00:00Z is 3600 s wide"), "{error}");
        assert!(error.contains("begins at 1970-01-01T01:30:00Z"), "{error}");
        assert!(rebucket(&of, Some(30 * MINUTE), &mut grid, None).is_ok(), "it fits");
    }

    #[test]
    fn counts_that_exceed_64_bits_are_an_error() {
        let of = points(&[point("a", 0, 1.0, i64::MAX), point("a", 1, 1.0, 1)]);
        let mut grid = LocalGrid::new(TimeZone::UTC, HOUR, None);
        let error = rebucket(&of, None, &mut grid, None).expect_err("too many").to_string();
        assert!(error.contains("64 bits"), "{error}");
    }

    #[test]
    fn a_sum_keeps_what_is_small_beside_what_is_large() {
        let values = [1e16, 1.0, -1e16, 1.0];
        let of: Vec<Point> =
            (0..).zip(values).map(|(time, value)| point("a", time, value, 1)).collect();
        assert_eq!(rebucketed(&of, None, Some(Reduction::Sum))[0].2[0], Some(2.0));
    }

    proptest! {
        /// What a plain loop over all points gives, whatever their order.
        #[test]
        fn it_is_what_a_plain_loop_gives(
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
            let mut made = rebucketed(&given, Some(MINUTE), Some(Reduction::Sum));
            made.sort_by(|one, other| (&one.0, one.1).cmp(&(&other.0, other.1)));
            let mut expected = Vec::new();
            for tag in tags {
                for hour in 0..9 {
                    let range = hour * 60..(hour + 1) * 60;
                    let own: Vec<&Point> =
                        given.iter().filter(|one| one.0 == tag && range.contains(&one.1)).collect();
                    if own.is_empty() {
                        continue;
                    }
                    let values = || own.iter().filter_map(|one| one.2[0]);
                    let has_any = values().next().map(|_| ());
                    let counts: Vec<i64> = own.iter().filter_map(|one| one.3).collect();
                    expected.push((
                        tag.to_owned(),
                        range.start,
                        [
                            has_any.map(|()| values().sum::<f64>()),
                            values().reduce(f64::min),
                            values().reduce(f64::max),
                        ],
                        (!counts.is_empty()).then(|| counts.iter().sum::<i64>()),
                        i64::try_from(own.len()).unwrap_or_default(),
                        Some(60),
                    ));
                }
            }
            prop_assert_eq!(made, expected);
        }
    }
}
