//! `Client.series()`: the `siteline.Catalogue` of a discovery response.

use std::sync::Arc;

use bytes::Bytes;
use pyo3::prelude::*;

use crate::bridge::process::guarded;
use crate::bridge::runtime::{block_on, spawn};
use crate::client::PyClient;
use crate::convert::values::discovery;
use crate::frame::ids;
use siteline_core::client::Client;
use siteline_core::error::Result;

/// The `siteline.Catalogue` of a discovery response, and of the series that pages of the client had.
///
/// # Errors
/// That of the response; `QueryError` for a shape that is none, or is not that of the body.
fn catalogue<'py>(
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

#[pymethods]
impl PyClient {
    /// Request the catalogue of series (§4.2): a :class:`Catalogue`, one row for each series that
    /// discovery lists, with names and units, found by shape.
    ///
    /// - ``shape``: where the body has what, if that is known: :class:`DiscoveryShape`
    ///
    /// One discovery request, which the daily allowance does not count. Where discovery names no series that
    /// is recognised, those are listed that pages of this client had, with a :class:`SitelineWarning`.
    ///
    /// >>> client.series().find("speed", line="L2").to_pandas()["label"].tolist()
    /// ['D31 / speed [1/min]', 'D41 / speed [1/min]']
    #[pyo3(signature = (*, shape=None), text_signature = "($self, *, shape=None)")]
    fn series<'py>(
        &self,
        py: Python<'py>,
        shape: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let client = self.client.clone();
        let asked = async move { client.discover(None).await };
        guarded(|| {
            let body = block_on(py, &Arc::default(), asked)?;
            catalogue(py, &self.client, body, shape)
        })
    }

    /// As ``series()``, an awaitable of the running asyncio loop.
    fn _series<'py>(
        &self,
        py: Python<'py>,
        shape: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (client, this) = (self.client.clone(), self.client.clone());
        spawn(py, Arc::default(), async move { client.discover(None).await }, move |py, body| {
            let shape = shape.as_ref().map(|shape| shape.bind(py));
            catalogue(py, &this, body, shape).map(Bound::unbind)
        })
    }
}
