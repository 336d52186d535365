//! A chain that was begun and not ended: where it goes on, kept with the pages that it has brought.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::ranges::Range;
use super::task::Why;

/// So often a chain begins again after its cursor died; then the error is raised.
pub(super) const MOST_RESTARTS: u32 = 2;

/// A chain under way. Its range, and with it its end, stays as it was when it began (§4.5.1).
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct UnfinishedChain {
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) why: Why,
    /// When its first request left, by the service's time; `None` where it has to begin (again).
    pub(super) began: Option<i64>,
    /// The sequence number of its first page.
    pub(super) first: u64,
    /// How often it has begun again.
    pub(super) restarts: u32,
    pub(super) pages: u64,
    pub(super) points: u64,
    /// Where it goes on. It holds the cursor, which is a secret: it is never shown.
    pub(super) bookmark: Option<String>,
}

impl UnfinishedChain {
    /// A chain that has not begun.
    pub(super) fn new(range: Range, why: Why, restarts: u32) -> Self {
        let Range { start, end } = range;
        let (began, bookmark) = (None, None);
        Self { start, end, why, began, first: 0, restarts, pages: 0, points: 0, bookmark }
    }

    pub(super) fn range(&self) -> Range {
        Range::new(self.start, self.end)
    }

    /// The same range, to be begun again without a cursor; `None` after [`MOST_RESTARTS`].
    pub(super) fn again(&self) -> Option<Self> {
        let more = self.restarts < MOST_RESTARTS;
        more.then(|| Self::new(self.range(), self.why, self.restarts + 1))
    }
}

impl fmt::Debug for UnfinishedChain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (start, end) = self.range().instants();
        write!(f, "UnfinishedChain({:?} {start} to {end} after {} pages)", self.why, self.pages)
    }
}
