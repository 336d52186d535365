//! [`Page`]: one decoded page.

use std::sync::Arc;

use bytes::Bytes;

use super::bookmark::Bookmark;
use super::point_columns::PointColumns;
use super::report::PageReport;

/// A page: its points as received (including repeated ones), and the bookmark after it.
#[derive(Debug, Clone)]
pub struct Page {
    /// One row per point, in the order of the page, and its series envelopes.
    pub points: Arc<PointColumns>,
    /// What the decoder assumed and counted.
    pub report: PageReport,
    /// The number of its page request: the higher one wins when pages are merged.
    pub sequence: u64,
    /// The body, if it is kept.
    pub raw: Option<Bytes>,
    /// The position after this page; `None` on the last one.
    pub bookmark: Option<Bookmark>,
    /// True on the last page of the chain.
    pub is_last: bool,
}

impl Page {
    /// Number of points.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.points.rows()
    }
}
