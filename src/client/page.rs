use crate::client::records::PyBookmark;
use crate::convert::arrow_stream::ArrowStream;
use crate::frame::{Frame, PageSource};
use crate::prelude::*;
use siteline_core::data::report::PageReport;
use siteline_core::data::{Comparison, Page, PointColumns};

/// The members of `siteline.Page`.
#[pymethods]
impl Frame {
    /// The page number, the first of its chain, the feed, `is_last`, and whether it is the whole chain.
    fn place(&self, py: Python<'_>) -> PyResult<(u64, u64, Option<&str>, bool, bool)> {
        let PageSource { page, synced, .. } = self.known_page(py)?;
        let synced = synced.as_ref();
        let first = synced.map_or(1, |synced| synced.chain.first);
        let begins = synced.map_or(page.sequence, |synced| synced.batch_first) == first;
        // While the feed has another unfinished chain, a missing point may not be withdrawn.
        let is_only_chain = synced.is_none_or(|synced| synced.is_only_chain);
        let is_whole = page.is_last && begins && is_only_chain;
        Ok((page.sequence, first, synced.map(|synced| &*synced.feed), page.is_last, is_whole))
    }

    fn bookmark(&self, py: Python<'_>) -> PyResult<Option<PyBookmark>> {
        Ok(self.known_page(py)?.page.bookmark.clone().map(PyBookmark))
    }

    fn raw(&self, py: Python<'_>) -> PyResult<Option<&[u8]>> {
        Ok(self.known_page(py)?.page.raw.as_deref())
    }

    fn query<'py>(&self, py: Python<'py>) -> PyResult<Option<Object<'py>>> {
        self.source().map(|source| dict(py, source.query.input())).transpose()
    }

    /// Inserted, changed, unchanged and missing points.
    fn compared(&self, py: Python<'_>, stored: &Object<'_>) -> PyResult<[Self; 4]> {
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
                // An empty stream may also lack a column.
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

impl Frame {
    pub(crate) fn known_page(&self, py: Python<'_>) -> PyResult<&PageSource> {
        self.page().ok_or_else(|| refuse(py, Kind::InternalError, "this frame is no page"))
    }
}
