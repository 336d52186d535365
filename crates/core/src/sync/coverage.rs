//! The ranges of a feed that have been read, the time of each read, and the windows for users.
//!
//! Only a chain that was read from its start to its end covers its range. Its time is its
//! beginning.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::feed::Feed;
use crate::data::ranges::{Range, Ranges, ceil, floor, instant};

/// A range, and the beginning of the newest chain that read all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(i64, i64, i64)", into = "(i64, i64, i64)")]
pub struct CoveredRange {
    pub range: Range,
    /// By the service's time.
    pub read_at: i64,
}

/// Ascending and disjoint.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Coverage(Vec<CoveredRange>);

impl From<(i64, i64, i64)> for CoveredRange {
    fn from((start, end, read_at): (i64, i64, i64)) -> Self {
        Self { range: Range::new(start, end), read_at }
    }
}

impl From<CoveredRange> for (i64, i64, i64) {
    fn from(read: CoveredRange) -> Self {
        (read.range.start, read.range.end, read.read_at)
    }
}

impl Coverage {
    /// Parts that a later chain has read keep the time of that chain.
    pub(crate) fn cover(&mut self, range: Range, read_at: i64) {
        let own = Ranges::from(range).without(&self.since(read_at));
        let mut reads = self.without(&own);
        reads.extend(own.iter().map(|range| CoveredRange { range, read_at }));
        reads.sort_unstable_by_key(|read| read.range);
        reads.dedup_by(|next, one| {
            let same = next.range.start == one.range.end && next.read_at == one.read_at;
            if same {
                one.range.end = next.range.end;
            }
            same
        });
        self.0 = reads;
    }

    fn without(&self, ranges: &Ranges) -> Vec<CoveredRange> {
        let mut rest = Vec::new();
        for read in &self.0 {
            let left = Ranges::from(read.range).without(ranges);
            rest.extend(left.iter().map(|range| CoveredRange { range, ..*read }));
        }
        rest
    }

    pub(super) fn forget(&mut self, before: i64) {
        self.0 = self.without(&Range::new(i64::MIN, before).into());
    }

    /// Marks the windows of a range that changed after its lateness as read before the lateness, so
    /// that they are read again.
    pub(super) fn unsettle(&mut self, range: Range, feed: &Feed) {
        let step = feed.window();
        let windows = Range::new(floor(range.start, step), ceil(range.end, step));
        let before = windows.start.saturating_add(step).saturating_add(feed.lateness()) - 1;
        let mut reads = self.without(&windows.into());
        reads.extend(self.iter().filter_map(|read| {
            let (range, read_at) = (read.range.and(windows), read.read_at.min(before));
            (!range.is_empty()).then_some(CoveredRange { range, read_at })
        }));
        reads.sort_unstable_by_key(|read| read.range);
        self.0 = reads;
    }

    #[must_use]
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = CoveredRange> + '_ {
        self.0.iter().copied()
    }

    #[must_use]
    pub fn covered(&self) -> Ranges {
        self.iter().map(|read| read.range).collect()
    }

    /// The ranges of chains that began at this time or later.
    #[must_use]
    pub fn since(&self, began: i64) -> Ranges {
        self.iter().filter(|read| read.read_at >= began).map(|read| read.range).collect()
    }

    /// The ranges of chains that began after the lateness of the range.
    #[must_use]
    pub fn settled(&self, feed: &Feed) -> Ranges {
        let final_part = |read: CoveredRange| {
            Range::new(read.range.start, read.range.end.min(feed.settled_before(read.read_at)))
        };
        self.iter().map(final_part).collect()
    }

    #[must_use]
    pub fn end(&self) -> Option<i64> {
        self.0.last().map(|read| read.range.end)
    }

    /// Joins neighbours within an unsettled window, to limit the number of ranges. They get the
    /// time of the oldest. This costs no request, because the window will be read again.
    pub(super) fn thin(&mut self, feed: &Feed) {
        let window = |read: &CoveredRange| floor(read.range.start, feed.window());
        let is_open = |read: &CoveredRange| feed.settled_before(read.read_at) <= window(read);
        let within =
            |read: &CoveredRange| read.range.end <= window(read).saturating_add(feed.window());
        self.0.dedup_by(|next, one| {
            let joins = next.range.start == one.range.end
                && window(next) == window(one)
                && [&*next, &*one].into_iter().all(|read| is_open(read) && within(read));
            if joins {
                one.range.end = next.range.end;
                one.read_at = one.read_at.min(next.read_at);
            }
            joins
        });
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the ranges are ascending, disjoint and not empty.
    pub(super) fn is_canonical(&self) -> bool {
        self.0.iter().all(|read| !read.range.is_empty())
            && self.0.windows(2).all(|pair| pair[0].range.end <= pair[1].range.start)
    }
}

/// The state of a window, or of a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WindowState {
    /// No chain has read it to its end.
    Unread,
    /// It was read, can still change, and is not due to be read again.
    Provisional,
    /// Its lateness has passed, and it is due to be read again for its final values.
    Due,
    /// It was read after its lateness.
    Settled,
    /// `forget` removed its points. It is not read again.
    Forgotten,
}

/// A part of one window with one state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Window {
    pub start: Timestamp,
    pub end: Timestamp,
    pub state: WindowState,
    /// The beginning of the newest chain that read it, by the service's time.
    pub read_at: Option<Timestamp>,
    /// The beginning of the chain that settled it.
    pub settled_at: Option<Timestamp>,
    /// Whether it was read and the store has no points in it; `None` if unknown.
    pub empty: Option<bool>,
    /// The time until which a sync skips it, because the service did not end its chain.
    pub skipped_until: Option<Timestamp>,
}

impl Window {
    pub(super) fn new(range: Range, state: WindowState, read_at: Option<i64>) -> Self {
        let ((start, end), read_at) = (range.instants(), read_at.map(instant));
        let settled_at = read_at.filter(|_| state == WindowState::Settled);
        Self { start, end, state, read_at, settled_at, empty: None, skipped_until: None }
    }
}

#[must_use]
pub(super) fn windows(feed: &Feed, coverage: &Coverage, now: Timestamp) -> Vec<Window> {
    let now = now.as_second();
    let due_before = feed.settled_before(now);
    let to_horizon = feed.range_to(feed.horizon(now));
    let mut stretches: Vec<(Range, WindowState, Option<i64>)> = Vec::new();
    let mut push = |range: Range, state: WindowState, read_at: Option<i64>| {
        for part in range.and(to_horizon).cut(feed.window()) {
            match stretches.last_mut() {
                Some((last, known, newest))
                    if *known == state
                        && last.end == part.start
                        && floor(last.start, feed.window()) == floor(part.start, feed.window()) =>
                {
                    last.end = part.end;
                    *newest = (*newest).max(read_at);
                }
                _ => stretches.push((part, state, read_at)),
            }
        }
    };
    let mut reached = to_horizon.start;
    for read in coverage.iter() {
        push(Range::new(reached, read.range.start), WindowState::Unread, None);
        let settled = read.range.start.max(read.range.end.min(feed.settled_before(read.read_at)));
        let settling = settled.max(read.range.end.min(due_before));
        let read_at = Some(read.read_at);
        push(Range::new(read.range.start, settled), WindowState::Settled, read_at);
        push(Range::new(settled, settling), WindowState::Due, read_at);
        push(Range::new(settling, read.range.end), WindowState::Provisional, read_at);
        reached = reached.max(read.range.end);
    }
    push(Range::new(reached, to_horizon.end), WindowState::Unread, None);
    stretches
        .into_iter()
        .map(|(range, state, read_at)| Window::new(range, state, read_at))
        .collect()
}
