//! One planned chain, as users see it.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Why a range is read, in the order of urgency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// Its chain has begun and not ended.
    Resume,
    /// The caller asked for it.
    Reread,
    /// It is fresh.
    Recent,
    /// Its lateness window is over.
    Settle,
    /// It is read once more to learn when its points came.
    Audit,
    /// It was never read.
    Backfill,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// One planned chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Task {
    /// The feed's name. For a scan: the name of the feed that `pages` was estimated from, or empty.
    pub feed: String,
    /// Why the range is read.
    pub why: Why,
    /// The start of the range, inclusive.
    pub start: Timestamp,
    /// The end of the range, exclusive.
    pub end: Timestamp,
    /// Expected pages; `None` where there is no estimate.
    pub pages: Option<u64>,
}
