//! The first series of a table or page, each as a line of [`WIDTH`] pixels. Its size does not
//! depend on the number of points.

use arrow_array::{Array, Float64Array};
use serde::Serialize;

use crate::data::reshape::{Series, by_series};
use crate::data::{Ids, PointColumns};

pub(crate) const SERIES: usize = 8;
/// Width of a line in pixels.
pub const WIDTH: usize = 200;

/// All lines have the same range of time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Preview {
    /// Left and right edge, in microseconds since the Unix epoch.
    pub range: (i64, i64),
    pub series: Vec<Line>,
    pub more: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Line {
    pub ids: Ids,
    /// Includes the points without a value.
    pub points: usize,
    /// The lowest and the highest value.
    pub values: Option<(f64, f64)>,
    /// Separated by gaps.
    pub stretches: Vec<Vec<Pixel>>,
}

/// The lowest and highest value of a pixel, scaled from 0 (the series' lowest value) to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Pixel {
    /// Position from the left, less than [`WIDTH`].
    pub x: usize,
    pub low: f64,
    pub high: f64,
}

impl Preview {
    /// `range` is the queried range; points outside it extend the preview. `interval_seconds`
    /// defines a gap.
    pub fn from_points(
        points: &PointColumns,
        range: Option<(i64, i64)>,
        interval_seconds: Option<u32>,
    ) -> Self {
        let mut series = by_series(points);
        let more = series.len() > SERIES;
        series.truncate(SERIES);
        let ends = series.iter().flat_map(|series| [series.times.first(), series.times.last()]);
        let seen = ends.flatten().fold(range, |seen, &at| {
            Some(seen.map_or((at, at), |(first, last)| (first.min(at), last.max(at))))
        });
        let range = seen.unwrap_or_default();
        let interval = interval_seconds.map(|width| i64::from(width) * 1_000_000);
        let axis = Axis { range, interval };
        let series = series.iter().map(|series| axis.line(series, &points.numbers[0])).collect();
        Self { range, series, more }
    }
}

struct Axis {
    range: (i64, i64),
    interval: Option<i64>,
}

/// Whether a gap precedes the pixel.
#[derive(Clone, Copy)]
pub struct PixelRange {
    values: (f64, f64),
    after_gap: bool,
}

impl Axis {
    fn line(&self, series: &Series<'_>, column: &Float64Array) -> Line {
        let ids = series.identity.0.each_ref().map(|id| id.as_ref().map(ToString::to_string));
        let points = series.times.len();
        let gap = self.gap(points);
        let mut buckets: [Option<PixelRange>; WIDTH] = [None; WIDTH];
        let mut values: Option<(f64, f64)> = None;
        let mut before: Option<i64> = None;
        for (place, &at) in series.times.iter().enumerate() {
            let row = series.rows.row(place);
            if column.is_null(row) {
                continue;
            }
            let value = column.value(row);
            let after_gap = before.is_some_and(|before| at.saturating_sub(before) > gap);
            before = Some(at);
            values = Some(wider(values, value));
            let bucket = &mut buckets[self.pixel(at)];
            *bucket = Some(PixelRange {
                values: wider(bucket.map(|bucket| bucket.values), value),
                after_gap: bucket.map_or(after_gap, |bucket| bucket.after_gap),
            });
        }
        Line { ids, points, values, stretches: stretches(&buckets, values) }
    }

    /// A longer time between two points is a gap. Gaps narrower than a pixel are not shown.
    fn gap(&self, points: usize) -> i64 {
        let length = self.range.1.saturating_sub(self.range.0);
        let count = i64::try_from(points.max(1)).unwrap_or(i64::MAX);
        let interval = self.interval.unwrap_or_else(|| 2 * (length / count));
        let pixel = length / i64::try_from(WIDTH).unwrap_or(i64::MAX);
        interval.max(pixel).saturating_mul(3) / 2
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "a pixel"
    )]
    fn pixel(&self, at: i64) -> usize {
        let (start, end) = self.range;
        let length = end.saturating_sub(start).max(1) as f64;
        let share = at.saturating_sub(start) as f64 / length;
        ((share * WIDTH as f64) as usize).min(WIDTH - 1)
    }
}

fn wider(known: Option<(f64, f64)>, value: f64) -> (f64, f64) {
    known.map_or((value, value), |(low, high)| (low.min(value), high.max(value)))
}

fn stretches(buckets: &[Option<PixelRange>], values: Option<(f64, f64)>) -> Vec<Vec<Pixel>> {
    let Some((lowest, highest)) = values else { return Vec::new() };
    // Halves first, because the difference of two doubles may overflow.
    let span = highest / 2.0 - lowest / 2.0;
    let share = |value: f64| {
        if span > 0.0 { ((value / 2.0 - lowest / 2.0) / span).clamp(0.0, 1.0) } else { 0.5 }
    };
    let mut stretches: Vec<Vec<Pixel>> = Vec::new();
    for (x, bucket) in buckets.iter().enumerate() {
        let Some(PixelRange { values: (low, high), after_gap }) = *bucket else { continue };
        let pixel = Pixel { x, low: share(low), high: share(high) };
        match stretches.last_mut() {
            Some(stretch) if !after_gap => stretch.push(pixel),
            _ => stretches.push(vec![pixel]),
        }
    }
    stretches
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use crate::data::{Identity, TableBuilder};

    const MINUTE: i64 = 60_000_000;

    /// Points of these series, each with its tag, and minute and value of each point. NaN is null.
    fn page(series: &[(&str, &[(i64, f64)])]) -> PointColumns {
        let mut table = TableBuilder::new(0);
        for (tag, points) in series {
            for (minute, value) in *points {
                let value = Some(*value).filter(|value| !value.is_nan());
                table.push(minute * MINUTE + 1_800_000_000_000_000, [value, None, None], None);
            }
            let ids = [Some("S"), None, Some("M"), Some("D"), Some(*tag)];
            table.series(&Identity::from(ids.map(|id| id.map(Arc::from))));
        }
        table.finish().expect("points")
    }

    #[test]
    fn a_page_shows_its_series_over_its_own_range() {
        let points =
            page(&[("A", &[(0, 1.0), (1, 3.0)]), ("B", &[(9, f64::NAN)]), ("A", &[(2, 2.0)])]);
        let preview = Preview::from_points(&points, None, Some(60));
        assert_eq!(preview.range.1 - preview.range.0, 9 * MINUTE);
        let [a, b] = &preview.series[..] else { panic!("{preview:?}") };
        assert_eq!((a.points, a.values, a.ids[4].as_deref()), (3, Some((1.0, 3.0)), Some("A")));
        assert_eq!(a.ids[1], None);
        let [stretch] = &a.stretches[..] else { panic!("{a:?}") };
        let values: Vec<_> = stretch.iter().map(|pixel| (pixel.low, pixel.high)).collect();
        assert_eq!(values, [(0.0, 0.0), (1.0, 1.0), (0.5, 0.5)]);
        assert_eq!((b.points, b.values, b.stretches.len()), (1, None, 0));
        assert!(!preview.more);
    }

    #[test]
    fn a_gap_breaks_the_line_and_a_constant_line_is_in_the_middle() {
        let points = page(&[("A", &[(0, 5.0), (1, 5.0), (7, 5.0), (8, 5.0)])]);
        let preview = Preview::from_points(&points, None, Some(60));
        let lengths: Vec<_> = preview.series[0].stretches.iter().map(Vec::len).collect();
        assert_eq!(lengths, [2, 2]);
        assert!(preview.series[0].stretches[1].iter().all(|pixel| (pixel.low - 0.5).abs() < 1e-9));
    }

    #[test]
    fn a_table_shows_its_first_series_over_the_queried_range() {
        let tags: Vec<String> = (10..30).map(|n| format!("T{n}")).collect();
        let series: Vec<(&str, &[(i64, f64)])> =
            tags.iter().map(|tag| (tag.as_str(), &[(5, 1.0), (6, 2.0)][..])).collect();
        let points = page(&series);
        let start = 1_800_000_000_000_000;
        let preview = Preview::from_points(&points, Some((start, start + 10 * MINUTE)), None);
        assert!(preview.more);
        let shown: Vec<_> = preview.series.iter().filter_map(|line| line.ids[4].clone()).collect();
        assert_eq!(shown, tags[..SERIES]);
        assert!(preview.series.iter().all(|line| line.points == 2));
        assert_eq!(preview.series[0].stretches[0][0].x, WIDTH / 2);
    }

    #[test]
    fn the_largest_doubles_and_a_series_without_points_are_handled() {
        let points = page(&[("A", &[(0, -1.7e308), (1, 1.7e308), (2, 0.0)])]);
        let preview = Preview::from_points(&points, None, Some(60));
        let shares: Vec<_> = preview.series[0].stretches[0].iter().map(|p| p.high).collect();
        assert_eq!(shares, [0.0, 1.0, 0.5]);
        let points = page(&[("A", &[])]);
        assert!(Preview::from_points(&points, None, None).series.is_empty());
    }

    #[test]
    fn many_points_are_reduced_to_two_hundred_pixels() {
        let points: Vec<(i64, f64)> =
            (0..5_000).map(|n| (n, if n % 2 == 0 { 0.0 } else { 1.0 })).collect();
        let points = page(&[("A", &points)]);
        let preview = Preview::from_points(&points, None, Some(60));
        let [stretch] = &preview.series[0].stretches[..] else { panic!("one stretch") };
        assert_eq!(stretch.len(), WIDTH);
        assert!(stretch.iter().all(|pixel| (pixel.low, pixel.high) == (0.0, 1.0)));
    }
}
