//! Waits for the user's coroutine functions: an async signer, an async store.
//!
//! pyo3-async-runtimes begins the awaitable on the event loop and returns its outcome
//! ([`into_future_with_locals`]). This module does the rest. A coroutine whose caller gives up is
//! cancelled. A loop that is closed meanwhile is noticed. The future, which needs the interpreter when
//! it is polled, is polled on a thread that drives no connections, and not once the process is ending.
//! What the loop calls is counted as [`Inside`], because it runs Python code in a frame of the core.

#![expect(clippy::disallowed_methods, reason = "part of the one crossing")]

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use pyo3::exceptions::asyncio::CancelledError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::IntoPyDict as _;
use pyo3_async_runtimes::{TaskLocals, into_future_with_locals};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::bridge::process::{Inside, attached};
use crate::bridge::steps::on_blocking_thread;
use siteline_core::error::{Error, Kind};
use siteline_core::system::no_thread;

/// How often a wait checks whether the loop was closed: a loop has no callback for that.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

tokio::task_local! {
    /// The caller that awaits the polled future of the core, or for which a step runs; the tasks that
    /// these start are for it too. `None` where a thread waits for the future.
    pub(crate) static CALLER: Option<Caller>;
}

/// The event loop and the context variables of a call.
#[derive(Clone)]
pub(crate) struct Caller(TaskLocals);

impl Caller {
    /// The loop that is running in this thread.
    ///
    /// # Errors
    /// `RuntimeError` if none is running.
    pub(crate) fn running(py: Python<'_>) -> PyResult<Self> {
        Ok(Self(TaskLocals::with_running_loop(py)?.copy_context(py)?))
    }

    /// The caller of the future that this thread polls; `None` where a thread waits for it.
    pub(crate) fn current() -> Option<Self> {
        CALLER.try_with(Clone::clone).ok().flatten()
    }

    /// Begins an awaitable on the loop. The future gives its outcome; dropped, it cancels nothing.
    ///
    /// # Errors
    /// Where the loop is closed.
    pub(crate) fn begin(
        &self,
        awaitable: Bound<'_, PyAny>,
    ) -> PyResult<impl Future<Output = PyResult<Py<PyAny>>> + Send + use<>> {
        let py = awaitable.py();
        let event_loop = Bound::new(py, CountedLoop(self.0.event_loop(py).unbind()))?;
        let locals = TaskLocals::new(event_loop.into_any()).with_context(self.0.context(py));
        into_future_with_locals(&locals, awaitable)
    }

    fn is_closed(&self, py: Python<'_>) -> bool {
        let closed = self.0.event_loop(py).call_method0(intern!(py, "is_closed"));
        closed.and_then(|closed| closed.is_truthy()).unwrap_or(true)
    }
}

/// The event loop that pyo3-async-runtimes is given: its callbacks are counted as [`Inside`].
#[pyclass(frozen)]
struct CountedLoop(Py<PyAny>);

#[pymethods]
impl CountedLoop {
    #[pyo3(signature = (callback, *, context))]
    fn call_soon_threadsafe(
        &self,
        callback: Bound<'_, PyAny>,
        context: Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let py = callback.py();
        let counted = Bound::new(py, Counted(callback.unbind()))?;
        let keywords = [(intern!(py, "context"), context)].into_py_dict(py)?;
        let call = intern!(py, "call_soon_threadsafe");
        self.0.bind(py).call_method(call, (counted,), Some(&keywords)).map(drop)
    }
}

#[pyclass(frozen)]
struct Counted(Py<PyAny>);

#[pymethods]
impl Counted {
    fn __call__(&self, py: Python<'_>) -> PyResult<()> {
        let _inside = Inside::enter(py);
        self.0.call0(py).map(drop)
    }
}

/// Why a coroutine has no outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lost {
    /// Its event loop was closed.
    Loop,
    /// Its caller gave up, and it was cancelled.
    Unwanted,
    /// The process is ending.
    Process,
    /// The system started no thread that waits for it, so it was not begun.
    Thread,
}

impl Lost {
    pub(crate) fn error(self, whose: &str) -> Error {
        let why = match self {
            Self::Thread => return Error::no_thread(&no_thread()),
            Self::Loop => "its event loop was closed",
            Self::Unwanted => "its caller gave up",
            Self::Process => "Python is shutting down",
        };
        Error::new(Kind::ClosedError, format!("{whose} did not finish: {why}."))
    }
}

/// A call of the user's function on its loop: a `siteline._awaiting.Call`, and its outcome.
struct Begun<'a> {
    caller: &'a Caller,
    call: Py<PyAny>,
    outcome: Pin<Box<dyn Future<Output = PyResult<Py<PyAny>>> + Send>>,
}

impl<'a> Begun<'a> {
    fn begin(
        caller: &'a Caller,
        call: impl FnOnce(Python<'_>) -> PyResult<Py<PyAny>>,
    ) -> Result<PyResult<Self>, Lost> {
        attached(|py| match call(py) {
            Ok(_) if caller.is_closed(py) => Err(Lost::Loop),
            Ok(call) => {
                let outcome = caller.begin(call.bind(py).clone());
                Ok(outcome.map(|outcome| Self { caller, call, outcome: Box::pin(outcome) }))
            }
            Err(raised) => Ok(Err(raised)),
        })
        .unwrap_or(Err(Lost::Process))
    }

    /// The outcome, once it is here.
    async fn outcome(&mut self) -> Result<PyResult<Py<PyAny>>, Lost> {
        let Self { caller, outcome, .. } = self;
        poll_fn(|context| {
            let polled = attached(|py| match outcome.as_mut().poll(context) {
                // A closed loop cancels the tasks that it drops.
                Poll::Ready(Err(raised))
                    if raised.is_instance_of::<CancelledError>(py) && caller.is_closed(py) =>
                {
                    Poll::Ready(Err(Lost::Loop))
                }
                polled => polled.map(Ok),
            });
            polled.unwrap_or(Poll::Ready(Err(Lost::Process)))
        })
        .await
    }

    /// Waits for the outcome; each [`POLL_INTERVAL`] it checks whether the loop was closed. If
    /// `unwanted` ends first, the coroutine is cancelled on its loop.
    async fn wait(
        &mut self,
        mut unwanted: impl Future<Output = ()> + Unpin,
    ) -> Result<PyResult<Py<PyAny>>, Lost> {
        loop {
            let step = async {
                tokio::select! {
                    biased;
                    outcome = self.outcome() => outcome,
                    () = &mut unwanted => Err(Lost::Unwanted),
                }
            };
            match tokio::time::timeout(POLL_INTERVAL, step).await {
                Ok(Err(Lost::Unwanted)) => {
                    attached(|py| self.cancel(py));
                    return Err(Lost::Unwanted);
                }
                Ok(outcome) => return outcome,
                Err(_) => match attached(|py| self.caller.is_closed(py)) {
                    Some(false) => {}
                    Some(true) => return Err(Lost::Loop),
                    None => return Err(Lost::Process),
                },
            }
        }
    }

    fn cancel(&self, py: Python<'_>) {
        let cancel = self.call.bind(py).getattr(intern!(py, "cancel"));
        // Fails if the loop was closed meanwhile; then there is nothing to cancel.
        let _ = cancel.and_then(|cancel| {
            let event_loop = self.caller.0.event_loop(py);
            event_loop.call_method1(intern!(py, "call_soon_threadsafe"), (cancel,))
        });
    }
}

/// As [`outcome_of`], on this thread, which drives no connections and does not run the loop. Where
/// `unwanted` ends first, the coroutine is cancelled.
pub(crate) fn outcome_here<T>(
    caller: &Caller,
    call: impl FnOnce(Python<'_>) -> PyResult<Py<PyAny>>,
    unwanted: impl Future<Output = ()> + Unpin,
    finish: impl FnOnce(Python<'_>, PyResult<Bound<'_, PyAny>>) -> T,
) -> Result<T, Lost> {
    let outcome = match Begun::begin(caller, call)? {
        Err(raised) => Ok(Err(raised)),
        Ok(mut begun) => {
            let outcome = Handle::current().block_on(begun.wait(unwanted));
            attached(|py| begun.call.drop_ref(py));
            outcome
        }
    };
    let outcome = outcome?;
    attached(|py| finish(py, outcome.map(|value| value.into_bound(py)))).ok_or(Lost::Process)
}

/// Waits for a call of the user's function on the loop of `caller`: `call` makes a
/// `siteline._awaiting.Call`, `finish` reads its outcome. Dropping this future cancels the coroutine.
pub(crate) async fn outcome_of<T: Send + 'static>(
    caller: Caller,
    call: impl FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send + 'static,
    finish: impl FnOnce(Python<'_>, PyResult<Bound<'_, PyAny>>) -> T + Send + 'static,
) -> Result<T, Lost> {
    let (wanted, dropped) = oneshot::channel::<()>();
    let waiting = on_blocking_thread(move || {
        let unwanted = Box::pin(async { drop(dropped.await) });
        outcome_here(&caller, call, unwanted, finish)
    });
    let outcome = waiting.await;
    drop(wanted);
    outcome.unwrap_or(Err(Lost::Thread))
}
