//! [`ServiceClock`]: the evidence of the service's time, which decides when a new day begins. One
//! jump of one clock opens no day.
//!
//! Two readings that agree are evidence, or one that agrees with the wall clock after a start of
//! the machine. From then on the time advances with the time since boot, and a contradicting
//! reading counts only when a second one confirms it. The wall clock is no evidence on its own:
//! users, the network and suspended virtual machines change it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::tally::DAY;
use crate::clock::{BootTime, Moment, Reading};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct ServiceClock {
    pub confirmed: Option<Reading>,
    /// The last confirmed reading of another boot, from a machine that shares the ledger.
    pub other: Option<Reading>,
    /// Whether `confirmed` is only the wall clock of the first request, because no reply had a
    /// `Date` yet.
    pub assumed: bool,
    /// The last reading that contradicts `confirmed`, or the very first reading.
    pub doubtful: Option<Reading>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It agrees with the known time.
    Agrees,
    /// It contradicts the known time, or is the first one. It has no effect on its own.
    Doubtful,
    /// It is confirmed and becomes the known time.
    Adopted {
        /// Whether the time before it was only assumed.
        was_assumed: bool,
    },
}

impl ServiceClock {
    /// The service's time, if there is evidence of it; never later than the true one.
    pub(super) fn now(&self, now: Moment) -> Option<Timestamp> {
        self.current_reading(now.boot).and_then(|(reading, _)| reading.service_at(now.boot))
    }

    /// The reading that shows the time of this boot, and whether it was only assumed.
    fn current_reading(&self, boot: BootTime) -> Option<(Reading, bool)> {
        let of_start = |reading: &Reading| reading.service_at(boot).is_some();
        let confirmed = self.confirmed.filter(of_start).map(|reading| (reading, self.assumed));
        confirmed.or_else(|| Some((self.other.filter(of_start)?, false)))
    }

    /// Whether no reply since the start of the machine had a date, and its wall clock is used.
    pub(super) fn is_assumed(&self, now: Moment) -> bool {
        let is_assumed = self.current_reading(now.boot).is_some_and(|(_, assumed)| assumed);
        is_assumed && !self.is_in_doubt(now)
    }

    /// The latest time that the service's clock may show, if there is evidence of it.
    pub(super) fn latest(&self, now: Moment) -> Option<Timestamp> {
        self.current_reading(now.boot).and_then(|(reading, _)| reading.latest_at(now.boot))
    }

    /// The reply that shows the service's time.
    pub(super) fn evidence(&self, now: Moment) -> Option<Reading> {
        self.current_reading(now.boot).filter(|(_, assumed)| !assumed).map(|(reading, _)| reading)
    }

    /// Whether a reading of the last day contradicts the known time, or the last confirmed reading
    /// is from another machine. In the second case the service's clock may have been stepped
    /// before, unknown to this machine. A doubt that is older than a day is dropped: no reply has
    /// had a date since.
    pub(super) fn is_in_doubt(&self, now: Moment) -> bool {
        let passed = self.doubtful.and_then(|reading| now.boot.since(reading.boot));
        let is_other = |past: Reading| past.boot.since(now.boot).is_none();
        passed.is_some_and(|passed| passed.abs() < DAY.as_nanos())
            || self.confirmed.is_some_and(is_other)
    }

    /// The best estimate of the service's time. Without evidence it is the earliest candidate.
    pub(super) fn best(&self, now: Moment) -> Timestamp {
        let known = self.now(now);
        if let (Some(known), Some((_, false))) = (known, self.current_reading(now.boot)) {
            return known;
        }
        let said = self.doubtful.and_then(|reading| reading.service_at(now.boot));
        let ours = known.unwrap_or(now.wall);
        said.map_or(ours, |said| said.min(ours))
    }

    /// Whether a reading still needs another one that confirms it.
    pub(super) fn is_doubtful(&self, now: Moment) -> bool {
        self.doubtful.is_some_and(|reading| reading.service_at(now.boot).is_some())
    }

    /// Assumes that the wall clock shows the service's time.
    pub(super) fn assume(&mut self, now: Moment) {
        let service = Timestamp::from_second(now.wall.as_second()).unwrap_or(now.wall);
        self.confirm(Reading { service, boot: now.boot });
        self.assumed = true;
    }

    pub(super) fn observe(&mut self, reading: Reading, now: Moment) -> Verdict {
        let known = self.current_reading(reading.boot);
        let is_same_start = |other: &mut Reading| other.boot.since(reading.boot).is_some();
        if let Some((known, _)) = known.filter(|(known, _)| known.agrees_with(&reading)) {
            if reading.boot.since(known.boot).is_some_and(|passed| passed >= 0) {
                self.confirm(reading);
            }
            self.doubtful.take_if(is_same_start);
            return Verdict::Agrees;
        }
        let confirms = self.doubtful.is_some_and(|doubtful| doubtful.agrees_with(&reading));
        // Readings that were confirmed before a boot, or on another machine, are in the past.
        let is_later = self.confirmed.is_none_or(|past| past.service <= reading.service);
        let shown = reading.service_at(now.boot).filter(|_| known.is_none() && is_later);
        if !confirms && !shown.is_some_and(|shown| now.shows(shown)) {
            self.doubtful = Some(reading);
            return Verdict::Doubtful;
        }
        let was_assumed = known.map_or(self.assumed, |(_, assumed)| assumed);
        self.confirm(reading);
        self.doubtful.take_if(is_same_start);
        Verdict::Adopted { was_assumed }
    }

    /// Uses this reading from now on.
    fn confirm(&mut self, reading: Reading) {
        let is_other = |past: &Reading| past.boot.since(reading.boot).is_none();
        // An assumed time is no evidence for its boot either.
        let past = self.confirmed.filter(|_| !self.assumed).filter(is_other);
        self.other = past.or(self.other.filter(is_other));
        (self.confirmed, self.assumed) = (Some(reading), false);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::http::allowance::test_moments::timestamp;

    fn moment(start: u128, seconds: u64, wall: &str) -> Moment {
        let boot = BootTime { start, elapsed: Duration::from_secs(seconds) };
        Moment { wall: timestamp(wall), boot }
    }

    fn read(clock: &mut ServiceClock, service: &str, now: Moment) -> Verdict {
        clock.observe(Reading { service: timestamp(service), boot: now.boot }, now)
    }

    const NOON: &str = "2026-11-01T12:00:00Z";
    const LATER: &str = "2026-11-02T01:00:00Z";
    const ADOPTED: Verdict = Verdict::Adopted { was_assumed: false };

    #[test]
    fn b16_machines_do_not_take_each_others_readings() {
        let mut clock = ServiceClock::default();
        let [one, other] = [moment(1, 100, NOON), moment(2, 7, LATER)];
        assert_eq!(read(&mut clock, NOON, one), ADOPTED);
        assert_eq!(read(&mut clock, "2026-11-01T12:00:03Z", other), Verdict::Doubtful);
        // The reply to the first machine neither confirms nor discards it.
        let one = moment(1, 104, NOON);
        assert_eq!(read(&mut clock, "2026-11-01T12:00:04Z", one), Verdict::Agrees);
        assert_eq!(read(&mut clock, "2026-11-01T12:00:05Z", moment(2, 9, LATER)), ADOPTED);
        // From now on both boots are known.
        for at in [moment(1, 106, NOON), moment(2, 10, LATER), moment(1, 107, LATER)] {
            assert!(clock.now(at).is_some());
            let shown = clock.now(at).expect("a time").to_string();
            assert_eq!(read(&mut clock, &shown, at), Verdict::Agrees);
        }
        assert_eq!(clock.now(moment(3, 1, NOON)), None);
    }

    #[test]
    fn b14_past_readings_replace_no_later_one() {
        let mut clock = ServiceClock::default();
        let (now, later) = (moment(1, 100, NOON), moment(1, 101, NOON));
        assert_eq!(read(&mut clock, NOON, now), ADOPTED);
        // The reply of an earlier request arrives later.
        let (service, boot) = (timestamp("2026-11-01T11:59:20Z"), moment(1, 60, NOON).boot);
        let past = Reading { service, boot };
        assert_eq!(clock.observe(past, later), Verdict::Agrees);
        assert_eq!(clock.confirmed.map(|kept| kept.boot), Some(now.boot));
        // After a start with a wrong wall clock, a reply that shows the past confirms nothing.
        let early = "2026-11-01T08:00:00Z";
        assert_eq!(read(&mut clock, early, moment(2, 7, early)), Verdict::Doubtful);
    }

    #[test]
    fn t27_two_readings_replace_an_assumed_time() {
        let mut clock = ServiceClock::default();
        clock.assume(moment(1, 100, "2026-11-01T12:00:00.9Z"));
        assert_eq!(clock.now(moment(1, 100, LATER)), Some(timestamp(NOON)));
        let early = "2026-11-01T08:00:00Z";
        assert_eq!(read(&mut clock, early, moment(1, 100, NOON)), Verdict::Doubtful);
        assert_eq!(
            clock.best(moment(1, 100, NOON)),
            timestamp(early),
            "no end in the service's future"
        );
        let verdict = read(&mut clock, early, moment(1, 101, NOON));
        assert_eq!(verdict, Verdict::Adopted { was_assumed: true });
        assert!(!clock.assumed);
    }

    #[test]
    fn b16_a_reading_of_another_machine_leaves_doubt() {
        let mut clock = ServiceClock::default();
        let [now, other] = [moment(1, 100, NOON), moment(2, 7, LATER)];
        assert_eq!(read(&mut clock, NOON, now), ADOPTED);
        assert_eq!(read(&mut clock, LATER, other), ADOPTED);
        assert!(clock.is_in_doubt(now) && !clock.is_in_doubt(other));
        assert_eq!(read(&mut clock, NOON, now), Verdict::Agrees);
        assert!(!clock.is_in_doubt(now) && clock.is_in_doubt(other));
    }
}
