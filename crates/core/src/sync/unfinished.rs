//! A chain that has begun and not ended. Its bookmark is stored with the pages that it brought.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::ranges::Range;
use super::task::Why;

/// No feed has so many pages or points.
pub(super) const LARGEST: u64 = 1 << 48;

/// An unfinished chain. Its range never changes, the end included (§4.5.1).
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct UnfinishedChain {
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) why: Why,
    /// When its first request was sent, by the service's time; `None` where it has to begin (again).
    pub(super) began: Option<i64>,
    /// The sequence number of its first page.
    pub(super) first: u64,
    /// How often the chain has begun again.
    pub(super) restarts: u32,
    pub(super) pages: u64,
    pub(super) points: u64,
    /// The pages since the last one that brought a new point.
    pub(super) idle: u64,
    /// Where the chain continues. It contains the cursor, a secret, and is never shown.
    pub(super) bookmark: Option<String>,
}

impl UnfinishedChain {
    /// A chain that has not begun.
    pub(super) fn new(range: Range, why: Why, restarts: u32) -> Self {
        let Range { start, end } = range;
        let (began, bookmark) = (None, None);
        Self { start, end, why, began, first: 0, restarts, pages: 0, points: 0, idle: 0, bookmark }
    }

    /// Whether no number is so large that counting on from it could overflow, as one of a forged state.
    pub(super) fn is_plausible(&self) -> bool {
        let numbers = [self.first, self.pages, self.points, self.idle, self.restarts.into()];
        numbers.iter().all(|number| *number <= LARGEST) && self.restarts < u32::MAX
    }

    pub(super) fn range(&self) -> Range {
        Range::new(self.start, self.end)
    }

    /// A new chain over the same range; `None` where it has begun again so often.
    pub(super) fn restarted(&self, most: u32) -> Option<Self> {
        let more = self.restarts < most;
        more.then(|| Self::new(self.range(), self.why, self.restarts + 1))
    }
}

impl fmt::Debug for UnfinishedChain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (start, end) = self.range().instants();
        write!(f, "UnfinishedChain({:?} {start} to {end} after {} pages)", self.why, self.pages)
    }
}
