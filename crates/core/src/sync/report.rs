//! What a run did.

use jiff::Timestamp;
use serde::Serialize;

use super::given_up::SkippedRange;
use super::task::Task;
use crate::http::AllowanceState;
use crate::store::Applied;

/// What a run did, over all of its feeds.
#[derive(Debug, Clone, Serialize)]
pub struct SyncReport {
    /// The feeds, in the order of the arguments.
    pub feeds: Vec<FeedReport>,
    /// Requests made, repeats included.
    pub requests: u64,
    /// Whether everything planned was read.
    pub complete: bool,
    /// What ended the run before everything planned was read.
    pub ended_by: Option<EndedBy>,
    /// When to sync again, where the allowance ended the run, or ranges were skipped.
    pub resumes_at: Option<Timestamp>,
    /// The chains that are still to be read.
    pub tasks: Vec<Task>,
    /// The allowance at the end of the run.
    pub allowance: AllowanceState,
    /// The time that the run was planned for.
    pub now: Timestamp,
}

/// Why a run left something to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EndedBy {
    /// The allowance is used up, or its rest is reserved.
    Allowance,
    /// The run asked for as many pages as it was allowed to: another one can go on at once.
    MaxPages,
    /// The run skipped all that is left.
    Skipped,
}

/// What a run did for one feed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FeedReport {
    /// The feed's name.
    pub name: String,
    /// Chains read to their end.
    pub chains: u64,
    /// Pages read.
    pub pages: u64,
    /// Points inserted, revised, unchanged and flagged.
    #[serde(flatten)]
    pub applied: Applied,
    /// Points that audits found to come or change after the lateness.
    pub late: u64,
    /// The sequence number reached: `changes(since=)` and `as_of()` take it.
    pub sequence: u64,
    /// Everything from the feed's beginning up to this time is settled.
    pub settled_through: Option<Timestamp>,
    /// Everything from the feed's beginning up to this time was read.
    pub read_through: Option<Timestamp>,
    /// The newest instant that was read.
    pub newest: Option<Timestamp>,
    /// Ranges that are not read for a day, because the service did not end their chain.
    pub skipped: Vec<SkippedRange>,
}

impl SyncReport {
    /// Pages read, over all feeds.
    #[must_use]
    pub fn pages(&self) -> u64 {
        self.feeds.iter().map(|feed| feed.pages).sum()
    }
}
