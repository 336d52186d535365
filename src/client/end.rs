//! The end of a query (§4.5.1): a fixed instant, far enough in the past that its newest buckets are
//! complete.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::send::Client;
use crate::error::{Error, Kind, Result};

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
    pub(crate) fn warning(&self) -> Option<String> {
        let (end, now) = (self.at, self.ahead_of?);
        Some(format!(
            "end={end} lies ahead of now ({now:.0}): the newest buckets are not complete yet. Leave \
             end out, or give lag= to pull it back."
        ))
    }
}

impl Client {
    /// The end of a query's range. If it is not given: the service's time minus `lag` (by default the
    /// settle lag), rounded down to a bucket. A given end is limited to that if `lag` is given, and
    /// else unchanged.
    ///
    /// # Errors
    /// `QueryError` for a lag that reaches before the year 1.
    pub fn end(
        &self,
        given: Option<Timestamp>,
        lag: Option<Duration>,
        interval_seconds: Option<u32>,
    ) -> Result<End> {
        let now = self.now();
        let settled = || floored(now, lag.unwrap_or(self.settings().settle_lag), interval_seconds);
        let at = match (given, lag) {
            (None, _) => settled()?,
            (Some(end), Some(_)) => end.min(settled()?),
            (Some(end), None) => end,
        };
        let is_ahead = at.duration_since(now) > AHEAD;
        Ok(End { at, ahead_of: is_ahead.then_some(now) })
    }
}

fn floored(now: Timestamp, lag: Duration, interval_seconds: Option<u32>) -> Result<Timestamp> {
    let width = i64::from(interval_seconds.unwrap_or(1).max(1));
    i64::try_from(lag.as_secs())
        .ok()
        .and_then(|lag| now.as_second().checked_sub(lag))
        .and_then(|settled| settled.checked_sub(settled.rem_euclid(width)))
        .and_then(|second| Timestamp::from_second(second).ok())
        .ok_or_else(|| Error::new(Kind::QueryError, "Now minus the lag is before the year 1."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_rounded_down_to_a_bucket() {
        let now: Timestamp = "2026-11-20T00:07:31.5Z".parse().expect("a time");
        let at =
            |lag, width| floored(now, Duration::from_secs(lag), width).map(|at| at.to_string());
        assert_eq!(at(300, None).expect("an end"), "2026-11-20T00:02:31Z");
        assert_eq!(at(300, Some(60)).expect("an end"), "2026-11-20T00:02:00Z");
        assert_eq!(at(0, Some(86_400)).expect("an end"), "2026-11-20T00:00:00Z");
        assert_eq!(at(u64::MAX, None).expect_err("too far").kind(), Kind::QueryError);
    }
}
