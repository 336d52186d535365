//! A pause that the service asked for (`Retry-After` of a token request). It is kept to by all who
//! need that token, also when the one who was told of it gives up.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::clock::Clock;
use crate::error::Error;

/// The service may ask for a longer pause, but not for more than a day.
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(86_400);

/// Closed while a pause lasts.
#[derive(Default)]
pub(super) struct Gate(Mutex<Option<Pause>>);

struct Pause {
    until: Duration,
    because: Error,
}

impl Gate {
    /// Closes for as long as this error asks, if it asks for a pause. The later end counts.
    pub(super) fn close(&self, clock: &Clock, error: &Error) {
        let Some(asked) = error.context().retry_after else { return };
        let until = clock.monotonic().saturating_add(asked.min(LONGEST_PAUSE));
        let mut pause = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if pause.as_ref().is_none_or(|pause| pause.until < until) {
            *pause = Some(Pause { until, because: error.clone() });
        }
    }

    /// The rest of the pause, as the error that asks for it; `None` where nothing is in the way.
    pub(super) fn closed(&self, clock: &Clock) -> Option<(Duration, Error)> {
        let mut pause = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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
