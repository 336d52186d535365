//! [`Ledger`]: who keeps the count.

use std::fmt::Debug;

use jiff::Timestamp;

use super::count::Reservation;
use super::state::AllowanceState;
use crate::error::Result;

/// Who counts the requests of a day. Implementations count **before** they return. Where they fail
/// (a file that is damaged, a disk that is full), nothing may be sent: `StoreError`s.
pub trait Ledger: Send + Sync + Debug {
    /// Counts one request, `now` by the service's time, if `keep` more are left after it.
    ///
    /// # Errors
    /// `AllowanceExhausted` if too few are left, or until the time that the service named.
    fn reserve(&self, now: Timestamp, keep: u64) -> Result<Reservation>;

    /// Takes back the count of a request of which no byte left. Where that fails, one is counted
    /// too many.
    fn give_back(&self, reservation: Reservation);

    /// The service says that the allowance is used up until then: nothing is left before, and the
    /// days are taken to begin at that time of day from now on.
    ///
    /// # Errors
    /// Those of the ledger.
    fn pin_until(&self, until: Timestamp, now: Timestamp) -> Result<()>;

    /// What is used and left.
    ///
    /// # Errors
    /// Those of the ledger: never a count that it does not know.
    fn state(&self, now: Timestamp) -> Result<AllowanceState>;

    /// Counts one token request.
    ///
    /// # Errors
    /// Those of the ledger.
    fn count_token_request(&self, now: Timestamp) -> Result<()>;

    /// The service wants no token requests until then.
    ///
    /// # Errors
    /// Those of the ledger.
    fn pause_tokens(&self, until: Timestamp, now: Timestamp) -> Result<()>;

    /// Until when no token is to be asked for, whoever was told so.
    ///
    /// # Errors
    /// Those of the ledger.
    fn token_pause(&self, now: Timestamp) -> Result<Option<Timestamp>>;
}
