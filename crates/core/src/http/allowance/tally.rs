//! The parts of a count: the number of requests in a day, and pauses. All times are service time.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

pub(super) const DAY: SignedDuration = SignedDuration::from_hours(24);
/// If the clock is this long before the start of a pause, it was set back.
const SET_BACK: SignedDuration = SignedDuration::from_mins(10);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Tally {
    /// The start of the day; `None` before the first request.
    pub since: Option<Timestamp>,
    /// Requests since then.
    pub count: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Pause {
    /// When the service requested it.
    pub requested_at: Timestamp,
    pub until: Timestamp,
}

impl Tally {
    /// Opens the day that begins at `start`, and returns true if it is a new one. An earlier day is
    /// not reopened: the current day continues.
    pub(super) fn roll(&mut self, start: Timestamp) -> bool {
        let is_new = self.since.is_none_or(|since| since < start);
        if is_new {
            *self = Self { since: Some(start), count: 0 };
        }
        is_new
    }

    /// Moves the count to the day that begins at `start`, which is certain, if the current day is
    /// more than one day ahead of it.
    pub(super) fn roll_back(&mut self, start: Timestamp) {
        if self.since.is_some_and(|since| since.duration_since(start) > DAY) {
            self.since = Some(start);
        }
    }

    /// The count of the day that begins at `start`; zero if the current day is another.
    pub(super) fn count_of(&self, start: Timestamp) -> u64 {
        if self.since == Some(start) { self.count } else { 0 }
    }

    pub(super) fn add(&mut self) {
        self.count = self.count.saturating_add(1);
    }

    pub(super) fn remove(&mut self) {
        self.count = self.count.saturating_sub(1);
    }
}

impl Pause {
    /// A pause lasts at most a day, because the allowance is daily.
    pub(super) fn new(now: Timestamp, until: Timestamp) -> Self {
        let until = until.min(now.checked_add(DAY).unwrap_or(Timestamp::MAX));
        Self { requested_at: now, until }
    }

    /// Active until its end, unless the clock was set back, which would make the pause too long.
    pub(super) fn is_active(&self, now: Timestamp) -> bool {
        now < self.until && self.requested_at.duration_since(now) <= SET_BACK
    }
}
