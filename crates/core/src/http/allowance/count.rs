//! The arithmetic of every ledger: the current day, its count, and the pauses that the service
//! requested. It has no side effects; times are parameters.
//!
//! A new day begins only on evidence of the service's time ([`ServiceClock`]). A request counts in
//! the day in which it is sent. If it may belong to the next day too, it counts in both until its
//! reply shows its day.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::ledger::{Outcome, Permit, Reservation};
use super::loose::{Loose, UNDER_WAY};
use super::service_clock::{ServiceClock, Verdict};
use super::state::{AllowanceState, exhausted, unknown_day};
use super::tally::{DAY, Pause, Tally, TokenCounts};
use super::time_of_day::TimeOfDay;
use crate::clock::{Moment, Reading};
use crate::error::Result;
use crate::http::retry_after::end_of_pause;

/// The pause between two requests that probe whether a new day has begun.
const ASKS: SignedDuration = SignedDuration::from_hours(1);

/// The user's settings for the allowance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Terms {
    /// Maximum number of data requests per day.
    pub limit: Option<u64>,
    /// When a day begins, unless a reply of the service shows another time.
    pub resets: Option<TimeOfDay>,
}

/// The source of the time at which a day begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Origin {
    /// No source; midnight UTC is assumed.
    #[default]
    Assumed,
    Stated,
    /// A long `Retry-After` of the service. It overrides the user's setting.
    Learnt,
}

/// The content of a ledger.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Count {
    /// Data requests in the current day.
    pub requests: Tally,
    /// Data requests in the previous day: the service's clock may be set back to it.
    pub before: Tally,
    /// Number of days opened so far. Shows whether a request belongs to the current day.
    pub opened: u64,
    /// Loose requests of this batch and later ones count in the current and the previous day.
    pub carried: Option<u64>,
    /// Requests to count in the new day if the service's time is unknown and a probe shows that a
    /// day has begun.
    pub undecided: u64,
    /// Requests with an unconfirmed day.
    pub loose: Loose,
    /// Token requests. They have their own day: a process sends its first token request before it
    /// knows the service's time, and a wrong clock must not open a new day for data requests.
    pub tokens: TokenCounts,
    /// When a day begins.
    pub day_begins: TimeOfDay,
    /// The source of `day_begins`.
    pub origin: Origin,
    pub pin: Option<Pause>,
    pub token_pause: Option<Pause>,
    pub clock: ServiceClock,
    /// When a request last probed whether a new day has begun, with the wall clock at that time.
    pub asked: Option<Reading>,
}

impl Count {
    /// Whether a data request may be sent that leaves `must_remain` requests.
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

    /// Counts one data request that leaves `must_remain` requests. Without any evidence of the
    /// service's day, one request probes whether a new day has begun.
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
        let latest = self.clock.latest(now);
        let day = self.day_begins.start_of_day(known.unwrap_or(now.wall));
        let is_undecided = self.is_late(latest) || self.requests.since != Some(day);
        self.undecided = if is_undecided { self.undecided.saturating_add(1) } else { 0 };
        let batch = self.loose.send(latest.filter(|_| !self.clock.is_in_doubt(now)));
        Ok(Reservation { opened: self.opened, batch, asks })
    }

    /// Corrects the count by the outcome of a request.
    pub(super) fn settle(
        &mut self,
        terms: Terms,
        reservation: &Reservation,
        outcome: Outcome,
        now: Moment,
    ) {
        let known = self.advance(terms, now);
        let in_day = reservation.opened == self.opened;
        match outcome {
            Outcome::Unsent => {
                if in_day || self.was_carried(reservation) {
                    self.requests.remove();
                }
                if self.asked.take_if(|_| reservation.asks).is_some() {
                    self.undecided = self.undecided.saturating_sub(1);
                }
                self.loose.settle(reservation.batch);
            }
            Outcome::Replied { reading: Some(reading), .. } => {
                self.observe_reply(terms, reading, now, Some(reservation));
            }
            Outcome::Replied { reading: None, granted: true } if reservation.asks => {
                self.begin_day_by_wall(now);
            }
            // No reply has a date, so the machine's clock decides.
            Outcome::Replied { reading: None, .. } if in_day && self.clock.is_assumed(now) => {
                if let Some((known, latest)) = known.zip(self.clock.latest(now)) {
                    self.loose.agree(known, latest);
                    // The service's clock may be ahead, and show the next day.
                    if Some(self.day_begins.start_of_day(latest)) == self.requests.since {
                        self.loose.settle(reservation.batch);
                    }
                }
            }
            Outcome::Lost | Outcome::Replied { reading: None, .. } if in_day => {
                // A machine that was paused may have sent it much later.
                if known.is_none() || self.clock.is_in_doubt(now) {
                    self.loose.doubt_batch(reservation.batch);
                }
            }
            // The day ended in between, so the request may belong to the new day.
            Outcome::Lost | Outcome::Replied { reading: None, .. } => {
                if !self.was_carried(reservation) {
                    self.requests.add();
                }
            }
        }
    }

    pub(super) fn observe(&mut self, terms: Terms, reading: Reading, now: Moment) {
        self.observe_reply(terms, reading, now, None);
    }

    /// Takes into account the reading of a reply: to this request, or to one that is not counted.
    fn observe_reply(
        &mut self,
        terms: Terms,
        reading: Reading,
        now: Moment,
        reservation: Option<&Reservation>,
    ) {
        let known = self.clock.now(now);
        let confirmed = self.clock.confirmed.map(|confirmed| confirmed.service);
        let opened = self.opened;
        let verdict = self.clock.observe(reading, now);
        match verdict {
            Verdict::Adopted { was_assumed: true } => self.correct_day(reading, confirmed),
            Verdict::Adopted { was_assumed: false } => {
                self.adopt_day(reading, known.is_some() && confirmed < self.requests.since);
            }
            Verdict::Doubtful => self.loose.doubt(),
            Verdict::Agrees => {}
        }
        let was_opened = self.opened != opened;
        let latest = self.clock.latest(now).unwrap_or(reading.service);
        if let Verdict::Adopted { was_assumed } = verdict {
            self.loose.adopt(reading.service, latest, was_assumed || known.is_some());
        }
        self.advance(terms, now);
        if verdict == Verdict::Agrees {
            self.loose.agree(reading.service, latest);
        }
        if verdict != Verdict::Doubtful
            && let Some(reservation) = reservation
        {
            self.loose.settle(reservation.batch);
            // If this request opened the day, the day already counts it.
            if !was_opened {
                self.place(reservation, reading.service);
            }
        }
    }

    /// Counts a request in the day that its reply shows. A request of the current day stays counted
    /// in it in any case.
    fn place(&mut self, reservation: &Reservation, shown: Timestamp) {
        let of_day = self.requests.since.is_some_and(|since| shown >= since);
        if self.was_carried(reservation) {
            if !of_day {
                self.requests.remove();
            }
        } else if of_day && reservation.opened != self.opened {
            self.requests.add();
        }
    }

    /// Whether a request of the previous day counts in the current one too.
    fn was_carried(&self, reservation: &Reservation) -> bool {
        let is_carried = self.carried.is_some_and(|batch| reservation.batch >= batch);
        reservation.opened + 1 == self.opened && is_carried
    }

    /// Whether a request that is sent now may reach the service after midnight.
    fn is_late(&self, latest: Option<Timestamp>) -> bool {
        let midnight = self.requests.since.and_then(|since| since.checked_add(DAY).ok());
        let left = latest.zip(midnight).map(|(latest, midnight)| midnight.duration_since(latest));
        left.is_some_and(|left| left <= UNDER_WAY)
    }

    /// Whether a request may probe for a new day: once an hour, and once after each start of the
    /// machine on another day, if the wall clock does not show the last known day.
    fn may_ask(&self, now: Moment) -> bool {
        let day = |time: Timestamp| Some(self.day_begins.start_of_day(time));
        let long_ago = self.asked.is_none_or(|asked| match now.boot.since(asked.boot) {
            // A negative time means that the machine was restored from a snapshot.
            Some(passed) => passed.abs() >= ASKS.as_nanos(),
            None => day(asked.service) != day(now.wall),
        });
        long_ago && self.requests.since != day(now.wall)
    }

    /// Whether the wall clock shows the end of an exhausted day and no reply within the last hour
    /// contradicts it. A machine that was paused with all of its clocks cannot know how much time
    /// passed; the reply to a token request shows which clock is right.
    fn may_have_ended(&self, state: &AllowanceState, now: Moment) -> bool {
        let is_old = |evidence: Reading| {
            now.boot.since(evidence.boot).is_some_and(|passed| passed >= ASKS.as_nanos())
        };
        now.wall >= state.resets_at && self.clock.evidence(now).is_some_and(is_old)
    }

    /// Pauses data requests. From now on, days begin at the time of day at which the pause ends,
    /// unless the pause is longer than a day.
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

    pub(super) fn count_token_request(&mut self, terms: Terms, now: Moment) {
        self.apply_terms(terms, self.clock.now(now));
        let now = self.clock.best(now);
        self.tokens.add(self.day_begins.start_of_day(now), now);
    }

    /// Pauses token requests. A current pause that ends later stays.
    pub(super) fn pause_tokens(&mut self, pause: Duration, now: Moment) {
        let now = self.clock.best(now);
        let new = Pause::new(now, end_of_pause(now, pause));
        if self.token_pause.is_none_or(|pause| !pause.is_active(now) || pause.until < new.until) {
            self.token_pause = Some(new);
        }
    }

    /// The rest of an active pause of token requests, and its end.
    pub(super) fn token_pause(&self, now: Moment) -> Option<(Duration, Timestamp)> {
        let now = self.clock.best(now);
        let until = self.token_pause.filter(|pause| pause.is_active(now))?.until;
        Some((Duration::try_from(until.duration_since(now)).unwrap_or_default(), until))
    }

    /// The current state by the best estimate of the service's time.
    pub(super) fn state(&self, terms: Terms, now: Moment) -> AllowanceState {
        let mut count = self.clone();
        let best = self.clock.best(now);
        count.advance_to(terms, best);
        count.state_at(terms, best, true)
    }

    /// If the service's time is unknown (`is_known` is false), a pause has no end.
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
