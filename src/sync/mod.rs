//! Feeds kept right while the service revises its data (§4.5).
//!
//! Time is cut into windows on a fixed grid. What is fresh is read behind the settle lag, and with
//! an overlap; a window is read once more, whole and without a cursor, when its lateness is over:
//! then it is settled. What was never read is filled with what the allowance leaves.
//!
//! ```text
//! FeedState -> plan (pure) -> Run: chain by chain -> fetch a page -> apply it with the state after it -> SyncReport
//! ```
//!
//! | file | noun |
//! |---|---|
//! | `feed` | a named query without an end, and the times that keep it right |
//! | `ranges` | sets of time |
//! | `task` | one planned chain, as users see it |
//! | `settings` | the settings of a run |
//! | `coverage` | which ranges were read and when; the windows as users see them |
//! | `unfinished` | a chain that was begun and has not ended |
//! | `state` | all of these for one feed, as a target keeps them |
//! | `chains` | cuts and joins ranges to chains |
//! | `plan` | what is read next, and why |
//! | `run_state` | what a run has done, and what waits to be applied |
//! | `run` | one run, page by page |
//! | `report` | what a run did |
//! | `stored` | what a store knows of its feeds |
//! | `read` | which points of a stored feed are read, from which snapshot |

mod chains;
mod coverage;
mod feed;
mod plan;
mod ranges;
mod read;
mod report;
mod run;
mod run_state;
mod settings;
mod state;
mod stored;
mod task;
mod unfinished;

#[cfg(test)]
mod tests;

pub use self::coverage::{Coverage, CoveredRange, Window, WindowState};
pub use self::feed::{Feed, FeedInput};
pub use self::plan::{Plan, plan, plan_scans};
pub use self::ranges::{Range, Ranges};
pub use self::read::{ReadSpec, Snapshot};
pub use self::report::{FeedReport, SyncReport};
pub use self::run::Run;
pub use self::settings::SyncSettings;
pub use self::state::FeedState;
pub use self::stored::{FeedCoverage, FeedLateness, read_state, read_states, redefine};
pub use self::task::{Task, Why};
