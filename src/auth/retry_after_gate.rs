//! A pause that the service requested (`Retry-After` of a token reply). All callers that need the token
//! wait until its end, even if the caller that received the reply is cancelled.

use std::time::Duration;

use crate::clock::Clock;
use crate::error::Error;
use crate::lock::Mutex;

/// A longer pause is reduced to a day.
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(86_400);

/// Closed during a pause.
#[derive(Default)]
pub(super) struct RetryAfterGate(Mutex<Option<Pause>>);

struct Pause {
    until: Duration,
    because: Error,
}

impl RetryAfterGate {
    /// Closes for the pause that this error requests, if any. The later end counts.
    pub(super) fn close(&self, clock: &Clock, error: &Error) {
        let Some(asked) = error.context().retry_after else { return };
        let until = clock.monotonic().saturating_add(asked.min(LONGEST_PAUSE));
        let mut pause = self.0.lock();
        if pause.as_ref().is_none_or(|pause| pause.until < until) {
            *pause = Some(Pause { until, because: error.clone() });
        }
    }

    /// The rest of the pause, and the error that requested it; `None` without a pause.
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
