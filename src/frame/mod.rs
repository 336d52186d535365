//! `_core.Frame`: the handle of every table, in memory or streamed from a store.

mod facts;
mod pickled;
pub(crate) mod rows;
pub(crate) mod shown;
pub(crate) mod stored;
mod verbs;

use std::sync::OnceLock;

use arrow_array::Array as _;
use arrow_schema::SchemaRef;
use pyo3::types::PyCapsule;
use serde::{Deserialize, Serialize};

use crate::convert::asked_time::zone;
use crate::convert::capsule::{reader_capsule, schema_capsule};
use crate::convert::columns::{Memory, bytes, timestamps};
use crate::frame::facts::Facts;
use crate::frame::rows::Rows;
use crate::frame::shown::{Shown, identity};
use crate::frame::stored::{Batches, Stored};
use crate::prelude::*;
use siteline_core::client::table::{Provenance, Table};
use siteline_core::data::reshape::{Every, Measure, Wide};
use siteline_core::data::{Identity, Ids, Page};
use siteline_core::preview::Preview;
use siteline_core::store::ChainRange;

#[pyclass(frozen, weakref, name = "Frame", module = "siteline._core")]
pub(crate) struct Frame {
    /// `points`, `changes`, `resampled`, `pivoted`, `completeness`, `gaps` or `series`.
    kind: &'static str,
    pub(crate) data: Data,
    pub(crate) origin: Origin,
    /// The length of a larger bucket or a period.
    every: Option<Every>,
    /// The rows without the null rows of `with_gaps`.
    there: Option<Rows>,
    /// Only the first rows: missing buckets are unknown.
    is_part: bool,
}

#[derive(Clone)]
pub(crate) enum Data {
    Rows(Rows),
    Wide(Arc<Wide>),
    /// Stored points, read when needed.
    Stream(Arc<Stored>),
}

#[derive(Clone)]
pub(crate) enum Origin {
    Read(Arc<Table>),
    Page(Arc<PageSource>),
    Stored(Arc<Stored>),
    /// No read, page or store has these rows.
    Made(Arc<Facts>),
}

pub(crate) struct PageSource {
    pub(crate) page: Page,
    pub(crate) provenance: Provenance,
    pub(crate) synced: Option<Synced>,
}

#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Synced {
    pub(crate) feed: String,
    pub(crate) chain: ChainRange,
    /// The number of the first page merged into this one.
    pub(crate) batch_first: u64,
    /// Whether the feed has no other unfinished chain.
    pub(crate) is_only_chain: bool,
}

impl Frame {
    pub(crate) fn new(kind: &'static str, data: Data, origin: Origin) -> Self {
        Self { kind, data, origin, every: None, there: None, is_part: false }
    }

    pub(crate) fn of_table(table: Arc<Table>) -> Self {
        let rows = Rows::of_points(Arc::clone(&table.merged.points));
        Self::new("points", Data::Rows(rows), Origin::Read(table))
    }

    pub(crate) fn of_page(page: PageSource) -> Self {
        let rows = Rows::of_points(Arc::clone(&page.page.points));
        Self::new("points", Data::Rows(rows), Origin::Page(Arc::new(page)))
    }

    pub(crate) fn of_store(stored: Stored) -> Self {
        let kind = if stored.read.state.spec.view.is_log() { "changes" } else { "points" };
        let stored = Arc::new(stored);
        Self::new(kind, Data::Stream(Arc::clone(&stored)), Origin::Stored(stored))
    }

    pub(crate) fn page(&self) -> Option<&PageSource> {
        if let Origin::Page(page) = &self.origin { Some(page) } else { None }
    }

    pub(crate) fn stored(&self) -> Option<&Stored> {
        if let Origin::Stored(stored) = &self.origin { Some(stored) } else { None }
    }

    pub(crate) fn source(&self) -> Option<&Provenance> {
        match &self.origin {
            Origin::Read(table) => Some(&table.provenance),
            Origin::Page(page) => Some(&page.provenance),
            _ => None,
        }
    }

    fn rows(&self, py: Python<'_>) -> PyResult<Rows> {
        match &self.data {
            Data::Rows(rows) => Ok(rows.clone()),
            Data::Stream(stored) => stored.rows(py),
            Data::Wide(_) => {
                Err(refuse(py, Kind::InternalError, "a pivoted table has no rows of points"))
            }
        }
    }

    fn shown_schema(&self, shown: &Shown) -> Result<SchemaRef> {
        match &self.data {
            Data::Rows(rows) => Ok(rows.schema(shown)),
            Data::Wide(wide) => {
                let names = wide.names(|series| shown.label(series))?;
                Ok(Arc::new(shown.with_metadata(wide.schema(names, shown.zone()))))
            }
            Data::Stream(stored) => Ok(shown.schema(&stored.read.state.spec.view.schema())),
        }
    }
}

pub(crate) fn ids<'py>(py: Python<'py>, series: &Identity) -> PyResult<Bound<'py, PyTuple>> {
    PyTuple::new(py, series.0.iter().map(Option::as_deref))
}

#[pymethods]
impl Frame {
    #[getter]
    fn kind(&self) -> &'static str {
        self.kind
    }

    /// As text: `1d`.
    #[getter]
    fn every(&self) -> Option<String> {
        let width = |width: i64| Duration::from_micros(width.unsigned_abs());
        Some(match self.every? {
            Every::Microseconds(every) => siteline_core::data::spelled(width(every)),
            Every::Month => "1mo".to_owned(),
        })
    }

    /// Whether no access reads a file.
    #[getter]
    fn is_in_memory(&self) -> bool {
        !matches!(self.data, Data::Stream(_))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(match &self.data {
            Data::Rows(rows) => rows.len(),
            Data::Wide(wide) => wide.timestamps.len(),
            Data::Stream(stored) => usize::try_from(stored.count(py)?).unwrap_or(usize::MAX),
        })
    }

    fn names(&self, shown: Shown) -> PyResult<Vec<String>> {
        let schema = self.shown_schema(&shown).or_raise()?;
        Ok(schema.fields().iter().map(|field| field.name().clone()).collect())
    }

    fn series<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        match &self.data {
            Data::Rows(rows) => {
                let there = rows.points.series.iter().zip(rows.points.has_points());
                there.filter(|(_, has_points)| *has_points).map(|(one, _)| ids(py, one)).collect()
            }
            Data::Wide(wide) => wide.series.iter().map(|one| ids(py, one)).collect(),
            Data::Stream(stored) => {
                guarded(|| stored.series(py))?.iter().map(|one| ids(py, one)).collect()
            }
        }
    }

    /// For `siteline.frames`: the columns and the provenance.
    fn columns<'py>(
        &self,
        py: Python<'py>,
        shown: Shown,
    ) -> PyResult<(Bound<'py, PyList>, Object<'py>)> {
        guarded(|| {
            let provenance = self.provenance(py)?;
            let Data::Wide(wide) = &self.data else {
                return Ok((self.rows(py)?.columns(py, &shown)?, provenance));
            };
            let list = PyList::empty(py);
            list.append(timestamps("timestamp", &wide.timestamps, shown.zone()))?;
            let names = wide.names(|series| shown.label(series)).or_raise()?;
            let values = wide.cells.clone();
            let (kind, missing) = if wide.measure == Measure::SampleCount {
                let nulls = wide.columns.iter().flat_map(|column| {
                    (0..column.len()).map(|row| [u8::from(column.is_null(row))])
                });
                ('i', Some(bytes(py, values.len() / 8, nulls)?))
            } else {
                ('f', None)
            };
            list.append((names, "cells", Memory { values, kind }, missing))?;
            Ok((list, provenance))
        })
    }

    fn stream(slf: Py<Self>, shown: Shown) -> Stream {
        Stream { frame: slf, shown, failure: Arc::default() }
    }

    fn provenance<'py>(&self, py: Python<'py>) -> PyResult<Object<'py>> {
        dict(py, &self.facts().attributes)
    }

    fn report<'py>(&self, py: Python<'py>) -> PyResult<Object<'py>> {
        dict(py, &self.counts(py)?)
    }

    /// The newest discovery response with its shape, and the reason why the newest request failed.
    fn discovery<'py>(&self, py: Python<'py>) -> PyResult<(Option<Listed<'py>>, Option<String>)> {
        let facts = self.facts();
        let Some(listed) = &facts.listed else { return Ok((None, None)) };
        let known = listed
            .raw()
            .map(|(body, shape)| Ok::<_, PyErr>((PyBytes::new(py, &body), dict(py, &shape)?)));
        Ok((known.transpose()?, listed.refusal()))
    }

    /// The range and the bucket width, in microseconds.
    fn grid(&self) -> (Option<i64>, Option<i64>, Option<i64>) {
        let facts = self.facts();
        let (start, end) = facts.bounds.unzip();
        let own = facts.interval_seconds.map(|seconds| i64::from(seconds) * 1_000_000);
        (start, end, self.every.map_or(own, Every::microseconds))
    }

    /// The selection and coverage of a stored read as text, and whether it is complete.
    fn selection(&self) -> Option<(String, String, bool)> {
        let read = &self.stored()?.read;
        Some((read.state.spec.to_string(), read.coverage.to_string(), read.coverage.complete))
    }

    /// For the notebook view.
    fn preview<'py>(&self, py: Python<'py>) -> PyResult<Object<'py>> {
        let (start, end, width) = self.grid();
        let (bounds, seconds) = (start.zip(end), |width| u32::try_from(width / 1_000_000).ok());
        let interval = width.and_then(seconds);
        let points = match &self.data {
            Data::Rows(rows) => Arc::clone(&rows.points),
            _ => self.rows(py)?.points,
        };
        dict(py, &detached(py, || Preview::from_points(&points, bounds, interval))?)
    }

    /// The stored points between two times in microseconds.
    #[pyo3(signature = (start=None, end=None))]
    fn within(&self, py: Python<'_>, start: Option<i64>, end: Option<i64>) -> PyResult<Self> {
        let message = "only points of a store are read in parts";
        let stored = self.stored().ok_or_else(|| refuse(py, Kind::InternalError, message))?;
        let part = step(py, || stored.read.within(&stored.store, start, end))?;
        let (read, warning) = part.or_raise()?;
        guarded(|| warn(py, warning.as_slice()))?;
        Ok(Self::of_store(Stored { store: Arc::clone(&stored.store), read }))
    }

    fn batches(&self, py: Python<'_>, shown: Shown) -> PyResult<Batches> {
        Batches::new(self.batch_stream(py, shown)?).or_raise()
    }
}

type Listed<'py> = (Bound<'py, PyBytes>, Object<'py>);

#[pyclass(frozen, name = "_Stream")]
pub(crate) struct Stream {
    frame: Py<Frame>,
    shown: Shown,
    failure: Arc<OnceLock<Error>>,
}

#[pymethods]
impl Stream {
    /// The interface allows a producer to keep its schema; consumers cast.
    #[pyo3(signature = (_requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        _requested_schema: Option<Object<'py>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let mut batches = self.frame.get().batch_stream(py, self.shown.clone())?;
        batches.failure = Arc::clone(&self.failure);
        reader_capsule(py, Box::new(batches))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.frame.get().shown_schema(&self.shown).or_raise()?)
    }

    /// Raises the error that ended a stream. Consumers raise an exception of their own.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        self.failure.get().map_or(Ok(()), |failure| Err(raise(py, failure)))
    }
}

pub(crate) fn identities(series: Vec<Ids>) -> impl Iterator<Item = Identity> {
    series.into_iter().map(identity)
}

#[pyfunction]
pub(crate) fn zone_name(tz: &Object<'_>) -> PyResult<String> {
    zone(tz).map(|(name, _)| name)
}
