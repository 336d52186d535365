//! `labels=`: names of series, beside their ids or in the place of them.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyList, PyTuple};

use crate::convert::capsule::{OneBatch, batch_methods, fitted};
use crate::convert::columns::of_points;
use siteline_core::client::ListedIds;
use siteline_core::data::{Identity, PointColumns};
use siteline_core::error::Result;
use siteline_core::store::{CHANGES, change_column, with_change};

/// The five ids of a series, as Python has them.
pub(crate) fn ids<'py>(py: Python<'py>, series: &Identity) -> PyResult<Bound<'py, PyTuple>> {
    PyTuple::new(py, series.0.iter().map(Option::as_deref))
}

/// The series that have points.
pub(crate) fn ids_of_points<'py>(
    py: Python<'py>,
    points: &PointColumns,
) -> PyResult<Vec<Bound<'py, PyTuple>>> {
    let series = points.series.iter().zip(points.has_points());
    series.filter(|(_, has_points)| *has_points).map(|(series, _)| ids(py, series)).collect()
}

/// The newest discovery response, where there was one.
pub(crate) fn discovery_bytes<'py>(
    py: Python<'py>,
    listed: Option<&ListedIds>,
) -> Option<Bound<'py, PyBytes>> {
    listed.and_then(ListedIds::raw).map(|body| PyBytes::new(py, &body))
}

/// What `siteline._labels.NAME` calls series.
fn names(
    name: &str,
    labels: &Bound<'_, PyAny>,
    series: &[&Identity],
    listed: Option<&ListedIds>,
) -> PyResult<Vec<String>> {
    let py = labels.py();
    let series: Vec<_> = series.iter().map(|one| ids(py, one)).collect::<PyResult<_>>()?;
    let body = discovery_bytes(py, listed);
    py.import("siteline._labels")?.call_method1(name, (labels, series, body))?.extract()
}

/// Names for the columns of these series.
///
/// # Errors
/// `QueryError` for labels that are none, and for `True` where nothing was discovered; what a callable of
/// the user raises.
pub(crate) fn column_names(
    labels: &Bound<'_, PyAny>,
    series: &[Identity],
    listed: Option<&ListedIds>,
) -> PyResult<Vec<String>> {
    names("names", labels, &series.iter().collect::<Vec<_>>(), listed)
}

/// The points with a column of names. A name of two series is told.
///
/// # Errors
/// As [`column_names`].
pub(crate) fn labelled(
    labels: &Bound<'_, PyAny>,
    points: &PointColumns,
    listed: Option<&ListedIds>,
) -> PyResult<PointColumns> {
    let has_points = points.has_points();
    let series = points.series.iter().zip(&has_points);
    let series: Vec<_> = series.filter_map(|(one, has_points)| has_points.then_some(one)).collect();
    let mut named = names("names_of_rows", labels, &series, listed)?.into_iter();
    let all = has_points.into_iter().map(|has_points| has_points.then(|| named.next()).flatten());
    Ok(points.with_labels(all.map(Option::unwrap_or_default).collect()))
}

/// Points as one frame shows them, with names or rows for gaps: what `siteline.frames` reads.
#[pyclass(frozen, name = "_FramePoints")]
pub(crate) struct FramePoints {
    points: PointColumns,
    /// How each point changed, for those of `Store.changes()`.
    changes: Option<Vec<u8>>,
    provenance: Py<PyDict>,
}

impl FramePoints {
    /// Points, with a column of names where there are labels.
    ///
    /// # Errors
    /// As [`labelled`].
    pub(crate) fn labelled(
        points: &PointColumns,
        changes: Option<Vec<u8>>,
        labels: Option<&Bound<'_, PyAny>>,
        listed: Option<&ListedIds>,
        provenance: Py<PyDict>,
    ) -> PyResult<Self> {
        let points = match labels {
            Some(labels) => labelled(labels, points, listed)?,
            None => points.clone(),
        };
        Ok(Self { points, changes, provenance })
    }
}

impl OneBatch for FramePoints {
    fn schema(&self) -> Result<SchemaRef> {
        let schema = self.points.schema();
        Ok(if self.changes.is_some() { with_change(&schema) } else { schema })
    }

    fn batch(&self) -> Result<RecordBatch> {
        let batch = self.points.batch()?;
        let Some(changes) = self.changes.clone() else { return Ok(batch) };
        let columns = batch.columns().iter().cloned().chain([change_column(changes)?]).collect();
        fitted(self.schema()?, columns)
    }
}

batch_methods! { FramePoints }

#[pymethods]
impl FramePoints {
    fn _columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let columns = of_points(py, &self.points)?;
        if let Some(changes) = &self.changes {
            columns.append(changes_for_frames(py, changes)?)?;
        }
        Ok(columns)
    }

    fn _provenance(&self, py: Python<'_>) -> Py<PyDict> {
        self.provenance.clone_ref(py)
    }
}

/// A column of codes and their texts, for `siteline.frames`.
type Codes<'py> = (&'static str, &'static str, Bound<'py, PyByteArray>, Bound<'py, PyList>);

/// How points changed, for `siteline.frames`.
pub(crate) fn changes_for_frames<'py>(py: Python<'py>, changes: &[u8]) -> PyResult<Codes<'py>> {
    let texts = if changes.is_empty() { &[] } else { CHANGES.as_slice() };
    Ok(("change", "codes", PyByteArray::new(py, changes), PyList::new(py, texts)?))
}
