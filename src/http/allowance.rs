//! The daily allowance of data requests (§8), counted before the bytes of a request leave.
//!
//! A [`Ledger`] keeps the count: [`MemoryLedger`] for the life of a client, the store one on disk.
//! All of its times are the service's: which day a request falls in is the service's business.

use std::fmt::Debug;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::error::{Error, Kind, Result};

const DAY_SECONDS: i64 = 86_400;
/// An allowance is daily: no answer of the service locks a client out for longer.
const LONGEST_PIN: SignedDuration = SignedDuration::from_hours(24);

/// The state of the daily allowance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllowanceState {
    /// Requests counted since the day began, those with unknown outcome included.
    pub used: u64,
    /// The day's allowance, where the user stated it; the interface does not show it.
    pub limit: Option<u64>,
    /// What may still be sent today; zero while the service says that nothing may.
    pub left: Option<u64>,
    /// When the count starts anew: midnight UTC until the service has shown another time.
    pub resets_at: Timestamp,
}

/// One request that was counted. It is given back only if no byte of it left.
#[derive(Debug)]
#[must_use = "a reservation counts against the day's allowance"]
pub struct Reservation {
    day: i64,
}

/// Who counts the requests of a day. Implementations count durably **before** they return.
pub trait Ledger: Send + Sync + Debug {
    /// Counts one request, `now` by the service's time, if `keep` more are left after it.
    ///
    /// # Errors
    /// `AllowanceExhausted` if too few are left, or until the time that the service named.
    fn reserve(&self, now: Timestamp, keep: u64) -> Result<Reservation>;

    /// Takes back the count of a request of which no byte left.
    fn give_back(&self, reservation: Reservation);

    /// The service says that the allowance is used up until then: nothing is left before, and the
    /// days are taken to begin at that time of day from now on.
    fn pin_until(&self, until: Timestamp, now: Timestamp);

    /// What is used and left.
    fn state(&self, now: Timestamp) -> AllowanceState;
}

/// The error of a request that is not sent because the allowance is used up.
#[must_use]
pub fn exhausted(state: AllowanceState) -> Error {
    let used = match state.limit {
        Some(limit) if state.used >= limit => format!("{} of {limit} requests", state.used),
        _ => format!("the service refuses more after {} requests", state.used),
    };
    Error::new(
        Kind::AllowanceExhausted,
        format!(
            "the daily request allowance is used up: {used}; none is sent before {}",
            state.resets_at
        ),
    )
    .with_hint("resume with the bookmark after that time, or raise daily_allowance= if it is wrong")
    .with(|context| {
        context.retry_at = Some(state.resets_at);
        context.unsent = true;
    })
}

/// Counts in memory, for the life of a client. The day is the service's UTC day until a long
/// `Retry-After` shows when it really begins.
#[derive(Debug)]
pub struct MemoryLedger {
    limit: Option<u64>,
    count: Mutex<Count>,
}

#[derive(Debug)]
struct Count {
    day: i64,
    used: u64,
    /// Seconds after midnight UTC at which the service's day begins.
    day_begins: i64,
    pinned_until: Option<Timestamp>,
}

impl MemoryLedger {
    /// Nothing counted yet; without a limit everything is counted and nothing refused.
    #[must_use]
    pub fn new(limit: Option<u64>) -> Self {
        let count = Count { day: i64::MIN, used: 0, day_begins: 0, pinned_until: None };
        Self { limit, count: Mutex::new(count) }
    }

    fn today(&self, now: Timestamp) -> MutexGuard<'_, Count> {
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        let day = day_of(now, count.day_begins);
        // A clock that was set back a little must not open a day twice; one that was a day or more
        // ahead was wrong, and the count goes on in the day that it is now.
        if day > count.day {
            count.day = day;
            count.used = 0;
        } else if day < count.day - 1 {
            count.day = day;
        }
        if count.pinned_until.is_some_and(|until| until <= now) {
            count.pinned_until = None;
        }
        count
    }

    fn state_of(&self, count: &Count) -> AllowanceState {
        let next_day = count.day.saturating_add(1);
        let reset = next_day.saturating_mul(DAY_SECONDS).saturating_add(count.day_begins);
        let left = self.limit.map(|limit| limit.saturating_sub(count.used));
        AllowanceState {
            used: count.used,
            limit: self.limit,
            left: if count.pinned_until.is_some() { Some(0) } else { left },
            resets_at: count
                .pinned_until
                .unwrap_or_else(|| Timestamp::from_second(reset).unwrap_or(Timestamp::MAX)),
        }
    }
}

impl Ledger for MemoryLedger {
    fn reserve(&self, now: Timestamp, keep: u64) -> Result<Reservation> {
        let mut count = self.today(now);
        let state = self.state_of(&count);
        if state.left.is_some_and(|left| left <= keep) {
            return Err(exhausted(state));
        }
        count.used += 1;
        Ok(Reservation { day: count.day })
    }

    fn give_back(&self, reservation: Reservation) {
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        if count.day == reservation.day {
            count.used = count.used.saturating_sub(1);
        }
    }

    fn pin_until(&self, until: Timestamp, now: Timestamp) {
        let mut count = self.today(now);
        let latest = now.checked_add(LONGEST_PIN).unwrap_or(Timestamp::MAX);
        count.pinned_until = Some(until.min(latest));
        count.day_begins = until.min(latest).as_second().rem_euclid(DAY_SECONDS);
        count.day = day_of(now, count.day_begins);
    }

    fn state(&self, now: Timestamp) -> AllowanceState {
        let count = self.today(now);
        self.state_of(&count)
    }
}

fn day_of(now: Timestamp, day_begins: i64) -> i64 {
    (now.as_second() - day_begins).div_euclid(DAY_SECONDS)
}

/// When a pause that starts now ends; far beyond all calendars means never.
#[must_use]
pub fn end_of_pause(now: Timestamp, pause: Duration) -> Timestamp {
    SignedDuration::try_from(pause)
        .ok()
        .and_then(|pause| now.checked_add(pause).ok())
        .unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a timestamp")
    }

    fn spend(ledger: &MemoryLedger, now: Timestamp, requests: u64) {
        for _ in 0..requests {
            drop(ledger.reserve(now, 0).expect("something is left"));
        }
    }

    #[test]
    fn b5_the_request_that_would_exceed_the_allowance_is_refused_with_its_reset() {
        let ledger = MemoryLedger::new(Some(3));
        let now = at("2026-11-01T22:00:00Z");
        spend(&ledger, now, 3);
        let error = ledger.reserve(now, 0).expect_err("nothing is left");
        assert_eq!(error.kind(), Kind::AllowanceExhausted);
        assert_eq!(error.context().retry_at, Some(at("2026-11-02T00:00:00Z")));
        assert!(error.context().unsent);
        assert_eq!(ledger.state(now).left, Some(0));
    }

    #[test]
    fn b8_midnight_of_the_service_opens_a_new_count() {
        let ledger = MemoryLedger::new(Some(3));
        spend(&ledger, at("2026-11-01T23:59:59Z"), 3);
        spend(&ledger, at("2026-11-02T00:00:00Z"), 1);
        let state = ledger.state(at("2026-11-02T00:00:00Z"));
        assert_eq!((state.used, state.left), (1, Some(2)));
        assert_eq!(state.resets_at, at("2026-11-03T00:00:00Z"));
    }

    #[test]
    fn b8_a_clock_set_back_over_midnight_does_not_open_a_day_twice() {
        let ledger = MemoryLedger::new(Some(3));
        spend(&ledger, at("2026-11-02T00:00:01Z"), 2);
        spend(&ledger, at("2026-11-01T23:59:59Z"), 1);
        assert!(ledger.reserve(at("2026-11-02T00:00:02Z"), 0).is_err());
    }

    #[test]
    fn a_clock_that_was_years_ahead_does_not_stop_the_days() {
        let ledger = MemoryLedger::new(Some(1));
        spend(&ledger, at("2036-11-01T00:00:00Z"), 1);
        assert!(ledger.reserve(at("2026-11-01T12:00:00Z"), 0).is_err());
        spend(&ledger, at("2026-11-02T00:00:00Z"), 1);
    }

    #[test]
    fn b11_a_long_retry_after_empties_the_ledger_until_then_and_no_longer() {
        let ledger = MemoryLedger::new(Some(1_000));
        let now = at("2026-11-01T20:00:00Z");
        spend(&ledger, now, 500);
        ledger.pin_until(at("2026-11-02T05:00:00Z"), now);
        let error = ledger.reserve(at("2026-11-02T04:59:59Z"), 0).expect_err("pinned");
        assert_eq!(error.context().retry_at, Some(at("2026-11-02T05:00:00Z")));
        let state = ledger.state(at("2026-11-02T05:00:00Z"));
        assert_eq!((state.used, state.left), (0, Some(1_000)));
        // The service has shown when its days begin.
        assert_eq!(state.resets_at, at("2026-11-03T05:00:00Z"));
    }

    #[test]
    fn a_pin_never_lasts_longer_than_a_day() {
        let ledger = MemoryLedger::new(None);
        let now = at("2026-11-01T20:00:00Z");
        ledger.pin_until(end_of_pause(now, Duration::MAX), now);
        assert_eq!(ledger.state(now).resets_at, at("2026-11-02T20:00:00Z"));
        assert_eq!(ledger.state(at("2026-11-02T20:00:00Z")).left, None);
    }

    #[test]
    fn a_request_that_never_left_is_given_back() {
        let ledger = MemoryLedger::new(None);
        let now = at("2026-11-01T20:00:00Z");
        let reservation = ledger.reserve(now, 0).expect("no limit");
        assert_eq!(ledger.state(now).used, 1);
        ledger.give_back(reservation);
        assert_eq!(ledger.state(now).used, 0);
    }
}
