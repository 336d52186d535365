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

/// Work that has not begun, in its two forms.
pub(crate) trait Work: Send {
    /// Does the work; the caller's thread waits.
    fn wait(self: Box<Self>, py: Python<'_>) -> PyResult<Py<PyAny>>;

    /// Begins the work, and returns the asyncio future of its result.
    fn start(self: Box<Self>, py: Python<'_>) -> PyResult<Bound<'_, PyAny>>;
}

/// A verb of the core that waits. It does nothing before `wait()`, `start()` or `await`, and is used once.
#[pyclass(frozen, name = "Call", module = "siteline._core")]
pub(crate) struct Call(Mutex<Option<Box<dyn Work>>>);

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
        Self::of_work(Async { events, future, finish })
    }

    pub(crate) fn of_work(work: impl Work + 'static) -> Self {
        Self(Mutex::new(Some(Box::new(work))))
    }

    fn take(&self) -> PyResult<Box<dyn Work>> {
        let work = self.0.lock().take();
        work.ok_or_else(|| PyRuntimeError::new_err("this call was already used: make another"))
    }
}

#[pymethods]
impl Call {
    pub(crate) fn wait(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        guarded(|| self.take()?.wait(py))
    }

    /// The asyncio future of the result. The work has begun.
    fn start<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        guarded(|| self.take()?.start(py))
    }

    /// The iterator of an asyncio future has `throw` and `close`.
    fn __await__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.start(py)?.call_method0(intern!(py, "__await__"))
    }
}

/// A future of the core.
struct Async<F, M> {
    events: Arc<Events>,
    future: F,
    finish: M,
}

impl<F, M> Work for Async<F, M>
where
    F: Future<Output: Send> + Send + 'static,
    M: FnOnce(Python<'_>, F::Output) -> PyResult<Py<PyAny>> + Send + 'static,
{
    fn wait(self: Box<Self>, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let Self { events, future, finish } = *self;
        let outcome = block_on(py, &events, future)?;
        finish(py, outcome)
    }

    fn start(self: Box<Self>, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        let Self { events, future, finish } = *self;
        spawn(py, events, future, finish)
    }
}
