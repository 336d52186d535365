//! [`Spending`]: the requests of one read, and their limit.

use std::sync::atomic::AtomicU64;

/// The requests of one read, and how many of the daily allowance it must leave.
#[derive(Debug, Default)]
pub struct Spending {
    /// Requests sent, including retries, except those of which no byte was sent.
    pub requests: AtomicU64,
    /// The requests that must be left after a first attempt ...
    pub must_remain: u64,
    /// ... and after a retry.
    pub must_remain_after_retries: u64,
}
