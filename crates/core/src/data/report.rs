//! Assumptions about undocumented parts of the interface, and counts of unusual points, which are
//! kept unchanged.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::sent_size::SentSize;
use super::shape::TimestampForm;
use crate::error::escaped;

/// One more entry marks an incomplete list.
const UNKNOWN_LISTED: usize = 200;
/// Longer names are truncated.
const NAME_CHARACTERS: usize = 100;

/// The report of a page, or the sum of several.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PageReport {
    /// Points read, with repeats.
    pub points: u64,
    /// Points that the selection of the read removed.
    pub filtered: u64,
    /// Distinct series. A report of several pages has the maximum of a page.
    pub series: u64,
    /// The names of the top-level array of series.
    pub arrays: BTreeSet<String>,
    pub timestamp_forms: BTreeSet<TimestampForm>,
    /// Points before the query's start, or at or after its end.
    pub outside_range: u64,
    /// Points at no multiple of the interval from the epoch or the start.
    pub off_grid: u64,
    pub minimum_above_maximum: u64,
    /// Values below the minimum or above the maximum.
    pub value_outside_bounds: u64,
    /// Points with the series and timestamp of an earlier point of the page.
    pub repeated: u64,
    /// Timestamps truncated to microseconds.
    pub timestamps_truncated: u64,
    /// Leap seconds, read as `:59.999999`.
    pub leap_seconds: u64,
    pub numbers_as_text: u64,
    pub negative_counts: u64,
    /// Points without a member for one of the four values, which is then null.
    pub values_missing: u64,
    /// Pages without `nextCursor` that counted as the last (with `missing_cursor="end"`).
    pub cursors_missing: u64,
    /// Such as `meta`, `series[].unit`, `points[].quality`.
    pub unknown_members: BTreeSet<String>,
    #[serde(skip)]
    pub page_size: SentSize,
}

impl PageReport {
    pub fn merge(&mut self, other: &Self) {
        self.series = self.series.max(other.series);
        if let Some(size) = other.page_size.get() {
            self.page_size.set(size);
        }
        for (mine, theirs) in self.counts().into_iter().zip(other.clone().counts()) {
            *mine += *theirs;
        }
        self.arrays.extend(other.arrays.iter().cloned());
        self.timestamp_forms.extend(&other.timestamp_forms);
        for name in &other.unknown_members {
            self.note_unknown(|| name.clone());
        }
    }

    fn counts(&mut self) -> [&mut u64; 13] {
        [
            &mut self.points,
            &mut self.filtered,
            &mut self.outside_range,
            &mut self.off_grid,
            &mut self.minimum_above_maximum,
            &mut self.value_outside_bounds,
            &mut self.repeated,
            &mut self.timestamps_truncated,
            &mut self.leap_seconds,
            &mut self.numbers_as_text,
            &mut self.negative_counts,
            &mut self.values_missing,
            &mut self.cursors_missing,
        ]
    }

    pub(super) fn note_unknown(&mut self, name: impl FnOnce() -> String) {
        let listed = self.unknown_members.len();
        if listed > UNKNOWN_LISTED {
            return;
        }
        let name = name();
        if listed < UNKNOWN_LISTED {
            self.unknown_members.insert(name);
        } else if !self.unknown_members.contains(&name) {
            self.unknown_members.insert("… and more".to_owned());
        }
    }
}

/// A truncated and escaped name.
pub(super) fn shown_name(name: &str) -> String {
    let end = name.char_indices().nth(NAME_CHARACTERS).map_or(name.len(), |(end, _)| end);
    let more = if end < name.len() { "…" } else { "" };
    format!("{}{more}", escaped(&name[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn j18_the_list_of_unknown_members_is_bounded() {
        let mut report = PageReport::default();
        for n in (0..UNKNOWN_LISTED).chain(0..UNKNOWN_LISTED) {
            report.note_unknown(|| n.to_string());
        }
        assert_eq!(report.unknown_members.len(), UNKNOWN_LISTED, "all of them, and no more");
        for n in 0..100_000 {
            report.note_unknown(|| n.to_string());
        }
        assert_eq!(report.unknown_members.len(), UNKNOWN_LISTED + 1);
        assert_eq!(shown_name(&"x".repeat(1_000_000)).chars().count(), NAME_CHARACTERS + 1);
        assert_eq!(shown_name("a\u{1b}b"), "a\\x1bb");
    }
}
