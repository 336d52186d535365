//! `siteline.Rebucketed`: points in larger buckets, of local time where asked.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{Timestamp, civil};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};

use crate::bridge::errors::IntoPyErr as _;
use crate::bridge::errors::OrRaise as _;
use crate::bridge::process::detached;
use crate::convert::capsule::{OneBatch, batch_methods, fitted};
use crate::convert::columns::{integers, of_points, timestamps};
use crate::convert::holder::frame_methods;
use crate::convert::labels::{discovery_bytes, ids_of_points, labelled};
use crate::convert::plots::{PlotArgs, PlotGrid, call_plot, plot_method};
use crate::convert::values::{duration, many, refuse, text};
use crate::convert::wide::PyWide;
use crate::convert::zone::zone;
use siteline_core::client::ListedIds;
use siteline_core::data::reshape::{LocalGrid, Rebucketed, Reduction, rebucket};
use siteline_core::data::{COLUMN_NAMES, PointColumns, spelled};
use siteline_core::error::{Error, Kind, Result, excerpt};

const ORIGIN_HINT: &str =
    "Give a time of the day (\"06:00\"), a date, or both, on the clock of tz=.";

/// Points in larger buckets: made by :meth:`Table.rebucket`.
///
/// The columns are those of :class:`Table`, and two more: ``buckets``, how many of the table's buckets each
/// larger one has, and ``expected``, how many fit into it (null where the table's ``interval`` is not known).
/// ``timestamp`` is the instant at which the larger bucket begins, in the zone that was asked for. Rows are
/// sorted by series, then time; a bucket without any point has no row.
///
/// It is an Arrow stream, as a table is.
///
/// >>> days = scan.collect().rebucket("1d", value="mean", tz="Europe/Berlin")
/// >>> days
/// <Rebucketed 12 points, 12 series, 1d in Europe/Berlin, 12 partly filled>
/// >>> days.to_polars()["buckets", "expected"].row(0)
/// (6, 24)
#[pyclass(frozen, weakref, name = "Rebucketed", module = "siteline")]
pub(crate) struct PyRebucketed {
    rebucketed: Rebucketed,
    /// Microseconds.
    interval: i64,
    zone: String,
    provenance: Py<PyDict>,
    /// What the discovery responses of the client listed.
    listed: Option<Arc<ListedIds>>,
}

/// The arguments of `rebucket()`.
pub(crate) struct RebucketArgs {
    pub(super) interval: i64,
    reduction: Option<Reduction>,
    pub(super) zone: (String, TimeZone),
    pub(super) origin: Option<i64>,
}

impl RebucketArgs {
    /// # Errors
    /// `QueryError` for an interval of 0, and for a value, a zone or an origin that is none.
    pub(crate) fn new(
        interval: &Bound<'_, PyAny>,
        name: &str,
        value: Option<&str>,
        (tz, origin): (Option<&Bound<'_, PyAny>>, Option<&Bound<'_, PyAny>>),
    ) -> PyResult<Self> {
        let py = interval.py();
        let width = i64::try_from(duration(interval, name)?.as_micros()).unwrap_or(i64::MAX);
        if width == 0 {
            let message = format!("{name}= is 0; a bucket is longer.");
            return Err(refuse(py, Kind::QueryError, message));
        }
        let zone = tz.map_or_else(|| Ok(("UTC".to_owned(), TimeZone::UTC)), zone)?;
        let origin = origin.map(|origin| civil_origin(origin, &zone.1)).transpose()?;
        let reduction = value.map(Reduction::parse).transpose().or_raise()?;
        Ok(Self { interval: width, reduction, zone, origin })
    }
}

impl RebucketArgs {
    /// The arguments of `completeness()`: periods of a day, unless others are given.
    ///
    /// # Errors
    /// As [`RebucketArgs::new`].
    pub(crate) fn by(
        py: Python<'_>,
        by: Option<&Bound<'_, PyAny>>,
        tz: Option<&Bound<'_, PyAny>>,
        origin: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let day = PyString::new(py, "1d").into_any();
        Self::new(by.unwrap_or(&day), "by", None, (tz, origin))
    }
}

/// Where the grid begins: microseconds of the zone's clock since 1970-01-01T00:00.
fn civil_origin(given: &Bound<'_, PyAny>, zone: &TimeZone) -> PyResult<i64> {
    let named = match given.cast::<PyString>() {
        Ok(name) => text(name, "origin", Kind::QueryError)?,
        Err(_) if given.hasattr("isoformat")? => given.call_method0("isoformat")?.extract()?,
        Err(_) => given.repr()?.to_string(),
    };
    let civil = civil_time(named.trim(), zone)
        .ok_or_else(|| {
            let message = format!("origin={:?} is no local time", excerpt(&named));
            Error::new(Kind::QueryError, message).with_hint(ORIGIN_HINT)
        })
        .or_raise()?;
    let instant = civil.to_zoned(TimeZone::UTC).map(|zoned| zoned.timestamp().as_microsecond());
    instant.map_err(|_| refuse(given.py(), Kind::QueryError, "origin= is out of range."))
}

fn civil_time(text: &str, zone: &TimeZone) -> Option<DateTime> {
    if let Ok(time) = text.parse::<Time>()
        && text.contains(':')
        && text.chars().all(|part| part.is_ascii_digit() || ":.".contains(part))
    {
        return Some(civil::date(1970, 1, 1).to_datetime(time));
    }
    if let Ok(at) = text.parse::<Timestamp>() {
        return Some(at.to_zoned(zone.clone()).datetime());
    }
    let is_date = text.len() == "2026-01-01".len();
    let date = text.parse::<Date>().ok().filter(|_| is_date);
    // jiff leaves out a zone in brackets.
    date.map(Date::into).or_else(|| text.parse().ok().filter(|_| !text.contains('[')))
}

impl PyRebucketed {
    /// # Errors
    /// As [`rebucket`].
    pub(crate) fn new(
        py: Python<'_>,
        points: &PointColumns,
        interval_seconds: Option<u32>,
        args: RebucketArgs,
        provenance: Py<PyDict>,
        listed: Option<Arc<ListedIds>>,
    ) -> PyResult<Self> {
        let RebucketArgs { interval, reduction, zone: (zone, rules), origin } = args;
        let own = interval_seconds.map(|seconds| i64::from(seconds) * 1_000_000);
        let mut grid = LocalGrid::new(rules, interval, origin);
        let rebucketed =
            detached(py, || rebucket(points, own, &mut grid, reduction))?.or_raise()?;
        Ok(Self { rebucketed, interval, zone, provenance, listed })
    }

    fn draw<'py>(slf: &Bound<'py, Self>, args: &PlotArgs<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
        let (interval, zone) = (Some(slf.get().interval), Some(slf.get().zone.as_str()));
        call_plot(slf.as_any(), PlotGrid { interval, zone, ..PlotGrid::default() }, args)
    }

    /// How many have fewer buckets than fit into them.
    fn count_partly_filled(&self) -> u64 {
        let Rebucketed { buckets, expected, .. } = &self.rebucketed;
        let is_part = |(have, fit): &(Option<i64>, Option<i64>)| fit.is_some() && have < fit;
        buckets.iter().zip(expected).filter(is_part).count() as u64
    }
}

impl OneBatch for PyRebucketed {
    fn schema(&self) -> Result<SchemaRef> {
        let schema = self.rebucketed.points.schema();
        let zone = |field: &Field| match field.data_type() {
            DataType::Timestamp(unit, _) => {
                let zoned = DataType::Timestamp(*unit, Some(self.zone.as_str().into()));
                field.clone().with_data_type(zoned)
            }
            _ => field.clone(),
        };
        let own = schema.fields().iter().map(|field| zone(field));
        let more = [("buckets", false), ("expected", true)];
        let more = more.map(|(name, nullable)| Field::new(name, DataType::Int64, nullable));
        Ok(Arc::new(Schema::new(own.chain(more).collect::<Vec<_>>())))
    }

    fn batch(&self) -> Result<RecordBatch> {
        let Rebucketed { points, buckets, expected } = &self.rebucketed;
        let mut columns = points.batch()?.columns().to_vec();
        columns[5] = Arc::new(points.timestamps.clone().with_timezone(self.zone.as_str()));
        columns.extend([buckets, expected].map(|column| Arc::new(column.clone()) as ArrayRef));
        fitted(self.schema()?, columns)
    }
}

batch_methods!(PyRebucketed);
frame_methods!(PyRebucketed);
plot_method!(PyRebucketed, PyRebucketed::draw);

#[pymethods]
impl PyRebucketed {
    fn __len__(&self) -> usize {
        self.rebucketed.points.rows()
    }

    fn __repr__(&self) -> String {
        let points = many(self.rebucketed.points.rows() as u64, "point");
        let width = std::time::Duration::from_micros(self.interval.unsigned_abs());
        let part = match self.count_partly_filled() {
            0 => String::new(),
            part => format!(", {part} partly filled"),
        };
        let series = self.rebucketed.points.series.len();
        format!("<Rebucketed {points}, {series} series, {} in {}{part}>", spelled(width), self.zone)
    }

    /// The points with a column for each series: see :meth:`Table.wide`.
    #[pyo3(signature = (value="value", *, labels=None),
        text_signature = "($self, value='value', *, labels=None)")]
    fn wide(
        &self,
        py: Python<'_>,
        value: &str,
        labels: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyWide> {
        let (points, provenance) = (&self.rebucketed.points, self.provenance.clone_ref(py));
        let wide = PyWide::new(py, points, value, &self.zone, provenance)?;
        wide.labelled(labels, self.listed.as_deref())
    }

    /// The same with names, for one frame.
    fn _shown(
        &self,
        py: Python<'_>,
        labels: Option<&Bound<'_, PyAny>>,
        gaps: bool,
    ) -> PyResult<Self> {
        if gaps {
            let message = "gaps= is for the buckets that were read.";
            let hint = "completeness(by=...) has a row for each larger bucket; buckets and expected \
                        say how full those are that there are.";
            return Err(Error::new(Kind::QueryError, message).with_hint(hint).into_py_err());
        }
        let Rebucketed { points, buckets, expected } = &self.rebucketed;
        let points = match labels {
            Some(labels) => labelled(labels, points, self.listed.as_deref())?,
            None => points.clone(),
        };
        let (buckets, expected) = (buckets.clone(), expected.clone());
        Ok(Self {
            rebucketed: Rebucketed { points, buckets, expected },
            zone: self.zone.clone(),
            provenance: self.provenance.clone_ref(py),
            listed: self.listed.clone(),
            ..*self
        })
    }

    /// The newest discovery response of the client, for names in pictures.
    fn _discovery<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        discovery_bytes(py, self.listed.as_deref())
    }

    /// The series, for :class:`Catalogue`.
    fn _series_ids<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        ids_of_points(py, &self.rebucketed.points)
    }

    /// The columns for ``siteline.frames``.
    fn _columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let Rebucketed { points, buckets, expected } = &self.rebucketed;
        let columns = of_points(py, points)?;
        columns.set_item(5, timestamps(COLUMN_NAMES[5], &points.timestamps, &self.zone))?;
        columns.append(integers(py, "buckets", buckets)?)?;
        columns.append(integers(py, "expected", expected)?)?;
        Ok(columns)
    }

    fn _provenance(&self, py: Python<'_>) -> Py<PyDict> {
        self.provenance.clone_ref(py)
    }
}
