//! [`Clock`] is the only source of wall time, monotonic time and sleep, and is passed as a parameter.
//! [`ServiceTime`] adds an estimate of the service's clock from its `Date` headers.
//!
//! Sleeping on a manual clock advances it and does not wait. The sandbox, its clients and the tests
//! share one manual clock (`sandbox.clock.advance("1d")`); with other processes, through a file
//! (`shared`, `movements`).

#![expect(
    clippy::disallowed_methods,
    reason = "the one module that reads the system time and sleeps"
)]

mod movements;
mod shared;

use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use crate::lock::Mutex;
use jiff::{SignedDuration, Timestamp};
use movements::{Movement, Movements};

/// Wall time, monotonic time and sleep. Cloning is cheap; clones share one clock.
#[derive(Clone)]
pub struct Clock(Arc<Source>);

struct Source {
    origin: Instant,
    /// `None` for the system clock.
    manual: Option<Mutex<Manual>>,
}

/// A clock that [`Clock::advance`] and sleeps move.
struct Manual {
    /// The time at which the clock was made to stand still. `None`: it runs with the system clock.
    stands_since: Option<Timestamp>,
    movements: Movements,
}

impl Clock {
    /// The system clock: one for the process, so that all of its times can be compared.
    #[must_use]
    pub(crate) fn system() -> Self {
        static SYSTEM: LazyLock<Clock> = LazyLock::new(|| Clock::new(None));
        SYSTEM.clone()
    }

    /// A clock that shows `start` until something advances it or sleeps on it.
    #[must_use]
    pub fn frozen_at(start: Timestamp) -> Self {
        Self::manual(Some(start), Movements::default())
    }

    /// A clock that runs with the system clock and can be advanced; a sleep on it does not wait.
    #[must_use]
    pub(crate) fn running() -> Self {
        Self::manual(None, Movements::default())
    }

    fn manual(stands_since: Option<Timestamp>, movements: Movements) -> Self {
        Self::new(Some(Mutex::new(Manual { stands_since, movements })))
    }

    fn new(manual: Option<Mutex<Manual>>) -> Self {
        Self(Arc::new(Source { origin: Instant::now(), manual }))
    }

    /// True for a clock that can be advanced.
    #[must_use]
    pub(crate) fn is_manual(&self) -> bool {
        self.0.manual.is_some()
    }

    /// Whether both are one clock: only then can their monotonic times be compared.
    #[must_use]
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The wall time, UTC.
    #[must_use]
    pub fn wall(&self) -> Timestamp {
        let Some(manual) = &self.0.manual else { return Timestamp::now() };
        let mut manual = manual.lock();
        let moved = manual.movements.sum().wall;
        shifted(manual.stands_since.unwrap_or_else(Timestamp::now), moved)
    }

    /// Time since the clock was created; never decreases.
    #[must_use]
    pub(crate) fn monotonic(&self) -> Duration {
        let Some(manual) = &self.0.manual else { return self.0.origin.elapsed() };
        let mut manual = manual.lock();
        let stands = manual.stands_since.is_some();
        let flowed = if stands { Duration::ZERO } else { self.0.origin.elapsed() };
        manual.movements.sum().monotonic.saturating_add(flowed)
    }

    /// Waits. A manual clock is advanced instead, and the task yields once to the scheduler.
    pub(crate) async fn sleep(&self, duration: Duration) {
        if self.is_manual() {
            self.advance(duration);
            tokio::task::yield_now().await;
        } else {
            tokio::time::sleep(duration).await;
        }
    }

    /// Moves wall and monotonic time of a manual clock forward. No effect on the system clock.
    pub fn advance(&self, by: Duration) {
        self.move_by(Movement { wall: signed(by), monotonic: by });
    }

    /// Moves only the wall time of a manual clock, forward or back: simulates a clock that was set,
    /// or a machine that was suspended.
    pub fn shift_wall(&self, by: SignedDuration) {
        self.move_by(Movement { wall: by, monotonic: Duration::ZERO });
    }

    fn move_by(&self, movement: Movement) {
        if let Some(manual) = &self.0.manual {
            manual.lock().movements.add(movement);
        }
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_manual() { "manual" } else { "system" };
        write!(f, "Clock({kind}, {})", self.wall())
    }
}

fn signed(duration: Duration) -> SignedDuration {
    SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX)
}

fn shifted(wall: Timestamp, by: SignedDuration) -> Timestamp {
    wall.checked_add(by).unwrap_or(if by.is_negative() { Timestamp::MIN } else { Timestamp::MAX })
}

/// A skew up to this is treated as network delay and not corrected.
pub(crate) const NOTICED_SKEW: SignedDuration = SignedDuration::from_secs(5);
/// A larger skew is never corrected: one of the clocks is wrong by days.
pub(crate) const CORRECTED_SKEW: SignedDuration = SignedDuration::from_hours(24);
/// The `Date` of a reply with a longer round trip is ignored.
const LEARNING_ROUND_TRIP: Duration = Duration::from_secs(10);
const UNKNOWN: i64 = i64::MIN;

/// The estimate of the service's time: the local clock plus the skew seen in `Date` headers.
#[derive(Clone, Debug)]
pub struct ServiceTime {
    clock: Clock,
    skew_milliseconds: Arc<AtomicI64>,
}

impl ServiceTime {
    /// Without an estimate yet: the service's time equals the local time.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self { clock, skew_milliseconds: Arc::new(AtomicI64::new(UNKNOWN)) }
    }

    /// The local clock.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Estimates the skew from one reply: `date` is its `Date` header, `sent` and `received` are local
    /// wall times. Ignores a reply that took over ten seconds; the caller excludes replies with
    /// `Age` and replies over plain HTTP from other hosts than loopback.
    pub(crate) fn learn(&self, date: Timestamp, sent: Timestamp, received: Timestamp) {
        let round_trip = received.duration_since(sent);
        if round_trip.is_negative() || round_trip.unsigned_abs() > LEARNING_ROUND_TRIP {
            return;
        }
        let midpoint = shifted(sent, round_trip / 2);
        // `Date` is truncated to whole seconds: half a second later is the better estimate.
        let skew = date.duration_since(midpoint) + SignedDuration::from_millis(500);
        let milliseconds = i64::try_from(skew.as_millis()).unwrap_or(i64::MAX);
        self.skew_milliseconds.store(milliseconds, Ordering::Relaxed);
    }

    /// Service clock minus local clock, from the last reply; `None` before the first estimate.
    #[must_use]
    pub fn skew(&self) -> Option<SignedDuration> {
        match self.skew_milliseconds.load(Ordering::Relaxed) {
            UNKNOWN => None,
            milliseconds => Some(SignedDuration::from_millis(milliseconds)),
        }
    }

    /// The skew if it is corrected, else zero: above 5 seconds and at most 24 hours.
    #[must_use]
    pub(crate) fn correction(&self) -> SignedDuration {
        match self.skew() {
            Some(skew) if skew.abs() > NOTICED_SKEW && skew.abs() <= CORRECTED_SKEW => skew,
            _ => SignedDuration::ZERO,
        }
    }

    /// The estimated service time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        shifted(self.clock.wall(), self.correction())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a timestamp")
    }

    #[tokio::test]
    async fn sleeping_on_a_frozen_clock_advances_it_without_waiting() {
        let clock = Clock::frozen_at(at("2026-11-01T00:00:00Z"));
        clock.sleep(Duration::from_secs(86_400)).await;
        assert_eq!(clock.wall(), at("2026-11-02T00:00:00Z"));
        assert_eq!(clock.monotonic(), Duration::from_secs(86_400));
    }

    #[test]
    fn all_system_clocks_are_the_same_clock() {
        let (first, second) = (Clock::system(), Clock::system());
        let earlier = first.monotonic();
        assert!(first.is_same(&second) && second.monotonic() >= earlier);
        let frozen = || Clock::frozen_at(at("2026-11-01T00:00:00Z"));
        assert!(!frozen().is_same(&frozen()) && !frozen().is_same(&first));
    }

    #[test]
    fn t26_a_skew_of_two_minutes_is_detected_and_corrected() {
        let time = ServiceTime::new(Clock::frozen_at(at("2026-11-01T00:00:00Z")));
        let now = time.clock().wall();
        time.learn(at("2026-11-01T00:02:00Z"), now, now);
        assert_eq!(time.now(), at("2026-11-01T00:02:00.5Z"));
    }

    #[test]
    fn t27_the_date_of_a_slow_reply_is_ignored() {
        let time = ServiceTime::new(Clock::frozen_at(at("2026-11-01T00:00:00Z")));
        let now = time.clock().wall();
        time.learn(at("2026-11-01T00:02:00Z"), now, now + SignedDuration::from_secs(11));
        assert_eq!(time.skew(), None);
    }

    #[test]
    fn t28_a_skew_of_more_than_a_day_is_detected_but_not_corrected() {
        let time = ServiceTime::new(Clock::frozen_at(at("2026-11-01T00:00:00Z")));
        let now = time.clock().wall();
        time.learn(at("1970-01-01T00:00:00Z"), now, now);
        assert!(time.skew().is_some_and(|skew| skew.abs() > CORRECTED_SKEW));
        assert_eq!(time.now(), now);
    }
}
