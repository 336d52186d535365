//! The arithmetic of every ledger: the current day, its count, and the pauses that the service
//! requested. Without side effects; times are parameters, in service time.

use jiff::{SignedDuration, Timestamp};

use super::state::{AllowanceState, exhausted};
use super::time_of_day::TimeOfDay;
use crate::error::Result;

const DAY: SignedDuration = SignedDuration::from_hours(24);
/// If the clock is this long before the start of a pause, it was set back.
const SET_BACK: SignedDuration = SignedDuration::from_mins(10);

/// What the user configured about the allowance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Terms {
    /// Data requests allowed a day.
    pub limit: Option<u64>,
    /// When a day begins, unless a reply of the service shows another time.
    pub resets: Option<TimeOfDay>,
}

/// One request that was counted. It is given back only if no byte of it was sent.
#[derive(Debug)]
#[must_use = "a reservation counts against the day's allowance"]
pub struct Reservation {
    /// The start of the day in which it was counted.
    day: Option<Timestamp>,
}

/// The number of requests in a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Tally {
    /// The start of the day; `None` before the first request.
    pub since: Option<Timestamp>,
    /// Requests since then.
    pub count: u64,
}

/// The source of the time at which a day begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Origin {
    /// None: midnight UTC.
    #[default]
    Assumed,
    /// The user.
    Stated,
    /// The service, by a long `Retry-After`, which overrides the user's setting.
    Learnt,
}

/// A pause that the service requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pause {
    /// When the service requested it.
    pub requested_at: Timestamp,
    /// Its end.
    pub until: Timestamp,
}

/// The content of a ledger. Equal counts have equal texts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Count {
    /// Data requests.
    pub requests: Tally,
    /// Token requests. They have their own day: a process sends its first token request before it
    /// knows the service's time, and a wrong clock must not open a new day for data requests.
    pub token_requests: Tally,
    /// When a day begins.
    pub day_begins: TimeOfDay,
    /// The source of `day_begins`.
    pub origin: Origin,
    /// The pause of data requests.
    pub pin: Option<Pause>,
    /// The pause of token requests.
    pub token_pause: Option<Pause>,
}

impl Tally {
    /// Opens the day that begins at `start`. A clock that was set back a little opens no day twice. If
    /// the clock was more than a day ahead, the count continues in the day of `start`.
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

    /// Keeps the count and changes the start of the day.
    fn rebase(&mut self, start: Timestamp) {
        self.since = self.since.map(|_| start);
    }

    fn add(&mut self) {
        self.count = self.count.saturating_add(1);
    }
}

impl Pause {
    /// A pause lasts at most a day, because the allowance is daily.
    fn new(now: Timestamp, until: Timestamp) -> Self {
        let until = until.min(now.checked_add(DAY).unwrap_or(Timestamp::MAX));
        Self { requested_at: now, until }
    }

    /// Active until its end, unless the clock was set back, which would make the pause too long.
    fn is_active(&self, now: Timestamp) -> bool {
        now < self.until && self.requested_at.duration_since(now) <= SET_BACK
    }
}

impl Count {
    /// Counts one data request, if `must_remain` more are left after it.
    ///
    /// # Errors
    /// `AllowanceExhausted`.
    pub(super) fn reserve(
        &mut self,
        terms: Terms,
        now: Timestamp,
        must_remain: u64,
    ) -> Result<Reservation> {
        self.advance_to(terms, now);
        let state = self.state_now(terms, now);
        if state.left.is_some_and(|left| left <= must_remain) {
            return Err(exhausted(state));
        }
        self.requests.add();
        Ok(Reservation { day: self.requests.since })
    }

    /// Subtracts a request from the count of its day.
    pub(super) fn give_back(&mut self, reservation: &Reservation) {
        if self.requests.since == reservation.day {
            self.requests.count = self.requests.count.saturating_sub(1);
        }
    }

    /// Pauses data requests until then. From now on days begin at that time of day, unless it is more
    /// than a day ahead.
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

    /// Pauses token requests until then, or until the end of the current pause if that is later.
    pub(super) fn pause_tokens(&mut self, until: Timestamp, now: Timestamp) {
        let new = Pause::new(now, until);
        if self.token_pause.is_none_or(|pause| !pause.is_active(now) || pause.until < new.until) {
            self.token_pause = Some(new);
        }
    }

    /// The end of the pause of token requests, if one is active.
    #[must_use]
    pub(super) fn token_pause(&self, now: Timestamp) -> Option<Timestamp> {
        self.token_pause.filter(|pause| pause.is_active(now)).map(|pause| pause.until)
    }

    /// What is used and left at `now`.
    #[must_use]
    pub(super) fn state(&self, terms: Terms, now: Timestamp) -> AllowanceState {
        let mut count = self.clone();
        count.advance_to(terms, now);
        count.state_now(terms, now)
    }

    fn state_now(&self, terms: Terms, now: Timestamp) -> AllowanceState {
        let used = self.requests.count;
        let pinned = self.pin.filter(|pin| pin.is_active(now)).map(|pin| pin.until);
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

    /// Opens the day of `now` for data requests.
    fn advance_to(&mut self, terms: Terms, now: Timestamp) {
        self.apply_terms(terms, now);
        self.requests.roll(self.day_begins.start_of_day(now));
        if self.pin.is_some_and(|pin| pin.until <= now) {
            self.pin = None;
        }
    }

    /// Applies the user's start of the day, unless the service has shown another.
    fn apply_terms(&mut self, terms: Terms, now: Timestamp) {
        if let Some(stated) = terms.resets
            && self.origin != Origin::Learnt
            && (self.origin, self.day_begins) != (Origin::Stated, stated)
        {
            self.begin_days_at(stated, Origin::Stated, now);
        }
    }

    /// Changes the time at which days begin and keeps the counts of the current day.
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
