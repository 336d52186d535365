//! [`Spending`]: the requests of one read, and their limit.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::auth::RetryAfterGate;
use crate::clock::Clock;
use crate::data::SentSize;
use crate::error::Error;

/// The end of a pause that the service requested, for reads side by side.
pub(crate) type SharedPause = Arc<RetryAfterGate>;

/// What the chains of one read share.
#[derive(Debug, Default)]
pub(crate) struct Together {
    /// The pause that the service requested of one of them.
    pub(super) pause: SharedPause,
    /// The page size of their requests.
    pub(super) size: SentSize,
    /// Whether the read ends, so that no further page is prefetched.
    pub(super) is_ending: AtomicBool,
}

/// The requests of one read, and how many of the daily allowance it must leave. What it must leave may
/// change while it goes on: reads beside it begin and end.
#[derive(Debug, Default)]
pub struct Spending {
    /// Requests sent, including retries, except those of which no byte was sent.
    pub requests: AtomicU64,
    /// The requests that must be left after a first attempt ...
    pub must_remain: AtomicU64,
    /// ... and after a retry.
    pub must_remain_after_retries: AtomicU64,
    /// The pause that the service requested of this read, or of one beside it.
    pub(crate) pause: SharedPause,
    /// The feed that is read, if it is one.
    pub feed: Option<Arc<str>>,
}

impl Spending {
    /// The requests that must be left after an attempt that is made now.
    pub(super) fn must_remain(&self, is_retry: bool) -> u64 {
        let pages = if is_retry { &self.must_remain_after_retries } else { &self.must_remain };
        pages.load(Ordering::Relaxed)
    }

    /// Sets how many requests must be left from now on.
    pub(crate) fn hold_back(&self, pages: u64, after_retries: u64) {
        self.must_remain.store(pages, Ordering::Relaxed);
        self.must_remain_after_retries.store(after_retries, Ordering::Relaxed);
    }

    /// Notes the pause that this error requests, unless it is too long to be waited for.
    pub(super) fn note_pause(&self, clock: &Clock, error: &Error, longest: Duration) {
        if error.context().retry_after.is_some_and(|asked| asked <= longest) {
            self.pause.close(clock, error);
        }
    }
}
