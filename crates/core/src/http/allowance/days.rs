//! The days of a [`Count`]: each begins by evidence of the service's time alone.

use jiff::{SignedDuration, Timestamp};

use super::count::{Count, Origin, Terms};
use super::serials::{Serials, UNDER_WAY};
use super::tally::{DAY, Tally};
use super::time_of_day::TimeOfDay;
use crate::clock::{Moment, Reading};

impl Count {
    /// Opens the service's day, where there is evidence of it, and returns the service's time. The
    /// first request of all goes by the wall clock.
    pub(super) fn advance(&mut self, terms: Terms, now: Moment) -> Option<Timestamp> {
        if self.requests.since.is_none() && self.clock.now(now).is_none() {
            self.clock.assume(now);
        }
        let known = self.clock.now(now);
        match known {
            Some(known) => self.advance_to(terms, known),
            None => self.apply_terms(terms, None),
        }
        known
    }

    /// Opens the day of `now` for data requests.
    pub(super) fn advance_to(&mut self, terms: Terms, now: Timestamp) {
        self.apply_terms(terms, Some(now));
        let start = self.day_begins.start_of_day(now);
        self.requests.since.get_or_insert(start);
        self.roll(start);
        if self.pin.is_some_and(|pin| pin.until <= now) {
            self.pin = None;
        }
    }

    /// Applies the user's start of the day, unless the service has shown another. `known` is the
    /// service's time, where there is evidence of it.
    pub(super) fn apply_terms(&mut self, terms: Terms, known: Option<Timestamp>) {
        if let Some(stated) = terms.resets
            && self.origin != Origin::Learnt
            && (self.origin, self.day_begins) != (Origin::Stated, stated)
        {
            self.begin_days_at(stated, Origin::Stated, known);
        }
    }

    /// Changes the time at which days begin and keeps the counts of the current day; without evidence
    /// of that, until the last time at which it may end.
    pub(super) fn begin_days_at(
        &mut self,
        time: TimeOfDay,
        origin: Origin,
        known: Option<Timestamp>,
    ) {
        if let Some(now) = known {
            self.roll(self.day_begins.start_of_day(now));
        }
        for tally in [&mut self.requests, &mut self.tokens.day] {
            tally.since = tally.since.map(|since| {
                let last = since.checked_add(DAY - SignedDuration::from_secs(1));
                time.start_of_day(known.unwrap_or(last.unwrap_or(since)))
            });
        }
        (self.day_begins, self.origin) = (time, origin);
    }

    /// Opens the day that begins at `start`. Those requests are counted in both days that may be of
    /// either: the ones under way, until their replies show their day, and those that were sent while
    /// it was not certain.
    fn roll(&mut self, start: Timestamp) {
        if self.requests.since.is_some_and(|since| since < start) {
            let may_be_of_it = self.serials.end_day(start, self.requests.count);
            self.open(start, may_be_of_it);
        }
    }

    /// Opens a day with so many requests, or the one that was open before with so many more.
    fn open(&mut self, start: Timestamp, count: u64) {
        let before = self.before.count_of(start);
        let day = Tally { since: Some(start), count: before.saturating_add(count) };
        self.before = std::mem::replace(&mut self.requests, day);
        self.serials.before = self.serials.last;
    }

    /// The service has granted a request that asked: the new day has begun, and that request is of it,
    /// as those before it may be since the wall clock has shown another day.
    pub(super) fn begin_day_by_wall(&mut self, now: Moment) {
        if self.clock.now(now).is_none() && !self.clock.is_doubtful(now) {
            self.clock.assume(now);
            let since = self.day_begins.start_of_day(now.wall);
            let Serials { last, old, earlier, earlier_until, .. } = self.serials;
            let waiting = self.serials.waiting().saturating_sub(1);
            let others = if old <= earlier_until { earlier.count } else { waiting };
            self.open(since, last.saturating_sub(old).max(1).saturating_add(others));
            self.serials.day = self.serials.past;
        }
    }

    /// The wall clock was not right: the requests of its day are of the one that replies show, as those
    /// of the day before it may be. `known`: the time by the wall clock, which was taken for the
    /// service's at `since`.
    pub(super) fn correct_day(
        &mut self,
        reading: Reading,
        known: Option<Timestamp>,
        since: Option<Timestamp>,
    ) {
        let start = self.day_begins.start_of_day(reading.service);
        let midnight = self.requests.since.filter(|midnight| since < Some(*midnight));
        let may_be_of_it = midnight.is_some_and(|midnight| {
            let passed = reading.service.duration_since(start) + UNDER_WAY;
            known.is_none_or(|known| known.duration_since(midnight) <= passed)
        });
        self.requests.rebase(start);
        if may_be_of_it || self.before.since == Some(start) {
            self.requests.count = self.requests.count.saturating_add(self.before.count);
            self.before = Tally::default();
        }
    }

    /// The service's clock is another one, or the machine was started: requests without a reply that
    /// shows their day may be of the new one. `was_unnoticed`: no reply has agreed since the current day
    /// was opened, before which the clock may have been stepped.
    pub(super) fn adopt_day(&mut self, reading: Reading, was_unnoticed: bool) {
        let start = self.day_begins.start_of_day(reading.service);
        let is_later = self.requests.since.is_some_and(|since| since < start);
        if is_later || self.before.since == Some(start) {
            self.open(start, self.serials.unplaced());
            self.serials.day = self.serials.past;
            return;
        }
        self.requests.roll_back(start);
        // What ended in between was not counted in it.
        if was_unnoticed && self.requests.since == Some(start) {
            self.requests.count = self.requests.count.saturating_add(self.serials.undated);
        }
    }

    /// Whether this is the service's day, however fast its clock may go.
    pub(super) fn is_certain(&self, known: Option<Timestamp>, now: Moment) -> bool {
        let of_day = |time: Option<Timestamp>| {
            time.map(|time| self.day_begins.start_of_day(time)) == self.requests.since
        };
        of_day(known) && of_day(self.clock.latest(now)) && !self.clock.is_in_doubt(now)
    }
}
