//! The one crossing between Python and the core. Whatever Python waits for goes through
//! [`block_on`]; whatever keeps a processor busy goes through [`detached`]. Nothing else in this
//! crate releases the interpreter or blocks on a future.

#![expect(clippy::disallowed_methods, reason = "the one crossing")]

use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use futures_util::FutureExt as _;
use pyo3::prelude::*;
use tokio::runtime::{Builder, Handle, Runtime};

use crate::error::{Error, Kind};
use crate::python::errors::raise;
use crate::python::logging::watched;

/// How often a waiting thread asks Python whether Ctrl-C was pressed.
const SIGNAL_POLL: Duration = Duration::from_millis(50);
/// Threads that drive connections; the calls themselves run on the threads that wait for them.
const DRIVER_THREADS: usize = 2;

static RUNTIME: Mutex<Option<(u32, Arc<Runtime>)>> = Mutex::new(None);

/// The runtime of this process. After a fork the child gets a new one; the inherited one is leaked,
/// for its threads do not exist in the child and dropping it would wait for them.
fn runtime() -> Result<Arc<Runtime>, Error> {
    let process = std::process::id();
    let mut slot = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    match slot.take() {
        Some((owner, runtime)) if owner == process => {
            *slot = Some((owner, Arc::clone(&runtime)));
            return Ok(runtime);
        }
        Some(inherited) => std::mem::forget(inherited),
        None => {}
    }
    let runtime = Builder::new_multi_thread()
        .worker_threads(DRIVER_THREADS)
        .thread_name("siteline")
        .enable_all()
        .build()
        .map_err(|error| {
            Error::new(Kind::Internal, format!("the runtime could not start: {error}"))
        })?;
    let runtime = Arc::new(runtime);
    *slot = Some((process, Arc::clone(&runtime)));
    Ok(runtime)
}

/// Waits for `future` with the interpreter released. Ctrl-C ends the wait with the exception that
/// the signal handler raised; the future is dropped, and with it its request. What a log handler
/// raised ends it likewise. A panic surfaces as `InternalError`.
pub(crate) fn block_on<T, E, F>(py: Python<'_>, future: F) -> PyResult<Result<T, E>>
where
    T: Send,
    E: Send,
    F: Future<Output = Result<T, E>> + Send,
{
    let runtime = runtime().map_err(|error| raise(py, &error))?;
    let wait = || {
        runtime.block_on(async {
            let mut future = pin!(AssertUnwindSafe(future).catch_unwind());
            let mut step = poll_fn(|context| match watched(|| future.as_mut().poll(context)) {
                (_, Some(raised)) => Poll::Ready(Err(raised)),
                (polled, None) => polled.map(|outcome| outcome.map_err(|panic| panicked(&*panic))),
            });
            loop {
                match tokio::time::timeout(SIGNAL_POLL, &mut step).await {
                    Ok(outcome) => return outcome,
                    Err(_) => interrupted()?,
                }
            }
        })
    };
    // A signer or a log handler runs within a wait, and may ask the client for something itself.
    py.detach(|| match Handle::try_current() {
        Ok(_) => tokio::task::block_in_place(wait),
        Err(_) => wait(),
    })
}

/// The exception of a signal handler that ran just now: `KeyboardInterrupt` for Ctrl-C.
#[expect(
    clippy::redundant_closure_for_method_calls,
    reason = "the method itself is not general enough over lifetimes"
)]
fn interrupted() -> PyResult<()> {
    Python::attach(|py| py.check_signals())
}

/// Runs `work` on this thread with the interpreter released.
pub(crate) fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    py.detach(|| catch_unwind(AssertUnwindSafe(work))).map_err(|panic| panicked(&*panic))
}

/// Runs short work that needs the interpreter; a panic surfaces as `InternalError` here too.
pub(crate) fn guarded<T>(work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(panicked(&*panic)))
}

fn panicked(panic: &(dyn Any + Send)) -> PyErr {
    let what = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without words".to_owned());
    let error = Error::new(Kind::Internal, format!("siteline met a defect of its own: {what}"))
        .with_hint("The client can still be used. Please report this with what you called.");
    Python::attach(|py| raise(py, &error))
}

/// A door for the tests: panics at each kind of entry, so that it is seen what becomes of it. No
/// wheel that users get has it, for those are built without debug assertions.
#[cfg(debug_assertions)]
pub(super) mod panic {
    use pyo3::prelude::*;

    use super::{block_on, detached, guarded};

    fn defect() -> PyResult<()> {
        panic!("a panic for a test")
    }

    #[pyfunction]
    fn _panic(py: Python<'_>, at: &str) -> PyResult<()> {
        match at {
            "wait" => block_on(py, async { defect() })?,
            "work" => detached(py, defect)?,
            _ => guarded(defect),
        }
    }

    /// Adds `_panic`, past `add_function`, which would list it in `__all__`.
    pub(in crate::python) fn export(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.as_any().setattr("_panic", wrap_pyfunction!(_panic, module)?)
    }
}
