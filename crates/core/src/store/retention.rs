//! What of a feed's past is not kept: points that were forgotten, and versions that were compacted.

use jiff::Timestamp;
use serde::Serialize;

use super::failure::{StoreFailure, StoreResult};
use super::view::View;
use crate::error::{Error, Kind};

/// What [`super::Store::forget`] or [`super::Store::compact`] removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Freed {
    /// Points that are no longer stored.
    pub points: u64,
    /// Older versions of points that are still stored.
    pub versions: u64,
    /// Bytes of points that the file has room for again.
    pub bytes: u64,
    /// Bytes by which the file became smaller.
    pub returned: u64,
}

impl std::ops::AddAssign for Freed {
    fn add_assign(&mut self, other: Self) {
        self.points += other.points;
        self.versions += other.versions;
        self.bytes += other.bytes;
        self.returned += other.returned;
    }
}

/// What of a feed's past is not kept. Times are in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Retention {
    /// Points before this time were forgotten; the least time where none were.
    pub(super) kept_from: i64,
    /// Of points before this time ...
    pub(super) history_before: i64,
    /// ... what was known before this page request is not kept.
    pub(super) history_from: u64,
}

impl Default for Retention {
    fn default() -> Self {
        Self { kept_from: i64::MIN, history_before: i64::MIN, history_from: 0 }
    }
}

impl Retention {
    /// Points before this time go, after this page request.
    pub(super) fn forget(&mut self, before: i64, sequence: u64) {
        if before > self.kept_from {
            self.kept_from = before;
            self.compact(before, sequence);
        }
    }

    /// The older versions of points before this time go, after this page request.
    pub(super) fn compact(&mut self, before: i64, sequence: u64) {
        self.history_before = self.history_before.max(before);
        self.history_from = self.history_from.max(sequence);
    }

    /// Refuses a view of a past that is not kept, from this time on.
    pub(super) fn check(&self, feed: &str, view: View, start: i128) -> StoreResult<()> {
        let asked = match view {
            // All that is kept has changed since nothing was known.
            View::Latest | View::ChangedSince(0) => return Ok(()),
            View::AsOf(sequence)
            | View::ChangedSince(sequence)
            | View::ChangedBetween(0, sequence)
            | View::ChangedBetween(sequence, _) => sequence,
        };
        if asked >= self.history_from || start >= i128::from(self.history_before) {
            return Ok(());
        }
        let before = Timestamp::from_microsecond(self.history_before).unwrap_or(Timestamp::MAX);
        let message = format!(
            "feed {feed:?}: of points before {before} the store keeps nothing older than page request {}, \
             and {asked} is asked for",
            self.history_from
        );
        let hint = match view {
            View::ChangedSince(_) | View::ChangedBetween(..) => format!(
                "forget() or compact() removed it. Begin again with changes(since=0), or ask for \
                 changes from start=\"{before}\" on."
            ),
            _ => format!(
                "forget() or compact() removed it. What was known of points from start=\"{before}\" on \
                 is kept."
            ),
        };
        Err(StoreFailure::Core(Error::new(Kind::QueryError, message).with_hint(hint)))
    }
}
