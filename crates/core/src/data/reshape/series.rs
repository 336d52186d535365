//! The points of one series in chronological order.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::HashSet;
use std::ops::Range;

use super::super::point_columns::{Identity, PointColumns};

/// Each timestamp once.
pub(crate) struct Series<'a> {
    pub(crate) identity: &'a Identity,
    pub(crate) times: Cow<'a, [i64]>,
    pub(crate) rows: Rows,
}

pub(crate) enum Rows {
    /// Consecutive rows.
    From(usize),
    Picked(Vec<usize>),
}

impl Rows {
    pub(crate) fn row(&self, place: usize) -> usize {
        match self {
            Self::From(first) => first + place,
            Self::Picked(rows) => rows[place],
        }
    }
}

/// The series in table order.
pub(crate) fn by_series(points: &PointColumns) -> Vec<Series<'_>> {
    let mut ranges: Vec<Vec<Range<usize>>> = vec![Vec::new(); points.series.len()];
    let mut order = Vec::new();
    for envelope in points.envelopes.iter().filter(|envelope| !envelope.rows.is_empty()) {
        if ranges[envelope.series].is_empty() {
            order.push(envelope.series);
        }
        ranges[envelope.series].push(envelope.rows.clone());
    }
    let ordered = |series: usize| {
        let times: &[i64] = points.timestamps.values();
        let (identity, ranges) = (&points.series[series], &ranges[series]);
        if let [rows] = &ranges[..]
            && times[rows.clone()].is_sorted_by(|one, next| one < next)
        {
            let (times, rows) = (Cow::Borrowed(&times[rows.clone()]), Rows::From(rows.start));
            return Series { identity, times, rows };
        }
        let mut rows: Vec<usize> = ranges.iter().cloned().flatten().collect();
        // If two rows have one point, the later wins.
        rows.sort_by_key(|row| (times[*row], Reverse(*row)));
        rows.dedup_by_key(|row| times[*row]);
        let times = rows.iter().map(|row| times[*row]).collect();
        Series { identity, times: Cow::Owned(times), rows: Rows::Picked(rows) }
    };
    order.into_iter().map(ordered).collect()
}

/// The series with points, then the other ones in `silent`.
pub(super) fn with_silent<'a>(points: &'a PointColumns, silent: &'a [Identity]) -> Vec<Series<'a>> {
    let mut all = by_series(points);
    let known: HashSet<&Identity> = all.iter().map(|series| series.identity).collect();
    let silent = silent.iter().filter(|identity| !known.contains(identity));
    let silent =
        silent.map(|identity| Series { identity, times: Cow::Borrowed(&[]), rows: Rows::From(0) });
    all.extend(silent);
    all
}
