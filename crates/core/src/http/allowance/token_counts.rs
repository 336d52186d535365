//! [`TokenCounts`]: the token requests of all processes, and how many start together.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::tally::Tally;

/// Clients that start within this time of each other start together.
const TOGETHER: SignedDuration = SignedDuration::from_secs(10);
const HOUR: i64 = 3_600;

/// Token requests, by service time.
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
        self.day.roll_back(start);
        self.day.roll(start);
        self.day.add();
        let hour = start_of_hour(now);
        self.hour.roll_back(hour);
        self.hour.roll(hour);
        self.hour.add();
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
