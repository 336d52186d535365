//! Pages: the frame of one, and the pages of a chain.

use std::sync::Arc;
use std::task::Poll;

use arrow_array::RecordBatch;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use crate::bridge::call::Call;
use crate::bridge::errors::OrRaise as _;
use crate::bridge::process::{detached, guarded};
use crate::client::bookmark::PyBookmark;
use crate::client::page_reader::PageReader;
use crate::client::query::query_object;
use crate::convert::arrow_stream::ArrowStream;
use crate::convert::values::refuse;
use crate::frame::{Frame, PageSource};
use siteline_core::client::table::Provenance;
use siteline_core::data::report::PageReport;
use siteline_core::data::{Comparison, Page, PointColumns};
use siteline_core::error::{Error, Kind};

/// A page as `siteline.Page` shows it.
#[pymethods]
impl Frame {
    /// The number of its page request, that of the first page of its chain, its feed, whether it is the last
    /// page of its chain, and whether it has every point of its chain.
    fn place(&self, py: Python<'_>) -> PyResult<(u64, u64, Option<&str>, bool, bool)> {
        let PageSource { page, synced, .. } = self.known_page(py)?;
        let synced = synced.as_ref();
        let first = synced.map_or(1, |synced| synced.chain.first);
        let begins = synced.map_or(page.sequence, |synced| synced.batch_first) == first;
        // An unfinished chain of the feed would take a point for withdrawn whose page this one does not renew.
        let is_only_chain = synced.is_none_or(|synced| synced.is_only_chain);
        let is_whole = page.is_last && begins && is_only_chain;
        Ok((page.sequence, first, synced.map(|synced| &*synced.feed), page.is_last, is_whole))
    }

    /// The position after the page; `None` on the last page.
    fn bookmark(&self, py: Python<'_>) -> PyResult<Option<PyBookmark>> {
        Ok(self.known_page(py)?.page.bookmark.clone().map(PyBookmark))
    }

    /// The body of the page, if it is kept.
    fn raw(&self, py: Python<'_>) -> PyResult<Option<&[u8]>> {
        Ok(self.known_page(py)?.page.raw.as_deref())
    }

    /// The query of a read.
    fn query<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.source().map(|source| query_object(py, &source.query)).transpose()
    }
}

impl Frame {
    pub(crate) fn known_page(&self, py: Python<'_>) -> PyResult<&PageSource> {
        self.page().ok_or_else(|| refuse(py, Kind::InternalError, "this frame is no page"))
    }
}

/// The pages of one chain, which Python takes one by one.
#[pyclass(frozen, name = "_Pages", module = "siteline._core")]
pub(crate) struct Pages(pub(crate) PageReader);

impl Pages {
    fn frame(&self, py: Python<'_>, page: Page) -> Frame {
        self.0.prefetch(py);
        let provenance = Provenance {
            pages: 1,
            resumed_after_pages: page.sequence.saturating_sub(1),
            ..self.0.provenance().clone()
        };
        Frame::of_page(PageSource { page, provenance, synced: None })
    }
}

#[pymethods]
impl Pages {
    /// A page that has arrived, or `None`; and whether the chain has ended.
    fn _take(&self, py: Python<'_>) -> PyResult<(Option<Frame>, bool)> {
        loop {
            match self.0.take_page() {
                Poll::Ready(Some(page)) => return Ok((Some(self.frame(py, page)), false)),
                Poll::Ready(None) => return self.0.finish(py).map(|()| (None, true)),
                Poll::Pending if self.0.report(py)? => {}
                Poll::Pending => return Ok((None, false)),
            }
        }
    }

    /// Reads the next page. If it is cancelled, no page is lost.
    fn _fill(&self, py: Python<'_>) -> Call {
        self.0.fill(py)
    }

    /// After `_fill()`: reports the page to `progress=`.
    fn _report(&self, py: Python<'_>) -> PyResult<()> {
        self.0.report(py).map(drop)
    }

    /// After `_fill()`: waits for the names of series, as `_Reading.settle()`.
    fn _settle(&self) -> Option<Call> {
        self.0.settle()
    }

    /// `progress=` may be a method of an object that keeps this.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.0.traverse(&visit)
    }
}

#[pymethods]
impl Frame {
    /// The frames of the points of a page that are not stored, stored with other values, stored with the same
    /// values, and of stored points that it does not have.
    fn compared(&self, py: Python<'_>, stored: &Bound<'_, PyAny>) -> PyResult<[Self; 4]> {
        let of = self.known_page(py)?;
        let broken = |why: &str| {
            let message = format!("the Arrow stream of stored= is broken: {why}");
            Error::new(Kind::QueryError, message)
        };
        guarded(|| {
            let Some(mut reader) = ArrowStream::open(stored, broken)? else {
                let message =
                    "stored= is an Arrow stream: a pyarrow or polars table, a DuckDB relation.";
                return Err(refuse(py, Kind::QueryError, message));
            };
            let difference = detached(py, || {
                let points = Arc::clone(&of.page.points);
                let mut comparison = Comparison::new(points, of.provenance.query.microseconds());
                // A column that is missing is one of an empty stream too.
                comparison.add(&RecordBatch::new_empty(reader.schema()))?;
                reader.try_for_each(|batch| comparison.add(&batch?))?;
                comparison.finish()
            })?
            .or_raise()?;
            let part = |points: PointColumns| {
                let report = PageReport {
                    points: points.rows() as u64,
                    series: points.series.len() as u64,
                    ..PageReport::default()
                };
                let points = Arc::new(points);
                let page = Page { points, report, raw: None, bookmark: None, ..of.page };
                let (provenance, synced) = (of.provenance.clone(), of.synced.clone());
                Self::of_page(PageSource { page, provenance, synced })
            };
            let parts =
                [difference.inserted, difference.changed, difference.unchanged, difference.missing];
            Ok(parts.map(part))
        })
    }
}
