//! Counts unusual points in the report (J10, J14, J15, J16), and keeps them unchanged. All points
//! of a page are checked at once, column by column.

use std::collections::HashSet;

use super::settings::DecodeSettings;
use crate::data::columns::RowSlice;
use crate::data::point_columns::Envelope;
use crate::data::report::PageReport;

pub(super) struct DataQuality {
    start: i64,
    /// The last microsecond of the range.
    last: i64,
    /// The width of the buckets and, besides the epoch, the start of one.
    grid: Option<(i64, i64)>,
}

impl DataQuality {
    pub(super) fn new(settings: &DecodeSettings) -> Self {
        let start = settings.start.map(jiff::Timestamp::as_microsecond);
        let end = settings.end.map(jiff::Timestamp::as_microsecond);
        Self {
            start: start.unwrap_or(i64::MIN),
            last: end.map_or(i64::MAX, |end| end - 1),
            grid: settings
                .interval_seconds
                .map(|seconds| (i64::from(seconds) * 1_000_000, start.unwrap_or(0))),
        }
    }

    pub(super) fn count(&self, rows: &RowSlice<'_>, report: &mut PageReport) {
        let (start, last) = (self.start, self.last);
        report.outside_range += count_if(rows.timestamps, |time| *time < start || *time > last);
        if let Some(grid) = self.grid {
            report.off_grid += count_off(rows.timestamps, grid);
        }
        let [value, minimum, maximum] = rows.numbers;
        // Nulls contain NaN, and comparisons with NaN are false, so nulls are not counted.
        for ((value, minimum), maximum) in value.iter().zip(minimum).zip(maximum) {
            report.minimum_above_maximum += u64::from(minimum > maximum);
            report.value_outside_bounds += u64::from(value < minimum || value > maximum);
        }
        report.negative_counts += count_if(rows.sample_counts, |count| *count < 0);
    }
}

fn count_if<T>(column: &[T], is_counted: impl Fn(&T) -> bool) -> u64 {
    column.iter().map(|item| u64::from(is_counted(item))).sum()
}

/// The grid's origin is not documented. A point is on the grid if its distance from the epoch or
/// the query's start is a multiple of the width.
fn count_off(timestamps: &[i64], (width, start): (i64, i64)) -> u64 {
    let mut off = 0;
    let mut last_on = 0;
    for timestamp in timestamps {
        // A point at one width from a point on the grid is also on it. This usually avoids the
        // division.
        let distance = timestamp.wrapping_sub(last_on);
        let is_on = distance == width
            || distance == -width
            || distance == 0
            || timestamp % width == 0
            || (timestamp - start) % width == 0;
        if is_on {
            last_on = *timestamp;
        }
        off += u64::from(!is_on);
    }
    off
}

/// The timestamps of one series on a page, to find repeated ones.
#[derive(Default)]
pub(super) struct SeriesTimes {
    latest: Option<i64>,
    /// Whether they were not always ascending, so that some may be repeated.
    pub(super) disordered: bool,
}

impl SeriesTimes {
    #[inline]
    pub(super) fn add(&mut self, timestamps: &[i64]) {
        let (Some(first), Some(last)) = (timestamps.first(), timestamps.last()) else { return };
        let follows = self.latest.is_none_or(|latest| latest < *first);
        self.disordered |= !follows || !timestamps.is_sorted_by(|earlier, later| earlier < later);
        self.latest = Some(*last);
    }
}

/// The number of rows with the series and timestamp of an earlier row.
pub(super) fn repeated(series: &[SeriesTimes], envelopes: &[Envelope], timestamps: &[i64]) -> u64 {
    if !series.iter().any(|times| times.disordered) {
        return 0;
    }
    let mut seen = HashSet::new();
    let disordered = envelopes.iter().filter(|envelope| series[envelope.series].disordered);
    let rows =
        disordered.flat_map(|envelope| envelope.rows.clone().map(|row| (envelope.series, row)));
    rows.filter(|(series, row)| !seen.insert((*series, timestamps[*row]))).count() as u64
}
