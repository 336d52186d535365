//! Feeds kept right while the service revises its data (§4.5).

pub mod coverage;
pub mod feed;
pub mod plan;
pub mod report;
pub mod run;
pub mod state;

pub use self::coverage::{Window, WindowState, windows};
pub use self::feed::{Feed, FeedInput};
pub use self::plan::{Plan, Task, Why, plan};
pub use self::report::{FeedReport, Report};
pub use self::run::{Run, SyncSettings};
pub use self::state::State;
