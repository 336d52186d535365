//! `Client.discover` and `Client.series`: one discovery request each.

use bytes::Bytes;
use pyo3::types::PyBytes;

use crate::client::PyClient;
use crate::convert::values::discovery;
use crate::frame::ids;
use crate::prelude::*;

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

    /// Gives the body, where it has its series, the ids of the series that pages of the client had, and whether
    /// these are all.
    fn series(&self) -> Call {
        let client = self.client.clone();
        self.asked(move |py, body| {
            let body = body.or_raise()?;
            let shape = client.listed().raw().and_then(|(_, shape)| shape);
            let (seen, is_all) = client.seen().all();
            let seen: Vec<_> = seen.iter().map(|one| ids(py, one)).collect::<PyResult<_>>()?;
            let found = (PyBytes::new(py, &body), dict(py, &shape)?, seen, is_all);
            Ok(found.into_pyobject(py)?.into_any())
        })
    }
}
