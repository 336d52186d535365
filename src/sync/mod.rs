//! Feeds kept right while the service revises its data (§4.5).
//!
//! Time is cut into windows on a fixed grid. What is fresh is read behind the settle lag, and with
//! an overlap; a window is read once more, whole and without a cursor, when its lateness is over:
//! then it is settled. What was never read is filled with what the allowance leaves.
//!
//! ```text
//! State -> plan (pure) -> Run: chain by chain -> fetch a page -> apply it with the state after it -> Report
//! ```
//!
//! | file | noun |
//! |---|---|
//! | `feed` | what is read, and how it is kept right |
//! | `ranges` | sets of time |
//! | `coverage` | what has been read and when; windows as a user sees them |
//! | `unfinished` | a chain under way |
//! | `state` | all of these, as a target keeps them |
//! | `plan` | what is read next, and why |
//! | `chains` | ranges cut and joined to chains |
//! | `run` | one run, page by page |
//! | `work` | what a run has done, and what waits |
//! | `report` | what it did, for people |

mod chains;
pub mod coverage;
pub mod feed;
pub mod plan;
pub mod ranges;
pub mod report;
pub mod run;
pub mod state;
mod unfinished;
mod work;

#[cfg(test)]
mod tests;

pub use self::coverage::{Window, WindowState, windows};
pub use self::feed::{Feed, FeedInput};
pub use self::plan::{Plan, Task, Why, plan};
pub use self::report::{FeedReport, Report};
pub use self::run::{Run, SyncSettings};
pub use self::state::State;
