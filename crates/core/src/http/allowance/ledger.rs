//! [`Ledger`]: counts requests, on this machine or at an agent. A request has a permit, a reservation
//! and an outcome.

use std::fmt::Debug;
use std::time::Duration;

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

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

/// Whether a data request may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permit {
    Granted,
    /// No request remains in the day.
    Exhausted(AllowanceState),
    /// No request remained in the last known day, and it is unknown whether that day has ended. No
    /// reply since the start of the machine has shown the service's time, or only `one` has. Or no
    /// reply has within the last hour, and the wall clock shows that the day has ended.
    Unknown {
        /// One reply has shown the time. Another that agrees is evidence.
        one: bool,
    },
}

/// A counted request. Settle it with its [`Outcome`].
#[derive(Debug)]
#[must_use = "a reservation counts against the day's allowance"]
pub struct Reservation {
    /// The number of the day in which it counts.
    pub(super) opened: u64,
    /// Its batch of loose requests.
    pub(super) batch: u64,
    /// Whether it probes for a new day.
    pub(super) asks: bool,
}

impl Reservation {
    /// A request that another process counts, with a number of the caller's choice.
    pub(crate) fn elsewhere(number: u64) -> Self {
        Self { opened: number, batch: 0, asks: false }
    }

    /// The number passed to [`elsewhere`](Self::elsewhere).
    pub(crate) fn number(&self) -> u64 {
        self.opened
    }
}

/// The outcome of a counted request. A reply shows the service's time as `R`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome<R = Reading> {
    /// No byte of it was sent.
    Unsent,
    /// Unknown: it was sent, and no reply arrived.
    Lost,
    Replied {
        /// The service's time in the reply, if it is reliable.
        #[serde(rename = "seen")]
        reading: Option<R>,
        /// Whether the service granted the request.
        granted: bool,
    },
}

impl<R> Outcome<R> {
    /// The same outcome with another form of the reading.
    pub(crate) fn with_reading<S>(self, convert: impl FnOnce(R) -> Option<S>) -> Outcome<S> {
        match self {
            Self::Unsent => Outcome::Unsent,
            Self::Lost => Outcome::Lost,
            Self::Replied { reading, granted } => {
                Outcome::Replied { reading: reading.and_then(convert), granted }
            }
        }
    }
}
