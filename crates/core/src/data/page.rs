use std::sync::Arc;

use bytes::Bytes;

use super::bookmark::Bookmark;
use super::point_columns::PointColumns;
use super::report::PageReport;
use super::table::TableBuilder;
use crate::error::{Error, Kind, Result};

/// The points of a page, with repeats, and the bookmark after it.
#[derive(Debug, Clone)]
pub struct Page {
    /// Rows in page order.
    pub points: Arc<PointColumns>,
    pub report: PageReport,
    /// The higher number wins in a merge.
    pub sequence: u64,
    pub raw: Option<Bytes>,
    /// `None` on the last page.
    pub bookmark: Option<Bookmark>,
    pub is_last: bool,
}

impl Page {
    pub fn rows(&self) -> usize {
        self.points.rows()
    }

    /// Joins consecutive pages, with the number of the last one and without extra columns and
    /// bodies.
    pub fn joined(mut pages: Vec<Self>) -> Result<Self> {
        let none = || Error::new(Kind::InternalError, "There are no pages to join.");
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
