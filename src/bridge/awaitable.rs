//! An awaitable of the running asyncio loop for a future of the core.
//!
//! Written by hand because of three cases: the loop is closed while a call is pending, the awaitable
//! is cancelled or dropped, the interpreter is ending. In each of them the task ends silently.

use std::future::Future;
use std::sync::Arc;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyWeakrefReference;
use tokio::runtime::Runtime;
use tokio::task::AbortHandle;

use crate::bridge::delivery::{Finish, Receiver, TaskResult, deliver, settle};
use crate::bridge::logging::LogBuffer;
use siteline_core::fork::Process;

/// Starts `future` on `runtime`, and returns an awaitable that is completed when the future is, after
/// the records of `buffer` were emitted. Cancelling or dropping the awaitable drops the future, and with
/// it the request.
///
/// # Errors
/// `RuntimeError` where no asyncio loop is running in this thread.
pub(crate) fn start<'py, F>(
    py: Python<'py>,
    runtime: &Runtime,
    buffer: Arc<LogBuffer>,
    future: F,
) -> PyResult<Bound<'py, PyAny>>
where
    F: Future<Output = Finish> + Send + 'static,
{
    let asyncio = asyncio(py)?;
    let event_loop = asyncio.call_method0(intern!(py, "get_running_loop"))?;
    let waiter = event_loop.call_method0(intern!(py, "create_future"))?;
    // The reference to the awaitable is weak: the task that completes it does not keep it alive. The
    // asyncio task that awaits it is kept alive: a loop has only weak references to its tasks, so the
    // garbage collector could take it while it waits.
    let receiver = Receiver {
        task: asyncio.call_method1(intern!(py, "current_task"), (&event_loop,))?.unbind(),
        event_loop: event_loop.unbind(),
        waiter: PyWeakrefReference::new(&waiter)?.into_any().unbind(),
    };
    let task = runtime.spawn(async move {
        let finish = future.await;
        deliver(TaskResult { receiver, finish, buffer });
    });
    let guard = Py::new(py, Guard::new(task.abort_handle()))?;
    waiter.call_method1(intern!(py, "add_done_callback"), (guard,))?;
    Ok(waiter)
}

/// An awaitable of the running asyncio loop that is done already.
///
/// # Errors
/// `RuntimeError` where no asyncio loop is running in this thread.
pub(crate) fn done(py: Python<'_>, outcome: PyResult<Py<PyAny>>) -> PyResult<Bound<'_, PyAny>> {
    let asyncio = asyncio(py)?;
    let event_loop = asyncio.call_method0(intern!(py, "get_running_loop"))?;
    let waiter = event_loop.call_method0(intern!(py, "create_future"))?;
    settle(&waiter, outcome)?;
    Ok(waiter)
}

/// The module, which `import` would look for at length in each call.
fn asyncio(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    static ASYNCIO: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module = ASYNCIO.get_or_try_init(py, || py.import("asyncio").map(Bound::unbind))?;
    Ok(module.bind(py))
}

/// A callback of the awaitable that ends the task: it is called when the awaitable is done or
/// cancelled, and dropped with it otherwise. In a forked child it does nothing: the task and the runtime
/// are its parent's.
#[pyclass(frozen)]
struct Guard {
    task: AbortHandle,
    process: Process,
}

impl Guard {
    fn new(task: AbortHandle) -> Self {
        Self { task, process: Process::current() }
    }

    fn abort(&self) {
        if self.process.is_current() {
            self.task.abort();
        }
    }
}

#[pymethods]
impl Guard {
    fn __call__(&self, _waiter: &Bound<'_, PyAny>) {
        self.abort();
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.abort();
    }
}
