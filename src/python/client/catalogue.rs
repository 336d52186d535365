//! `siteline.Catalogue` of a discovery response.

use bytes::Bytes;
use pyo3::prelude::*;

use crate::client::Client;
use crate::error::Result;
use crate::python::convert::labels::ids;
use crate::python::convert::values::discovery;

/// The `siteline.Catalogue` of a discovery response, and of the series that pages of the client had.
///
/// # Errors
/// That of the response; `QueryError` for a shape that is none, or is not that of the body.
pub(super) fn catalogue<'py>(
    py: Python<'py>,
    client: &Client,
    body: Result<Bytes>,
    shape: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let found = discovery(py, body)?;
    let (series, is_all) = client.seen().all();
    let series: Vec<_> = series.iter().map(|one| ids(py, one)).collect::<PyResult<_>>()?;
    let class = py.import("siteline.catalogue")?.getattr("Catalogue")?;
    class.call_method1("_of_client", (found, shape, series, is_all))
}
