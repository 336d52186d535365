//! Counts unusual points in the report (J10, J14, J15, J16), and keeps them unchanged. All points
//! of a page are checked at once, column by column.

use std::collections::HashSet;

use jiff::Timestamp;

use super::settings::DecodeSettings;
use crate::data::point_columns::PointColumns;
use crate::data::report::PageReport;

pub(super) fn count_unusual(
    points: &PointColumns,
    settings: &DecodeSettings,
    report: &mut PageReport,
) {
    let [start, end] = [settings.start, settings.end].map(|at| at.map(Timestamp::as_microsecond));
    let (first, end) = (start.unwrap_or(i64::MIN), end.unwrap_or(i64::MAX));
    let timestamps: &[i64] = points.timestamps.values();
    report.outside_range += count_if(timestamps, |time| *time < first || *time >= end);
    if let Some(seconds) = settings.interval_seconds {
        let width = i64::from(seconds) * 1_000_000;
        report.off_grid += count_off(timestamps, width, start.unwrap_or(0));
    }
    let [value, minimum, maximum]: [&[f64]; 3] =
        points.numbers.each_ref().map(|column| &**column.values());
    // Nulls contain NaN, and comparisons with NaN are false, so nulls are not counted.
    for ((value, minimum), maximum) in value.iter().zip(minimum).zip(maximum) {
        report.minimum_above_maximum += u64::from(minimum > maximum);
        report.value_outside_bounds += u64::from(value < minimum || value > maximum);
    }
    report.negative_counts += count_if(points.sample_counts.values(), |count| *count < 0);
    report.repeated += repeated(points);
}

fn count_if<T>(column: &[T], is_counted: impl Fn(&T) -> bool) -> u64 {
    column.iter().map(|item| u64::from(is_counted(item))).sum()
}

/// The grid's origin is not documented. A point is on the grid if its distance from the epoch or
/// the query's start is a multiple of the width.
fn count_off(timestamps: &[i64], width: i64, start: i64) -> u64 {
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

/// The number of rows with the series and timestamp of an earlier row.
fn repeated(points: &PointColumns) -> u64 {
    let timestamps: &[i64] = points.timestamps.values();
    // For each series, its last timestamp, and whether they were not always ascending.
    let mut series = vec![(None, false); points.series.len()];
    for envelope in &points.envelopes {
        let times = &timestamps[envelope.rows.clone()];
        let (Some(first), Some(last)) = (times.first(), times.last()) else { continue };
        let (latest, is_disordered) = &mut series[envelope.series];
        let follows = latest.is_none_or(|latest| latest < *first);
        *is_disordered |= !follows || !times.is_sorted_by(|earlier, later| earlier < later);
        *latest = Some(*last);
    }
    let disordered = points.envelopes.iter().filter(|envelope| series[envelope.series].1);
    let mut seen = HashSet::new();
    let rows =
        disordered.flat_map(|envelope| envelope.rows.clone().map(|row| (envelope.series, row)));
    rows.filter(|(series, row)| !seen.insert((*series, timestamps[*row]))).count() as u64
}
