//! A feed: a named query without an end, and how it is kept right.

use std::time::Duration;

use jiff::Timestamp;

use crate::data::Query;
use crate::error::Result;

/// The parts of a feed before they are checked.
#[derive(Debug, Clone)]
pub struct FeedInput {
    /// What the store calls it.
    pub name: String,
    /// `siteId`.
    pub site: Option<String>,
    /// `lineId`.
    pub line: Option<String>,
    /// Further parameters by their names on the wire.
    pub filters: Vec<(String, Vec<String>)>,
    /// `aggregationIntervalSeconds`: the bucket width.
    pub interval_seconds: Option<u32>,
    /// `pageSize`.
    pub page_size: Option<u32>,
    /// Where it begins, in whole seconds.
    pub since: Timestamp,
    /// How far behind the service's time it ends (§4.5.1); 5 minutes.
    pub settle_lag: Duration,
    /// How much of what was read last is read again with what is fresh (§4.5.4); 1 hour.
    pub overlap: Duration,
    /// How long after its end a window is read again for its final values (§4.5.5); 1 day.
    pub lateness: Duration,
    /// The grid of the windows; 1 day. A day is a whole number of it, or it of days.
    pub window: Duration,
}

/// A checked feed. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Feed(std::sync::Arc<()>);

impl FeedInput {
    /// A feed with the usual times.
    #[must_use]
    pub fn new(name: &str, since: Timestamp) -> Self {
        todo!("{name} {since}")
    }
}

impl Feed {
    /// Checks the parts.
    ///
    /// # Errors
    /// `QueryError` for an empty name, what no query can be made of, and times that do not fit.
    pub fn new(input: FeedInput) -> Result<Self> {
        todo!("{input:?}")
    }

    /// The checked parts.
    #[must_use]
    pub fn input(&self) -> &FeedInput {
        todo!()
    }

    /// The query of a range.
    ///
    /// # Errors
    /// As [`Query::new`].
    pub fn query(&self, start: Timestamp, end: Timestamp) -> Result<Query> {
        todo!("{start} {end}")
    }
}
