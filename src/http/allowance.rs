//! The daily allowance of data requests (§8), counted before the bytes of a request leave.
//!
//! A [`Ledger`] keeps the count: [`MemoryLedger`] for the life of a client, the store one on disk.
//! Both count alike, by [`Count`]. All times are the service's: which day a request falls in is the
//! service's business.
//!
//! Token requests are limited too, across the whole integration (§5.4): a ledger counts them, and
//! holds the pause that the service asked for, so that all who share it keep to it. Never a token.

use std::fmt::Debug;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::count::{Count, Terms};
use crate::error::{Error, Kind, Result};

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
    /// Token requests since the day began, those that never left included (§5.4).
    pub token_requests: u64,
}

/// One request that was counted. It is given back only if no byte of it left.
#[derive(Debug)]
#[must_use = "a reservation counts against the day's allowance"]
pub struct Reservation {
    /// When the day began in which it was counted.
    pub(super) day: Option<Timestamp>,
}

/// Who counts the requests of a day. Implementations count **before** they return. Where they fail
/// (a file that is damaged, a disk that is full), nothing may be sent: `StoreError`s.
pub trait Ledger: Send + Sync + Debug {
    /// Counts one request, `now` by the service's time, if `keep` more are left after it.
    ///
    /// # Errors
    /// `AllowanceExhausted` if too few are left, or until the time that the service named.
    fn reserve(&self, now: Timestamp, keep: u64) -> Result<Reservation>;

    /// Takes back the count of a request of which no byte left. Where that fails, one is counted
    /// too many.
    fn give_back(&self, reservation: Reservation);

    /// The service says that the allowance is used up until then: nothing is left before, and the
    /// days are taken to begin at that time of day from now on.
    ///
    /// # Errors
    /// Those of the ledger.
    fn pin_until(&self, until: Timestamp, now: Timestamp) -> Result<()>;

    /// What is used and left.
    ///
    /// # Errors
    /// Those of the ledger: never a count that it does not know.
    fn state(&self, now: Timestamp) -> Result<AllowanceState>;

    /// Counts one token request.
    ///
    /// # Errors
    /// Those of the ledger.
    fn count_token_request(&self, now: Timestamp) -> Result<()>;

    /// The service wants no token requests until then.
    ///
    /// # Errors
    /// Those of the ledger.
    fn pause_tokens(&self, until: Timestamp, now: Timestamp) -> Result<()>;

    /// Until when no token is to be asked for, whoever was told so.
    ///
    /// # Errors
    /// Those of the ledger.
    fn token_pause(&self, now: Timestamp) -> Result<Option<Timestamp>>;
}

/// The error of a request that is not sent because the allowance is used up, or because what is left
/// of it is held back.
#[must_use]
pub fn exhausted(state: AllowanceState) -> Error {
    let resets = state.resets_at;
    let message = match state {
        AllowanceState { left: Some(left @ 1..), .. } => format!(
            "what is left of the daily request allowance, {left}, is held back for what must be read \
             before {resets}; nothing else is asked for before then"
        ),
        AllowanceState { used, limit, .. } => {
            let used = match limit {
                Some(limit) if used >= limit => format!("{used} of {limit} requests"),
                _ => format!("the service refuses more after {used} requests"),
            };
            format!("the daily request allowance is used up: {used}; none is sent before {resets}")
        }
    };
    Error::new(Kind::AllowanceExhausted, message)
        .with_hint(
            "resume with the bookmark after that time, or raise daily_allowance= if it is wrong",
        )
        .with(|context| {
            context.retry_at = Some(resets);
            context.unsent = true;
        })
}

/// Counts in memory, for the life of a client. The day is the service's UTC day, or the stated one,
/// until a long `Retry-After` shows when it really begins.
#[derive(Debug)]
pub struct MemoryLedger {
    terms: Terms,
    count: Mutex<Count>,
}

impl MemoryLedger {
    /// Nothing counted yet; without a limit everything is counted and nothing refused.
    #[must_use]
    pub fn new(limit: Option<u64>) -> Self {
        Self::with(Terms { limit, resets: None })
    }

    /// The same, with all that a user may state.
    #[must_use]
    pub fn with(terms: Terms) -> Self {
        Self { terms, count: Mutex::default() }
    }

    fn count(&self) -> MutexGuard<'_, Count> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ledger for MemoryLedger {
    fn reserve(&self, now: Timestamp, keep: u64) -> Result<Reservation> {
        self.count().reserve(self.terms, now, keep)
    }

    fn give_back(&self, reservation: Reservation) {
        self.count().give_back(&reservation);
    }

    fn pin_until(&self, until: Timestamp, now: Timestamp) -> Result<()> {
        self.count().pin_until(self.terms, until, now);
        Ok(())
    }

    fn state(&self, now: Timestamp) -> Result<AllowanceState> {
        Ok(self.count().state(self.terms, now))
    }

    fn count_token_request(&self, now: Timestamp) -> Result<()> {
        self.count().count_token_request(self.terms, now);
        Ok(())
    }

    fn pause_tokens(&self, until: Timestamp, now: Timestamp) -> Result<()> {
        self.count().pause_tokens(until, now);
        Ok(())
    }

    fn token_pause(&self, now: Timestamp) -> Result<Option<Timestamp>> {
        Ok(self.count().token_pause(now))
    }
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

    fn state(ledger: &MemoryLedger, now: &str) -> AllowanceState {
        ledger.state(at(now)).expect("memory")
    }

    fn pin(ledger: &MemoryLedger, until: Timestamp, now: Timestamp) {
        ledger.pin_until(until, now).expect("memory");
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
        assert_eq!(ledger.state(now).expect("memory").left, Some(0));
    }

    #[test]
    fn b8_midnight_of_the_service_opens_a_new_count() {
        let ledger = MemoryLedger::new(Some(3));
        spend(&ledger, at("2026-11-01T23:59:59Z"), 3);
        spend(&ledger, at("2026-11-02T00:00:00Z"), 1);
        let state = state(&ledger, "2026-11-02T00:00:00Z");
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
        pin(&ledger, at("2026-11-02T05:00:00Z"), now);
        let error = ledger.reserve(at("2026-11-02T04:59:59Z"), 0).expect_err("pinned");
        assert_eq!(error.context().retry_at, Some(at("2026-11-02T05:00:00Z")));
        let state = state(&ledger, "2026-11-02T05:00:00Z");
        assert_eq!((state.used, state.left), (0, Some(1_000)));
        // The service has shown when its days begin.
        assert_eq!(state.resets_at, at("2026-11-03T05:00:00Z"));
    }

    #[test]
    fn a_pin_never_lasts_longer_than_a_day() {
        let ledger = MemoryLedger::new(None);
        let now = at("2026-11-01T20:00:00Z");
        pin(&ledger, end_of_pause(now, Duration::MAX), now);
        assert_eq!(ledger.state(now).expect("memory").resets_at, at("2026-11-02T20:00:00Z"));
        assert_eq!(state(&ledger, "2026-11-02T20:00:00Z").left, None);
    }

    #[test]
    fn a_request_that_never_left_is_given_back() {
        let ledger = MemoryLedger::new(None);
        let now = at("2026-11-01T20:00:00Z");
        let reservation = ledger.reserve(now, 0).expect("no limit");
        assert_eq!(ledger.state(now).expect("memory").used, 1);
        ledger.give_back(reservation);
        assert_eq!(ledger.state(now).expect("memory").used, 0);
    }

    #[test]
    fn a_request_that_is_held_back_is_told_apart_from_one_that_is_not_there() {
        let ledger = MemoryLedger::new(Some(3));
        let now = at("2026-11-01T20:00:00Z");
        let error = ledger.reserve(now, 3).expect_err("all are kept");
        assert_eq!(error.kind(), Kind::AllowanceExhausted);
        assert!(error.context().message.contains("3, is held back"), "{error}");
        drop(ledger.reserve(now, 2).expect("one is not kept"));
        spend(&ledger, now, 2);
        let error = ledger.reserve(now, 2).expect_err("nothing is left");
        assert!(error.context().message.contains("used up: 3 of 3"), "{error}");
    }
}
