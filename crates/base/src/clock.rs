//! [`Clock`] is the only source of wall time, monotonic time and sleep, and is passed as a parameter.
//! [`ServiceTime`] estimates the service's clock from `Date` headers. A [`Reading`] is an estimate that
//! does not depend on the machine's wall clock.
//!
//! Sleeping on a manual clock advances it and does not wait. The sandbox, its clients and the tests
//! share one manual clock (`sandbox.clock.advance("1d")`), with other processes through a file
//! (`shared`, `movements`).

#![expect(
    clippy::disallowed_methods,
    reason = "the one module that reads the system time and sleeps"
)]

mod boot;
mod movements;
mod reading;
mod shared;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use crate::lock::Mutex;
use jiff::{SignedDuration, Timestamp};
use movements::{Movement, Movements};

pub use boot::BootTime;
pub use reading::NOTICED_SKEW;
use reading::{LEARNING_ROUND_TRIP, shifted};
pub use reading::{Moment, Reading};

/// Wall time, monotonic time and sleep. Clones share one clock.
#[derive(Clone)]
pub struct Clock(Arc<Source>);

struct Source {
    origin: Instant,
    /// `None` for the system clock.
    manual: Option<Mutex<Manual>>,
    /// The parent clock of [`Clock::of_machine`], and its monotonic time at the creation of this one.
    passes_with: Option<(Clock, Duration)>,
}

struct Manual {
    /// The origin of its monotonic time, as of a separate machine.
    boot: u128,
    /// The time at which the clock is stopped; `None` if it runs with the system clock.
    stands_since: Option<Timestamp>,
    movements: Movements,
}

impl Manual {
    fn new(stands_since: Option<Timestamp>, movements: Movements) -> Self {
        Self { boot: boot::new_start(), stands_since, movements }
    }
}

impl Clock {
    /// The system clock. A process has one, so that all its monotonic times can be compared.
    #[must_use]
    pub fn system() -> Self {
        static SYSTEM: LazyLock<Clock> = LazyLock::new(|| Clock::new(None, None));
        SYSTEM.clone()
    }

    /// A clock that is stopped at `start` until it is advanced or slept on.
    #[must_use]
    pub fn frozen_at(start: Timestamp) -> Self {
        Self::manual(Some(start), Movements::default())
    }

    /// A clock that runs with the system clock and can be advanced. A sleep on it does not wait.
    #[must_use]
    pub fn running() -> Self {
        Self::manual(None, Movements::default())
    }

    /// The clock of a restarted machine with the wall time `wall`. Time passes on it as on this clock,
    /// and a sleep on either moves both. Its wall clock is separate.
    #[must_use]
    pub fn of_machine(&self, wall: Timestamp) -> Self {
        let manual = Manual::new(Some(wall), Movements::default());
        Self::new(Some(manual), Some((self.clone(), self.monotonic())))
    }

    fn manual(stands_since: Option<Timestamp>, movements: Movements) -> Self {
        Self::new(Some(Manual::new(stands_since, movements)), None)
    }

    fn new(manual: Option<Manual>, passes_with: Option<(Self, Duration)>) -> Self {
        let manual = manual.map(Mutex::new);
        Self(Arc::new(Source { origin: Instant::now(), manual, passes_with }))
    }

    /// True for a clock that can be advanced.
    #[must_use]
    pub fn is_manual(&self) -> bool {
        self.0.manual.is_some()
    }

    /// Whether both are one clock, so that their monotonic times can be compared.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The wall time, UTC.
    #[must_use]
    pub fn wall(&self) -> Timestamp {
        let Some(manual) = &self.0.manual else { return Timestamp::now() };
        let mut manual = manual.lock();
        let moved = manual.movements.sum().wall.saturating_add(signed(self.passed()));
        shifted(manual.stands_since.unwrap_or_else(Timestamp::now), moved)
    }

    fn passed(&self) -> Duration {
        let with = self.0.passes_with.as_ref();
        with.map_or(Duration::ZERO, |(clock, since)| clock.monotonic().saturating_sub(*since))
    }

    /// Time since the clock was created; never decreases.
    #[must_use]
    pub fn monotonic(&self) -> Duration {
        let Some(manual) = &self.0.manual else { return self.0.origin.elapsed() };
        let mut manual = manual.lock();
        let stands = manual.stands_since.is_some();
        let flowed = if stands { Duration::ZERO } else { self.0.origin.elapsed() };
        manual.movements.sum().monotonic.saturating_add(flowed).saturating_add(self.passed())
    }

    /// The machine's time since the clock was created, even if the clock is stopped.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.0.origin.elapsed()
    }

    /// The wall time and the time since the machine started.
    #[must_use]
    pub fn moment(&self) -> Moment {
        let boot = match &self.0.manual {
            Some(manual) => {
                let start = manual.lock().boot;
                BootTime { start, elapsed: self.monotonic() }
            }
            None => BootTime::of_system(),
        };
        Moment { wall: self.wall(), boot }
    }

    /// Waits. A manual clock is advanced instead, and the task yields once to the scheduler.
    pub async fn sleep(&self, duration: Duration) {
        if self.is_manual() {
            self.advance(duration);
            tokio::task::yield_now().await;
        } else {
            tokio::time::sleep(duration).await;
        }
    }

    /// Moves wall and monotonic time of a manual clock forward. No effect on the system clock.
    pub fn advance(&self, by: Duration) {
        if let Some((clock, _)) = &self.0.passes_with {
            return clock.advance(by);
        }
        self.move_by(Movement { wall: signed(by), monotonic: by });
    }

    /// Moves only the wall time of a manual clock, forward or back: simulates a clock that was set,
    /// or a machine that was suspended.
    pub fn step(&self, by: SignedDuration) {
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

/// A larger skew is never corrected, because one of the clocks is wrong by days.
pub const CORRECTED_SKEW: SignedDuration = SignedDuration::from_hours(24);
const LEAST_ERROR: SignedDuration = SignedDuration::from_secs(2);

/// One measurement of the service's clock minus the local clock.
#[derive(Clone, Copy, Debug)]
pub struct Skew {
    pub estimate: SignedDuration,
    round_trip: SignedDuration,
}

impl Skew {
    /// The uncertainty: `Date` has whole seconds, and the request or the reply may have taken all of the
    /// round trip.
    #[must_use]
    pub fn error(self) -> SignedDuration {
        LEAST_ERROR.max(SignedDuration::from_secs(1) + self.round_trip / 2)
    }

    /// The smallest skew that the measurement allows. A time corrected by it is not in the service's
    /// future.
    fn least(self) -> SignedDuration {
        self.estimate - HALF_A_SECOND - self.round_trip / 2
    }

    /// Whether times are corrected for it.
    #[must_use]
    pub fn is_correctable(self) -> bool {
        self.estimate.abs() <= CORRECTED_SKEW
    }
}

/// `Date` is truncated to whole seconds, so half a second later is the better estimate.
const HALF_A_SECOND: SignedDuration = SignedDuration::from_millis(500);

/// The estimate of the service's time: the local clock plus the skew seen in `Date` headers.
#[derive(Clone, Debug)]
pub struct ServiceTime {
    clock: Clock,
    measured: Arc<Mutex<Option<Skew>>>,
    /// Whether a small skew is corrected too, after the service refused an assertion.
    is_strict: Arc<AtomicBool>,
}

impl ServiceTime {
    /// Begins without an estimate: the service's time equals the local time.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self { clock, measured: Arc::default(), is_strict: Arc::default() }
    }

    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Estimates the skew from one reply: `date` is its `Date` header, `sent` and `received` are local
    /// wall times. Ignores a reply that took over ten seconds; the caller excludes replies with
    /// `Age` and replies over plain HTTP from other hosts than loopback.
    pub fn learn(&self, date: Timestamp, sent: Timestamp, received: Timestamp) {
        let round_trip = received.duration_since(sent);
        if round_trip.is_negative() || round_trip.unsigned_abs() > LEARNING_ROUND_TRIP {
            return;
        }
        let midpoint = shifted(sent, round_trip / 2);
        let estimate = date.duration_since(midpoint) + HALF_A_SECOND;
        *self.measured.lock() = Some(Skew { estimate, round_trip });
    }

    /// From the last reply; `None` before the first estimate.
    #[must_use]
    pub fn skew(&self) -> Option<SignedDuration> {
        self.measured().map(|skew| skew.estimate)
    }

    #[must_use]
    pub fn measured(&self) -> Option<Skew> {
        *self.measured.lock()
    }

    /// The skew if it is above 5 seconds and at most 24 hours, otherwise zero.
    #[must_use]
    pub fn correction(&self) -> SignedDuration {
        match self.skew() {
            Some(skew) if skew.abs() > NOTICED_SKEW && skew.abs() <= CORRECTED_SKEW => skew,
            _ => SignedDuration::ZERO,
        }
    }

    /// The skew for which the next assertion is corrected. Up to 5 seconds are corrected only after
    /// [`ServiceTime::be_strict`].
    #[must_use]
    pub fn assertion_skew(&self) -> Option<Skew> {
        let is_strict = self.is_strict.load(Ordering::Relaxed);
        self.measured().filter(|skew| {
            skew.is_correctable() && (is_strict || skew.estimate.abs() > NOTICED_SKEW)
        })
    }

    /// Corrects later assertions for a small skew too, because the service accepted one only after a
    /// correction.
    pub fn be_strict(&self) {
        self.is_strict.store(true, Ordering::Relaxed);
    }

    /// The time of an assertion, corrected for this skew. It is never in the service's future, which some
    /// services refuse.
    pub fn corrected(&self, skew: Option<Skew>) -> Timestamp {
        shifted(self.clock.wall(), skew.map_or(SignedDuration::ZERO, Skew::least))
    }

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
    fn b14_a_machine_has_a_wall_clock_of_its_own_and_time_passes_on_all() {
        let service = Clock::frozen_at(at("2026-11-01T00:00:00Z"));
        service.advance(Duration::from_secs(60));
        let machine = service.of_machine(at("2000-01-01T00:00:00Z"));
        machine.advance(Duration::from_secs(5));
        service.advance(Duration::from_secs(5));
        machine.step(SignedDuration::from_hours(1));
        service.step(SignedDuration::from_hours(-1));
        assert_eq!(machine.wall(), at("2000-01-01T01:00:10Z"));
        assert_eq!(service.wall(), at("2026-10-31T23:01:10Z"));
        let [one, other] = [machine.moment(), service.moment()];
        assert_eq!(one.boot.elapsed, Duration::from_secs(10));
        assert_eq!(one.boot.since(other.boot), None);
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
    fn t26_t27_only_plausible_skews_are_corrected() {
        let start = at("2026-11-01T00:00:00Z");
        for (date, round_trip, is_detected, now) in [
            ("2026-11-01T00:02:00Z", 0, true, at("2026-11-01T00:02:00.5Z")),
            ("2026-11-01T00:02:00Z", 11, false, start),
            ("1970-01-01T00:00:00Z", 0, true, start),
        ] {
            let time = ServiceTime::new(Clock::frozen_at(start));
            time.learn(at(date), start, start + SignedDuration::from_secs(round_trip));
            assert_eq!((time.skew().is_some(), time.now()), (is_detected, now), "{date}");
        }
    }
}
