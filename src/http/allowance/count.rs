//! The counting itself, the same for every ledger: which day it is, what was counted in it, and
//! until when the service wants nothing. Pure: times are parameters, and are the service's.

use jiff::{SignedDuration, Timestamp};

use super::state::{AllowanceState, exhausted};
use super::time_of_day::TimeOfDay;
use crate::error::Result;

const DAY: SignedDuration = SignedDuration::from_hours(24);
/// A clock that shows a time so long before the pause began was set back since.
const SET_BACK: SignedDuration = SignedDuration::from_mins(10);

/// What the user stated about the allowance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Terms {
    /// Data requests allowed a day.
    pub limit: Option<u64>,
    /// When a day begins, until the service shows another time.
    pub resets: Option<TimeOfDay>,
}

/// One request that was counted. It is given back only if no byte of it left.
#[derive(Debug)]
#[must_use = "a reservation counts against the day's allowance"]
pub struct Reservation {
    /// When the day began in which it was counted.
    day: Option<Timestamp>,
}

/// How many requests of a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Tally {
    /// When that day began; `None` before the first.
    pub since: Option<Timestamp>,
    /// How many since.
    pub count: u64,
}

/// Who said when a day begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Origin {
    /// Nobody: midnight UTC.
    #[default]
    Assumed,
    /// The user.
    Stated,
    /// The service, by a long `Retry-After`. It overrides what the user said.
    Learnt,
}

/// The service wants no requests for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pause {
    /// When the service asked for it.
    pub said: Timestamp,
    /// Until then.
    pub until: Timestamp,
}

/// All that a ledger keeps. Equal counts are written alike.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Count {
    /// Data requests.
    pub requests: Tally,
    /// Token requests. Their day is looked at apart: a process's first token request leaves before
    /// the service's time is known, and a wrong clock must not open a new day for all the others.
    pub token_requests: Tally,
    /// When a day begins.
    pub day_begins: TimeOfDay,
    /// Who said so.
    pub origin: Origin,
    /// No data requests.
    pub pin: Option<Pause>,
    /// No token requests.
    pub token_pause: Option<Pause>,
}

impl Tally {
    /// Opens the day that began then. A clock that was set back a little does not open a day twice; a
    /// clock that was a day or more ahead was wrong, and the count goes on in the day of now.
    fn roll(&mut self, start: Timestamp) {
        match self.since {
            Some(since) if start <= since => {
                if since.duration_since(start) > DAY {
                    self.since = Some(start);
                }
            }
            _ => *self = Self { since: Some(start), count: 0 },
        }
    }

    /// The same requests, in a day that began at another time.
    fn rebase(&mut self, start: Timestamp) {
        self.since = self.since.map(|_| start);
    }

    fn add(&mut self) {
        self.count = self.count.saturating_add(1);
    }
}

impl Pause {
    /// Of at most a day: an allowance is daily, and no answer locks a client out for longer.
    fn new(now: Timestamp, until: Timestamp) -> Self {
        Self { said: now, until: until.min(now.checked_add(DAY).unwrap_or(Timestamp::MAX)) }
    }

    /// Holds until its end, unless the clock shows that it was set back meanwhile: the end would
    /// not come in time.
    fn holds(&self, now: Timestamp) -> bool {
        now < self.until && self.said.duration_since(now) <= SET_BACK
    }
}

impl Count {
    /// Counts one data request, if `keep` more are left after it.
    ///
    /// # Errors
    /// `AllowanceExhausted`.
    pub(super) fn reserve(
        &mut self,
        terms: Terms,
        now: Timestamp,
        keep: u64,
    ) -> Result<Reservation> {
        self.advance_to(terms, now);
        let state = self.state_now(terms, now);
        if state.left.is_some_and(|left| left <= keep) {
            return Err(exhausted(state));
        }
        self.requests.add();
        Ok(Reservation { day: self.requests.since })
    }

    /// Takes the count of a request back, within its day.
    pub(super) fn give_back(&mut self, reservation: &Reservation) {
        if self.requests.since == reservation.day {
            self.requests.count = self.requests.count.saturating_sub(1);
        }
    }

    /// Nothing is left until then. Days are taken to begin at that time of day from now on, unless
    /// it is over a day ahead, which says nothing about days.
    pub(super) fn pin_until(&mut self, terms: Terms, until: Timestamp, now: Timestamp) {
        self.advance_to(terms, now);
        let pin = Pause::new(now, until);
        self.pin = Some(pin);
        if pin.until == until {
            self.begin_days_at(TimeOfDay::from_timestamp(until), Origin::Learnt, now);
        }
    }

    /// Counts one token request.
    pub(super) fn count_token_request(&mut self, terms: Terms, now: Timestamp) {
        self.apply_terms(terms, now);
        self.token_requests.roll(self.day_begins.start_of_day(now));
        self.token_requests.add();
    }

    /// No token requests until then; the later end counts.
    pub(super) fn pause_tokens(&mut self, until: Timestamp, now: Timestamp) {
        let asked = Pause::new(now, until);
        if self.token_pause.is_none_or(|pause| !pause.holds(now) || pause.until < asked.until) {
            self.token_pause = Some(asked);
        }
    }

    /// Until when no token is to be asked for.
    #[must_use]
    pub(super) fn token_pause(&self, now: Timestamp) -> Option<Timestamp> {
        self.token_pause.filter(|pause| pause.holds(now)).map(|pause| pause.until)
    }

    /// What is used and left. Nothing changes by looking.
    #[must_use]
    pub(super) fn state(&self, terms: Terms, now: Timestamp) -> AllowanceState {
        let mut then = self.clone();
        then.advance_to(terms, now);
        then.state_now(terms, now)
    }

    fn state_now(&self, terms: Terms, now: Timestamp) -> AllowanceState {
        let used = self.requests.count;
        let pinned = self.pin.filter(|pin| pin.holds(now)).map(|pin| pin.until);
        let left = terms.limit.map(|limit| limit.saturating_sub(used));
        let start = self.requests.since.unwrap_or_else(|| self.day_begins.start_of_day(now));
        let mut tokens = self.token_requests;
        tokens.roll(self.day_begins.start_of_day(now));
        AllowanceState {
            used,
            limit: terms.limit,
            left: if pinned.is_some() { Some(0) } else { left },
            resets_at: pinned.unwrap_or_else(|| start.checked_add(DAY).unwrap_or(Timestamp::MAX)),
            token_requests: tokens.count,
        }
    }

    /// Opens the day of now for data requests.
    fn advance_to(&mut self, terms: Terms, now: Timestamp) {
        self.apply_terms(terms, now);
        self.requests.roll(self.day_begins.start_of_day(now));
        if self.pin.is_some_and(|pin| pin.until <= now) {
            self.pin = None;
        }
    }

    /// The day's beginning that the user stated, unless the service has shown another one.
    fn apply_terms(&mut self, terms: Terms, now: Timestamp) {
        if let Some(stated) = terms.resets
            && self.origin != Origin::Learnt
            && (self.origin, self.day_begins) != (Origin::Stated, stated)
        {
            self.begin_days_at(stated, Origin::Stated, now);
        }
    }

    /// Days begin at another time; what was counted today stays counted.
    fn begin_days_at(&mut self, time: TimeOfDay, origin: Origin, now: Timestamp) {
        for tally in [&mut self.requests, &mut self.token_requests] {
            if tally.since.is_some() {
                tally.roll(self.day_begins.start_of_day(now));
                tally.rebase(time.start_of_day(now));
            }
        }
        (self.day_begins, self.origin) = (time, origin);
    }
}

#[cfg(test)]
#[path = "count_tests.rs"]
mod tests;
