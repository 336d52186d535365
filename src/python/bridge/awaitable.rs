//! An awaitable of the running asyncio loop for a future of the core.
//!
//! Written by hand because of three cases: the loop is closed while a call is pending, the awaitable
//! is cancelled or dropped, the interpreter is ending. In each of them the task ends silently.

use std::future::Future;

use pyo3::exceptions::{PyRuntimeError, PyStopIteration};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyWeakrefReference;
use tokio::runtime::Runtime;
use tokio::task::AbortHandle;

use crate::fork::Process;
use crate::lock::Mutex;
use crate::python::bridge::process::{Inside, attached};

/// Makes the result of a task, a Python object or an exception, with the interpreter held.
pub(crate) type Finish = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;

/// Starts `future` on `runtime`, and returns an awaitable that is completed when the future is.
/// Cancelling or dropping the awaitable drops the future, and with it the request.
///
/// # Errors
/// `RuntimeError` where no asyncio loop is running in this thread.
pub(crate) fn start<'py, F>(
    py: Python<'py>,
    runtime: &Runtime,
    future: F,
) -> PyResult<Bound<'py, PyAny>>
where
    F: Future<Output = Finish> + Send + 'static,
{
    let asyncio = py.import(intern!(py, "asyncio"))?;
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
        // Needs the interpreter, so it never runs on a thread that drives connections.
        tokio::task::spawn_blocking(move || receiver.deliver(finish));
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
    let asyncio = py.import(intern!(py, "asyncio"))?;
    let event_loop = asyncio.call_method0(intern!(py, "get_running_loop"))?;
    let waiter = event_loop.call_method0(intern!(py, "create_future"))?;
    settle(&waiter, outcome)?;
    Ok(waiter)
}

fn settle(waiter: &Bound<'_, PyAny>, outcome: PyResult<Py<PyAny>>) -> PyResult<()> {
    let py = waiter.py();
    let settled = match outcome {
        Ok(value) => waiter.call_method1(intern!(py, "set_result"), (value,)),
        Err(error) => {
            let error = if error.is_instance_of::<PyStopIteration>(py) {
                // An asyncio future refuses it, and would never be done. Python also replaces it by a
                // RuntimeError where a coroutine raises it.
                let renamed = PyRuntimeError::new_err("what was called back raised StopIteration");
                renamed.set_cause(py, Some(error));
                renamed
            } else {
                error
            };
            waiter.call_method1(intern!(py, "set_exception"), (error.into_value(py),))
        }
    };
    settled.map(drop)
}

/// Who awaits the result of a task.
struct Receiver {
    event_loop: Py<PyAny>,
    /// A weak reference to the awaitable.
    waiter: Py<PyAny>,
    /// The asyncio task that made the call, or `None`.
    task: Py<PyAny>,
}

impl Receiver {
    fn deliver(self, finish: Finish) {
        // Does nothing once the process is ending: no one awaits the result any more.
        attached(|py| {
            if let Err(raised) = self.schedule(py, finish) {
                raised.write_unraisable(py, None);
            }
            // Dropped without the interpreter, it would be kept until the interpreter is next held.
            self.task.drop_ref(py);
        });
    }

    /// Has the loop complete the awaitable. Does nothing where the loop is closed.
    fn schedule(&self, py: Python<'_>, finish: Finish) -> PyResult<()> {
        let event_loop = self.event_loop.bind(py);
        let waiter = self.waiter.bind(py).call0()?;
        if waiter.is_none() || event_loop.call_method0(intern!(py, "is_closed"))?.is_truthy()? {
            return Ok(());
        }
        let outcome = Py::new(py, Delivery(Mutex::new(Some(finish(py)))))?;
        let scheduled = event_loop
            .call_method1(intern!(py, "call_soon_threadsafe"), (outcome, waiter))
            .map(drop);
        // The loop may have been closed since it was checked.
        let is_closed = event_loop.call_method0(intern!(py, "is_closed"))?.is_truthy()?;
        if is_closed { Ok(()) } else { scheduled }
    }
}

/// The result of a task. The loop calls it in its thread, with the awaitable.
#[pyclass(frozen)]
struct Delivery(Mutex<Option<PyResult<Py<PyAny>>>>);

#[pymethods]
impl Delivery {
    fn __call__(&self, waiter: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = waiter.py();
        let _inside = Inside::enter(py);
        let outcome = self.0.lock().take();
        // It was cancelled meanwhile, and the loop has already resumed the task that awaited it.
        if waiter.call_method0(intern!(py, "done"))?.is_truthy()? {
            return Ok(());
        }
        outcome.map_or(Ok(()), |outcome| settle(waiter, outcome))
    }
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
