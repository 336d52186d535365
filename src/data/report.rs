//! What was assumed and seen on a page where the document shows nothing, and how many points were odd.
//! Odd points are kept as they are, and all are counted.

use std::collections::BTreeSet;

use serde::Serialize;

use super::shape::TimestampForm;

/// At most so many names of unknown members are listed; of further ones only that there are more.
const UNKNOWN_LISTED: usize = 200;
/// Longest name listed in full.
const NAME_CHARACTERS: usize = 100;

/// The quality report of a page, or of several merged.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PageReport {
    /// Points read, repeats included.
    pub points: u64,
    /// Different series seen. In a report over several pages: the most on one page.
    pub series: u64,
    /// Names of the top-level array that held the series.
    pub arrays: BTreeSet<String>,
    /// The forms of timestamps seen.
    pub timestamp_forms: BTreeSet<TimestampForm>,
    /// Points before the query's start, or at or after its end (J14).
    pub outside_range: u64,
    /// Points on no multiple of the interval, counted from the epoch or from the start (J14).
    pub off_grid: u64,
    /// Points whose minimum is above their maximum (J15).
    pub minimum_above_maximum: u64,
    /// Points whose value is below their minimum or above their maximum (J15).
    pub value_outside_bounds: u64,
    /// Points whose series and timestamp came before on the same page (J16).
    pub repeated: u64,
    /// Timestamps whose digits beyond the microsecond were cut off (J11).
    pub timestamps_truncated: u64,
    /// Leap seconds, read as `:59.999999` (J11).
    pub leap_seconds: u64,
    /// Numbers that came as text (J9).
    pub numbers_as_text: u64,
    /// Negative sample counts (J10).
    pub negative_counts: u64,
    /// Pages without the member `nextCursor`, taken as the last (only with `missing_cursor="end"`).
    pub cursors_missing: u64,
    /// Members that were ignored, as `meta`, `series[].unit`, `points[].quality` (J18).
    pub unknown_members: BTreeSet<String>,
}

impl PageReport {
    /// Adds the report of another page.
    pub fn merge(&mut self, other: &Self) {
        self.series = self.series.max(other.series);
        for (mine, theirs) in self.counts().into_iter().zip(other.clone().counts()) {
            *mine += *theirs;
        }
        self.arrays.extend(other.arrays.iter().cloned());
        self.timestamp_forms.extend(&other.timestamp_forms);
        for name in &other.unknown_members {
            self.note_unknown(|| name.clone());
        }
    }

    /// The entries that add up over pages.
    fn counts(&mut self) -> [&mut u64; 11] {
        [
            &mut self.points,
            &mut self.outside_range,
            &mut self.off_grid,
            &mut self.minimum_above_maximum,
            &mut self.value_outside_bounds,
            &mut self.repeated,
            &mut self.timestamps_truncated,
            &mut self.leap_seconds,
            &mut self.numbers_as_text,
            &mut self.negative_counts,
            &mut self.cursors_missing,
        ]
    }

    /// Lists an unknown member, unless very many are listed already.
    pub(super) fn note_unknown(&mut self, name: impl FnOnce() -> String) {
        if self.unknown_members.len() < UNKNOWN_LISTED {
            self.unknown_members.insert(name());
        } else {
            self.unknown_members.insert("… and more".to_owned());
        }
    }
}

/// A member's name as a report or message shows it: cut, and with control characters escaped.
pub(super) fn shown_name(name: &str) -> String {
    let mut shown: String = name
        .chars()
        .take(NAME_CHARACTERS)
        .flat_map(|c| {
            c.is_control()
                .then(|| c.escape_unicode())
                .into_iter()
                .flatten()
                .chain((!c.is_control()).then_some(c))
        })
        .collect();
    if name.chars().nth(NAME_CHARACTERS).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_of_pages_add_up() {
        let mut one = PageReport { points: 3, series: 2, off_grid: 1, ..PageReport::default() };
        let mut two = PageReport { points: 4, series: 1, repeated: 5, ..PageReport::default() };
        two.note_unknown(|| "meta".to_owned());
        two.timestamp_forms.insert(TimestampForm::Iso);
        one.merge(&two);
        assert_eq!((one.points, one.series, one.off_grid, one.repeated), (7, 2, 1, 5));
        let written = serde_json::to_value(&one).unwrap();
        assert_eq!(written["points"], 7);
        assert_eq!(written["unknown_members"], serde_json::json!(["meta"]));
        assert_eq!(written["timestamp_forms"], serde_json::json!(["iso"]));
    }

    #[test]
    fn j18_a_flood_of_unknown_members_stays_bounded() {
        let mut report = PageReport::default();
        for n in 0..100_000 {
            report.note_unknown(|| n.to_string());
        }
        assert_eq!(report.unknown_members.len(), UNKNOWN_LISTED + 1);
        assert_eq!(shown_name(&"x".repeat(1_000_000)).chars().count(), NAME_CHARACTERS + 1);
        assert_eq!(shown_name("a\u{1b}b"), "a\\u{1b}b");
    }
}
