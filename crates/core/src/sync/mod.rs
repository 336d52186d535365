//! Keeps feeds correct while the service revises its data.
//!
//! Time is divided into windows on a fixed grid. A run first reads fresh data up to the settle lag,
//! with an overlap. After its lateness, each window is read once more, completely and without a
//! cursor. The window is then settled. The rest of the allowance fills ranges that were never read.
//!
//! ```text
//! FeedState -> plan (pure) -> Run: chain by chain -> fetch a page -> apply it with the state after it -> SyncReport
//! ```

mod arrival;
mod audits;
mod batched;
mod begin;
mod coverage;
mod feed;
mod findings;
mod given_up;
mod pending_write;
mod plan;
mod plan_scans;
mod range_coverage;
mod read;
mod report;
mod requests;
mod run;
mod run_state;
mod schedule;
mod settings;
mod shares;
mod state;
mod store_table;
mod stored;
mod task;
mod through_store;
mod under_way;
mod unfinished;
mod unstorable;

#[cfg(test)]
mod tests;

pub use self::batched::Batches;
pub use self::coverage::{Window, WindowState};
pub use self::feed::{Feed, FeedInput};
pub use self::given_up::SkippedRange;
pub use self::pending_write::TargetWrite;
pub use self::plan::{Plan, plan};
pub use self::plan_scans::plan_scans;
pub use self::range_coverage::{RangeCoverage, Unread};
pub use self::read::{PinnedRead, PinnedState, ReadSpec, fixed_range};
pub use self::report::{EndedBy, SyncReport};
pub use self::run::Run;
pub use self::settings::{Only, SyncSettings};
pub use self::state::FeedState;
pub use self::stored::{FeedCoverage, FeedLateness, compact, forget};
pub use self::stored::{read_state, read_states, redefine, service_time};
pub use self::task::Why;
pub use self::through_store::ThroughStore;
