//! What a ledger says of one request, and what it is told of it.

use super::state::AllowanceState;
use crate::clock::Reading;

/// Whether a data request may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permit {
    /// It may.
    Granted,
    /// Nothing is left of the day.
    Exhausted(AllowanceState),
    /// Nothing was left of the last day that is known, and whether it has ended is not known: no reply
    /// since the start of the machine has shown the service's time, or only `one` has; or none has
    /// within the hour, and the wall clock shows that it has ended.
    Unknown {
        /// One has, and another that agrees is evidence.
        one: bool,
    },
}

/// One request that was counted, to be settled by its [`Outcome`].
#[derive(Debug)]
#[must_use = "a reservation counts against the day's allowance"]
pub struct Reservation {
    /// The number of the day in which it counts.
    pub(super) opened: u64,
    /// Its batch of loose requests.
    pub(super) batch: u64,
    /// Whether it may be of the next day too.
    pub(super) next: bool,
    /// Whether the service's time was known when it was sent.
    pub(super) certain: bool,
    /// Whether it asks if the new day has begun.
    pub(super) asks: bool,
}

impl Reservation {
    /// Of a request that another process counts, by a number of one's own.
    pub(crate) fn elsewhere(number: u64) -> Self {
        Self { opened: number, batch: 0, next: false, certain: true, asks: false }
    }

    /// The number that tells it from others.
    pub(crate) fn number(&self) -> u64 {
        self.opened
    }
}

/// What became of a counted request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// No byte of it was sent.
    Unsent,
    /// Unknown: it was sent, and no reply came.
    Lost,
    /// The service replied.
    Replied {
        /// The service's time by the reply, where it can be relied on.
        reading: Option<Reading>,
        /// Whether the service granted the request.
        granted: bool,
    },
}
