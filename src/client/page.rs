//! `siteline.Page`, and the iterator of pages.

use std::task::Poll;

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::bridge::process::{detached, guarded};
use crate::client::bookmark::PyBookmark;
use crate::client::page_reader::PageReader;
use crate::client::query::PyQuery;
use crate::convert::holder::{frame_methods, point_methods};
use crate::convert::labels::FramePoints;
use crate::convert::patching::methods_can_be_replaced;
use crate::convert::rows::PointSource as _;
use crate::convert::state::dict;
use crate::convert::table::provenance;
use crate::convert::values::{html, many, refuse};
use siteline_core::client::table::Provenance;
use siteline_core::data::Page;
use siteline_core::error::Kind;
use siteline_core::preview::Preview;
use siteline_core::store::ChainRange;

/// One page of a scan, as the service sent it: not merged, not sorted.
///
/// ``len(page)`` counts its points. The columns are those of :class:`Table`.
///
/// >>> page = next(scan.pages())
/// >>> page, page.bookmark, page.report["off_grid"]
/// (<Page 1 with 30 points of 5 series>, <Bookmark after 1 page>, 0)
#[pyclass(dict, frozen, weakref, name = "Page", module = "siteline")]
pub(crate) struct PyPage {
    pub(crate) page: Page,
    pub(crate) provenance: Provenance,
    /// Where it belongs, if a sync read it.
    pub(crate) synced: Option<Synced>,
}

/// The feed and the chain of a page that a sync read.
#[derive(Clone)]
pub(crate) struct Synced {
    pub(crate) feed: String,
    pub(crate) chain: ChainRange,
    /// The number of the first of the pages that were joined to this one.
    pub(crate) batch_first: u64,
    /// No other chain of the feed is unfinished.
    pub(crate) is_only_chain: bool,
}

frame_methods!(PyPage);
point_methods!(PyPage, page.points);

methods_can_be_replaced!(PyPage);

#[pymethods]
impl PyPage {
    fn __len__(&self) -> usize {
        self.page.rows()
    }

    fn __repr__(&self) -> String {
        let last = if self.page.is_last { ", the last" } else { "" };
        let (number, series) = (self.page.sequence, self.page.report.series);
        let points = many(self.page.report.points, "point");
        format!("<Page {number} with {points} of {series} series{last}>")
    }

    /// What notebooks show.
    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        html(slf.as_any(), "page")
    }

    /// What ``siteline._display.html`` draws.
    fn _preview<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let interval = self.provenance.query.interval_seconds();
        dict(py, &detached(py, || Preview::from_points(&self.page.points, None, interval))?)
    }

    /// The number of the page request. If a point is on several pages, the one with the highest number
    /// is the current one (§4.5.3). In a sync the pages of a feed are numbered across all its runs.
    #[getter]
    fn sequence(&self) -> u64 {
        self.page.sequence
    }

    /// The ``sequence`` of the first page of its chain. When the last page of a chain is stored, a point
    /// in the range of ``query`` whose newest page came before this one is no longer brought by the
    /// service.
    #[getter]
    fn first_sequence(&self) -> u64 {
        self.synced.as_ref().map_or(1, |synced| synced.chain.first)
    }

    /// The name of its feed, if a sync read it; else ``None``.
    #[getter]
    fn feed(&self) -> Option<&str> {
        self.synced.as_ref().map(|synced| &*synced.feed)
    }

    /// Whether it is the last page of its chain: then the complete range has been read.
    #[getter]
    fn is_last(&self) -> bool {
        self.page.is_last
    }

    /// Whether it has every point of its chain: the page is the first and the last, or it is a batch of
    /// all (``sync(..., batch=)``). False for a page of a scan that others precede or follow, and in a
    /// sync while another chain of the feed is unfinished: that one would take a point for withdrawn
    /// whose ``sequence`` this page does not renew.
    #[getter]
    fn is_whole(&self) -> bool {
        let synced = self.synced.as_ref();
        let first = synced.map_or(self.page.sequence, |synced| synced.batch_first);
        let is_only_chain = synced.is_none_or(|synced| synced.is_only_chain);
        self.page.is_last && first == self.first_sequence() && is_only_chain
    }

    /// The query of its chain, with the complete range.
    #[getter]
    fn query(&self) -> PyQuery {
        PyQuery(self.provenance.query.clone())
    }

    /// The position after this page, from which a read continues; ``None`` on the last page.
    #[getter]
    fn bookmark(&self) -> Option<PyBookmark> {
        self.page.bookmark.clone().map(PyBookmark)
    }

    /// What was detected and counted on this page: a dict.
    ///
    /// ``points`` and ``series`` are counts. ``arrays`` (the name of the array of series) and
    /// ``timestamp_forms`` were detected, since §2.3 does not specify them. ``unknown_members`` lists
    /// the members that siteline does not know. The others count what is allowed but unusual:
    /// ``outside_range``, ``off_grid`` (on no multiple of the bucket width),
    /// ``minimum_above_maximum``, ``value_outside_bounds``, ``repeated`` (the same point twice on
    /// the page), ``timestamps_truncated`` (to microseconds), ``leap_seconds``,
    /// ``numbers_as_text``, ``negative_counts``, ``values_missing`` (points
    /// without a member for one of the four values), ``cursors_missing`` (only with
    /// ``Shape(missing_cursor="end")``).
    #[getter]
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        dict(py, &self.page.report)
    }

    /// The unchanged body, if the scan was made with ``keep_raw=True``; else ``None``.
    #[getter]
    fn raw(&self) -> Option<&[u8]> {
        self.page.raw.as_deref()
    }

    /// The same with names, for one frame.
    fn _shown(
        &self,
        py: Python<'_>,
        labels: Option<&Bound<'_, PyAny>>,
        gaps: bool,
    ) -> PyResult<FramePoints> {
        if gaps {
            let message = "which buckets are missing is not known: a page is a part of a read.";
            return Err(refuse(py, Kind::QueryError, message));
        }
        let listed = Some(&*self.provenance.listed);
        let provenance = provenance(py, &self.provenance)?.unbind();
        FramePoints::labelled(&self.page.points, None, labels, listed, provenance)
    }

    fn _provenance<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        provenance(py, &self.provenance)
    }
}

/// The pages of one chain, read and prefetched as :meth:`Scan.pages` says.
///
/// Safe to share between threads: each page is returned once. An error has ``.bookmark``, the position
/// after the pages that were returned before it.
///
/// >>> [len(page) for page in scan.pages()]
/// [30, 30, 12]
#[pyclass(frozen, weakref, name = "PageIterator", module = "siteline.types")]
pub(crate) struct PageIterator(pub(crate) PageReader);

impl PageIterator {
    fn given(&self, py: Python<'_>, page: Page) -> PyPage {
        self.0.prefetch(py);
        let provenance = Provenance {
            pages: 1,
            resumed_after_pages: page.sequence.saturating_sub(1),
            ..self.0.provenance().clone()
        };
        PyPage { page, provenance, synced: None }
    }
}

#[pymethods]
impl PageIterator {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<PyPage>> {
        loop {
            match self.0.take_page() {
                Poll::Ready(Some(page)) => return Ok(Some(self.given(py, page))),
                Poll::Ready(None) => return self.0.finish(py).map(|()| None),
                Poll::Pending => guarded(|| self.0.wait(py))?,
            }
        }
    }

    /// After ``_fill()``: reports the page to ``progress=``.
    fn _report(&self, py: Python<'_>) -> PyResult<()> {
        self.0.report(py).map(drop)
    }

    /// For the garbage collector: ``progress=`` may be a method of an object that keeps the iterator.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.0.traverse(&visit)
    }

    /// After ``_fill()`` has failed: nothing more is reported.
    fn _end(&self, py: Python<'_>) -> PyResult<()> {
        self.0.finish(py)
    }

    /// Reads the next page for ``_take()``: an awaitable of the running asyncio loop. If it is cancelled,
    /// no page is lost.
    fn _fill<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.0.awaited(py)
    }

    /// The page that ``_fill()`` read or that was prefetched, or ``None``; and whether the chain ended.
    fn _take(&self, py: Python<'_>) -> PyResult<(Option<PyPage>, bool)> {
        loop {
            match self.0.take_page() {
                Poll::Ready(Some(page)) => return Ok((Some(self.given(py, page)), false)),
                Poll::Ready(None) => return self.0.finish(py).map(|()| (None, true)),
                Poll::Pending if self.0.report(py)? => {}
                Poll::Pending => return Ok((None, false)),
            }
        }
    }
}
