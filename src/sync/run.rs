//! One run: chain after chain, page by page, until nothing is left to read or the allowance is.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::feed::Feed;
use super::report::Report;
use crate::client::Client;
use crate::client::progress::Progress;
use crate::data::Shape;
use crate::error::Result;
use crate::store::Target;

/// What a run is told.
#[derive(Debug, Clone, Default)]
pub struct SyncSettings {
    /// Reads nothing from here on.
    pub until: Option<Timestamp>,
    /// Plans as if it were then; the service's time by default.
    pub now: Option<Timestamp>,
    /// Ranges to read again whatever is known of them.
    pub reread: Vec<(Timestamp, Timestamp)>,
    /// How pages are decoded.
    pub shape: Shape,
    /// Bounds the whole run.
    pub deadline: Option<Duration>,
}

/// A run under way. Reading a page and applying it are two steps: the first waits for the service
/// and can be given up at any time, the second writes.
#[derive(Debug)]
pub struct Run {}

impl Run {
    /// Takes the feeds for writing and plans. Nothing is sent yet.
    ///
    /// # Errors
    /// `StoreBusy`, `FeedChanged`, `StoreError`s, `QueryError`.
    pub fn begin(
        client: &Client,
        target: Arc<dyn Target>,
        feeds: &[Feed],
        settings: SyncSettings,
    ) -> Result<Self> {
        todo!("{client:?} {target:?} {feeds:?} {settings:?}")
    }

    /// Reads the next page, unless one waits to be applied already; `false` where nothing is left to
    /// do. Dropped half way, it leaves the run where it was.
    ///
    /// # Errors
    /// Those of a read. The run can go on, or begin anew at any time.
    pub async fn fetch(&self) -> Result<bool> {
        todo!()
    }

    /// Applies the page that waits. For a target of the core.
    ///
    /// # Errors
    /// `StoreError`s; the page waits on.
    pub fn apply(&self) -> Result<Progress> {
        todo!()
    }

    /// Reads on to the end.
    ///
    /// # Errors
    /// As [`Run::fetch`] and [`Run::apply`].
    pub async fn finish(&self) -> Result<Report> {
        while self.fetch().await? {
            self.apply()?;
        }
        self.report()
    }

    /// What was done so far.
    ///
    /// # Errors
    /// `StoreError`s.
    pub fn report(&self) -> Result<Report> {
        todo!()
    }
}
