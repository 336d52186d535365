//! [`Spending`]: the requests of one read, and their limit.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use crate::auth::RetryAfterGate;
use crate::clock::Clock;
use crate::error::Error;

/// The end of a pause that the service requested, for reads side by side.
pub(crate) type SharedPause = Arc<RetryAfterGate>;

/// The requests of one read, and how many of the daily allowance it must leave.
#[derive(Debug, Default)]
pub struct Spending {
    /// Requests sent, including retries, except those of which no byte was sent.
    pub requests: AtomicU64,
    /// The requests that must be left after a first attempt ...
    pub must_remain: u64,
    /// ... and after a retry.
    pub must_remain_after_retries: u64,
    /// The pause that the service requested of this read, or of one beside it.
    pub(crate) pause: SharedPause,
}

impl Spending {
    /// Notes the pause that this error requests, unless it is too long to be waited for.
    pub(super) fn note_pause(&self, clock: &Clock, error: &Error, longest: Duration) {
        if error.context().retry_after.is_some_and(|asked| asked <= longest) {
            self.pause.close(clock, error);
        }
    }
}
