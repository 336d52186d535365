//! One page as it was read.

use arrow_array::RecordBatch;
use bytes::Bytes;

use super::bookmark::Bookmark;
use super::decode::Envelope;
use super::report::PageReport;

/// A page: its points as read (repeats included, nothing merged), and where to go on after it.
#[derive(Debug, Clone)]
pub struct Page {
    /// One row per point, in the order of the page; see [`super::schema`].
    pub batch: RecordBatch,
    /// The series envelopes in the order of the page.
    pub envelopes: Vec<Envelope>,
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
        self.batch.num_rows()
    }

    /// True for a page without points; the chain may still go on (P5).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows() == 0
    }
}
