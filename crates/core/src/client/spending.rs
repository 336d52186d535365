//! The requests of one read, and their limit.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::auth::RetryAfterGate;
use crate::clock::Clock;
use crate::data::SentSize;
use crate::error::Error;

/// The end of a pause that the service requested, for all concurrent reads.
pub(crate) type SharedPause = Arc<RetryAfterGate>;

/// The state that the chains of one read share.
#[derive(Debug, Default)]
pub(crate) struct Together {
    pub(super) pause: SharedPause,
    pub(super) size: SentSize,
    /// Whether no more pages are prefetched.
    pub(super) is_ending: AtomicBool,
}

/// The requests of one read, and the part of the daily allowance that it must leave. That part
/// changes when concurrent reads begin or end.
#[derive(Debug, Default)]
pub struct Spending {
    /// Requests sent, with retries. An attempt that sent no byte is not counted.
    pub requests: AtomicU64,
    /// Requests that must be left after a first attempt.
    pub must_remain: AtomicU64,
    /// Requests that must be left after a retry.
    pub must_remain_after_retries: AtomicU64,
    pub(crate) pause: SharedPause,
    /// The feed of a sync.
    pub feed: Option<Arc<str>>,
}

impl Spending {
    pub(super) fn must_remain(&self, is_retry: bool) -> u64 {
        let pages = if is_retry { &self.must_remain_after_retries } else { &self.must_remain };
        pages.load(Ordering::Relaxed)
    }

    pub(crate) fn hold_back(&self, pages: u64, after_retries: u64) {
        self.must_remain.store(pages, Ordering::Relaxed);
        self.must_remain_after_retries.store(after_retries, Ordering::Relaxed);
    }

    /// Starts the pause that this error requests, unless it is too long to wait for.
    pub(super) fn note_pause(&self, clock: &Clock, error: &Error, longest: Duration) {
        if error.context().retry_after.is_some_and(|asked| asked <= longest) {
            self.pause.close(clock, error);
        }
    }
}
