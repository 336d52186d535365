//! [`Ledger`]: counts requests, on this machine or at an agent.

use std::fmt::Debug;
use std::time::Duration;

use futures_util::future::BoxFuture;
use jiff::Timestamp;

use super::outcome::{Outcome, Permit, Reservation};
use super::state::AllowanceState;
use crate::clock::{Moment, Reading};
use crate::error::Result;

/// Counts the requests of a day. Implementations count **before** they return. If they fail with a
/// `StoreError` (a damaged file, a full disk), no request may be sent. `now` is this machine's time: only
/// the readings of replies show the service's day.
pub trait Ledger: Send + Sync + Debug {
    /// Whether a request may be sent, if `must_remain` more are to be left after it.
    fn permit(&self, now: Moment, must_remain: u64) -> Result<Permit>;

    /// What has to be awaited so that [`Ledger::reserve`] need not wait for another process; `None` where
    /// nothing has.
    fn prepare(&self, _now: Moment, _must_remain: u64) -> Option<BoxFuture<'_, Result<()>>> {
        None
    }

    /// Counts one request if `must_remain` more are left after it.
    ///
    /// # Errors
    /// `AllowanceExhausted` if too few are left, or until the end of a pin.
    fn reserve(&self, now: Moment, must_remain: u64) -> Result<Reservation>;

    /// Takes into account what became of a request: one of which no byte was sent is subtracted. If that
    /// fails, the count is one too high.
    fn settle(&self, reservation: Reservation, outcome: Outcome, now: Moment);

    /// Takes into account what a reply that is not counted showed of the service's time.
    fn observe(&self, reading: Reading, now: Moment);

    /// Records that the service reported the allowance as used up for this long: nothing is left before,
    /// and from now on days begin at that time of day.
    fn pin(&self, pause: Duration, now: Moment) -> Result<()>;

    /// What is used and left.
    fn state(&self, now: Moment) -> Result<AllowanceState>;

    /// What is left, to be shown; `None` where no limit is known.
    fn left(&self, now: Moment) -> Option<u64> {
        self.state(now).ok()?.left
    }

    /// The service's time, as well as it is known: where there is no evidence, the earlier of what one
    /// reply and this machine's clock say.
    fn service_time(&self, now: Moment) -> Result<Timestamp>;

    fn count_token_request(&self, now: Moment) -> Result<()>;

    /// Announces a token request of a client that has no token; returns how many others were announced
    /// within the last seconds, by any process.
    fn begin_token_request(&self, now: Moment) -> Result<u64>;

    /// Pauses token requests for this long.
    fn pause_tokens(&self, pause: Duration, now: Moment) -> Result<()>;

    /// Its client was closed: nothing is kept that another could use.
    fn close(&self) {}

    /// The rest and the end of the pause of token requests, which any process may have recorded.
    fn token_pause(&self, now: Moment) -> Result<Option<(Duration, Timestamp)>>;
}
