//! [`Loose`]: counted requests with an unconfirmed day. They are under way, lost, answered without
//! a usable date, or their process was killed.
//!
//! If the service's clock turns out to be stepped, or the machine was started, they may belong to
//! the day that begins, and count in both days. A reply that agrees with the known time confirms
//! the day of all requests that were sent at least ten minutes before it. Two batches are enough
//! for that.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// Maximum time that a request is under way.
pub(super) const UNDER_WAY: SignedDuration = SignedDuration::from_mins(10);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
struct LooseBatch {
    count: u64,
    /// The latest service time at which the last of them was sent; `None` if it was unknown.
    until: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Loose {
    earlier: LooseBatch,
    recent: LooseBatch,
    /// The number of the first batch in `earlier`.
    oldest: u64,
    /// The number of `recent`.
    newest: u64,
}

impl LooseBatch {
    /// Whether all of them had reached the service by this time.
    fn has_ended(&self, time: Timestamp) -> bool {
        self.count == 0 || self.until.is_some_and(|until| time.duration_since(until) >= UNDER_WAY)
    }
}

impl Loose {
    pub(super) fn total(&self) -> u64 {
        self.earlier.count.saturating_add(self.recent.count)
    }

    /// The first batch with requests that may reach the service after this time, and the number of
    /// such requests.
    pub(super) fn under_way_at(&self, time: Timestamp) -> (u64, u64) {
        match (self.earlier.has_ended(time), self.recent.has_ended(time)) {
            (false, _) => (self.oldest, self.total()),
            (true, false) => (self.newest, self.recent.count),
            (true, true) => (self.newest + 1, 0),
        }
    }

    /// Records that the service's clock may have been stepped.
    pub(super) fn doubt(&mut self) {
        (self.earlier.until, self.recent.until) = (None, None);
    }

    /// The number of the first batch that is still kept.
    pub(super) fn oldest(&self) -> u64 {
        self.oldest
    }

    /// Adds a request that is sent at `latest` by the service's clock; `None` if that is unknown.
    /// Returns the number of its batch.
    pub(super) fn send(&mut self, latest: Option<Timestamp>) -> u64 {
        if latest.is_none() && self.recent.until.is_some() {
            // Keep the time of the requests that were sent before the machine was started.
            let LooseBatch { count, until } = std::mem::take(&mut self.recent);
            self.earlier.count = self.earlier.count.saturating_add(count);
            self.earlier.until = self.earlier.until.max(until);
            self.newest += 1;
        }
        self.recent.count = self.recent.count.saturating_add(1);
        self.recent.until = latest.max(self.recent.until);
        self.newest
    }

    /// A batch that is still kept.
    fn batch(&mut self, number: u64) -> Option<&mut LooseBatch> {
        match number {
            recent if recent == self.newest => Some(&mut self.recent),
            earlier if earlier >= self.oldest => Some(&mut self.earlier),
            _ => None,
        }
    }

    /// Records that a request of this batch ended while the service's time was unknown.
    pub(super) fn doubt_batch(&mut self, number: u64) {
        if let Some(batch) = self.batch(number) {
            batch.until = None;
        }
    }

    pub(super) fn settle(&mut self, number: u64) {
        if let Some(batch) = self.batch(number) {
            batch.count = batch.count.saturating_sub(1);
        }
    }

    /// Records a reply with `time` that agrees with the service's clock, which shows at most
    /// `latest` now.
    pub(super) fn agree(&mut self, time: Timestamp, latest: Timestamp) {
        for batch in [&mut self.earlier, &mut self.recent] {
            batch.until.get_or_insert(latest);
        }
        if self.earlier.has_ended(time) {
            self.earlier = std::mem::take(&mut self.recent);
            (self.oldest, self.newest) = (self.newest, self.newest + 1);
        }
        if self.earlier.has_ended(time) && self.recent.count == 0 {
            (self.earlier, self.oldest) = (LooseBatch::default(), self.newest);
        }
    }

    /// Records that the service's clock was stepped (`is_stepped`), or that the machine was
    /// started.
    pub(super) fn adopt(&mut self, time: Timestamp, latest: Timestamp, is_stepped: bool) {
        for batch in [&mut self.earlier, &mut self.recent] {
            batch.until = batch.until.filter(|until| !is_stepped && *until <= latest);
        }
        self.agree(time, latest);
    }

    /// Ends a day with this number of requests. Requests sent before its end belong to no later
    /// day.
    pub(super) fn end_day(&mut self, count: u64) {
        self.recent.count = self.recent.count.min(count);
        self.earlier.count = self.earlier.count.min(count - self.recent.count);
    }
}
