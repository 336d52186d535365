//! A pause that the service asked for (`Retry-After` of a token request). All callers that need the
//! token wait for its end, also when the caller that got the reply gives up.

use std::time::Duration;

use crate::clock::Clock;
use crate::error::Error;
use crate::lock::Mutex;

/// The service may ask for a longer pause, but not for more than a day.
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(86_400);

/// Closed during a pause.
#[derive(Default)]
pub(super) struct RetryAfterGate(Mutex<Option<Pause>>);

struct Pause {
    until: Duration,
    because: Error,
}

impl RetryAfterGate {
    /// Closes for as long as this error asks, if it asks for a pause. The later end counts.
    pub(super) fn close(&self, clock: &Clock, error: &Error) {
        let Some(asked) = error.context().retry_after else { return };
        let until = clock.monotonic().saturating_add(asked.min(LONGEST_PAUSE));
        let mut pause = self.0.lock();
        if pause.as_ref().is_none_or(|pause| pause.until < until) {
            *pause = Some(Pause { until, because: error.clone() });
        }
    }

    /// The rest of the pause, and the error that asked for it; `None` where there is none.
    pub(super) fn closed(&self, clock: &Clock) -> Option<(Duration, Error)> {
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
