//! The end of a query (§4.5.1): a fixed instant, far enough in the past that its newest buckets are
//! complete.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::send::Client;
use crate::data::AskedTime;
use crate::error::Result;

/// An end is reported as in the future only if it is so by more than this.
const AHEAD: SignedDuration = SignedDuration::from_secs(1);

/// The end of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    /// The end, in whole seconds if it was not given.
    pub at: Timestamp,
    /// The service's time if the end is later: the newest buckets are not complete yet.
    pub ahead_of: Option<Timestamp>,
}

impl End {
    /// What to tell a user whose end is in the future.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        let (end, now) = (self.at, self.ahead_of?);
        Some(format!(
            "end={end} lies ahead of now ({now:.0}): the newest buckets are not complete yet. Leave \
             end out, or give settle_lag= to pull it back."
        ))
    }
}

impl Client {
    /// The end of a query's range, at the service's time `now`. If it is not given: that minus `lag` (by
    /// default the settle lag), rounded down to a bucket. A given end is limited to that if `lag` is given,
    /// and else unchanged.
    ///
    /// # Errors
    /// `QueryError` for a lag that reaches before the year 1.
    pub fn end(
        &self,
        now: Timestamp,
        given: Option<Timestamp>,
        lag: Option<Duration>,
        interval_seconds: Option<u32>,
    ) -> Result<End> {
        let lag_or_settled = lag.unwrap_or(self.settings().settle_lag);
        let settled = || AskedTime::Before(lag_or_settled).at(now, interval_seconds);
        let at = match (given, lag) {
            (None, _) => settled()?,
            (Some(end), Some(_)) => end.min(settled()?),
            (Some(end), None) => end,
        };
        let is_ahead = at.duration_since(now) > AHEAD;
        Ok(End { at, ahead_of: is_ahead.then_some(now) })
    }
}
