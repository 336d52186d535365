//! A chain that was begun and not ended: where it goes on, kept with the pages that it has brought.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::plan::Why;
use super::ranges::Range;

/// A dead cursor costs so many new beginnings; then its error is told.
pub(super) const MOST_RESTARTS: u32 = 2;

/// A chain under way. Its range, and with it its end, stays as it was when it began (§4.5.1).
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Unfinished {
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
    /// Where it goes on. It holds the cursor: shown to nobody.
    pub(super) bookmark: Option<String>,
}

impl Unfinished {
    /// A chain that has not begun.
    pub(super) fn new(range: Range, why: Why, restarts: u32) -> Self {
        let Range { start, end } = range;
        let (began, bookmark) = (None, None);
        Self { start, end, why, began, first: 0, restarts, pages: 0, points: 0, bookmark }
    }

    pub(super) fn range(&self) -> Range {
        Range::new(self.start, self.end)
    }

    /// The same range, to be begun again without a cursor; `None` where that was tried often enough.
    pub(super) fn again(&self) -> Option<Self> {
        let more = self.restarts < MOST_RESTARTS;
        more.then(|| Self::new(self.range(), self.why, self.restarts + 1))
    }
}

impl fmt::Debug for Unfinished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (start, end) = self.range().instants();
        write!(f, "Unfinished({:?} {start} to {end} after {} pages)", self.why, self.pages)
    }
}
