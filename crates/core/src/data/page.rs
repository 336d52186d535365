//! [`Page`]: one decoded page.

use std::sync::Arc;

use bytes::Bytes;

use super::bookmark::Bookmark;
use super::point_columns::PointColumns;
use super::report::PageReport;
use super::table::TableBuilder;
use crate::error::{Error, Kind, Result};

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

    /// Consecutive pages of a chain as one, in their order, with the number of the last. Extra columns and
    /// bodies are left out.
    ///
    /// # Errors
    /// `Kind::InternalError` where there are none.
    pub fn joined(mut pages: Vec<Self>) -> Result<Self> {
        let none = || Error::new(Kind::InternalError, "no pages to join");
        let last = pages.pop().ok_or_else(none)?;
        if pages.is_empty() {
            return Ok(last);
        }
        let (mut report, mut parts) = (PageReport::default(), Vec::with_capacity(pages.len() + 1));
        for page in pages.iter().chain([&last]) {
            report.merge(&page.report);
            parts.push(&*page.points);
        }
        let points = Arc::new(TableBuilder::joined(&parts)?);
        report.series = points.series.len() as u64;
        Ok(Self { points, report, raw: None, ..last })
    }
}
