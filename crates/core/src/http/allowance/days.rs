//! The days of a [`Count`]: each begins only on evidence of the service's time.

use jiff::{SignedDuration, Timestamp};

use super::count::{Count, Origin, Terms};
use super::tally::{DAY, Tally};
use super::time_of_day::TimeOfDay;
use crate::clock::{Moment, Reading};

impl Count {
    /// Opens the service's day if there is evidence of it, and returns the service's time. The very
    /// first request uses the wall clock.
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
    /// service's time, if there is evidence of it.
    pub(super) fn apply_terms(&mut self, terms: Terms, known: Option<Timestamp>) {
        if let Some(stated) = terms.resets
            && self.origin != Origin::Learnt
            && (self.origin, self.day_begins) != (Origin::Stated, stated)
        {
            self.begin_days_at(stated, Origin::Stated, known);
        }
    }

    /// Changes the time at which days begin, and keeps the counts of the current day. Without
    /// evidence of that day, they are kept until the latest time at which it may end.
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

    /// Opens the day that begins at `start` when the known time reaches it. Requests that may
    /// belong to either day count in both.
    fn roll(&mut self, start: Timestamp) {
        if self.requests.since.is_some_and(|since| since < start) {
            let (batch, count) = self.loose.under_way_at(start);
            self.loose.end_day(self.requests.count);
            self.open(start, count);
            self.carried = Some(batch);
        }
    }

    /// Opens a day with this number of requests, or reopens the previous day and adds them to it.
    fn open(&mut self, start: Timestamp, count: u64) {
        let before = self.before.count_of(start);
        let day = Tally { since: Some(start), count: before.saturating_add(count) };
        self.before = std::mem::replace(&mut self.requests, day);
        self.undecided = 0;
        self.opened += 1;
    }

    /// Opens a new day after the service granted a probe. The probe belongs to it, and so may the
    /// requests sent since the wall clock showed another day.
    pub(super) fn begin_day_by_wall(&mut self, now: Moment) {
        if self.clock.now(now).is_none() && !self.clock.is_doubtful(now) {
            self.clock.assume(now);
            let since = self.day_begins.start_of_day(now.wall);
            self.open(since, self.undecided.max(1));
            self.carried = None;
            // The new count contains no earlier request, so none may be subtracted from it.
            self.opened += 1;
        }
    }

    /// Corrects the day after the wall clock, which was assumed to be the service's at `assumed`,
    /// proved wrong. Its requests belong to the day that replies show, and requests of the previous
    /// day may too.
    pub(super) fn correct_day(&mut self, reading: Reading, assumed: Option<Timestamp>) {
        let start = self.day_begins.start_of_day(reading.service);
        if assumed < self.requests.since || self.before.since == Some(start) {
            let before = std::mem::take(&mut self.before).count;
            self.requests.count = self.requests.count.saturating_add(before);
        }
        self.requests.since = Some(start);
    }

    /// Adopts the day of a new service time, after the service's clock was stepped or the machine
    /// was started. Loose requests may belong to the new day. `was_unnoticed` means that no reply
    /// has agreed since the current day was opened, so the step may have been earlier.
    pub(super) fn adopt_day(&mut self, reading: Reading, was_unnoticed: bool) {
        let start = self.day_begins.start_of_day(reading.service);
        let is_later = self.requests.since.is_some_and(|since| since < start);
        if is_later || self.before.since == Some(start) {
            self.open(start, self.loose.total());
            self.carried = Some(self.loose.oldest());
            return;
        }
        self.requests.roll_back(start);
        if was_unnoticed && self.requests.since == Some(start) {
            self.requests.count = self.requests.count.saturating_add(self.loose.total());
        }
    }
}
