//! [`Ledger`]: the trait of request counters.

use std::fmt::Debug;
use std::time::Duration;

use futures_util::future::BoxFuture;
use jiff::Timestamp;

use super::count::{Count, Terms};
use super::outcome::{Outcome, Permit, Reservation};
use super::state::AllowanceState;
use crate::clock::{Moment, Reading};
use crate::error::Result;

/// Counts the requests of a day. Implementations count **before** they return. If they fail (a damaged
/// file, a full disk) with a `StoreError`, no request may be sent. `now` is this machine's time: the
/// service's day is known by the readings alone that replies give.
pub trait Ledger: Send + Sync + Debug {
    /// Whether a request may be sent, if `must_remain` more are to be left after it.
    ///
    /// # Errors
    /// Those of the ledger.
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
    ///
    /// # Errors
    /// Those of the ledger.
    fn pin(&self, pause: Duration, now: Moment) -> Result<()>;

    /// What is used and left.
    ///
    /// # Errors
    /// Those of the ledger, if the count cannot be read.
    fn state(&self, now: Moment) -> Result<AllowanceState>;

    /// What is left, to be shown; `None` where no limit is known.
    fn left(&self, now: Moment) -> Option<u64> {
        self.state(now).ok()?.left
    }

    /// The service's time, as well as it is known: where there is no evidence, the earlier of what one
    /// reply and this machine's clock say.
    ///
    /// # Errors
    /// Those of the ledger.
    fn service_time(&self, now: Moment) -> Result<Timestamp>;

    /// Counts one token request.
    ///
    /// # Errors
    /// Those of the ledger.
    fn count_token_request(&self, now: Moment) -> Result<()>;

    /// Announces a token request of a client that has no token; returns how many others were announced
    /// within the last seconds, by any process.
    ///
    /// # Errors
    /// Those of the ledger.
    fn begin_token_request(&self, now: Moment) -> Result<u64>;

    /// Pauses token requests for this long.
    ///
    /// # Errors
    /// Those of the ledger.
    fn pause_tokens(&self, pause: Duration, now: Moment) -> Result<()>;

    /// Its client was closed: nothing is kept that another could use.
    fn close(&self) {}

    /// The rest and the end of the pause of token requests, which any process may have recorded.
    ///
    /// # Errors
    /// Those of the ledger.
    fn token_pause(&self, now: Moment) -> Result<Option<(Duration, Timestamp)>>;
}

/// A place that keeps a [`Count`]. It makes the place a [`Ledger`].
pub(super) trait Keeps: Send + Sync + Debug {
    fn terms(&self) -> Terms;

    fn read<T>(&self, read: impl FnOnce(&Count) -> T) -> Result<T>;

    fn update<T>(&self, change: impl FnOnce(&mut Count) -> T) -> Result<T>;

    /// Whether other processes count here too.
    fn is_shared(&self) -> bool {
        true
    }
}

impl<K: Keeps> Ledger for K {
    fn permit(&self, now: Moment, must_remain: u64) -> Result<Permit> {
        self.read(|count| count.permit(self.terms(), now, must_remain))
    }

    fn reserve(&self, now: Moment, must_remain: u64) -> Result<Reservation> {
        self.update(|count| count.reserve(self.terms(), now, must_remain))?
    }

    fn settle(&self, reservation: Reservation, outcome: Outcome, now: Moment) {
        let settle = |count: &mut Count| count.settle(self.terms(), &reservation, outcome, now);
        if let Err(error) = self.update(settle) {
            log::warn!(target: "siteline::ledger", "one request is counted too many: {error}");
        }
    }

    fn observe(&self, reading: Reading, now: Moment) {
        if let Err(error) = self.update(|count| count.observe(self.terms(), reading, now)) {
            log::warn!(target: "siteline::ledger", "the service's time is not recorded: {error}");
        }
    }

    fn pin(&self, pause: Duration, now: Moment) -> Result<()> {
        self.update(|count| count.pin(self.terms(), pause, now))
    }

    fn state(&self, now: Moment) -> Result<AllowanceState> {
        self.read(|count| count.state(self.terms(), now))
    }

    fn service_time(&self, now: Moment) -> Result<Timestamp> {
        self.read(|count| count.service_time(now))
    }

    fn count_token_request(&self, now: Moment) -> Result<()> {
        self.update(|count| count.count_token_request(self.terms(), now))
    }

    /// The callers of one process share their token requests.
    fn begin_token_request(&self, now: Moment) -> Result<u64> {
        if self.is_shared() { self.update(|count| count.begin_token_request(now)) } else { Ok(0) }
    }

    fn pause_tokens(&self, pause: Duration, now: Moment) -> Result<()> {
        self.update(|count| count.pause_tokens(pause, now))
    }

    fn token_pause(&self, now: Moment) -> Result<Option<(Duration, Timestamp)>> {
        self.read(|count| count.token_pause(now))
    }
}
