//! `siteline.Table` and what every holder of points shares: the Arrow hand-off and the columns.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};

use crate::bridge::errors::OrRaise as _;
use crate::bridge::process::{detached, guarded};
use crate::convert::completeness::PyCompleteness;
use crate::convert::frames::is_explicit;
use crate::convert::holder::{frame_methods, point_methods};
use crate::convert::labels::{FramePoints, discovery_bytes};
use crate::convert::patching::methods_can_be_replaced;
use crate::convert::pickled::{TableState, read_points, write_points};
use crate::convert::plots::{PlotArgs, PlotGrid, call_plot, plot_method};
use crate::convert::rebucketed::{PyRebucketed, RebucketArgs};
use crate::convert::state::{copies_are_itself, dict, restore};
use crate::convert::values::{html, many};
use crate::convert::wide::PyWide;
use siteline_core::client::ListedIds;
use siteline_core::client::table::{Provenance, StoreShare, Table, TableReport};
use siteline_core::data::reshape::{Expected, with_gaps};
use siteline_core::data::{PointColumns, Query};
use siteline_core::error::{Error, Kind, Result};
use siteline_core::preview::Preview;

/// What `frame.attrs["siteline"]` says.
pub(crate) fn provenance<'py>(
    py: Python<'py>,
    provenance: &Provenance,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    if provenance.further.is_empty() {
        dict.set_item("query", provenance.query.to_string())?;
    } else {
        let queries = [&provenance.query].into_iter().chain(&provenance.further);
        dict.set_item("query", queries.map(ToString::to_string).collect::<Vec<_>>())?;
    }
    dict.set_item("host", &provenance.host)?;
    dict.set_item("read_at", provenance.read_at)?;
    dict.set_item("pages", provenance.pages)?;
    dict.set_item("resumed_after_pages", provenance.resumed_after_pages)?;
    if !provenance.through.is_empty() {
        dict.set_item("through", through(py, &provenance.through)?)?;
    }
    Ok(dict)
}

/// What came through which feeds of a store.
fn through<'py>(py: Python<'py>, shares: &[StoreShare]) -> PyResult<Bound<'py, PyList>> {
    PyList::new(py, shares.iter().map(|share| dict(py, share)).collect::<PyResult<Vec<_>>>()?)
}

/// What `__reduce__` gives: `_restore`, and its two arguments.
type PickledTable<'py> = (Bound<'py, PyAny>, (Bound<'py, PyBytes>, Option<Bound<'py, PyAny>>));

/// A whole read: every point once, series merged over pages, in canonical order.
///
/// Ten columns: ``site_id``, ``line_id``, ``machine_id``, ``device_id``, ``tag_guid`` (text),
/// ``timestamp`` (microseconds, UTC: the start of the bucket as the service names it), ``value``,
/// ``minimum``, ``maximum`` (double), ``sample_count`` (integer); rows sorted by series, then time.
/// Where a point came several times the one of the latest page request stands (§4.5.3).
///
/// A table is an Arrow stream (``pl.DataFrame(table)``, ``duckdb.sql("from table")``,
/// ``pyarrow.table(table)``); the ids are dictionary-coded in it.
///
/// >>> table = scan.collect()
/// >>> table, table.report["revised"]
/// (<Table 72 points, 12 series, 3 pages>, 0)
/// >>> table.to_pandas(ids="category")["machine_id"].nunique()
/// 4
#[pyclass(dict, frozen, weakref, name = "Table", module = "siteline")]
pub(crate) struct PyTable {
    pub(crate) points: Arc<PointColumns>,
    pub(crate) origin: Option<Arc<Table>>,
}

impl PyTable {
    pub(crate) fn new(table: Arc<Table>) -> Self {
        Self { points: Arc::clone(&table.merged.points), origin: Some(table) }
    }

    /// A table of other origin than a read: the sandbox's truth.
    pub(crate) fn unread(points: PointColumns) -> Self {
        Self { points: Arc::new(points), origin: None }
    }

    /// The buckets that its points can have.
    fn expected(&self) -> Result<Expected> {
        self.origin.as_ref().map_or_else(
            || {
                let message = "which buckets are missing is not known: no read gave this table";
                let hint = "Ask a table that a read gave: client.scan(...).collect().";
                Err(Error::new(Kind::QueryError, message).with_hint(hint))
            },
            |table| table.expected(),
        )
    }

    /// With a row for each bucket that is missing.
    fn filled(&self, py: Python<'_>) -> PyResult<PointColumns> {
        let expected = self.expected().or_raise()?;
        detached(py, || with_gaps(&self.points, &expected))?.or_raise()
    }

    /// What the discovery responses of its client listed.
    fn listed(&self) -> Option<&Arc<ListedIds>> {
        self.origin.as_ref().map(|table| &table.provenance.listed)
    }

    fn draw<'py>(slf: &Bound<'py, Self>, args: &PlotArgs<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        let source = slf.get().origin.as_ref().map(|table| &table.provenance);
        let (start, end) = source.and_then(Provenance::bounds).unzip();
        let seconds = source.and_then(|source| source.query.interval_seconds());
        let interval = seconds.map(|seconds| i64::from(seconds) * 1_000_000);
        call_plot(slf.as_any(), PlotGrid { start, end, interval, zone: None }, args)
    }
}

frame_methods!(PyTable);
plot_method!(PyTable, PyTable::draw);
point_methods!(PyTable, points);
copies_are_itself!(PyTable);

methods_can_be_replaced!(PyTable);

#[pymethods]
impl PyTable {
    fn __len__(&self) -> usize {
        self.points.rows()
    }

    fn __repr__(&self) -> String {
        let points = many(self.points.rows() as u64, "point");
        let Some(table) = &self.origin else {
            return format!("<Table {points}>");
        };
        let pages = many(table.provenance.pages, "page");
        let missing = match table.provenance.resumed_after_pages {
            0 => String::new(),
            before => format!(" after {before} that are not in it"),
        };
        let series = table.merged.report.series;
        let through = table.provenance.through.first();
        let through =
            through.map_or_else(String::new, |share| format!(", through {}", share.store));
        format!("<Table {points}, {series} series, {pages}{missing}{through}>")
    }

    /// What notebooks show.
    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        html(slf.as_any(), "table")
    }

    /// What ``siteline._display.html`` draws.
    fn _preview<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let source = self.origin.as_ref().map(|table| &table.provenance);
        let range = source.and_then(Provenance::bounds);
        let interval = source.and_then(|source| source.query.interval_seconds());
        dict(py, &detached(py, || Preview::from_points(&self.points, range, interval))?)
    }

    /// The newest discovery response of its client, for names in pictures.
    fn _discovery<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        discovery_bytes(py, self.listed().map(|listed| &**listed))
    }

    /// What was assumed, seen and counted while reading: a dict.
    ///
    /// ``pages``, ``resumed_after_pages`` (pages before these whose points are not here: 0 for the
    /// whole), ``points_read``, ``points``, ``series``, ``repeated`` (came again unchanged),
    /// ``revised`` (came again with other values; the later stands), and the sums of the pages'
    /// own reports (see :attr:`Page.report`). With ``store=`` ``through`` says for each feed of the store which
    /// ranges were settled in it, and which it read from the service; pages are those that were requested, and
    /// ``repeated`` and ``revised`` count against what the store had.
    #[getter]
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        dict(py, &TableReport::new(self.origin.as_deref(), &self.points))
    }

    /// The points with a column for each series and a row for each bucket: :class:`Wide`.
    ///
    /// - ``value``: what the cells hold: ``"value"``, ``"minimum"``, ``"maximum"`` or ``"sample_count"``
    /// - ``labels``: names of the columns in the place of the ids: see :meth:`to_pandas`
    /// - ``gaps``: with ``"explicit"`` there is a row for each bucket that can be: see :meth:`to_pandas`
    ///
    /// Raises :class:`QueryError` for another name, and where there would be more than 2**31 cells: series
    /// of few common buckets need a cell for each bucket of all others.
    ///
    /// >>> frame = scan.collect().wide("maximum").to_pandas()
    /// >>> frame.index.name, frame.columns.names[4], frame.shape
    /// ('timestamp', 'tag_guid', (6, 12))
    #[pyo3(signature = (value="value", *, labels=None, gaps=None),
        text_signature = "($self, value='value', *, labels=None, gaps=None)")]
    fn wide(
        &self,
        py: Python<'_>,
        value: &str,
        labels: Option<&Bound<'_, PyAny>>,
        gaps: Option<&str>,
    ) -> PyResult<PyWide> {
        guarded(|| {
            let provenance = self.provenance(py)?.unbind();
            let filled = if is_explicit(gaps).or_raise()? { Some(self.filled(py)?) } else { None };
            let points = filled.as_ref().unwrap_or(&self.points);
            let wide = PyWide::new(py, points, value, "UTC", provenance)?;
            wide.labelled(labels, self.listed().map(|listed| &**listed))
        })
    }

    /// The points in larger buckets, such as local days: :class:`Rebucketed`.
    ///
    /// - ``interval``: the width of the larger buckets: ``"1d"``, ``"8h"``, a ``timedelta``, seconds
    /// - ``value``: what ``value`` is made of, because the interface does not show what it is (§2.3): ``"mean"``
    ///   (each value weighted by its ``sample_count``; null where a value has no count), ``"sum"``, ``"first"``,
    ///   ``"last"``; by default it is null
    /// - ``tz``: the zone whose clock the buckets keep to: a day has 23 or 25 hours when clocks are set. A
    ///   name of the IANA database, or a ``ZoneInfo``
    /// - ``origin``: where buckets begin on that clock: a time of the day (``"06:00"``), a date, or both. By
    ///   default midnight; whole weeks begin on Mondays
    ///
    /// ``minimum`` is the least of the minima, ``maximum`` the greatest of the maxima, ``sample_count`` the sum
    /// of the counts; nulls are left out, and null is what has none. ``buckets`` and ``expected`` say how full
    /// a larger bucket is.
    ///
    /// Raises :class:`QueryError` where a bucket of this table would be in two of the larger ones, such as
    /// days of UTC in days of Berlin.
    ///
    /// >>> pairs = scan.collect().rebucket("2h", value="mean")
    /// >>> pairs, pairs.to_pandas()["expected"].unique().tolist()
    /// (<Rebucketed 36 points, 12 series, 2h in UTC>, [2])
    #[pyo3(signature = (interval, *, value=None, tz=None, origin=None),
        text_signature = "($self, interval, *, value=None, tz='UTC', origin=None)")]
    fn rebucket(
        &self,
        py: Python<'_>,
        interval: &Bound<'_, PyAny>,
        value: Option<&str>,
        tz: Option<&Bound<'_, PyAny>>,
        origin: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyRebucketed> {
        guarded(|| {
            let args = RebucketArgs::new(interval, "interval", value, (tz, origin))?;
            let query = self.origin.as_ref().map(|table| &table.provenance.query);
            let own = query.and_then(Query::interval_seconds);
            let provenance = self.provenance(py)?.unbind();
            PyRebucketed::new(py, &self.points, own, args, provenance, self.listed().cloned())
        })
    }

    /// How much of what was asked for is there, by series and period: :class:`Completeness`.
    ///
    /// - ``by``: the length of a period: ``"1d"``, ``"8h"``, a ``timedelta``, seconds
    /// - ``tz``, ``origin``: the clock that periods keep to, and where they begin: as of :meth:`rebucket`
    ///
    /// Buckets are expected at the multiples of ``interval`` in UTC (§4.3 does not show the grid). Series
    /// without any point have no row: a :class:`Catalogue` has them.
    ///
    /// Raises :class:`QueryError` where it is not known what is missing: for a part of a read, without
    /// ``interval``, for scans of different series, and where points are off the grid; and where a bucket
    /// would be in two periods.
    ///
    /// >>> hours = scan.collect().completeness("3h").to_pandas()
    /// >>> hours["share"].tolist()[:2], hours["expected"].unique().tolist()
    /// ([1.0, 1.0], [3])
    #[pyo3(signature = (by=None, *, tz=None, origin=None),
        text_signature = "($self, by='1d', *, tz='UTC', origin=None)")]
    fn completeness(
        &self,
        py: Python<'_>,
        by: Option<&Bound<'_, PyAny>>,
        tz: Option<&Bound<'_, PyAny>>,
        origin: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyCompleteness> {
        guarded(|| {
            let args = RebucketArgs::by(py, by, tz, origin)?;
            let (expected, listed) = (self.expected().or_raise()?, self.listed().cloned());
            let provenance = self.provenance(py)?.unbind();
            PyCompleteness::new(py, &self.points, &expected, args, provenance, listed)
        })
    }

    /// Makes the table again for ``pickle``.
    #[staticmethod]
    fn _restore(py: Python<'_>, points: &[u8], state: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let points = detached(py, || read_points(points))?.or_raise()?;
        guarded(|| match state {
            None => Ok(Self::unread(points)),
            Some(state) => {
                Ok(Self::new(Arc::new(restore::<TableState>(state)?.table(points).or_raise()?)))
            }
        })
    }

    /// The pickle has the points, the report and the origin of the table: for caches. A part of a read that
    /// failed is pickled without what ``resume(..., onto=)`` needs.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<PickledTable<'py>> {
        let (py, table) = (slf.py(), slf.get());
        let points = detached(py, || write_points(&table.points))?.or_raise()?;
        let state = table.origin.as_deref().map(TableState::from);
        let state = state.map(|state| dict(py, &state)).transpose()?;
        let restore = slf.get_type().getattr("_restore")?;
        Ok((restore, (PyBytes::new(py, &points), state)))
    }

    /// What :class:`Gathered` is of several tables: one.
    #[staticmethod]
    #[expect(clippy::needless_pass_by_value, reason = "PyO3 gives it by value")]
    fn _together(py: Python<'_>, tables: Vec<Bound<'_, Self>>) -> PyResult<Self> {
        let tables: Vec<_> = tables.iter().filter_map(|one| one.get().origin.clone()).collect();
        Ok(Self::new(Arc::new(detached(py, || Table::concat(&tables))?.or_raise()?)))
    }

    /// The same with names, or rows for gaps, for one frame.
    #[pyo3(name = "_shown")]
    fn shown(
        &self,
        py: Python<'_>,
        labels: Option<&Bound<'_, PyAny>>,
        gaps: bool,
    ) -> PyResult<FramePoints> {
        let filled = if gaps { Some(self.filled(py)?) } else { None };
        let points = filled.as_ref().unwrap_or(&self.points);
        let listed = self.listed().map(|listed| &**listed);
        FramePoints::labelled(points, None, labels, listed, self.provenance(py)?.unbind())
    }

    #[pyo3(name = "_provenance")]
    fn provenance<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        match &self.origin {
            Some(table) => provenance(py, &table.provenance),
            None => Ok(PyDict::new(py)),
        }
    }
}
