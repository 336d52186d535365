//! The interface that a sync writes to. [`crate::store::Store`] implements it, and so does the
//! adapter of a Python object (`siteline.StoreTarget`).

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::data::Page;
use crate::error::Result;

/// Stores points and states. Calls may block.
pub trait Target: Send + Sync + Debug {
    /// Locks a feed for writing until the returned value is dropped. It does not wait.
    ///
    /// # Errors
    /// `StoreBusy` where another writer has locked it.
    fn lock(&self, feed: &str) -> Result<Box<dyn Any + Send>>;

    /// The state that was applied last for a feed, byte for byte; `None` for an unknown feed.
    fn state(&self, feed: &str) -> Result<Option<Vec<u8>>>;

    /// The states of these feeds, in their order, each as [`Target::state`].
    fn states(&self, feeds: &[&str]) -> Result<Vec<Option<Vec<u8>>>> {
        feeds.iter().map(|feed| self.state(feed)).collect()
    }

    /// Writes the points of a page and the state that follows from it, both or neither. Without a page
    /// only the state changes. Series and timestamp identify a point; the higher sequence number
    /// wins, then the later row.
    ///
    /// # Errors
    /// `StoreError`s; the target is unchanged then. One that is `unstorable` is about the values of the
    /// page: the run sets the range of its chain aside.
    fn apply(&self, feed: &str, delivery: Option<&Delivery>, state: &[u8]) -> Result<Applied>;
}

/// A page to apply to a [`Target`], and how it was read.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// The page; its sequence number is the version of its points. With the last page of a chain,
    /// the chain's range is read completely.
    pub page: Arc<Page>,
    /// The sequence number of the first of the pages that were joined to this one; where none were, its own.
    pub batch_first: u64,
    /// The service's time when the page arrived.
    pub read_at: Timestamp,
    /// The chain that the page belongs to.
    pub chain: ChainRange,
    /// The feed's bucket width.
    pub interval_seconds: Option<u32>,
    /// Whether no other chain of the feed is unfinished after this page. One that began earlier may end
    /// without a point that this page brought, which must not be flagged then.
    pub is_only_chain: bool,
}

/// The range of a chain, and its first page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainRange {
    /// The sequence number of the chain's first page.
    pub first: u64,
    /// The start of its range, inclusive.
    pub start: Timestamp,
    /// The end of its range, exclusive.
    pub end: Timestamp,
}

/// Counts of what applying a page did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Applied {
    /// Points that were new.
    pub inserted: u64,
    /// Points that had other values, or were flagged.
    pub revised: u64,
    /// Points that had the same values, and points for which a newer request already counts.
    pub unchanged: u64,
    /// With the last page of a chain: points in its range that no page of any chain has brought
    /// since the chain began.
    #[serde(rename = "withdrawn")]
    pub flagged: u64,
}

impl Applied {
    /// The sums of both. A target of the user's own may count anything.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            inserted: self.inserted.saturating_add(other.inserted),
            revised: self.revised.saturating_add(other.revised),
            unchanged: self.unchanged.saturating_add(other.unchanged),
            flagged: self.flagged.saturating_add(other.flagged),
        }
    }

    /// How many points are not as they were.
    #[must_use]
    pub fn changed(self) -> u64 {
        self.inserted.saturating_add(self.revised).saturating_add(self.flagged)
    }
}
