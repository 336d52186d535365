//! `siteline.Completeness`: how much of what was asked for is there, by series and period.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::bridge::errors::OrRaise as _;
use crate::bridge::process::detached;
use crate::convert::capsule::{OneBatch, batch_methods, fitted};
use crate::convert::columns::{integers, of_points, timestamps};
use crate::convert::holder::frame_methods;
use crate::convert::labels::{ids_of_points, labelled};
use crate::convert::memory::Memory;
use crate::convert::rebucketed::RebucketArgs;
use crate::convert::values::refuse;
use siteline_core::client::ListedIds;
use siteline_core::data::reshape::{Completeness, Expected, LocalGrid, completeness};
use siteline_core::data::{COLUMN_NAMES, LABEL, PointColumns, spelled};
use siteline_core::error::{Kind, Result};

/// The columns of counts, after ids, time and share.
const COUNTS: [&str; 4] = ["buckets", "missing", "unread", "expected"];
/// The five ids and the timestamp.
const KEY: usize = 6;

/// How much of what was asked for is there, by series and period: made by :meth:`Table.completeness`.
///
/// A row for each series that has any point, and each period in which anything was asked for. Columns: the
/// five ids; ``timestamp``, the instant at which the period begins, in the zone that was asked for; ``share``,
/// ``buckets`` of ``expected``; ``buckets``, how many are there; ``missing``, how many were read and are not
/// there; ``unread``, how many were not asked for or, of a store, never read to the end of a chain;
/// ``expected``, all that fit into the period. ``buckets``, ``missing`` and ``unread`` add up to ``expected``:
/// a day of which 18 hours are there has the share 0.75, whatever the reason.
///
/// It is an Arrow stream, as a table is.
///
/// >>> days = scan.collect().completeness("1d")
/// >>> days
/// <Completeness 12 series, 1d in UTC, 25.0 % there, 0 missing, 216 unread>
/// >>> days.to_polars()["buckets", "missing", "unread", "expected"].row(0)
/// (6, 0, 18, 24)
#[pyclass(frozen, weakref, name = "Completeness", module = "siteline")]
pub(crate) struct PyCompleteness {
    found: Completeness,
    /// Microseconds.
    period: i64,
    zone: String,
    provenance: Py<PyDict>,
    listed: Option<Arc<ListedIds>>,
}

impl PyCompleteness {
    /// # Errors
    /// As [`completeness`].
    pub(crate) fn new(
        py: Python<'_>,
        points: &PointColumns,
        expected: &Expected,
        args: RebucketArgs,
        provenance: Py<PyDict>,
        listed: Option<Arc<ListedIds>>,
    ) -> PyResult<Self> {
        let RebucketArgs { interval: period, zone: (zone, rules), origin, .. } = args;
        let mut grid = LocalGrid::new(rules, period, origin);
        let found = detached(py, || completeness(points, expected, &mut grid))?.or_raise()?;
        Ok(Self { found, period, zone, provenance, listed })
    }

    fn counts(&self) -> [&Int64Array; 4] {
        let Completeness { buckets, missing, unread, expected, .. } = &self.found;
        [buckets, missing, unread, expected]
    }
}

impl OneBatch for PyCompleteness {
    fn schema(&self) -> Result<SchemaRef> {
        let own = self.found.rows.schema();
        let key = own.fields().iter().take(KEY).map(|field| match field.data_type() {
            DataType::Timestamp(unit, _) => {
                let zoned = DataType::Timestamp(*unit, Some(self.zone.as_str().into()));
                Arc::new(field.as_ref().clone().with_data_type(zoned))
            }
            _ => Arc::clone(field),
        });
        let share = Arc::new(Field::new("share", DataType::Float64, false));
        let counts = COUNTS.map(|name| Arc::new(Field::new(name, DataType::Int64, false)));
        let label = own.fields().find(LABEL).map(|(_, label)| Arc::clone(label));
        Ok(Arc::new(Schema::new(key.chain([share]).chain(counts).chain(label).collect::<Vec<_>>())))
    }

    fn batch(&self) -> Result<RecordBatch> {
        let Completeness { rows, share, .. } = &self.found;
        let own = rows.batch()?;
        let mut columns = own.columns()[..KEY].to_vec();
        columns[5] = Arc::new(rows.timestamps.clone().with_timezone(self.zone.as_str()));
        columns.push(Arc::new(share.clone()));
        columns.extend(self.counts().map(|column| Arc::new(column.clone()) as ArrayRef));
        columns.extend(own.column_by_name(LABEL).cloned());
        fitted(self.schema()?, columns)
    }
}

batch_methods!(PyCompleteness);
frame_methods!(PyCompleteness);

#[pymethods]
impl PyCompleteness {
    fn __len__(&self) -> usize {
        self.found.rows.rows()
    }

    fn __repr__(&self) -> String {
        let sums = self.counts().map(|column| column.values().iter().sum::<i64>());
        let [there, missing, unread, expected] = sums;
        #[expect(clippy::cast_precision_loss, reason = "a share for the eye")]
        let there = match expected {
            0 => String::new(),
            _ => format!(", {:.1} % there", 100.0 * there as f64 / expected as f64),
        };
        let width = std::time::Duration::from_micros(self.period.unsigned_abs());
        let series = self.found.rows.series.len();
        format!(
            "<Completeness {series} series, {} in {}{there}, {missing} missing, {unread} unread>",
            spelled(width),
            self.zone
        )
    }

    /// The series, for :class:`Catalogue`.
    fn _series_ids<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        ids_of_points(py, &self.found.rows)
    }

    /// The same with names, for one frame.
    fn _shown(
        &self,
        py: Python<'_>,
        labels: Option<&Bound<'_, PyAny>>,
        gaps: bool,
    ) -> PyResult<Self> {
        if gaps {
            let message = "gaps= is for points: a period without any has a row here already.";
            return Err(refuse(py, Kind::QueryError, message));
        }
        let Completeness { rows, share, buckets, missing, unread, expected } = &self.found;
        let rows = match labels {
            Some(labels) => labelled(labels, rows, self.listed.as_deref())?,
            None => rows.clone(),
        };
        let [buckets, missing, unread, expected] =
            [buckets, missing, unread, expected].map(Clone::clone);
        let share = share.clone();
        Ok(Self {
            found: Completeness { rows, share, buckets, missing, unread, expected },
            zone: self.zone.clone(),
            provenance: self.provenance.clone_ref(py),
            listed: self.listed.clone(),
            ..*self
        })
    }

    /// The columns for ``siteline.frames``.
    fn _columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let Completeness { rows, share, .. } = &self.found;
        let own = of_points(py, rows)?;
        let columns = own.get_slice(0, KEY);
        columns.set_item(5, timestamps(COLUMN_NAMES[5], &rows.timestamps, &self.zone))?;
        columns.append(("share", "float", Memory::of::<_>(share)))?;
        for (name, column) in COUNTS.into_iter().zip(self.counts()) {
            columns.append(integers(py, name, column)?)?;
        }
        // Names stand after all that points have.
        for column in own.iter().skip(COLUMN_NAMES.len()) {
            columns.append(column)?;
        }
        Ok(columns)
    }

    fn _provenance(&self, py: Python<'_>) -> Py<PyDict> {
        self.provenance.clone_ref(py)
    }
}
