//! `sandbox.truth(...)`: its filters and its points.

use crate::bridge::errors::IntoPyErr as _;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyInt, PyMapping, PyString};

use super::arguments::microseconds;
use siteline_core::data::{Identity, PointColumns, TableBuilder};
use siteline_core::error::Result;
use siteline_sandbox::{AsOf, SandboxError, Selection, Truth};

/// The series that the arguments select.
pub(super) fn selection(
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
        let Some(accepted) = selection.filter(&name) else {
            return Err(
                SandboxError::new(format!("The sandbox has no filter {name:?}.")).into_py_err()
            );
        };
        *accepted = if ids.is_instance_of::<PyString>() || ids.is_instance_of::<PyInt>() {
            vec![text(&ids)?]
        } else {
            ids.try_iter()?.map(|id| text(&id?)).collect::<PyResult<_>>()?
        };
    }
    Ok(selection)
}

/// `"final"`, or a time.
pub(super) fn as_of(at: &Bound<'_, PyAny>, name: &str) -> PyResult<AsOf> {
    let is_final = at.cast::<PyString>().is_ok_and(|text| text == "final");
    if is_final { Ok(AsOf::Final) } else { microseconds(at, name).map(AsOf::Time) }
}

fn text(id: &Bound<'_, PyAny>) -> PyResult<String> {
    Ok(id.str()?.to_cow()?.into_owned())
}

/// The truth as points.
pub(super) fn points(truth: &Truth) -> Result<PointColumns> {
    let identity = |members: [(&str, Option<&str>); 5]| {
        Identity::from(members.map(|(_, text)| text.map(Arc::from)))
    };
    let series: Vec<Identity> =
        truth.series.iter().map(|series| identity(series.members())).collect();
    let mut table = TableBuilder::new(truth.timestamp.len());
    for (row, timestamp) in truth.timestamp.iter().enumerate() {
        let numbers = [truth.value[row], truth.minimum[row], truth.maximum[row]];
        table.push(*timestamp, numbers, truth.sample_count[row]);
        table.series(&series[truth.series_of[row] as usize]);
    }
    table.finish()
}
