use jiff::Timestamp;
use serde::Serialize;

use super::given_up::SkippedRange;
use super::task::Task;
use crate::http::AllowanceState;
use crate::store::Applied;

#[derive(Debug, Clone, Serialize)]
pub struct SyncReport {
    /// In the order of the arguments.
    pub feeds: Vec<FeedReport>,
    /// Includes retries.
    pub requests: u64,
    /// Whether all planned chains were read.
    pub complete: bool,
    /// Why the run ended before all planned chains were read.
    pub ended_by: Option<EndedBy>,
    /// When to sync again, if the allowance ended the run or ranges were skipped.
    pub resumes_at: Option<Timestamp>,
    /// The chains that are left to read.
    pub tasks: Vec<Task>,
    pub allowance: AllowanceState,
    pub now: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EndedBy {
    /// The allowance is used up, or the rest of it is reserved.
    Allowance,
    /// The run reached its page limit. Another run can continue immediately.
    MaxPages,
    /// The run skipped everything that is left.
    Skipped,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct FeedReport {
    pub name: String,
    /// Chains that were read to their end.
    pub chains: u64,
    pub pages: u64,
    #[serde(flatten)]
    pub applied: Applied,
    /// Points that arrived or changed after the lateness, as found by audits.
    pub late: u64,
    /// The sequence number of the newest page, for `changes(since=)` and `as_of()`.
    pub sequence: u64,
    pub settled_through: Option<Timestamp>,
    pub read_through: Option<Timestamp>,
    pub newest: Option<Timestamp>,
    /// Ranges that are skipped for a day because the service did not end their chain.
    pub skipped: Vec<SkippedRange>,
}
