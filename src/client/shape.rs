//! `siteline.shapes.Shape`: what the user knows about replies and the interface document does not specify.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::bridge::errors::OrRaise as _;
use crate::bridge::process::guarded;
use crate::convert::keywords::{keywords, record};
use siteline_core::data::Shape;

/// The shape of these members.
///
/// # Errors
/// `TypeError` for a member of another name or type, `ConfigError` for other values.
pub(crate) fn shape_of(members: &Bound<'_, PyDict>) -> PyResult<Shape> {
    let shape: Shape = record(members.py(), &keywords(Some(members))?)?;
    guarded(|| shape.check().or_raise())?;
    Ok(shape)
}

/// Refuses members that are no shape.
#[pyfunction]
pub(crate) fn check_shape(members: &Bound<'_, PyDict>) -> PyResult<()> {
    shape_of(members).map(drop)
}
