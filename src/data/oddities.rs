//! Oddities of points (J10, J14, J15): counted, and the points kept as they are. Done for a stretch
//! of points at once, column by column.

use super::columns::Rows;
use super::decode::DecodeSettings;
use super::report::PageReport;

/// Knows what is odd under a query.
pub(super) struct Judge {
    start: i64,
    /// The last microsecond of the range.
    last: i64,
    grid: Option<Grid>,
}

impl Judge {
    pub(super) fn new(settings: &DecodeSettings) -> Self {
        let start = settings.start.map(jiff::Timestamp::as_microsecond);
        let end = settings.end.map(jiff::Timestamp::as_microsecond);
        Self {
            start: start.unwrap_or(i64::MIN),
            last: end.map_or(i64::MAX, |end| end - 1),
            grid: settings.interval_seconds.map(|seconds| Grid::new(seconds, start)),
        }
    }

    /// Counts the oddities of these points.
    pub(super) fn count(&self, rows: &Rows<'_>, report: &mut PageReport) {
        let (start, last) = (self.start, self.last);
        report.outside_range += count(rows.timestamps, |time| *time < start || *time > last);
        if let Some(grid) = &self.grid {
            report.off_grid += grid.off(rows.timestamps);
        }
        let [value, minimum, maximum] = rows.numbers;
        // A comparison with NaN is false: what is null is not odd.
        for ((value, minimum), maximum) in value.iter().zip(minimum).zip(maximum) {
            report.minimum_above_maximum += u64::from(minimum > maximum);
            report.value_outside_bounds += u64::from(value < minimum || value > maximum);
        }
        report.negative_counts += count(rows.sample_counts, |count| *count < 0);
    }
}

fn count<T>(column: &[T], odd: impl Fn(&T) -> bool) -> u64 {
    column.iter().map(|item| u64::from(odd(item))).sum()
}

/// The buckets' grid. Its origin is not shown in the document: multiples of the width count from
/// the epoch or from the query's start, and a point on either is on the grid.
struct Grid {
    width: i64,
    start: i64,
}

impl Grid {
    fn new(seconds: u32, start: Option<i64>) -> Self {
        Self { width: i64::from(seconds) * 1_000_000, start: start.unwrap_or(0) }
    }

    /// How many of these are off the grid.
    fn off(&self, timestamps: &[i64]) -> u64 {
        let mut off = 0;
        let mut held = 0;
        for timestamp in timestamps {
            // The next bucket after one that is on the grid is so too: mostly no division.
            let holds = timestamp.wrapping_sub(held) == self.width
                || timestamp % self.width == 0
                || (timestamp - self.start) % self.width == 0;
            if holds {
                held = *timestamp;
            }
            off += u64::from(!holds);
        }
        off
    }
}
