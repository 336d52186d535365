use std::fmt;

use serde::{Deserialize, Serialize};

use super::task::Why;
use crate::data::ranges::Range;

/// The limit of pages and points in a plausible state.
pub(super) const LARGEST: u64 = 1 << 48;

/// A chain that has begun and not ended. Its range never changes, and its bookmark is stored
/// together with its pages.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct UnfinishedChain {
    #[serde(flatten)]
    pub(super) range: Range,
    pub(super) why: Why,
    /// The service's time of its first request; `None` if it must start (again).
    pub(super) began: Option<i64>,
    /// The sequence number of its first page.
    pub(super) first: u64,
    pub(super) restarts: u32,
    pub(super) pages: u64,
    pub(super) points: u64,
    /// The pages since the last page with a new point.
    pub(super) idle: u64,
    /// Contains the cursor, which is secret, and is never displayed.
    pub(super) bookmark: Option<String>,
}

impl UnfinishedChain {
    pub(super) fn new(range: Range, why: Why, restarts: u32) -> Self {
        let (began, bookmark) = (None, None);
        Self { range, why, began, first: 0, restarts, pages: 0, points: 0, idle: 0, bookmark }
    }

    /// Whether no number is large enough for an overflow, as in a forged state.
    pub(super) fn is_plausible(&self) -> bool {
        let numbers = [self.first, self.pages, self.points, self.idle, self.restarts.into()];
        numbers.iter().all(|number| *number <= LARGEST) && self.restarts < u32::MAX
    }

    pub(super) fn restarted(&self, most: u32) -> Option<Self> {
        let more = self.restarts < most;
        more.then(|| Self::new(self.range, self.why, self.restarts + 1))
    }
}

impl fmt::Debug for UnfinishedChain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (start, end) = self.range.instants();
        write!(f, "UnfinishedChain({:?} {start} to {end} after {} pages)", self.why, self.pages)
    }
}
