//! One chain that a run is going to read, as users see it.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Why a range is read, in the order of urgency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// Its chain was begun and has not ended.
    Resume,
    /// The caller asked for it.
    Reread,
    /// It is fresh.
    Edge,
    /// Its lateness window is over.
    Settle,
    /// It was never read.
    Fill,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// One planned chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Task {
    /// The feed's name. For a scan: that of the feed that has shown how many pages it takes, or
    /// empty.
    pub feed: String,
    /// Why it is read.
    pub why: Why,
    /// Where its range begins.
    pub start: Timestamp,
    /// Where its range ends.
    pub end: Timestamp,
    /// Expected pages; `None` while no page of the kind has been seen.
    pub pages: Option<u64>,
}
