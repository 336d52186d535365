//! [`Ledger`]: the trait of request counters.

use std::fmt::Debug;

use jiff::Timestamp;

use super::count::Reservation;
use super::state::AllowanceState;
use crate::error::Result;

/// Counts the requests of a day. Implementations count **before** they return. If they fail (a damaged
/// file, a full disk) with a `StoreError`, no request may be sent.
pub trait Ledger: Send + Sync + Debug {
    /// Counts one request if `must_remain` more are left after it; `now` is service time.
    ///
    /// # Errors
    /// `AllowanceExhausted` if too few are left, or until the end of a pin.
    fn reserve(&self, now: Timestamp, must_remain: u64) -> Result<Reservation>;

    /// Subtracts a request of which no byte was sent. If that fails, the count is one too high.
    fn give_back(&self, reservation: Reservation);

    /// Records that the service reported the allowance as used up until then: nothing is left before,
    /// and from now on days begin at that time of day.
    ///
    /// # Errors
    /// Those of the ledger.
    fn pin_until(&self, until: Timestamp, now: Timestamp) -> Result<()>;

    /// What is used and left.
    ///
    /// # Errors
    /// Those of the ledger, if the count cannot be read.
    fn state(&self, now: Timestamp) -> Result<AllowanceState>;

    /// Counts one token request.
    ///
    /// # Errors
    /// Those of the ledger.
    fn count_token_request(&self, now: Timestamp) -> Result<()>;

    /// Pauses token requests until then.
    ///
    /// # Errors
    /// Those of the ledger.
    fn pause_tokens(&self, until: Timestamp, now: Timestamp) -> Result<()>;

    /// The end of the pause of token requests, which any process may have recorded.
    ///
    /// # Errors
    /// Those of the ledger.
    fn token_pause(&self, now: Timestamp) -> Result<Option<Timestamp>>;
}
