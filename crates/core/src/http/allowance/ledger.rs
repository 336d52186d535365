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
/// `StoreError` (a damaged file, a full disk), no request may be sent. `now` is this machine's
/// time; only the readings of replies show the service's day.
pub trait Ledger: Send + Sync + Debug {
    /// Whether a request may be sent that leaves `must_remain` requests.
    fn permit(&self, now: Moment, must_remain: u64) -> Result<Permit>;

    /// Prepares [`Ledger::reserve`] so that it need not wait for another process. Returns `None` if
    /// nothing needs to be awaited.
    fn prepare(&self, _now: Moment, _must_remain: u64) -> Option<BoxFuture<'_, Result<()>>> {
        None
    }

    /// Counts one request that leaves `must_remain` requests.
    ///
    /// # Errors
    /// `AllowanceExhausted` if too few remain, or until the end of a pin.
    fn reserve(&self, now: Moment, must_remain: u64) -> Result<Reservation>;

    /// Records the outcome of a request. An unsent request is subtracted. If that
    /// fails, the count is one too high.
    fn settle(&self, reservation: Reservation, outcome: Outcome, now: Moment);

    /// Records the service's time from a reply that is not counted.
    fn observe(&self, reading: Reading, now: Moment);

    /// Records that the service reported the allowance as exhausted for this long. No request
    /// remains until then, and from now on days begin at that time of day.
    fn pin(&self, pause: Duration, now: Moment) -> Result<()>;

    fn state(&self, now: Moment) -> Result<AllowanceState>;

    /// The remaining requests, for display; `None` without a known limit.
    fn remaining(&self, now: Moment) -> Option<u64> {
        self.state(now).ok()?.left
    }

    /// The best estimate of the service's time. Without evidence it is the earlier of one reply and
    /// this machine's clock.
    fn service_time(&self, now: Moment) -> Result<Timestamp>;

    /// Called when the client was closed, to give back unused reservations.
    fn close(&self) {}

    /// Counts a token request. An agent counts its own, so its clients count none.
    fn count_token_request(&self, _now: Moment) -> Result<()> {
        Ok(())
    }

    /// Announces a token request of a client without a token. Returns how many others any process
    /// announced within the last seconds.
    fn begin_token_request(&self, _now: Moment) -> Result<u64> {
        Ok(0)
    }

    /// Pauses token requests for this long.
    fn pause_tokens(&self, _pause: Duration, _now: Moment) -> Result<()> {
        Ok(())
    }

    /// The rest and the end of the pause of token requests, which any process may have recorded.
    fn token_pause(&self, _now: Moment) -> Result<Option<(Duration, Timestamp)>> {
        Ok(None)
    }
}
