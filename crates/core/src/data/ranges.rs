//! Sets of seconds or microseconds since the Unix epoch, as half-open ranges.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// `[start, end)`, in seconds unless stated otherwise; never empty in a [`Ranges`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Range {
    pub start: i64,
    pub end: i64,
}

/// Ascending and disjoint; ranges that touch are joined.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ranges(Vec<Range>);

impl Range {
    /// Empty if `end` is not after `start`.
    #[must_use]
    pub fn new(start: i64, end: i64) -> Self {
        Self { start, end }
    }

    /// Rounds down to seconds.
    #[must_use]
    pub fn between(start: Timestamp, end: Timestamp) -> Self {
        Self::new(start.as_second(), end.as_second())
    }

    /// The range in microseconds.
    #[must_use]
    pub fn microseconds(self) -> Self {
        let (start, end) = self.instants();
        Self::new(start.as_microsecond(), end.as_microsecond())
    }

    #[must_use]
    pub fn has(self, at: i64) -> bool {
        (self.start..self.end).contains(&at)
    }

    #[must_use]
    pub fn seconds(self) -> i64 {
        self.end.saturating_sub(self.start).max(0)
    }

    #[must_use]
    pub fn is_empty(self) -> bool {
        self.end <= self.start
    }

    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self::new(self.start.max(other.start), self.end.min(other.end))
    }

    #[must_use]
    pub(crate) fn instants(self) -> (Timestamp, Timestamp) {
        (instant(self.start), instant(self.end))
    }

    /// The parts of the range, cut at the multiples of `step`.
    pub fn cut(self, step: i64) -> impl Iterator<Item = Self> {
        let mut start = self.start;
        std::iter::from_fn(move || {
            let end = (floor(start, step).saturating_add(step)).min(self.end);
            let part = Self::new(start, end);
            start = end;
            (!part.is_empty()).then_some(part)
        })
    }
}

impl Ranges {
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[must_use]
    pub fn all() -> Self {
        Range::new(i64::MIN, i64::MAX).into()
    }

    #[must_use]
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Range> + '_ {
        self.0.iter().copied()
    }

    #[must_use]
    pub fn seconds(&self) -> i64 {
        self.iter().map(Range::seconds).fold(0, i64::saturating_add)
    }

    #[must_use]
    pub fn contains(&self, range: Range) -> bool {
        range.is_empty() || self.iter().any(|one| one.start <= range.start && range.end <= one.end)
    }

    /// The ranges with a part in this one.
    #[must_use]
    pub fn overlapping(&self, range: Range) -> &[Range] {
        let first = self.0.partition_point(|one| one.end <= range.start);
        let end = self.0.partition_point(|one| one.start < range.end);
        &self.0[first..end.max(first)]
    }

    /// The ranges in microseconds.
    #[must_use]
    pub fn microseconds(&self) -> Self {
        Self(self.iter().map(Range::microseconds).collect())
    }

    /// Pairs of start and end.
    #[must_use]
    pub fn instants(&self) -> Vec<(Timestamp, Timestamp)> {
        self.iter().map(Range::instants).collect()
    }

    #[must_use]
    pub fn with(&self, others: &Self) -> Self {
        self.iter().chain(others.iter()).collect()
    }

    pub fn add(&mut self, range: Range) {
        *self = self.iter().chain([range]).collect();
    }

    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let parts = |one: Range| other.overlapping(one).iter().map(move |other| one.and(*other));
        Self(self.iter().flat_map(parts).collect())
    }

    #[must_use]
    pub fn without(&self, others: &Self) -> Self {
        let mut left = Vec::new();
        for mut one in self.iter() {
            for other in others.overlapping(one) {
                left.push(Range::new(one.start, other.start));
                one.start = other.end;
            }
            left.push(one);
        }
        left.retain(|range| !range.is_empty());
        Self(left)
    }

    /// Each range widened to multiples of `step`.
    #[must_use]
    pub(crate) fn widened(&self, step: i64) -> Self {
        self.iter().map(|one| Range::new(floor(one.start, step), ceil(one.end, step))).collect()
    }
}

impl From<Range> for Ranges {
    fn from(range: Range) -> Self {
        [range].into_iter().collect()
    }
}

impl From<std::ops::Range<i64>> for Range {
    fn from(range: std::ops::Range<i64>) -> Self {
        Self::new(range.start, range.end)
    }
}

impl<R: Into<Range>> FromIterator<R> for Ranges {
    fn from_iter<I: IntoIterator<Item = R>>(ranges: I) -> Self {
        let mut ranges: Vec<Range> = ranges.into_iter().map(Into::into).collect();
        ranges.retain(|range| !range.is_empty());
        ranges.sort_unstable();
        ranges.dedup_by(|next, one| {
            let touch = next.start <= one.end;
            if touch {
                one.end = one.end.max(next.end);
            }
            touch
        });
        Self(ranges)
    }
}

/// The greatest multiple of `step` that is at most `at`.
#[must_use]
pub(crate) fn floor(at: i64, step: i64) -> i64 {
    at.saturating_sub(at.rem_euclid(step))
}

/// The smallest multiple of `step` that is at least `at`.
#[must_use]
pub(crate) fn ceil(at: i64, step: i64) -> i64 {
    at.saturating_add((-at).rem_euclid(step))
}

/// Clamps the second to the range of [`Timestamp`].
#[must_use]
pub(crate) fn instant(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap_or(if second.is_negative() {
        Timestamp::MIN
    } else {
        Timestamp::MAX
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Arbitrary ranges within the first 40 seconds, and the seconds that they contain.
    fn any_ranges() -> impl Strategy<Value = (Ranges, Vec<bool>)> {
        proptest::collection::vec((0_i64..40, 0_i64..12), 0..8).prop_map(|pairs| {
            let ranges: Vec<Range> =
                pairs.iter().map(|(start, length)| Range::new(*start, start + length)).collect();
            let seconds = (0..60)
                .map(|second| ranges.iter().any(|r| (r.start..r.end).contains(&second)))
                .collect();
            (ranges.into_iter().collect(), seconds)
        })
    }

    fn seconds(ranges: &Ranges) -> Vec<bool> {
        (0..60).map(|at| ranges.iter().any(|r| (r.start..r.end).contains(&at))).collect()
    }

    fn is_canonical(ranges: &Ranges) -> bool {
        ranges.0.iter().all(|range| !range.is_empty())
            && ranges.0.windows(2).all(|pair| pair[0].end < pair[1].start)
    }

    proptest! {
        #[test]
        fn operations_on_ranges_agree_with_sets_of_seconds(
            (one, in_one) in any_ranges(),
            (other, in_other) in any_ranges(),
        ) {
            let both = |pick: fn(bool, bool) -> bool| -> Vec<bool> {
                in_one.iter().zip(&in_other).map(|(one, other)| pick(*one, *other)).collect()
            };
            for (made, expected) in [
                (one.clone(), in_one.clone()),
                (one.with(&other), both(|one, other| one || other)),
                (one.and(&other), both(|one, other| one && other)),
                (one.without(&other), both(|one, other| one && !other)),
            ] {
                prop_assert_eq!(seconds(&made), expected);
                prop_assert!(is_canonical(&made), "{:?}", made);
            }
            let all = other.iter().all(|range| one.contains(range));
            prop_assert_eq!(all, other.without(&one).is_empty());
        }

        #[test]
        fn range_parts_are_cut_on_the_grid(
            start in -100_i64..100, length in 0_i64..100, step in 1_i64..30,
        ) {
            let range = Range::new(start, start + length);
            let parts: Vec<Range> = range.cut(step).collect();
            prop_assert_eq!(parts.iter().copied().collect::<Ranges>(), Ranges::from(range));
            for part in &parts {
                prop_assert_eq!(floor(part.start, step), floor(part.end - 1, step));
            }
            prop_assert!(ceil(start, step) - start < step && ceil(start, step) >= start);
        }
    }

    #[test]
    fn instants_are_clamped_to_valid_timestamps() {
        for (second, expected) in [
            (i64::MIN, Timestamp::MIN),
            (Timestamp::MIN.as_second() - 1, Timestamp::MIN),
            (-1, Timestamp::new(-1, 0).expect("a timestamp")),
            (0, Timestamp::UNIX_EPOCH),
            (Timestamp::MAX.as_second() + 1, Timestamp::MAX),
            (i64::MAX, Timestamp::MAX),
        ] {
            assert_eq!(instant(second), expected, "{second}");
        }
    }
}
