//! Ranges with an abandoned chain: not all of their points are stored. A range is set aside for a
//! day if the service never ends its chain, its cursor cannot be used, or the target cannot store
//! its values. Otherwise every run would pay for it again.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::coverage::Window;
use crate::data::ranges::{Range, Ranges, instant};
use crate::error::Kind;

/// In seconds.
const PAUSE: i64 = 86_400;
/// The limit per day of chains without an end, because each costs hundreds of pages, and of chains
/// with values that the target cannot store.
const MOST_ALIKE: usize = 3;

pub(super) fn set_aside_until(now: Timestamp) -> Timestamp {
    instant(now.as_second().saturating_add(PAUSE))
}

/// A range that a sync skips for a day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SkippedRange {
    pub start: Timestamp,
    pub end: Timestamp,
    /// When a sync retries it without a request from the user.
    pub until: Timestamp,
    /// The kind of the error that ended its chain.
    pub error: String,
    /// Pages of its last chain.
    pub pages: u64,
}

impl SkippedRange {
    pub(super) fn range(&self) -> Range {
        Range::between(self.start, self.end)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct GivenUpRange {
    #[serde(flatten)]
    range: Range,
    pages: u64,
    /// When the range was set aside, and the kind of the error; `None` if the next run may read it.
    set_aside: Option<(i64, String)>,
}

/// Disjoint. A range is removed when another chain has read it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct GivenUp(Vec<GivenUpRange>);

impl GivenUp {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a range with a chain that was abandoned after this number of pages.
    pub(super) fn add(&mut self, range: Range, pages: u64, set_aside: Option<(i64, Kind)>) {
        self.remove(range);
        let set_aside = set_aside.map(|(at, kind)| (at, kind.to_string()));
        self.0.push(GivenUpRange { range, pages, set_aside });
        self.0.sort_unstable_by_key(|one| one.range.start);
    }

    /// Removes a range that another chain has read to its end.
    pub(super) fn remove(&mut self, range: Range) {
        let rest = |one: GivenUpRange| {
            let left = Ranges::from(one.range).without(&range.into());
            let parts: Vec<Range> = left.iter().collect();
            parts.into_iter().map(move |range| GivenUpRange { range, ..one.clone() })
        };
        self.0 = std::mem::take(&mut self.0).into_iter().flat_map(rest).collect();
    }

    pub(super) fn release(&mut self) {
        self.0.iter_mut().for_each(|one| one.set_aside = None);
    }

    /// The ranges that may have some stored points.
    pub(super) fn begun(&self) -> impl Iterator<Item = Range> {
        self.0.iter().map(|one| one.range)
    }

    /// The ranges that are set aside at this time.
    pub(super) fn set_aside(&self, now: i64) -> impl Iterator<Item = SkippedRange> {
        self.0.iter().filter_map(move |one| {
            let (at, error) = one.set_aside.clone()?;
            let ((start, end), until) = (one.range.instants(), instant(at.saturating_add(PAUSE)));
            // A wrong clock cannot extend the pause.
            let is_skipped = now.abs_diff(at) < PAUSE.unsigned_abs();
            is_skipped.then_some(SkippedRange { start, end, until, error, pages: one.pages })
        })
    }

    pub(super) fn ranges(&self, now: i64) -> Ranges {
        self.set_aside(now).map(|one| one.range()).collect()
    }

    /// Whether enough ranges are set aside for the same reason that the other ranges probably fail
    /// too.
    pub(super) fn is_endless(&self, now: i64) -> bool {
        [Kind::EndlessChain, Kind::StoreError].iter().any(|kind| {
            let kind = kind.to_string();
            self.set_aside(now).filter(|one| one.error == kind).count() >= MOST_ALIKE
        })
    }

    /// The last retry of these ranges.
    pub(super) fn until(&self, ranges: &Ranges) -> Option<Timestamp> {
        let is_within = |one: &&GivenUpRange| !ranges.and(&one.range.into()).is_empty();
        let times = self.0.iter().filter(is_within).filter_map(|one| one.set_aside.as_ref());
        times.map(|(at, _)| instant(at.saturating_add(PAUSE))).max()
    }

    /// Marks the windows that are set aside, and cuts them at the ends of these ranges.
    pub(super) fn mark(&self, windows: Vec<Window>, now: i64) -> Vec<Window> {
        let marked = |window: Window| {
            let range = Range::between(window.start, window.end);
            let rest = Ranges::from(range).without(&self.ranges(now));
            let mut parts: Vec<_> = rest.iter().map(|part| (part, None)).collect();
            parts.extend(self.set_aside(now).map(|one| (one.range().and(range), Some(one.until))));
            parts.retain(|(part, _)| !part.is_empty());
            parts.sort_unstable();
            parts.into_iter().map(move |(part, until)| {
                let (start, end) = part.instants();
                Window { start, end, skipped_until: until, ..window.clone() }
            })
        };
        windows.into_iter().flat_map(marked).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given_up() -> GivenUp {
        let mut given_up = GivenUp::default();
        given_up.add(Range::new(20, 40), 3, Some((1_000, Kind::EndlessChain)));
        given_up.add(Range::new(0, 10), 2, None);
        given_up
    }

    #[test]
    fn p13_a_wrong_clock_never_extends_a_pause() {
        let given_up = given_up();
        for (now, is_set_aside) in [
            (1_000, true),
            (1_000 + PAUSE - 1, true),
            (1_000 + PAUSE, false),
            (1_000 - PAUSE + 1, true),
            (1_000 - PAUSE, false),
            (i64::MIN, false),
        ] {
            assert_eq!(!given_up.ranges(now).is_empty(), is_set_aside, "{now}");
            assert_eq!(given_up.set_aside(now).count(), usize::from(is_set_aside), "{now}");
        }
        let skipped = given_up.set_aside(1_000).next().expect("a range");
        assert_eq!((skipped.error.as_str(), skipped.pages), ("EndlessChain", 3));
        assert_eq!(skipped.until, instant(1_000 + PAUSE));
    }

    #[test]
    fn p13_a_later_read_ends_a_pause() {
        let mut given_up = given_up();
        given_up.remove(Range::new(5, 30));
        let begun: Ranges = given_up.begun().collect();
        assert_eq!(begun.iter().collect::<Vec<_>>(), [Range::new(0, 5), Range::new(30, 40)]);
        assert_eq!(given_up.ranges(1_000), Range::new(30, 40).into());
        assert_eq!(given_up.until(&Range::new(0, 5).into()), None);
        assert_eq!(given_up.until(&begun), Some(instant(1_000 + PAUSE)));
        given_up.release();
        assert!(given_up.ranges(1_000).is_empty() && given_up.begun().count() == 2);
        given_up.remove(Range::new(0, 99));
        assert!(given_up.is_empty());
    }

    #[test]
    fn p13_windows_are_cut_at_paused_ranges() {
        let state = super::super::coverage::WindowState::Unread;
        let window = |start, end, until: Option<i64>| Window {
            skipped_until: until.map(instant),
            ..Window::new(Range::new(start, end), state, None)
        };
        let marked = given_up().mark(vec![window(0, 30, None), window(30, 60, None)], 1_000);
        let until = Some(1_000 + PAUSE);
        let expected = [(0, 20, None), (20, 30, until), (30, 40, until), (40, 60, None)];
        assert_eq!(marked, expected.map(|(start, end, until)| window(start, end, until)));
    }

    #[test]
    fn p14_three_endless_chains_pause_the_feed() {
        let given_up = |kinds: &[Kind]| {
            let mut given_up = GivenUp::default();
            for (start, kind) in (0..).step_by(10).zip(kinds) {
                given_up.add(Range::new(start, start + 10), 1, Some((1_000, *kind)));
            }
            given_up
        };
        let [endless, looped] = [Kind::EndlessChain, Kind::CursorLoop];
        assert!(given_up(&[endless; 3]).is_endless(1_000));
        assert!(given_up(&[endless; 3]).is_endless(1_000 + PAUSE - 1));
        assert!(!given_up(&[endless; 3]).is_endless(1_000 + PAUSE), "retried");
        assert!(!given_up(&[endless, endless, looped, looped]).is_endless(1_000));
        assert!(given_up(&[Kind::StoreError; 3]).is_endless(1_000), "values of the same series");
        assert!(!given_up(&[endless, endless, Kind::StoreError]).is_endless(1_000));
        assert!(!given_up(&[looped; 4]).is_endless(1_000), "another error does not predict others");
        let mut released = given_up(&[endless; 3]);
        released.release();
        assert!(!released.is_endless(1_000));
    }
}
