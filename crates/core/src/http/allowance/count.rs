//! The arithmetic of every ledger: the current day, its count, and the pauses that the service
//! requested. Without side effects; times are parameters.
//!
//! A new day begins only by evidence of the service's time ([`ServiceClock`]). A request is counted in the
//! day that is known when it is sent; its reply may show that it was of another.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::outcome::{Outcome, Permit, Reservation};
use super::serials::Serials;
use super::service_clock::{ServiceClock, Verdict};
use super::state::{AllowanceState, exhausted, unknown_day};
use super::tally::{DAY, Pause, Tally};
use super::time_of_day::TimeOfDay;
use super::token_counts::TokenCounts;
use crate::clock::{Moment, Reading};
use crate::error::Result;
use crate::http::retry_after::end_of_pause;

/// The pause between two requests that ask whether a new day has begun.
const ASKS: SignedDuration = SignedDuration::from_hours(1);

/// What the user configured about the allowance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Terms {
    /// Data requests allowed a day.
    pub limit: Option<u64>,
    /// When a day begins, unless a reply of the service shows another time.
    pub resets: Option<TimeOfDay>,
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

/// The content of a ledger. Equal counts have equal texts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Count {
    /// Data requests.
    pub requests: Tally,
    /// Those of the day that was open before: the service's clock may go back to it.
    pub before: Tally,
    /// Their serial numbers.
    pub serials: Serials,
    /// Token requests. They have their own day: a process sends its first token request before it
    /// knows the service's time, and a wrong clock must not open a new day for data requests.
    pub tokens: TokenCounts,
    /// When a day begins.
    pub day_begins: TimeOfDay,
    /// The source of `day_begins`.
    pub origin: Origin,
    /// The pause of data requests.
    pub pin: Option<Pause>,
    /// The pause of token requests.
    pub token_pause: Option<Pause>,
    /// The service's time.
    pub clock: ServiceClock,
    /// When a request last asked whether a new day has begun, with the wall clock of then.
    pub asked: Option<Reading>,
}

impl Count {
    /// Whether a data request may be sent, if `must_remain` more are to be left after it.
    pub(super) fn permit(&self, terms: Terms, now: Moment, must_remain: u64) -> Permit {
        let mut count = self.clone();
        let known = count.advance(terms, now);
        let state = count.state_at(terms, known.unwrap_or(now.wall), known.is_some());
        match state.left {
            Some(left) if left <= must_remain && known.is_some() => {
                if count.may_have_ended(&state, now) {
                    Permit::Unknown { one: true }
                } else {
                    Permit::Exhausted(state)
                }
            }
            Some(left) if left <= must_remain => {
                Permit::Unknown { one: count.clock.is_doubtful(now) }
            }
            _ => Permit::Granted,
        }
    }

    /// Counts one data request, if `must_remain` more are left after it. Failing all evidence of the
    /// service's day, one request asks whether another has begun.
    ///
    /// # Errors
    /// `AllowanceExhausted`.
    pub(super) fn reserve(
        &mut self,
        terms: Terms,
        now: Moment,
        must_remain: u64,
    ) -> Result<Reservation> {
        let permit = self.permit(terms, now, must_remain);
        let known = self.advance(terms, now);
        let asks = match permit {
            Permit::Granted => false,
            Permit::Exhausted(state) => return Err(exhausted(state)),
            Permit::Unknown { .. } if let Some(known) = known => {
                return Err(exhausted(self.state_at(terms, known, true)));
            }
            Permit::Unknown { one } if one || !self.may_ask(now) => {
                return Err(unknown_day(self.state_at(terms, now.wall, false)));
            }
            Permit::Unknown { .. } => {
                self.asked = Some(Reading { service: now.wall, boot: now.boot });
                true
            }
        };
        self.requests.add();
        let latest = self.clock.latest(now).filter(|_| !self.clock.is_in_doubt(now));
        match (known, latest) {
            (Some(known), Some(latest)) => self.serials.pass(known, latest),
            (None, _) => self.serials.start(),
            _ => {}
        }
        self.serials.send(latest);
        let of_day = self.day_begins.start_of_day(known.unwrap_or(now.wall));
        if self.requests.since == Some(of_day) {
            self.serials.old = self.serials.last;
        }
        let certain = self.is_certain(known, now);
        Ok(Reservation { serial: self.serials.last, asks, certain })
    }

    /// Corrects the count by what became of a request.
    pub(super) fn settle(
        &mut self,
        terms: Terms,
        reservation: &Reservation,
        outcome: Outcome,
        now: Moment,
    ) {
        let known = self.advance(terms, now);
        let certain = reservation.certain && self.is_certain(known, now);
        let serial = reservation.serial;
        let in_day = serial > self.serials.day;
        let mut shows_day = false;
        match outcome {
            Outcome::Unsent => {
                if in_day {
                    self.requests.remove();
                }
                if serial > self.serials.old {
                    self.serials.old = self.serials.old.saturating_add(1);
                }
                self.asked.take_if(|_| reservation.asks);
            }
            Outcome::Replied { reading: Some(reading), .. } => {
                let verdict = self.observe_reply(terms, reading, now, Some(serial));
                self.place(serial, reading, verdict);
                shows_day = verdict != Verdict::Doubtful;
            }
            Outcome::Replied { reading: None, granted: true } if reservation.asks => {
                self.begin_day_by_wall(now);
            }
            // The day ended in between: it may be of the new one.
            Outcome::Lost | Outcome::Replied { reading: None, .. } if !in_day => {
                self.requests.add();
            }
            Outcome::Lost | Outcome::Replied { reading: None, .. } => {}
        }
        let serials = &mut self.serials;
        serials.settle(serial);
        if !shows_day && !matches!(outcome, Outcome::Unsent) {
            serials.add_undated();
            if !certain {
                serials.uncertain = serials.uncertain.saturating_add(1);
            }
        }
        serials.uncertain = serials.uncertain.min(serials.unplaced());
    }

    /// Takes a reading of the service's time into account.
    pub(super) fn observe(&mut self, terms: Terms, reading: Reading, now: Moment) {
        self.observe_reply(terms, reading, now, None);
    }

    /// Takes the reading of the reply to this request into account, or to one that is not counted.
    fn observe_reply(
        &mut self,
        terms: Terms,
        reading: Reading,
        now: Moment,
        serial: Option<u64>,
    ) -> Verdict {
        let [known, since] =
            [self.clock.now(now), self.clock.confirmed.map(|confirmed| confirmed.service)];
        let verdict = self.clock.observe(reading, now);
        // It was sent after those ended, or after what contradicted it came.
        let shows_theirs = serial.is_some_and(|serial| serial > self.serials.undated_until);
        match verdict {
            Verdict::Adopted { was_assumed: true } => self.correct_day(reading, known, since),
            Verdict::Adopted { was_assumed: false } => {
                let was_unnoticed = known.is_some() && since < self.requests.since;
                self.adopt_day(reading, was_unnoticed);
            }
            Verdict::Doubtful => {
                let unplaced = self.serials.unplaced();
                self.serials.uncertain = self.serials.uncertain.max(unplaced);
                self.serials.undated_until = self.serials.last;
            }
            Verdict::Agrees => {}
        }
        let latest = self.clock.latest(now).unwrap_or(reading.service);
        if let Verdict::Adopted { was_assumed } = verdict {
            self.serials.adopt(reading.service, latest, was_assumed || known.is_some());
        }
        self.advance(terms, now);
        if verdict == Verdict::Agrees {
            self.serials.agree(reading.service, latest);
        }
        let is_adopted = matches!(verdict, Verdict::Adopted { .. });
        if is_adopted || (verdict == Verdict::Agrees && shows_theirs) {
            self.serials.uncertain = 0;
        }
        if verdict != Verdict::Doubtful && shows_theirs {
            self.serials.undated = 0;
        }
        verdict
    }

    /// Counts a request in the day that its reply shows.
    fn place(&mut self, serial: u64, reading: Reading, verdict: Verdict) {
        if verdict == Verdict::Doubtful {
            if serial <= self.serials.day {
                self.requests.add();
            }
            return;
        }
        let of_day = self.requests.since.is_some_and(|since| reading.service >= since);
        match (serial > self.serials.day, of_day) {
            // Sent before this day began. What was sent in it remains counted, whatever the reply shows.
            (true, false) if serial <= self.serials.before => self.requests.remove(),
            (false, true) => self.requests.add(),
            _ => {}
        }
    }

    /// A request may ask once in an hour, and once after each start of the machine on another day,
    /// where the wall clock does not show the last day that is known.
    fn may_ask(&self, now: Moment) -> bool {
        let day = |time: Timestamp| Some(self.day_begins.start_of_day(time));
        let long_ago = self.asked.is_none_or(|asked| match now.boot.since(asked.boot) {
            // Less than none: the machine was restored from a snapshot.
            Some(passed) => passed.abs() >= ASKS.as_nanos(),
            None => day(asked.service) != day(now.wall),
        });
        long_ago && self.requests.since != day(now.wall)
    }

    /// Whether the wall clock shows the end of a day that is used up, and no reply within the hour says
    /// otherwise: a machine that was paused with all of its clocks does not know how long. The reply of
    /// a token request shows which of them is right.
    fn may_have_ended(&self, state: &AllowanceState, now: Moment) -> bool {
        let is_old = |evidence: Reading| {
            now.boot.since(evidence.boot).is_some_and(|passed| passed >= ASKS.as_nanos())
        };
        now.wall >= state.resets_at && self.clock.evidence(now).is_some_and(is_old)
    }

    /// Pauses data requests. From now on days begin at the time of day at which the pause ends, unless
    /// it is longer than a day.
    pub(super) fn pin(&mut self, terms: Terms, pause: Duration, now: Moment) {
        let known = self.advance(terms, now);
        let now = self.clock.best(now);
        let until = end_of_pause(now, pause);
        let pin = Pause::new(now, until);
        self.pin = Some(pin);
        if known.is_some() && pin.until == until {
            self.begin_days_at(TimeOfDay::from_timestamp(until), Origin::Learnt, known);
        }
    }

    /// Counts one token request.
    pub(super) fn count_token_request(&mut self, terms: Terms, now: Moment) {
        self.apply_terms(terms, self.clock.now(now));
        let now = self.clock.best(now);
        self.tokens.add(self.day_begins.start_of_day(now), now);
    }

    /// One more client begins without a token; returns how many have begun shortly before.
    pub(super) fn begin_token_request(&mut self, now: Moment) -> u64 {
        self.tokens.begin(self.clock.best(now))
    }

    /// Pauses token requests, or until the end of the current pause if that is later.
    pub(super) fn pause_tokens(&mut self, pause: Duration, now: Moment) {
        let now = self.clock.best(now);
        let new = Pause::new(now, end_of_pause(now, pause));
        if self.token_pause.is_none_or(|pause| !pause.is_active(now) || pause.until < new.until) {
            self.token_pause = Some(new);
        }
    }

    /// The rest of the pause of token requests and its end, if one is active.
    #[must_use]
    pub(super) fn token_pause(&self, now: Moment) -> Option<(Duration, Timestamp)> {
        let now = self.clock.best(now);
        let until = self.token_pause.filter(|pause| pause.is_active(now))?.until;
        Some((Duration::try_from(until.duration_since(now)).unwrap_or_default(), until))
    }

    /// What is used and left now, as well as the service's time is known.
    #[must_use]
    pub(super) fn state(&self, terms: Terms, now: Moment) -> AllowanceState {
        let mut count = self.clone();
        let best = self.clock.best(now);
        count.advance_to(terms, best);
        count.state_at(terms, best, true)
    }

    /// The service's time, as well as it is known.
    #[must_use]
    pub(super) fn service_time(&self, now: Moment) -> Timestamp {
        self.clock.best(now)
    }

    /// `is_known`: a pause has no end before the service's time is known.
    fn state_at(&self, terms: Terms, now: Timestamp, is_known: bool) -> AllowanceState {
        let used = self.requests.count;
        let pinned = self.pin.filter(|pin| !is_known || pin.is_active(now)).map(|pin| pin.until);
        let left = terms.limit.map(|limit| limit.saturating_sub(used));
        let start = self.requests.since.unwrap_or_else(|| self.day_begins.start_of_day(now));
        let (token_requests, token_requests_this_hour) =
            self.tokens.counts(self.day_begins.start_of_day(now), now);
        AllowanceState {
            used,
            limit: terms.limit,
            left: if pinned.is_some() { Some(0) } else { left },
            resets_at: pinned.unwrap_or_else(|| start.checked_add(DAY).unwrap_or(Timestamp::MAX)),
            token_requests,
            token_requests_this_hour,
        }
    }
}

#[cfg(test)]
#[path = "count_tests.rs"]
mod tests;
