//! A pause that the service requested with `Retry-After`. All callers that share it wait until its
//! end, even if the caller that received the reply is cancelled: callers that need a token, and the
//! parallel requests of a sync.

use std::time::Duration;

use crate::clock::Clock;
use crate::error::Error;
use crate::lock::Mutex;

/// The maximum pause.
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(86_400);

/// Closed during a pause.
#[derive(Debug, Default)]
pub(crate) struct RetryAfterGate(Mutex<Option<Pause>>);

#[derive(Debug)]
struct Pause {
    until: Duration,
    because: Error,
}

impl RetryAfterGate {
    /// Closes for the pause that this error requests, if any. The later end counts.
    pub(crate) fn close(&self, clock: &Clock, error: &Error) {
        let Some(asked) = error.context().retry_after else { return };
        let until = clock.monotonic().saturating_add(asked.min(LONGEST_PAUSE));
        let mut pause = self.0.lock();
        if pause.as_ref().is_none_or(|pause| pause.until < until) {
            *pause = Some(Pause { until, because: error.clone() });
        }
    }

    /// The rest of the pause, and the error that requested it; `None` without a pause.
    pub(crate) fn closed(&self, clock: &Clock) -> Option<(Duration, Error)> {
        let mut pause = self.0.lock();
        let now = clock.monotonic();
        if pause.as_ref().is_some_and(|pause| pause.until <= now) {
            *pause = None;
        }
        let pause = pause.as_ref()?;
        let left = pause.until.saturating_sub(now);
        let because = pause.because.clone().with(|context| {
            context.retry_after = Some(left);
            context.attempts.clear();
        });
        Some((left, because))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::test_harness::noon;
    use crate::error::Kind;

    fn asks(seconds: u64) -> Error {
        Error::new(Kind::RateLimited, format!("wait {seconds} s"))
            .with(|context| context.retry_after = Some(Duration::from_secs(seconds)))
    }

    #[test]
    fn t9_the_pause_with_the_later_end_counts() {
        let (gate, clock) = (RetryAfterGate::default(), noon());
        let left = || {
            gate.closed(&clock).map(|(left, because)| {
                assert_eq!(because.context().retry_after, Some(left));
                (left.as_secs(), because.context().message.clone())
            })
        };
        gate.close(&clock, &Error::new(Kind::RateLimited, "without a time"));
        assert_eq!(left(), None);
        for (asked, counts) in [(20, 20), (30, 30), (10, 30)] {
            gate.close(&clock, &asks(asked));
            assert_eq!(left(), Some((counts, format!("wait {counts} s"))));
        }
        // The first of two pauses with the same end remains.
        gate.close(&clock, &asks(30).with(|context| context.message = "another".to_owned()));
        clock.advance(Duration::from_secs(29));
        assert_eq!(left(), Some((1, "wait 30 s".to_owned())));
        clock.advance(Duration::from_secs(1));
        assert_eq!(left(), None);
        gate.close(&clock, &asks(1_000_000));
        assert_eq!(left().map(|(left, _)| left), Some(LONGEST_PAUSE.as_secs()));
    }
}
