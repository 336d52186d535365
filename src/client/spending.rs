//! [`Spending`]: what one read spends of the daily allowance.

use std::sync::atomic::AtomicU64;

/// What one read spends of the allowance, and what it leaves.
#[derive(Debug, Default)]
pub struct Spending {
    /// Requests made, repeats included, those that never left not.
    pub requests: AtomicU64,
    /// A request is not made if fewer than so many would be left after it ...
    pub keep: u64,
    /// ... and a repeat not, if fewer than so many.
    pub keep_from_repeats: u64,
}
