//! Moments for the tests of ledgers.

use std::time::Duration;

use jiff::Timestamp;

use super::ledger::Outcome;
use crate::clock::{BootTime, Moment, Reading};

pub(super) fn timestamp(text: &str) -> Timestamp {
    text.parse().expect("a timestamp")
}

/// The moment when all clocks show this time, on a machine that was started in 1970.
pub(super) fn now(text: &str) -> Moment {
    moment(1, text, text)
}

/// The moment when the wall clock shows `wall` and the right time is `right`, on a machine that was
/// started in 1970.
pub(super) fn moment(start: u128, right: &str, wall: &str) -> Moment {
    let elapsed = Duration::try_from(timestamp(right).duration_since(Timestamp::UNIX_EPOCH));
    let boot = BootTime { start, elapsed: elapsed.expect("after 1970") };
    Moment { wall: timestamp(wall), boot }
}

/// A granted reply with this `Date`.
pub(super) fn reply(service: &str, now: Moment) -> Outcome {
    Outcome::Replied { reading: Some(reading(service, now)), granted: true }
}

/// A `Date` that arrived at `now`.
pub(super) fn reading(service: &str, now: Moment) -> Reading {
    Reading { service: timestamp(service), boot: now.boot }
}

/// A granted reply without a `Date`.
pub(super) const SILENT: Outcome = Outcome::Replied { reading: None, granted: true };
