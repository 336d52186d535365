//! [`Call`]: a verb of the core that waits. A thread and an event loop share it, so that no verb exists twice.

use std::future::Future;
use std::sync::Arc;

use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;

use crate::bridge::events::Events;
use crate::bridge::process::guarded;
use crate::bridge::runtime::{block_on, spawn};
use siteline_base::lock::Mutex;

/// How a call is driven.
pub(crate) enum Driver {
    /// The caller's thread waits for the result.
    Blocking,
    /// The caller gets an asyncio future of the result.
    Asyncio,
}

type Work = Box<dyn FnOnce(Python<'_>, Driver) -> PyResult<Py<PyAny>> + Send>;

/// A verb of the core that waits. It does nothing before `wait()`, `start()` or `await`, and is used once.
#[pyclass(frozen, name = "Call", module = "siteline._core")]
pub(crate) struct Call(Mutex<Option<Work>>);

impl Call {
    /// A call that runs `future`; `finish` makes the Python object, or the exception, of its output.
    pub(crate) fn new<F>(
        events: Arc<Events>,
        future: F,
        finish: impl FnOnce(Python<'_>, F::Output) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> Self
    where
        F: Future<Output: Send> + Send + 'static,
    {
        Self::of_work(move |py, driver| match driver {
            Driver::Blocking => finish(py, block_on(py, &events, future)?),
            Driver::Asyncio => spawn(py, events, future, finish).map(Bound::unbind),
        })
    }

    pub(crate) fn of_work(
        work: impl FnOnce(Python<'_>, Driver) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> Self {
        Self(Mutex::new(Some(Box::new(work))))
    }

    fn run(&self, py: Python<'_>, driver: Driver) -> PyResult<Py<PyAny>> {
        let work = self.0.lock().take();
        let used = || PyRuntimeError::new_err("this call was already used: make another");
        guarded(|| work.ok_or_else(used)?(py, driver))
    }
}

#[pymethods]
impl Call {
    pub(crate) fn wait(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.run(py, Driver::Blocking)
    }

    /// The asyncio future of the result. The work has begun.
    fn start(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.run(py, Driver::Asyncio)
    }

    /// The iterator of an asyncio future has `throw` and `close`.
    fn __await__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.start(py)?.call_method0(py, intern!(py, "__await__"))
    }
}
