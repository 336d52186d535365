//! One page as it was read.

use std::sync::Arc;

use bytes::Bytes;

use super::bookmark::Bookmark;
use super::point_columns::PointColumns;
use super::report::PageReport;

/// A page: its points as read (repeats included, nothing merged), and where to go on after it.
#[derive(Debug, Clone)]
pub struct Page {
    /// One row per point, in the order of the page, and its series envelopes.
    pub points: Arc<PointColumns>,
    /// What was assumed and seen.
    pub report: PageReport,
    /// Number of the page request that brought it: the higher one wins when pages are merged.
    pub sequence: u64,
    /// The body, where it was asked for.
    pub raw: Option<Bytes>,
    /// Where to go on after this page; `None` on the last one.
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

    /// True for a page without points; the chain may still go on (P5).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows() == 0
    }
}
