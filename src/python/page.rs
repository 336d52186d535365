//! `siteline.Page` and the iterator that reads them.

use std::sync::Arc;

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict, PyList};

use crate::client::pages::{Pages, Taken};
use crate::client::scan::Provenance;
use crate::data::{Page, Preview};
use crate::python::bookmark::PyBookmark;
use crate::python::columns::of_points;
use crate::python::conversions::{html, many};
use crate::python::follower::Follower;
use crate::python::preview;
use crate::python::progress::{Reporter, end};
use crate::python::query::PyQuery;
use crate::python::report::page_report;
use crate::python::rows::RecordIterator;
use crate::python::runtime::{detached, guarded};
use crate::python::table::{batch, call_frames, provenance, schema_capsule, stream_capsule};
use crate::store::Span;

/// One page of a scan, as it was read: nothing merged, nothing sorted.
///
/// ``len(page)`` counts its points. The columns are those of :class:`Table`.
///
/// >>> page = next(scan.pages())
/// >>> page, page.bookmark, page.report["off_grid"]
/// (<Page 1 with 30 points of 5 series>, <Bookmark after 1 page>, 0)
#[pyclass(frozen, name = "Page", module = "siteline")]
pub(crate) struct PyPage {
    pub(crate) page: Page,
    pub(crate) provenance: Provenance,
    /// The chain that it belongs to, where a sync read it.
    pub(crate) chain: Option<Span>,
}

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
    #[pyo3(name = "_repr_html_")]
    fn repr_html<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        html(slf.as_any(), "page")
    }

    /// What :mod:`siteline.html` draws.
    fn _preview<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let interval = self.provenance.query.interval_seconds();
        let preview = detached(py, || Preview::of_points(&self.page.points, None, interval))?;
        preview::dict(py, &preview)
    }

    /// The number of the page request: where the same point stands on several pages, the one of the
    /// highest number is the one to keep (§4.5.3). In a sync the numbers of a feed go on for ever.
    #[getter]
    fn sequence(&self) -> u64 {
        self.page.sequence
    }

    /// Whether it is the last page of its chain: the whole range has been read with it.
    #[getter]
    fn is_last(&self) -> bool {
        self.page.is_last
    }

    /// What was asked: the range is that of the whole chain.
    #[getter]
    fn query(&self) -> PyQuery {
        PyQuery(self.provenance.query.clone())
    }

    /// Where a read goes on after this page; ``None`` on the last page.
    #[getter]
    fn bookmark(&self) -> Option<PyBookmark> {
        self.page.bookmark.clone().map(PyBookmark)
    }

    /// What was assumed and what was seen on this page: a dict.
    ///
    /// ``points`` and ``series`` are counted. ``arrays`` (the name of the array of series) and
    /// ``timestamp_forms`` were found by shape (§2.3 does not show them). ``unknown_members`` lists
    /// the members that siteline does not know. The others count what is allowed but odd:
    /// ``outside_range``, ``off_grid`` (on no multiple of the bucket width),
    /// ``minimum_above_maximum``, ``value_outside_bounds``, ``repeated`` (the same point twice on
    /// the page), ``timestamps_truncated`` (to microseconds), ``leap_seconds``,
    /// ``numbers_as_text``, ``negative_counts``, ``cursors_missing`` (only with
    /// ``Shape(missing_cursor="end")``).
    #[getter]
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        page_report(py, &self.page.report)
    }

    /// The body as it came, where the scan was made with ``keep_raw=True``; else ``None``.
    #[getter]
    fn raw<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.page.raw.as_ref().map(|raw| PyBytes::new(py, raw))
    }

    /// The page as a pandas frame. ``ids="category"`` is faster and smaller than ``"str"``.
    #[pyo3(signature = (*, ids="str"), text_signature = "($self, *, ids='str')")]
    fn to_pandas<'py>(slf: &Bound<'py, Self>, ids: &str) -> PyResult<Bound<'py, PyAny>> {
        call_frames(slf.as_any(), "to_pandas", Some(ids))
    }

    /// The page as a polars frame, without pyarrow.
    #[pyo3(signature = (*, ids="str"), text_signature = "($self, *, ids='str')")]
    fn to_polars<'py>(slf: &Bound<'py, Self>, ids: &str) -> PyResult<Bound<'py, PyAny>> {
        call_frames(slf.as_any(), "to_polars", Some(ids))
    }

    /// The page as a ``pyarrow.Table``; the ids are dictionary-coded.
    fn to_arrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        call_frames(slf.as_any(), "to_arrow", None)
    }

    /// The points one by one, as plain dicts, or as :class:`Record` tuples with ``named=True``, which
    /// have the ten columns alone: ``extra_columns`` are in the dicts.
    #[pyo3(signature = (*, named=false), text_signature = "($self, *, named=False)")]
    fn records(&self, named: bool) -> RecordIterator {
        RecordIterator::over(Arc::clone(&self.page.points), named)
    }

    /// The Arrow PyCapsule interface.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let batch = batch(py, &self.page.points)?;
        stream_capsule(py, batch.schema(), vec![batch])
    }

    /// The Arrow PyCapsule interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.page.points.schema())
    }

    fn _columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        of_points(py, &self.page.points)
    }

    fn _provenance<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        provenance(py, &self.provenance)
    }
}

/// The pages of one chain, read as they are asked for.
///
/// Safe to share between threads: each page is given once. A failure carries ``.bookmark``; the
/// pages before it were handed out already. From the second page on the next one is read while you
/// work on the one you have: who stops early has spent at most one page unseen, and none where it took
/// only the first.
///
/// >>> [len(page) for page in scan.pages()]
/// [30, 30, 12]
#[pyclass(frozen, name = "PageIterator", module = "siteline")]
pub(crate) struct PageIterator {
    follower: Arc<Follower>,
    reporter: Option<Reporter>,
}

impl PageIterator {
    pub(crate) fn new(pages: Pages, reporter: Option<Reporter>) -> Self {
        Self { follower: Follower::new(pages), reporter }
    }

    fn given(&self, py: Python<'_>, page: Page) -> PyPage {
        self.follower.read_ahead(py);
        let provenance = Provenance {
            pages: 1,
            resumed_after_pages: page.sequence.saturating_sub(1),
            ..self.follower.provenance().clone()
        };
        PyPage { page, provenance, chain: None }
    }
}

#[pymethods]
impl PageIterator {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<PyPage>> {
        loop {
            match self.follower.take() {
                Taken::Page(page) => return Ok(Some(self.given(py, *page))),
                Taken::Ended => return end(py, self.reporter.as_ref()).map(|()| None),
                Taken::Nothing => guarded(|| self.follower.wait(py, self.reporter.as_ref()))?,
            }
        }
    }

    /// After ``_fill()``: tells whoever wants to hear of it.
    fn _tell(&self, py: Python<'_>) -> PyResult<()> {
        self.follower.hear(py, self.reporter.as_ref()).map(drop)
    }

    /// For the garbage collector: ``progress=`` may be a method of whoever keeps the iterator.
    #[expect(clippy::needless_pass_by_value, reason = "PyO3 gives it by value")]
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(self.reporter.as_ref().map(|reporter| &reporter.0))
    }

    /// After ``_fill()`` has failed: no more is told.
    fn _end(&self, py: Python<'_>) -> PyResult<()> {
        end(py, self.reporter.as_ref())
    }

    /// An awaitable of the running asyncio loop: reads the next page, for ``_take()``. Cancelled, it
    /// loses no page.
    fn _fill<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.follower.awaited(py)
    }

    /// The page that ``_fill()`` has read, or one that was read ahead, or ``None``; and whether the
    /// chain has ended.
    fn _take(&self, py: Python<'_>) -> PyResult<(Option<PyPage>, bool)> {
        loop {
            match self.follower.take() {
                Taken::Page(page) => return Ok((Some(self.given(py, *page)), false)),
                Taken::Ended => {
                    return end(py, self.reporter.as_ref()).map(|()| (None, true));
                }
                Taken::Nothing => {
                    if !self.follower.hear(py, self.reporter.as_ref())? {
                        return Ok((None, false));
                    }
                }
            }
        }
    }
}
