//! What a run reads, in which order, and what it is expected to cost.

use jiff::Timestamp;

use super::feed::Feed;
use super::run::SyncSettings;
use crate::client::Client;
use crate::error::Result;
use crate::http::AllowanceState;
use crate::store::Target;

/// Why a range is read, in the order of urgency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// Its chain was begun and not ended.
    Resume,
    /// It was asked for.
    Reread,
    /// It is fresh.
    Edge,
    /// Its lateness is over.
    Settle,
    /// It was never read.
    Fill,
}

/// One chain to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// The feed's name.
    pub feed: String,
    /// Why.
    pub why: Why,
    /// Where it begins.
    pub start: Timestamp,
    /// Where it ends.
    pub end: Timestamp,
    /// Expected pages, where pages of the feed have been seen.
    pub pages: Option<u64>,
}

/// What the next run would read.
#[derive(Debug, Clone)]
pub struct Plan {
    /// In the order in which they would be read.
    pub tasks: Vec<Task>,
    /// Expected pages of all, where known for each.
    pub pages: Option<u64>,
    /// The allowance as it stands.
    pub allowance: AllowanceState,
    /// Pages held back for windows that become due before the allowance begins anew.
    pub reserve: u64,
    /// The time that it was planned for.
    pub now: Timestamp,
}

/// What a run that began now would read. Costs no request.
///
/// # Errors
/// `FeedChanged`, `StoreError`s, `QueryError` for settings that do not fit.
pub fn plan(
    client: &Client,
    target: &dyn Target,
    feeds: &[Feed],
    settings: &SyncSettings,
) -> Result<Plan> {
    todo!("{client:?} {target:?} {feeds:?} {settings:?}")
}
