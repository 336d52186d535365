//! Feeds kept right while the service revises its data (§4.5).
//!
//! Time is cut into windows on a fixed grid. Fresh data is read up to the settle lag, with an
//! overlap. When its lateness is over, a window is read once more, completely and without a cursor:
//! then it is settled. The rest of the allowance fills the ranges that were never read.
//!
//! ```text
//! FeedState -> plan (pure) -> Run: chain by chain -> fetch a page -> apply it with the state after it -> SyncReport
//! ```
//!
//! | file | noun |
//! |---|---|
//! | `feed` | a named query without an end, and the times that say when it is read again |
//! | `ranges` | sets of time |
//! | `task` | one planned chain, as users see it |
//! | `settings` | the settings of a run |
//! | `audits` | which ranges are read once more to learn when their points came |
//! | `findings` | what audits found, for the lateness of any target |
//! | `arrival` | the distribution of the delays of points |
//! | `coverage` | which ranges were read and when; the windows as users see them |
//! | `unstorable` | pages whose values the target cannot store |
//! | `unfinished` | a chain that has begun and not ended |
//! | `given_up` | ranges whose chain was given up, and for how long they are set aside |
//! | `state` | the state of one feed, as a target stores it |
//! | `chains` | cuts and joins ranges to chains |
//! | `plan` | what is read next, and why |
//! | `plan_scans` | what reading scans would cost |
//! | `pending_write` | what a run applies next: a page, or a change of a chain |
//! | `run_state` | what a run has done, and what it leaves |
//! | `schedule` | the plan of each feed, and the chain that begins next |
//! | `under_way` | a chain that is being read, with the request for its next page |
//! | `requests` | which requests a run sends, and what becomes of their replies |
//! | `batched` | pages of a chain that are stored as one |
//! | `run` | one run, page by page |
//! | `begin` | its beginning: the locks of its feeds |
//! | `report` | what a run did |
//! | `range_coverage` | what has been read of a range, and what a read does with the rest |
//! | `stored` | reads feeds, coverage and lateness from a store |
//! | `read` | which points of a stored feed are read, and the snapshot of them |
//! | `shares` | which feeds of a store have a range, and which are to read the rest |
//! | `through_store` | a scan whose settled part comes from a store |

mod arrival;
mod audits;
mod batched;
mod begin;
mod chains;
mod coverage;
mod feed;
mod findings;
mod given_up;
mod pending_write;
mod plan;
mod plan_scans;
mod range_coverage;
mod ranges;
mod read;
mod report;
mod requests;
mod run;
mod run_state;
mod schedule;
mod settings;
mod shares;
mod state;
mod stored;
mod task;
mod through_store;
mod under_way;
mod unfinished;
mod unstorable;

#[cfg(test)]
mod tests;

pub use self::batched::{Batch, Batches, Joined};
pub use self::coverage::{Window, WindowState};
pub use self::feed::{Feed, FeedInput};
pub use self::given_up::SkippedRange;
pub use self::pending_write::NextWrite;
pub use self::plan::{Plan, plan};
pub use self::plan_scans::plan_scans;
pub use self::range_coverage::{RangeCoverage, Unread};
pub use self::ranges::{Range, Ranges};
pub use self::read::fixed_range;
pub use self::read::{PinnedRead, PinnedState, ReadSpec, Snapshot};
pub use self::report::{EndedBy, SyncReport};
pub use self::run::Run;
pub use self::settings::{Only, SyncSettings};
pub use self::state::FeedState;
pub use self::stored::read_states;
pub use self::stored::{FeedCoverage, FeedLateness, compact, forget, read_state, redefine};
pub use self::task::Why;
pub use self::through_store::ThroughStore;
