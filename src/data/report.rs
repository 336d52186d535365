//! What was assumed and seen on a page where the document shows nothing, and counted oddities: no
//! oddity changes or drops a point, and none goes unmentioned.

use std::collections::BTreeSet;

use super::shape::TimestampForm;

/// So many names of unknown members are listed; more are only said to be there.
const UNKNOWN_LISTED: usize = 200;
/// Longest name listed in full.
const NAME_CHARACTERS: usize = 100;

/// The quality report of a page, or of several merged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
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

/// A value of a report, for display.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// How often.
    Count(u64),
    /// Which names, sorted.
    Names(Vec<String>),
}

impl PageReport {
    /// Adds the report of another page.
    pub fn merge(&mut self, other: &Self) {
        self.series = self.series.max(other.series);
        for (mine, theirs) in self.counts().into_iter().zip(other.clone().counts()) {
            *mine.1 += *theirs.1;
        }
        self.arrays.extend(other.arrays.iter().cloned());
        self.timestamp_forms.extend(&other.timestamp_forms);
        for name in &other.unknown_members {
            self.note_unknown(|| name.clone());
        }
    }

    /// All entries by name, zeros and empty lists included.
    #[must_use]
    pub fn entries(&self) -> Vec<(&'static str, Entry)> {
        let forms = self.timestamp_forms.iter().map(|form| form.name().to_owned()).collect();
        let mut entries = vec![("series", Entry::Count(self.series))];
        let mut copy = self.clone();
        entries.extend(copy.counts().map(|(name, count)| (name, Entry::Count(*count))));
        entries.push(("arrays", Entry::Names(self.arrays.iter().cloned().collect())));
        entries.push(("timestamp_forms", Entry::Names(forms)));
        let unknown = self.unknown_members.iter().cloned().collect();
        entries.push(("unknown_members", Entry::Names(unknown)));
        entries
    }

    /// The entries that add up over pages.
    fn counts(&mut self) -> [(&'static str, &mut u64); 11] {
        [
            ("points", &mut self.points),
            ("outside_range", &mut self.outside_range),
            ("off_grid", &mut self.off_grid),
            ("minimum_above_maximum", &mut self.minimum_above_maximum),
            ("value_outside_bounds", &mut self.value_outside_bounds),
            ("repeated", &mut self.repeated),
            ("timestamps_truncated", &mut self.timestamps_truncated),
            ("leap_seconds", &mut self.leap_seconds),
            ("numbers_as_text", &mut self.numbers_as_text),
            ("negative_counts", &mut self.negative_counts),
            ("cursors_missing", &mut self.cursors_missing),
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
        let entries = one.entries();
        assert!(entries.contains(&("points", Entry::Count(7))));
        assert!(entries.contains(&("unknown_members", Entry::Names(vec!["meta".to_owned()]))));
        assert!(entries.contains(&("timestamp_forms", Entry::Names(vec!["iso".to_owned()]))));
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
