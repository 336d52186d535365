//! From a future of the core to an awaitable of the running asyncio loop, and back when it is done.
//!
//! Written out here because all that can go wrong lies in these lines: a loop that was closed with
//! a call pending, a waiter that was cancelled or dropped, an interpreter that is ending. In each of
//! these the task ends and nobody hears of it.

use std::future::Future;

use pyo3::exceptions::{PyRuntimeError, PyStopIteration};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyWeakrefReference;
use tokio::runtime::Runtime;
use tokio::task::AbortHandle;

use crate::lock::Mutex;
use crate::python::bridge::process::{Inside, attached};

/// What a task hands over: a Python object or an exception, made with the interpreter held.
pub(crate) type Finish = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;

/// Starts `future` on `runtime`, and gives the awaitable that its end completes. Cancelling the
/// awaitable, or dropping it, drops the future and with it the request.
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
    // Weak: an awaitable that nobody holds any more is not kept alive by what serves it. Whoever
    // awaits it is: a loop itself holds its tasks weakly, and one that nobody else holds would be
    // collected in the middle of its wait.
    let address = Address {
        waiting: asyncio.call_method1(intern!(py, "current_task"), (&event_loop,))?.unbind(),
        event_loop: event_loop.unbind(),
        waiter: PyWeakrefReference::new(&waiter)?.into_any().unbind(),
    };
    let task = runtime.spawn(async move {
        let finish = future.await;
        // Delivering takes the interpreter: never on a thread that drives connections.
        tokio::task::spawn_blocking(move || address.deliver(finish));
    });
    let guard = Py::new(py, Guard(Mutex::new(Some(task.abort_handle()))))?;
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
                // No future takes that one: it would never be done. Python itself renames it thus.
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

/// Where the end of a task is to be told.
struct Address {
    event_loop: Py<PyAny>,
    waiter: Py<PyAny>,
    /// The task of the loop that asked, or `None`.
    waiting: Py<PyAny>,
}

impl Address {
    fn deliver(self, finish: Finish) {
        // `None` once the process is ending: nobody waits any more.
        let told = attached(|py| {
            let told = self.tell(py, finish);
            // Now, and not when the interpreter is next at hand.
            self.waiting.drop_ref(py);
            told
        });
        if let Some(Err(raised)) = told {
            attached(|py| raised.write_unraisable(py, None));
        }
    }

    fn tell(&self, py: Python<'_>, finish: Finish) -> PyResult<()> {
        let event_loop = self.event_loop.bind(py);
        let waiter = self.waiter.bind(py).call0()?;
        if waiter.is_none() || event_loop.call_method0(intern!(py, "is_closed"))?.is_truthy()? {
            return Ok(());
        }
        let outcome = Py::new(py, Delivery(Mutex::new(Some(finish(py)))))?;
        let told = event_loop
            .call_method1(intern!(py, "call_soon_threadsafe"), (outcome, waiter))
            .map(drop);
        // Closed just now, it has no one to hear of it either.
        if event_loop.call_method0(intern!(py, "is_closed"))?.is_truthy()? { Ok(()) } else { told }
    }
}

/// Called by the loop, in its thread, with the waiter.
#[pyclass(frozen)]
struct Delivery(Mutex<Option<PyResult<Py<PyAny>>>>);

#[pymethods]
impl Delivery {
    fn __call__(&self, waiter: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = waiter.py();
        let _inside = Inside::enter(py);
        let outcome = self.0.lock().take();
        // Cancelled in the meantime: the loop has told whoever waited.
        if waiter.call_method0(intern!(py, "done"))?.is_truthy()? {
            return Ok(());
        }
        outcome.map_or(Ok(()), |outcome| settle(waiter, outcome))
    }
}

/// Hangs on the waiter as its callback. Called when the waiter is done or cancelled, dropped with
/// it when it is not: either way the task is over.
#[pyclass(frozen)]
struct Guard(Mutex<Option<AbortHandle>>);

impl Guard {
    fn end(&self) {
        if let Some(task) = self.0.lock().take() {
            task.abort();
        }
    }
}

#[pymethods]
impl Guard {
    fn __call__(&self, _waiter: &Bound<'_, PyAny>) {
        self.end();
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.end();
    }
}
