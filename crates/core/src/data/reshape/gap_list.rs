//! The ranges of missing buckets of each series.

use arrow_array::{Int64Array, TimestampMicrosecondArray};

use super::super::point_columns::{Identity, PointColumns};
use super::super::schema::timestamp_array;
use super::super::table::TableBuilder;
use super::expected::Expected;
use super::series::with_silent;
use crate::error::Result;

#[derive(Debug)]
pub struct GapList {
    /// The start of each gap as timestamp. The numbers are null.
    pub rows: PointColumns,
    /// Exclusive.
    pub ends: TimestampMicrosecondArray,
    pub buckets: Int64Array,
}

/// By series, then time. Unread time is not a gap. Series in `silent` need no points. Gaps of
/// `longer_than` microseconds or less are left out.
pub fn gap_list(
    points: &PointColumns,
    expected: &Expected,
    longer_than: i64,
    silent: &[Identity],
) -> Result<GapList> {
    expected.check(points)?;
    let (mut table, mut ends, mut buckets) = (TableBuilder::new(0), Vec::new(), Vec::new());
    for series in with_silent(points, silent) {
        for gap in expected.gaps(&series.times).filter(|gap| gap.seconds() > longer_than.max(0)) {
            table.push(gap.start, [None; 3], None);
            ends.push(gap.end);
            buckets.push(expected.count(gap));
        }
        table.series(series.identity);
    }
    let (ends, buckets) = (timestamp_array(ends), Int64Array::from(buckets));
    Ok(GapList { rows: table.finish()?, ends, buckets })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::test_points::{points, series};

    const SECOND: i64 = 1_000_000;

    #[test]
    fn gaps_end_at_points_and_unread_time() {
        let points = points([1, 2, 5, 8].map(|second| ("a", second * SECOND, ([None; 3], None))));
        let read = vec![0..6 * SECOND, 7 * SECOND..9 * SECOND];
        let expected = Expected::new(1, std::iter::once(0..9 * SECOND), read);
        let found = |longer_than: i64, silent: &[Identity]| {
            let list = gap_list(&points, &expected, longer_than * SECOND, silent).unwrap();
            let starts = list.rows.timestamps.values().iter();
            let rows = starts.zip(list.ends.values()).zip(list.buckets.values());
            rows.map(|((start, end), count)| (start / SECOND, end / SECOND, *count))
                .collect::<Vec<_>>()
        };
        assert_eq!(found(0, &[]), [(0, 1, 1), (3, 5, 2), (7, 8, 1)]);
        assert_eq!(found(1, &[]), [(3, 5, 2)]);
        let silent = ["a", "b"].map(series);
        // Series with points are not silent.
        assert_eq!(found(1, &silent), [(3, 5, 2), (0, 6, 6), (7, 9, 2)]);
    }
}
