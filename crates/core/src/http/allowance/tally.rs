//! The parts of a count: the number of requests in a day, token requests, and pauses. All times are
//! service time.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

pub(super) const DAY: SignedDuration = SignedDuration::from_hours(24);
/// If the clock is this long before the start of a pause, it was set back.
const SET_BACK: SignedDuration = SignedDuration::from_mins(10);
/// Clients that start within this time of each other start together.
const TOGETHER: SignedDuration = SignedDuration::from_secs(10);
const HOUR: i64 = 3_600;

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
    /// Opens the day that begins at `start`. An earlier day is not reopened: the current day
    /// continues.
    pub(super) fn roll(&mut self, start: Timestamp) {
        if self.since < Some(start) {
            *self = Self { since: Some(start), count: 0 };
        }
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

/// The token requests of all processes, and how many start together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct TokenCounts {
    pub(super) day: Tally,
    pub(super) hour: Tally,
    /// Clients that started without a token, since the first one of those that started together.
    pub(super) starts: Tally,
}

impl TokenCounts {
    /// Counts one request at `now`, in the day that begins at `start`.
    pub(super) fn add(&mut self, start: Timestamp, now: Timestamp) {
        for (tally, start) in [(&mut self.day, start), (&mut self.hour, start_of_hour(now))] {
            tally.roll_back(start);
            tally.roll(start);
            tally.add();
        }
    }

    /// The requests of the day that begins at `start`, and of the hour of `now`.
    pub(super) fn counts(mut self, start: Timestamp, now: Timestamp) -> (u64, u64) {
        self.day.roll(start);
        self.hour.roll(start_of_hour(now));
        (self.day.count, self.hour.count)
    }

    /// Records the start of a client without a token; returns the number of starts shortly before
    /// it.
    pub(super) fn begin(&mut self, now: Timestamp) -> u64 {
        let is_together = |since: Timestamp| now.duration_since(since).abs() < TOGETHER;
        if !self.starts.since.is_some_and(is_together) {
            self.starts = Tally { since: Some(now), count: 0 };
        }
        self.starts.add();
        self.starts.count - 1
    }
}

fn start_of_hour(now: Timestamp) -> Timestamp {
    let second = now.as_second();
    Timestamp::from_second(second - second.rem_euclid(HOUR)).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::allowance::test_moments::timestamp;

    #[test]
    fn t31_token_requests_are_counted_by_day_and_by_hour() {
        let day = timestamp("2026-11-01T00:00:00Z");
        let mut counts = TokenCounts::default();
        for time in ["00:10:00", "00:59:59", "01:00:00"] {
            counts.add(day, timestamp(&format!("2026-11-01T{time}Z")));
        }
        assert_eq!(counts.counts(day, timestamp("2026-11-01T01:59:59Z")), (3, 1));
        assert_eq!(counts.counts(day, timestamp("2026-11-01T02:00:00Z")), (3, 0));
        // A clock that was set back over the hour does not reopen an hour.
        counts.add(day, timestamp("2026-11-01T00:59:00Z"));
        assert_eq!(counts.counts(day, timestamp("2026-11-01T01:10:00Z")), (4, 2));
        // A clock that was days ahead does not hold the count forever.
        counts.add(day, timestamp("2026-11-09T07:00:00Z"));
        counts.add(day, timestamp("2026-11-01T01:20:00Z"));
        assert_eq!(counts.counts(day, timestamp("2026-11-01T01:30:00Z")).1, 2);
        assert_eq!(counts.counts(day, timestamp("2026-11-01T02:00:00Z")).1, 0, "the hour ends");
    }

    #[test]
    fn t31_a_clock_that_was_set_back_begins_anew() {
        let mut counts = TokenCounts::default();
        assert_eq!(counts.begin(timestamp("2026-11-01T12:00:00Z")), 0);
        assert_eq!(counts.begin(timestamp("2026-11-01T11:59:55Z")), 1);
        assert_eq!(counts.begin(timestamp("2026-11-01T11:00:00Z")), 0);
        assert_eq!(counts.begin(timestamp("2026-11-01T11:00:09.9Z")), 1);
        assert_eq!(counts.begin(timestamp("2026-11-01T11:00:10Z")), 0);
    }
}
