//! `siteline.Wide`: points with a column for each series.

use arrow_array::{Array as _, RecordBatch};
use arrow_schema::SchemaRef;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyDict, PyTuple};

use crate::bridge::errors::OrRaise as _;
use crate::bridge::process::detached;
use crate::convert::capsule::{OneBatch, batch_methods};
use crate::convert::frames::{FrameArgs, call_frames, is_without};
use crate::convert::labels::{column_names, ids};
use crate::convert::memory::Memory;
use crate::convert::values::many;
use siteline_core::client::ListedIds;
use siteline_core::data::PointColumns;
use siteline_core::data::reshape::{Measure, Wide};
use siteline_core::error::Result;

/// Points with a column for each series and a row for each bucket: made by :meth:`Table.wide`.
///
/// A cell is null where the series has no such bucket, and where its bucket has no such value. Rows are
/// the bucket timestamps that any of the series has, ascending; columns stand in the order of the table.
///
/// It is an Arrow stream (``pl.DataFrame(wide)``, ``pyarrow.table(wide)``) of ``timestamp`` and a column
/// for each series, named by its five ids with ``/`` between them (``S1/L2/M3/D31/speed``), nothing where an
/// id is null.
///
/// >>> wide = scan.collect().wide()
/// >>> wide
/// <Wide 6 buckets, 12 series, value>
/// >>> wide.to_pandas()["S1", "L2", "M3"].shape
/// (6, 3)
#[pyclass(frozen, weakref, name = "Wide", module = "siteline")]
pub(crate) struct PyWide {
    wide: Wide,
    /// What `frame.attrs["siteline"]` says.
    provenance: Py<PyDict>,
}

impl PyWide {
    /// # Errors
    /// As [`Measure::parse`] and [`Wide::new`].
    pub(crate) fn new(
        py: Python<'_>,
        points: &PointColumns,
        value: &str,
        zone: &str,
        provenance: Py<PyDict>,
    ) -> PyResult<Self> {
        let measure = Measure::parse(value).or_raise()?;
        let wide = detached(py, || Wide::new(points, measure, zone))?.or_raise()?;
        Ok(Self { wide, provenance })
    }

    /// With names for the columns.
    ///
    /// # Errors
    /// As [`column_names`].
    pub(crate) fn labelled(
        mut self,
        labels: Option<&Bound<'_, PyAny>>,
        listed: Option<&ListedIds>,
    ) -> PyResult<Self> {
        if let Some(labels) = labels.filter(|labels| !is_without(labels)) {
            self.wide.labels = Some(column_names(labels, &self.wide.series, listed)?);
        }
        Ok(self)
    }
}

impl OneBatch for PyWide {
    fn schema(&self) -> Result<SchemaRef> {
        self.wide.schema()
    }

    fn batch(&self) -> Result<RecordBatch> {
        self.wide.batch()
    }
}

batch_methods!(PyWide);

#[pymethods]
impl PyWide {
    /// What the cells hold: ``value``, ``minimum``, ``maximum`` or ``sample_count``.
    #[getter]
    fn value(&self) -> &'static str {
        self.wide.measure.name()
    }

    /// The series of the columns: tuples of the five ids, ``None`` where a series has none.
    #[getter]
    fn series<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        self.wide.series.iter().map(|series| ids(py, series)).collect()
    }

    /// The names of the columns, where ``labels=`` gave them; else ``None``.
    #[getter]
    fn labels(&self) -> Option<Vec<String>> {
        self.wide.labels.clone()
    }

    /// The number of buckets.
    fn __len__(&self) -> usize {
        self.wide.timestamps.len()
    }

    fn __repr__(&self) -> String {
        let buckets = many(self.wide.timestamps.len() as u64, "bucket");
        format!("<Wide {buckets}, {} series, {}>", self.wide.series.len(), self.value())
    }

    /// As a pandas frame: the index is the bucket's timestamp (``datetime64[us, UTC]``, or in the zone of
    /// :meth:`Rebucketed.wide`), the columns are
    /// ``float64``, or ``Int64`` for ``sample_count``.
    ///
    /// - ``flat``: whether the columns have one name each, as in Arrow, or a level for each of the five ids
    ///   (and a last one, ``label``, for names that ``labels=`` gave). Two series that would have one name
    ///   are a :class:`QueryError` where it is the only one
    /// - ``tz``: the zone of the index, as of :meth:`Table.to_pandas`
    ///
    /// Under pandas 3 the cells are not copied before they are written to. ``frame.attrs["siteline"]`` is
    /// that of the long frame.
    #[pyo3(
        signature = (*, flat=false, tz=None),
        text_signature = "($self, *, flat=False, tz=None)"
    )]
    fn to_pandas<'py>(
        slf: &Bound<'py, Self>,
        flat: bool,
        tz: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let name = if flat { "wide_to_flat_pandas" } else { "wide_to_pandas" };
        call_frames(slf, name, None, FrameArgs { tz, ..FrameArgs::default() })
    }

    /// As a polars frame: ``timestamp``, then a column for each series, named as in Arrow.
    ///
    /// Raises :class:`QueryError` where two series would have one name.
    #[pyo3(signature = (*, tz=None), text_signature = "($self, *, tz=None)")]
    fn to_polars<'py>(
        slf: &Bound<'py, Self>,
        tz: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        call_frames(slf, "wide_to_polars", None, FrameArgs { tz, ..FrameArgs::default() })
    }

    /// As a ``pyarrow.Table``: ``timestamp``, then a column for each series.
    ///
    /// Raises :class:`QueryError` where two series would have one name.
    #[pyo3(signature = (*, tz=None), text_signature = "($self, *, tz=None)")]
    fn to_arrow<'py>(
        slf: &Bound<'py, Self>,
        tz: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        call_frames(slf, "to_arrow", None, FrameArgs { tz, ..FrameArgs::default() })
    }

    /// The series, for :class:`Catalogue`.
    fn _series_ids<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        self.series(py)
    }

    /// For ``siteline.frames``: the timestamps and their zone; the cells of all columns, one after the other; for integers
    /// which of the cells are null.
    fn _columns<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Memory, &str, Memory, Option<Bound<'py, PyByteArray>>)> {
        let Wide { measure, timestamps, columns, cells, .. } = &self.wide;
        let (times, zone) = (Memory::of(timestamps), timestamps.timezone().unwrap_or("UTC"));
        if *measure != Measure::SampleCount {
            return Ok((times, zone, Memory::doubles(cells.clone()), None));
        }
        let rows = timestamps.len();
        let missing = PyByteArray::new_with(py, cells.len() / 8, |target| {
            for (column, target) in columns.iter().zip(target.chunks_exact_mut(rows.max(1))) {
                for (row, is_missing) in target.iter_mut().enumerate() {
                    *is_missing = u8::from(column.is_null(row));
                }
            }
            Ok(())
        })?;
        Ok((times, zone, Memory::integers(cells.clone()), Some(missing)))
    }

    /// The names of the columns.
    fn _names(&self) -> PyResult<Vec<String>> {
        self.wide.names().or_raise()
    }

    fn _provenance(&self, py: Python<'_>) -> Py<PyDict> {
        self.provenance.clone_ref(py)
    }
}
