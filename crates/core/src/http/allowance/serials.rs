//! [`Serials`]: the requests that may be of another day than the one in which they are counted.
//!
//! A request waits until it is settled: it is under way, or its process was killed. It is under way for
//! ten minutes at most, so that those that wait are kept in two batches: when the earlier one is that
//! old, the recent one takes its place. A killed request is thus forgotten ten to twenty minutes later,
//! and never counts in all days to come.

use jiff::{SignedDuration, Timestamp};

/// A request is under way for so long at most.
pub(super) const UNDER_WAY: SignedDuration = SignedDuration::from_mins(10);

/// Requests that wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Batch {
    /// So many.
    pub count: u64,
    /// The latest service time at which the last of them was sent; `None` where it was not known.
    pub until: Option<Timestamp>,
}

/// Requests by their serial numbers, which count on over all days.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Serials {
    /// The last that was counted.
    pub last: u64,
    /// Those after it that wait are counted in the current day.
    pub day: u64,
    /// The last before the current day was opened: those of it that are counted may be of either day.
    pub before: u64,
    /// Those after it were sent while the service's time was not known and the wall clock showed another
    /// day than the last known one.
    pub old: u64,
    /// So many may be of the next day: they were counted while the service's time was not known or in
    /// doubt, and no reply has shown it since.
    pub uncertain: u64,
    /// So many wait no longer, and no reply has shown their day since.
    pub undated: u64,
    /// The last that was sent when one of those ended: the reply of a later one shows their day.
    pub undated_until: u64,
    /// Those up to it do not wait: they are settled, or too old to be under way.
    pub past: u64,
    /// Those that wait after it, up to `earlier_until`.
    pub earlier: Batch,
    /// The last of the earlier batch.
    pub earlier_until: u64,
    /// Those that wait after it.
    pub recent: Batch,
}

impl Batch {
    /// Whether one of them may have come to the service after this time.
    fn may_reach(&self, time: Timestamp) -> bool {
        self.count > 0 && self.until.is_none_or(|until| time.duration_since(until) < UNDER_WAY)
    }

    /// Both together.
    fn and(self, other: Self) -> Self {
        Self { count: self.count.saturating_add(other.count), until: self.until.max(other.until) }
    }
}

impl Serials {
    /// One more is sent, at `latest` by the service's clock; `None` where that is not known.
    pub(super) fn send(&mut self, latest: Option<Timestamp>) {
        self.last = self.last.saturating_add(1);
        let until =
            latest.map(|latest| self.recent.until.map_or(latest, |until| until.max(latest)));
        self.recent = Batch { count: self.recent.count.saturating_add(1), until };
    }

    /// The machine was started: when those that were sent until now were remains known.
    pub(super) fn start(&mut self) {
        if self.recent.until.is_some() {
            self.earlier = self.earlier.and(std::mem::take(&mut self.recent));
            self.earlier_until = self.last;
        }
    }

    /// The service's clock shows a time from `known` to `latest`. Nothing shows the day of those that
    /// end by it.
    pub(super) fn pass(&mut self, known: Timestamp, latest: Timestamp) {
        let ended = self.end_before(known, latest);
        if ended > 0 {
            self.undated = self.undated.saturating_add(ended);
            self.undated_until = self.last;
        }
    }

    /// A reply agrees that this is the service's time: what has ended before it was of a day that is
    /// known, or of one that has begun since.
    pub(super) fn agree(&mut self, time: Timestamp, latest: Timestamp) {
        self.end_before(time, latest);
    }

    /// Ends those that are too old to be under way at `known`; returns how many they are.
    fn end_before(&mut self, known: Timestamp, latest: Timestamp) -> u64 {
        let mut ended = 0;
        for batch in [&mut self.earlier, &mut self.recent] {
            batch.until.get_or_insert(latest);
        }
        if !self.earlier.may_reach(known) {
            ended = self.earlier.count;
            self.past = self.earlier_until;
            self.earlier = std::mem::take(&mut self.recent);
            self.earlier_until = self.last;
        }
        if !self.earlier.may_reach(known) && self.recent.count == 0 {
            ended = ended.saturating_add(std::mem::take(&mut self.earlier).count);
            self.past = self.earlier_until;
        }
        ended
    }

    /// This one is settled.
    pub(super) fn settle(&mut self, serial: u64) {
        let batch = match serial {
            recent if recent > self.earlier_until => &mut self.recent,
            earlier if earlier > self.past => &mut self.earlier,
            _ => return,
        };
        batch.count = batch.count.saturating_sub(1);
    }

    /// A reply showed `time`, and now it is `latest` at most: the service's clock is another one
    /// (`is_stepped`), or the machine was started.
    pub(super) fn adopt(&mut self, time: Timestamp, latest: Timestamp, is_stepped: bool) {
        for batch in [&mut self.earlier, &mut self.recent] {
            batch.until = batch.until.filter(|until| !is_stepped && *until <= latest);
        }
        self.end_before(time, latest);
    }

    /// One no longer waits, and nothing shows its day.
    pub(super) fn add_undated(&mut self) {
        self.undated = self.undated.saturating_add(1);
        self.undated_until = self.last;
    }

    /// So many wait.
    pub(super) fn waiting(&self) -> u64 {
        self.earlier.count.saturating_add(self.recent.count)
    }

    /// So many may be of a day that a step of the service's clock has opened.
    pub(super) fn unplaced(&self) -> u64 {
        self.waiting().saturating_add(self.undated)
    }

    /// A day ends at this time with so many requests; returns how many of them may be of the next one.
    pub(super) fn end_day(&mut self, midnight: Timestamp, count: u64) -> u64 {
        let [earlier, recent] = [self.earlier, self.recent]
            .map(|batch| if batch.may_reach(midnight) { batch.count } else { 0 });
        let uncertain = std::mem::take(&mut self.uncertain);
        let next = uncertain.saturating_add(earlier).saturating_add(recent).min(self.unplaced());
        self.day = match (earlier, recent) {
            (0, 0) => self.last,
            (0, _) => self.earlier_until,
            _ => self.past,
        };
        // What was sent before this day is of no day to come.
        self.undated = self.undated.min(count);
        next
    }
}
