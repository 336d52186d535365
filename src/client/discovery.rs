//! `Client.discover` and `Client.series`: one discovery request each.

use std::sync::Arc;

use bytes::Bytes;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::bridge::call::Call;
use crate::bridge::errors::OrRaise as _;
use crate::client::PyClient;
use crate::convert::state::dict;
use crate::convert::values::discovery;
use crate::frame::ids;
use siteline_core::client::Client;
use siteline_core::error::{Kind, Result};
use siteline_core::http::Deadline;

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

    /// One discovery request for the names of series, for all that wait for it; `None` if the client has had
    /// a response or a refusal. Gives the text of a refusal, without which the read goes on.
    pub(crate) fn names(&self, deadline: Deadline) -> Option<Call> {
        let naming = Arc::clone(self.naming.get_or_init(Arc::default));
        let client = self.client.clone();
        let is_known =
            |client: &Client, is_refused: bool| is_refused || client.listed().raw().is_some();
        if is_known(&client, naming.try_lock().is_ok_and(|is_refused| *is_refused)) {
            return None;
        }
        let asked = async move {
            let mut is_refused = naming.lock().await;
            if is_known(&client, *is_refused) {
                return Ok(None);
            }
            match client.discover(deadline.left(client.time().clock())).await {
                Err(error) if !ends_read(error.kind()) => {
                    *is_refused = true;
                    Ok(Some(error.to_string()))
                }
                asked => asked.map(|_| None),
            }
        };
        let finish = |py: Python<'_>, refusal: Result<Option<String>>| {
            Ok(refusal.or_raise()?.into_pyobject(py)?.unbind())
        };
        Some(Call::new(Arc::default(), asked, finish))
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

/// Whether pages of data would not be sent either.
fn ends_read(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::AgentUnavailable
            | Kind::AuthenticationError
            | Kind::ClockSkewError
            | Kind::ClosedError
            | Kind::ConfigError
            | Kind::CredentialError
            | Kind::DeadlineExceeded
            | Kind::ForkError
            | Kind::InternalError
            | Kind::ProxyError
            | Kind::TlsError
            | Kind::TransportError
    )
}
