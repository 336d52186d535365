//! The past that a feed no longer keeps: forgotten points and compacted versions.

use jiff::Timestamp;
use serde::Serialize;

use super::failure::{StoreFailure, StoreResult};
use super::view::View;
use crate::error::{Error, Kind};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Freed {
    pub points: u64,
    /// Older versions of points that are still stored.
    pub versions: u64,
    /// Bytes of points that became free space in the file.
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

/// Times are in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Retention {
    /// Points before this time were forgotten. `i64::MIN` if none were.
    pub(super) kept_from: i64,
    /// For points before this time, `history_from` applies.
    pub(super) history_before: i64,
    /// The first page request with a complete view of these points.
    pub(super) history_from: u64,
}

impl Default for Retention {
    fn default() -> Self {
        Self { kept_from: i64::MIN, history_before: i64::MIN, history_from: 0 }
    }
}

impl Retention {
    pub(super) fn forget(&mut self, before: i64, sequence: u64) {
        if before > self.kept_from {
            self.kept_from = before;
            self.compact(before, sequence);
        }
    }

    pub(super) fn compact(&mut self, before: i64, sequence: u64) {
        self.history_before = self.history_before.max(before);
        self.history_from = self.history_from.max(sequence);
    }

    /// Rejects a view of a past that is not kept, from `start` on.
    pub(super) fn check(&self, feed: &str, view: View, start: i64) -> StoreResult<()> {
        // All kept points have changed since page request 0.
        let since = view.since.filter(|since| *since > 0);
        let Some(asked) = since.or(view.until) else { return Ok(()) };
        if asked >= self.history_from || start >= self.history_before {
            return Ok(());
        }
        let before = Timestamp::from_microsecond(self.history_before).unwrap_or(Timestamp::MAX);
        let message = format!(
            "feed {feed:?}: for points before {before}, the store keeps nothing older than page \
             request {}, but {asked} was requested",
            self.history_from
        );
        let advice = if view.is_log() {
            format!(
                "Start again with changes(since=0), or request changes from start=\"{before}\" on."
            )
        } else {
            format!("The history of points from start=\"{before}\" on is complete.")
        };
        let hint = format!("forget() or compact() removed it. {advice}");
        Err(StoreFailure::Core(Error::new(Kind::QueryError, message).with_hint(hint)))
    }
}
