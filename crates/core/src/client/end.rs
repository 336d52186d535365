//! The end of a query: a fixed instant, far enough in the past that its newest buckets are
//! complete.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::send::Client;
use crate::data::AskedTime;
use crate::error::Result;

/// Tolerance before an end is reported as being in the future.
const AHEAD: SignedDuration = SignedDuration::from_secs(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    /// The end, in whole seconds if it was not given.
    pub at: Timestamp,
    /// The service's time, if the end is later.
    pub ahead_of: Option<Timestamp>,
}

impl End {
    pub fn warning(&self) -> Option<String> {
        let (end, now) = (self.at, self.ahead_of?);
        Some(format!(
            "end={end} is in the future (now is {now:.0}): the newest buckets are not complete. \
             Leave end out, or set settle_lag= to move it back."
        ))
    }
}

impl Client {
    /// The end of a query at the service's time `now`: without a given end `now` minus `lag` (by
    /// default the settle lag), rounded down to a bucket. If both are given, the earlier of the
    /// two.
    pub fn end(
        &self,
        now: Timestamp,
        given: Option<Timestamp>,
        lag: Option<Duration>,
        interval_seconds: Option<u32>,
    ) -> Result<End> {
        let lag_or_settled = lag.unwrap_or(self.settings().settle_lag);
        let settled = || AskedTime::Before(lag_or_settled).resolve("end", now, interval_seconds);
        let at = match (given, lag) {
            (None, _) => settled()?,
            (Some(end), Some(_)) => end.min(settled()?),
            (Some(end), None) => end,
        };
        let is_ahead = at.duration_since(now) > AHEAD;
        Ok(End { at, ahead_of: is_ahead.then_some(now) })
    }
}
