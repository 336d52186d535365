//! [`Reading`]: the service's time from a reply, extended by the time since the machine started.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::boot::BootTime;

/// A skew up to this is treated as network delay and not corrected. Readings within this difference
/// agree.
pub const NOTICED_SKEW: SignedDuration = SignedDuration::from_secs(5);
/// The `Date` of a reply with a longer round trip is ignored.
pub(super) const LEARNING_ROUND_TRIP: Duration = Duration::from_secs(10);
const SECOND: i128 = 1_000_000_000;
const DAY: i128 = 86_400 * SECOND;
/// The inverse of a clock's largest drift.
const DRIFT: i128 = 5_000;
/// The most that a time may precede a reading, because threads overtake one another. A machine that
/// went back further was restored from a snapshot.
const OVERTAKEN: i128 = 60 * SECOND;

/// The present time of this machine: its wall clock, which can be set, and the time since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    pub wall: Timestamp,
    pub boot: BootTime,
}

/// The service's time at one moment, from the `Date` of a reply. `Date` is truncated to a second and
/// precedes the arrival, so a reading is a lower bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    pub service: Timestamp,
    pub boot: BootTime,
}

impl Reading {
    /// The reading of a reply's `Date`. `None` if the reply took over ten seconds, because the date may
    /// be that old.
    #[must_use]
    pub fn of_reply(date: Timestamp, sent: Moment, received: Moment) -> Option<Self> {
        let took = received.boot.since(sent.boot)?;
        let quick = took <= i128::try_from(LEARNING_ROUND_TRIP.as_nanos()).unwrap_or(i128::MAX);
        quick.then_some(Self { service: date, boot: received.boot })
    }

    /// Another process's reading of this age or more.
    #[must_use]
    pub fn seen_before(service: Timestamp, ago: Duration, now: Moment) -> Self {
        let elapsed = now.boot.elapsed.saturating_sub(ago);
        Self { service, boot: BootTime { elapsed, ..now.boot } }
    }

    /// The time since the reading; `None` if unknown.
    #[must_use]
    pub fn age(&self, now: Moment) -> Option<Duration> {
        let passed = now.boot.since(self.boot)?;
        Some(Duration::from_nanos(u64::try_from(passed.max(0)).unwrap_or(u64::MAX)))
    }

    /// The earliest service time at `now`. `None` if the machine was restarted since, or is another
    /// one.
    #[must_use]
    pub fn service_at(&self, boot: BootTime) -> Option<Timestamp> {
        let passed = boot.since(self.boot).filter(|passed| *passed > -OVERTAKEN)?;
        // A lower bound, because this machine may have counted too fast.
        Some(later(self.service, passed - (passed - DAY).max(0) / DRIFT))
    }

    /// The latest service time at `now`; [`Reading::service_at`] is the earliest.
    #[must_use]
    pub fn latest_at(&self, boot: BootTime) -> Option<Timestamp> {
        let passed = boot.since(self.boot).filter(|passed| *passed > -OVERTAKEN)?;
        let drift = passed.max(0) / DRIFT + NOTICED_SKEW.as_nanos();
        Some(later(self.service, passed + drift))
    }

    #[must_use]
    pub fn agrees_with(&self, other: &Self) -> bool {
        let Some(passed) = other.boot.since(self.boot) else { return false };
        let drift = nanoseconds(passed.abs() / DRIFT);
        is_close(later(self.service, passed), other.service, drift)
    }
}

impl Moment {
    #[must_use]
    pub fn shows(&self, time: Timestamp) -> bool {
        is_close(self.wall, time, SignedDuration::ZERO)
    }
}

fn is_close(one: Timestamp, other: Timestamp, drift: SignedDuration) -> bool {
    one.duration_since(other).abs() <= NOTICED_SKEW + drift
}

/// A later or earlier time, limited to the range of `Timestamp`.
pub(super) fn shifted(time: Timestamp, by: SignedDuration) -> Timestamp {
    time.checked_add(by).unwrap_or(if by.is_negative() { Timestamp::MIN } else { Timestamp::MAX })
}

fn later(time: Timestamp, by: i128) -> Timestamp {
    shifted(time, nanoseconds(by))
}

fn nanoseconds(count: i128) -> SignedDuration {
    let limit = if count < 0 { SignedDuration::MIN } else { SignedDuration::MAX };
    SignedDuration::try_from_nanos_i128(count).unwrap_or(limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(service: &str, elapsed: u64) -> Reading {
        let boot = BootTime { start: 1, elapsed: Duration::from_secs(elapsed) };
        Reading { service: service.parse().expect("a time"), boot }
    }

    #[test]
    fn b14_the_services_time_passes_with_the_time_since_the_start() {
        let noon = reading("2026-11-01T12:00:00Z", 1_000);
        let at = |elapsed| {
            let boot = BootTime { start: 1, elapsed: Duration::from_secs(elapsed) };
            noon.service_at(boot).map(|time| time.to_string())
        };
        assert_eq!(at(4_600).as_deref(), Some("2026-11-01T13:00:00Z"));
        assert_eq!(at(990).as_deref(), Some("2026-11-01T11:59:50Z"));
        assert_eq!(at(900), None, "the machine went back");
        assert_eq!(at(1_000 + 86_400).as_deref(), Some("2026-11-02T12:00:00Z"));
        // After ten days the drift of nine is subtracted: 155.52 s.
        assert_eq!(at(1_000 + 864_000).as_deref(), Some("2026-11-11T11:57:24.48Z"));
        let other = BootTime { start: 2, elapsed: Duration::from_secs(4_600) };
        assert_eq!(noon.service_at(other), None);
    }

    #[test]
    fn b14_a_reply_gives_its_date_whatever_the_machines_clock_shows() {
        let date: Timestamp = "2026-11-01T12:00:00Z".parse().expect("a time");
        for wall in ["2026-10-31T23:00:00Z", "2026-11-01T12:00:00Z", "2026-11-02T01:00:00Z"] {
            let moment = |elapsed| Moment {
                wall: wall.parse().expect("a time"),
                boot: BootTime { start: 1, elapsed: Duration::from_secs(elapsed) },
            };
            let quick = Reading::of_reply(date, moment(990), moment(1_000));
            assert_eq!(quick, Some(reading("2026-11-01T12:00:00Z", 1_000)), "{wall}");
            assert_eq!(Reading::of_reply(date, moment(989), moment(1_000)), None, "too slow");
        }
    }

    #[test]
    fn b14_readings_agree_within_seconds_whichever_came_first() {
        let noon = reading("2026-11-01T12:00:00Z", 1_000);
        for (service, elapsed, agrees) in [
            ("2026-11-01T12:00:05Z", 1_000, true),
            ("2026-11-01T12:00:06Z", 1_000, false),
            ("2026-11-01T11:59:55Z", 1_000, true),
            ("2026-11-01T11:59:54Z", 1_000, false),
            ("2026-11-01T13:00:00Z", 4_600, true),
            ("2026-11-02T01:00:00Z", 1_000, false),
            ("2026-11-02T12:00:20Z", 87_400, true),
            ("2026-11-02T12:00:30Z", 87_400, false),
        ] {
            let other = reading(service, elapsed);
            assert_eq!(noon.agrees_with(&other), agrees, "{service} {elapsed}");
            assert_eq!(other.agrees_with(&noon), agrees, "{service} {elapsed}");
        }
    }
}
