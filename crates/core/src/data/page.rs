use std::sync::Arc;

use bytes::Bytes;

use super::bookmark::Bookmark;
use super::merge::{Merged, Merger};
use super::point_columns::PointColumns;
use super::report::PageReport;
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

    /// Joins consecutive pages with the same columns, with the number of the last one and without
    /// bodies.
    pub fn joined(mut pages: Vec<Self>) -> Result<Self> {
        let none = || Error::new(Kind::InternalError, "There are no pages to join.");
        let last = pages.pop().ok_or_else(none)?;
        if pages.is_empty() {
            return Ok(last);
        }
        let mut merger = Merger::new(last.points.extra_columns());
        pages.iter().chain([&last]).try_for_each(|page| merger.push(page))?;
        let Merged { points, report } = merger.first(usize::MAX)?;
        let report = PageReport { series: points.series.len() as u64, ..report.quality };
        Ok(Self { points, report, raw: None, ..last })
    }
}
