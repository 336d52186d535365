//! `Client.discover` and `Client.series`: one discovery request each.

use std::sync::Arc;

use bytes::Bytes;
use pyo3::prelude::*;

use crate::bridge::call::Call;
use crate::client::PyClient;
use crate::convert::values::discovery;
use crate::frame::ids;
use siteline_core::client::Client;
use siteline_core::error::Result;

impl PyClient {
    /// A discovery request, of whose body `finish` makes the result.
    fn asked(
        &self,
        finish: impl FnOnce(Python<'_>, Result<Bytes>) -> PyResult<Bound<'_, PyAny>> + Send + 'static,
    ) -> Call {
        let client = self.client.clone();
        let asked = async move { client.discover(None).await };
        Call::new(Arc::default(), asked, move |py, body| finish(py, body).map(Bound::unbind))
    }
}

#[pymethods]
impl PyClient {
    /// Gives a `siteline.Discovery`.
    fn discover(&self) -> Call {
        self.asked(discovery)
    }

    /// Gives the `siteline.Catalogue` of the body, and of the series that pages of the client had.
    fn series(&self, shape: Option<Py<PyAny>>) -> Call {
        let client = self.client.clone();
        self.asked(move |py, body| catalogue(py, &client, discovery(py, body)?, shape))
    }
}

fn catalogue<'py>(
    py: Python<'py>,
    client: &Client,
    found: Bound<'py, PyAny>,
    shape: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let (series, is_all) = client.seen().all();
    let series: Vec<_> = series.iter().map(|one| ids(py, one)).collect::<PyResult<_>>()?;
    let class = py.import("siteline.catalogue")?.getattr("Catalogue")?;
    class.call_method1("_of_client", (found, shape, series, is_all))
}
