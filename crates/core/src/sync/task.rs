use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Why a range is read, in the order of urgency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// Its chain is unfinished.
    Resume,
    Reread,
    Recent,
    /// Its lateness has passed.
    Settle,
    /// An audit measures when its points arrived.
    Audit,
    /// It was never read.
    Backfill,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// One planned chain, as users see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Task {
    /// The feed's name. For a scan: the feed from which `pages` was estimated, or empty.
    pub feed: String,
    pub why: Why,
    pub start: Timestamp,
    pub end: Timestamp,
    /// `None` without an estimate.
    pub pages: Option<u64>,
}
