//! The interface that a sync writes to. The other implementation adapts a Python object
//! (`siteline.StoreTarget`).

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::data::Page;
use crate::error::Result;

/// Stores points and states. Calls may block.
pub trait Target: Send + Sync + Debug {
    /// Locks a feed for writing until the returned value is dropped. Fails with `StoreBusy`.
    fn lock(&self, feed: &str) -> Result<Box<dyn Any + Send>>;

    /// Returns the last applied state, or `None` for an unknown feed.
    fn state(&self, feed: &str) -> Result<Option<Vec<u8>>>;

    fn states(&self, feeds: &[&str]) -> Result<Vec<Option<Vec<u8>>>> {
        feeds.iter().map(|feed| self.state(feed)).collect()
    }

    /// Writes the points of a page and its state, both or neither. Without a page, only the state
    /// changes. The version of a point with the higher sequence number wins, then the later row. An
    /// error that is `unstorable` concerns the values of the page: the sync then sets the range of
    /// its chain aside.
    fn apply(&self, feed: &str, delivery: Option<&Delivery>, state: &[u8]) -> Result<Applied>;
}

/// A page to apply to a [`Target`].
#[derive(Debug, Clone)]
pub struct Delivery {
    /// Its sequence number is the version of its points.
    pub page: Arc<Page>,
    /// The sequence number of the first page that was joined into this one.
    pub batch_first: u64,
    /// The service's time when the page arrived.
    pub read_at: Timestamp,
    pub chain: ChainRange,
    /// The feed's bucket width.
    pub interval_seconds: Option<u32>,
    /// Whether no other chain of the feed is unfinished after this page. An earlier chain may end
    /// without a point of this page, and must not withdraw it.
    pub is_only_chain: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainRange {
    /// The sequence number of the chain's first page.
    pub first: u64,
    pub start: Timestamp,
    /// Exclusive.
    pub end: Timestamp,
}

/// Counts of an applied page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Applied {
    pub inserted: u64,
    /// Points with changed values, or that are no longer withdrawn.
    pub revised: u64,
    /// Includes points with a version of a newer request.
    pub unchanged: u64,
    /// Points in the range of a finished chain that no page has brought since the chain began.
    #[serde(rename = "withdrawn")]
    pub flagged: u64,
}

impl Applied {
    /// A target written by a user may return any number.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            inserted: self.inserted.saturating_add(other.inserted),
            revised: self.revised.saturating_add(other.revised),
            unchanged: self.unchanged.saturating_add(other.unchanged),
            flagged: self.flagged.saturating_add(other.flagged),
        }
    }

    /// Number of points that changed.
    #[must_use]
    pub fn changed(self) -> u64 {
        self.inserted.saturating_add(self.revised).saturating_add(self.flagged)
    }
}
