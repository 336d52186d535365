//! Time is a parameter. A [`Clock`] is the only owner of wall time, monotonic time and sleeping;
//! [`ServiceTime`] adds what was learnt about the service's own clock from its `Date` headers.
//!
//! A manual clock never makes anybody wait: sleeping on it moves it. That is how the sandbox, the
//! clients it hands out and the tests share one time (`sandbox.clock.advance("1d")`).

#![expect(
    clippy::disallowed_methods,
    reason = "the one room that reads the machine's time and sleeps"
)]

use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use crate::lock::Mutex;
use jiff::{SignedDuration, Timestamp};

/// Wall time, monotonic time and sleep. Cheap to clone; clones are the same clock.
#[derive(Clone)]
pub struct Clock(Arc<Source>);

enum Source {
    System { origin: Instant },
    Manual { origin: Instant, state: Mutex<Manual> },
}

/// `running`: the machine's time still flows underneath; otherwise it stands still but for
/// [`Clock::advance`] and sleeps.
struct Manual {
    running: bool,
    wall: Timestamp,
    monotonic: Duration,
}

impl Clock {
    /// The machine's clock: one for the whole process, so that the times of any two compare.
    #[must_use]
    pub fn system() -> Self {
        static SYSTEM: LazyLock<Clock> =
            LazyLock::new(|| Clock(Arc::new(Source::System { origin: Instant::now() })));
        SYSTEM.clone()
    }

    /// A clock that stands at `start` until it is advanced or slept on.
    #[must_use]
    pub fn frozen_at(start: Timestamp) -> Self {
        Self::manual(start, false)
    }

    /// A clock that runs with the machine's, can be advanced, and never makes a sleeper wait.
    #[must_use]
    pub fn running() -> Self {
        Self::manual(Timestamp::now(), true)
    }

    fn manual(wall: Timestamp, running: bool) -> Self {
        let state = Mutex::new(Manual { running, wall, monotonic: Duration::ZERO });
        Self(Arc::new(Source::Manual { origin: Instant::now(), state }))
    }

    /// True for a clock that can be advanced.
    #[must_use]
    pub fn is_manual(&self) -> bool {
        matches!(*self.0, Source::Manual { .. })
    }

    /// True if the other one is this clock: only then do their monotonic times compare.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The wall time, UTC.
    #[must_use]
    pub fn wall(&self) -> Timestamp {
        match &*self.0 {
            Source::System { .. } => Timestamp::now(),
            Source::Manual { origin, state } => {
                let state = state.lock();
                if state.running {
                    shifted(state.wall, signed(origin.elapsed()))
                } else {
                    state.wall
                }
            }
        }
    }

    /// Time since this clock was made, never set back.
    #[must_use]
    pub fn monotonic(&self) -> Duration {
        match &*self.0 {
            Source::System { origin } => origin.elapsed(),
            Source::Manual { origin, state } => {
                let state = state.lock();
                let flowed = if state.running { origin.elapsed() } else { Duration::ZERO };
                state.monotonic.saturating_add(flowed)
            }
        }
    }

    /// Waits; on a manual clock moves the clock instead and returns after one turn of the
    /// scheduler.
    pub async fn sleep(&self, duration: Duration) {
        if self.is_manual() {
            self.advance(duration);
            tokio::task::yield_now().await;
        } else {
            tokio::time::sleep(duration).await;
        }
    }

    /// Moves a manual clock forward, wall and monotonic together. The machine's clock stays.
    pub fn advance(&self, by: Duration) {
        self.change(|state| {
            state.monotonic = state.monotonic.saturating_add(by);
            state.wall = shifted(state.wall, signed(by));
        });
    }

    /// Moves only the wall time of a manual clock, either way: a clock that was set, or a machine
    /// that was suspended.
    pub fn shift_wall(&self, by: SignedDuration) {
        self.change(|state| state.wall = shifted(state.wall, by));
    }

    fn change(&self, change: impl FnOnce(&mut Manual)) {
        if let Source::Manual { state, .. } = &*self.0 {
            change(&mut state.lock());
        }
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &*self.0 {
            Source::System { .. } => "system",
            Source::Manual { .. } => "manual",
        };
        write!(f, "Clock({kind}, {})", self.wall())
    }
}

fn signed(duration: Duration) -> SignedDuration {
    SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX)
}

fn shifted(wall: Timestamp, by: SignedDuration) -> Timestamp {
    wall.checked_add(by).unwrap_or(if by.is_negative() { Timestamp::MIN } else { Timestamp::MAX })
}

/// Skews up to this are taken for network noise and not corrected.
pub const NOTICED_SKEW: SignedDuration = SignedDuration::from_secs(5);
/// No skew beyond this is ever corrected: one of the clocks is wrong by days.
pub const CORRECTED_SKEW: SignedDuration = SignedDuration::from_hours(24);
/// A reply that took longer than this says nothing about clocks.
const LEARNING_ROUND_TRIP: Duration = Duration::from_secs(10);
const UNKNOWN: i64 = i64::MIN;

/// The service's time, once learnt: our clock plus the skew seen in `Date` headers.
#[derive(Clone, Debug)]
pub struct ServiceTime {
    clock: Clock,
    skew_milliseconds: Arc<AtomicI64>,
}

impl ServiceTime {
    /// Nothing learnt yet: the service's time is taken to be ours.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self { clock, skew_milliseconds: Arc::new(AtomicI64::new(UNKNOWN)) }
    }

    /// Our own clock.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Learns from one reply: `date` is its `Date` header, `sent` and `received` our wall times
    /// around it. A reply that took over ten seconds teaches nothing; the caller leaves out replies
    /// with `Age` and those over plain HTTP from beyond loopback.
    pub fn learn(&self, date: Timestamp, sent: Timestamp, received: Timestamp) {
        let round_trip = received.duration_since(sent);
        if round_trip.is_negative() || round_trip.unsigned_abs() > LEARNING_ROUND_TRIP {
            return;
        }
        let midpoint = shifted(sent, round_trip / 2);
        // `Date` has whole seconds, cut off: half a second later is the better estimate.
        let skew = date.duration_since(midpoint) + SignedDuration::from_millis(500);
        let milliseconds = i64::try_from(skew.as_millis()).unwrap_or(i64::MAX);
        self.skew_milliseconds.store(milliseconds, Ordering::Relaxed);
    }

    /// Service clock minus our clock as last seen; `None` until a reply taught it.
    #[must_use]
    pub fn skew(&self) -> Option<SignedDuration> {
        match self.skew_milliseconds.load(Ordering::Relaxed) {
            UNKNOWN => None,
            milliseconds => Some(SignedDuration::from_millis(milliseconds)),
        }
    }

    /// The part of the skew that is acted on: none up to 5 seconds, none beyond 24 hours.
    #[must_use]
    pub fn correction(&self) -> SignedDuration {
        match self.skew() {
            Some(skew) if skew.abs() > NOTICED_SKEW && skew.abs() <= CORRECTED_SKEW => skew,
            _ => SignedDuration::ZERO,
        }
    }

    /// The service's time as well as it is known.
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
    async fn sleeping_on_a_frozen_clock_moves_it_and_takes_no_time() {
        let clock = Clock::frozen_at(at("2026-11-01T00:00:00Z"));
        clock.sleep(Duration::from_secs(86_400)).await;
        assert_eq!(clock.wall(), at("2026-11-02T00:00:00Z"));
        assert_eq!(clock.monotonic(), Duration::from_secs(86_400));
    }

    #[test]
    fn all_system_clocks_are_one_and_their_times_compare() {
        let (first, second) = (Clock::system(), Clock::system());
        let earlier = first.monotonic();
        assert!(first.is_same(&second) && second.monotonic() >= earlier);
        let frozen = || Clock::frozen_at(at("2026-11-01T00:00:00Z"));
        assert!(!frozen().is_same(&frozen()) && !frozen().is_same(&first));
    }

    #[test]
    fn t26_a_skew_of_two_minutes_is_learnt_and_corrected() {
        let time = ServiceTime::new(Clock::frozen_at(at("2026-11-01T00:00:00Z")));
        let now = time.clock().wall();
        time.learn(at("2026-11-01T00:02:00Z"), now, now);
        assert_eq!(time.now(), at("2026-11-01T00:02:00.5Z"));
    }

    #[test]
    fn t27_a_slow_reply_teaches_nothing() {
        let time = ServiceTime::new(Clock::frozen_at(at("2026-11-01T00:00:00Z")));
        let now = time.clock().wall();
        time.learn(at("2026-11-01T00:02:00Z"), now, now + SignedDuration::from_secs(11));
        assert_eq!(time.skew(), None);
    }

    #[test]
    fn t28_a_skew_beyond_a_day_is_seen_but_not_acted_on() {
        let time = ServiceTime::new(Clock::frozen_at(at("2026-11-01T00:00:00Z")));
        let now = time.clock().wall();
        time.learn(at("1970-01-01T00:00:00Z"), now, now);
        assert!(time.skew().is_some_and(|skew| skew.abs() > CORRECTED_SKEW));
        assert_eq!(time.now(), now);
    }
}
