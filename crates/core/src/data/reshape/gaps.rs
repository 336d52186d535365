//! Adds a row of nulls for each missing bucket.

use std::sync::Arc;

use arrow_array::StringArray;

use super::super::merge::Merger;
use super::super::point_columns::PointColumns;
use super::super::table::TableBuilder;
use super::expected::Expected;
use super::series::by_series;
use crate::error::{Error, Kind, Result};

/// A larger table does not fit into memory.
const MOST_ROWS: i64 = 1 << 31;

/// By series, then time. Series without points are left out.
pub fn with_gaps(points: &PointColumns, expected: &Expected) -> Result<PointColumns> {
    expected.check(points)?;
    let all = by_series(points);
    let series = i64::try_from(all.len()).unwrap_or(i64::MAX);
    if expected.count_read().saturating_mul(series) > MOST_ROWS {
        let message =
            format!("{} buckets of {series} series are too many rows.", expected.count_read());
        return Err(Error::new(Kind::QueryError, message).with_hint("Use a shorter range."));
    }
    let mut nulls = TableBuilder::new(0);
    for series in &all {
        for gap in expected.gaps(&series.times) {
            gap.cut(expected.width).for_each(|one| nulls.push(one.start, [None; 3], None));
        }
        nulls.series(series.identity);
    }
    let nulls = nulls.finish()?;
    let extras = points.extras.iter().map(|_| StringArray::new_null(nulls.rows())).collect();
    let nulls = PointColumns { extras, extra_columns: points.extra_columns.clone(), ..nulls };
    let mut merger = Merger::new(&points.extra_columns);
    merger.push_points(&nulls)?;
    merger.push_points(points)?;
    Ok(Arc::unwrap_or_clone(merger.finish()?.points))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::data::test_points::{self, Row};
    use crate::http::test_server::assert_error;

    const SECOND: i64 = 1_000_000;

    fn points(of: &[(&str, i64)]) -> PointColumns {
        let values = |second| ([Some(1.5), None, None], Some(second));
        test_points::points(of.iter().map(|&(tag, at)| (tag, at * SECOND, values(at))))
    }

    fn expected(interval: u32, ranges: &[(i64, i64)]) -> Expected {
        let ranges: Vec<_> =
            ranges.iter().map(|(start, end)| start * SECOND..end * SECOND).collect();
        Expected::new(interval, ranges.clone(), ranges)
    }

    /// Series, second and count of each row.
    fn rows(points: &PointColumns) -> Vec<(String, i64, Option<i64>)> {
        let row = |(tag, at, (numbers, count)): Row| {
            assert_eq!(numbers[0].is_some(), count.is_some());
            (tag, at / SECOND, count)
        };
        test_points::rows(points).into_iter().map(row).collect()
    }

    #[test]
    fn points_off_the_grid_and_too_many_rows_are_refused() {
        assert_error(
            with_gaps(&points(&[("a", 15)]), &expected(10, &[(0, 50)])),
            Kind::QueryError,
            "at no multiple of the interval of 10 s",
        );
        let all = expected(1, &[(0, 1 << 40)]);
        assert_error(with_gaps(&points(&[("a", 15)]), &all), Kind::QueryError, "too many rows");
    }

    proptest! {
        #[test]
        fn it_is_the_union_of_points_and_buckets(
            given in prop::collection::btree_set((0..3_usize, -20..40_i64), 0..40),
            ranges in prop::collection::vec((-200..400_i64, 0..150_i64), 0..4),
            interval in 1..12_u32,
        ) {
            let width = i64::from(interval);
            let names = ["a", "b", "c"];
            let of: Vec<_> = given.iter().map(|(tag, at)| (names[*tag], at * width)).collect();
            let ranges: Vec<_> = ranges.iter().map(|(start, size)| (*start, start + size)).collect();
            let filled = with_gaps(&points(&of), &expected(interval, &ranges)).expect("rows");
            let mut wanted = BTreeMap::new();
            for (tag, _) in &of {
                let inside = |at: &i64| ranges.iter().any(|(start, end)| start <= at && at < end);
                let all = (-200..600).filter(|at| at % width == 0).filter(inside);
                wanted.extend(all.map(|at| (((*tag).to_owned(), at), None)));
            }
            wanted.extend(of.iter().map(|(tag, at)| (((*tag).to_owned(), *at), Some(*at))));
            let wanted: Vec<_> = wanted.into_iter().map(|((tag, at), count)| (tag, at, count)).collect();
            prop_assert_eq!(rows(&filled), wanted);
        }
    }
}
