//! One request: whether it may be sent, and its outcome.

use serde::{Deserialize, Serialize};

use super::state::AllowanceState;
use crate::clock::Reading;

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
