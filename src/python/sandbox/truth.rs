//! `sandbox.truth(...)`: its filters, and its columns as an Arrow batch.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use arrow_buffer::NullBuffer;
use arrow_schema::ArrowError;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyMapping, PyString};

use super::refused;
use crate::data::schema;
use crate::sandbox::{Selection, Truth};

/// The series that the keywords ask for.
pub(super) fn selection(
    py: Python<'_>,
    site: Option<String>,
    line: Option<String>,
    filters: Option<&Bound<'_, PyMapping>>,
) -> PyResult<Selection> {
    let mut selection = Selection {
        sites: site.into_iter().collect(),
        lines: line.into_iter().collect(),
        ..Selection::default()
    };
    for item in filters.map(PyMappingMethods::items).transpose()?.into_iter().flatten() {
        let (name, ids): (String, Bound<'_, PyAny>) = item.extract()?;
        let ids = if ids.is_instance_of::<PyString>() || ids.is_instance_of::<PyInt>() {
            vec![text(&ids)?]
        } else {
            ids.try_iter()?.map(|id| text(&id?)).collect::<PyResult<_>>()?
        };
        match name.as_str() {
            "machineId" => selection.machines = ids,
            "deviceId" => selection.devices = ids,
            "tagGuid" => selection.tags = ids,
            other => return Err(refused(py, format!("The sandbox has no filter {other:?}."))),
        }
    }
    Ok(selection)
}

fn text(id: &Bound<'_, PyAny>) -> PyResult<String> {
    Ok(id.str()?.to_cow()?.into_owned())
}

/// The ten columns of siteline. Null slots of the doubles hold NaN, so that NumPy can look at them
/// where they lie.
pub(super) fn batch(truth: &Truth) -> Result<RecordBatch, ArrowError> {
    let mut columns: Vec<ArrayRef> = Vec::with_capacity(10);
    for id in 0..5 {
        columns.push(Arc::new(dictionary(truth, id)?));
    }
    let times = TimestampMicrosecondArray::from(truth.timestamp.clone());
    columns.push(Arc::new(times.with_timezone("UTC")));
    for values in [&truth.value, &truth.minimum, &truth.maximum] {
        let nulls = values.iter().map(Option::is_some).collect::<NullBuffer>();
        let values: Vec<f64> = values.iter().map(|value| value.unwrap_or(f64::NAN)).collect();
        columns.push(Arc::new(Float64Array::new(values.into(), Some(nulls))));
    }
    columns.push(Arc::new(Int64Array::from(truth.sample_count.clone())));
    RecordBatch::try_new(schema(&[]), columns)
}

fn dictionary(truth: &Truth, id: usize) -> Result<DictionaryArray<Int32Type>, ArrowError> {
    let mut values: Vec<&str> = Vec::new();
    let mut codes: HashMap<&str, i32> = HashMap::new();
    let mut of_series: Vec<Option<i32>> = Vec::with_capacity(truth.series.len());
    for identity in &truth.series {
        let (_, text) = identity.members()[id];
        let next = i32::try_from(values.len());
        let next = next.map_err(|_| ArrowError::DictionaryKeyOverflowError)?;
        of_series.push(text.map(|text| {
            *codes.entry(text).or_insert_with(|| {
                values.push(text);
                next
            })
        }));
    }
    let keys: Int32Array =
        truth.series_of.iter().map(|series| of_series[*series as usize]).collect();
    DictionaryArray::try_new(keys, Arc::new(StringArray::from(values)))
}
