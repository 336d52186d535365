//! The one crossing between Python and the core. Whatever Python waits for goes through
//! [`block_on`], or through [`spawn`] in asyncio: two doors to one future of the core. Whatever
//! keeps a processor busy goes through [`detached`]. Nothing else in this crate releases the
//! interpreter or blocks on a future.

#![expect(clippy::disallowed_methods, reason = "the one crossing")]

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use pyo3::intern;
use pyo3::prelude::*;
use tokio::runtime::{Builder, Runtime};
use tokio::task::AbortHandle;

use crate::error::{Error, Kind};
use crate::python::awaitable;
use crate::python::errors::raise;
use crate::python::logging::{Desk, is_in_handler};
use crate::python::process::{Inside, is_ending_here, stay_if_ending, undivided};
use crate::python::steps::{Elsewhere, Outcome, Steps};

/// Threads that drive connections and the calls of asyncio; other calls run on the threads that
/// wait for them.
const DRIVER_THREADS: usize = 2;

static RUNTIME: Mutex<Option<(u32, Arc<Runtime>)>> = Mutex::new(None);

/// The runtime of this process. The interpreter is released meanwhile: a thread that is about to
/// fork has the steps stand still, and may want the interpreter back before it does.
fn runtime(py: Python<'_>) -> PyResult<Arc<Runtime>> {
    detached(py, || undivided(own_runtime))?.map_err(|error| raise(py, &error))
}

/// After a fork the child gets a new one; the inherited one is leaked, for its threads do not exist
/// in the child and dropping it would wait for them.
fn own_runtime() -> Result<Arc<Runtime>, Error> {
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
/// the signal handler raised; the future is dropped, and with it its request. A panic surfaces as
/// `InternalError`.
pub(crate) fn block_on<T, E, F>(py: Python<'_>, future: F) -> PyResult<Result<T, E>>
where
    T: Send + 'static,
    E: Send + 'static,
    F: Future<Output = Result<T, E>> + Send + 'static,
{
    block_on_at(py, &Arc::default(), future)
}

/// As [`block_on`], with a desk where more may lie than this call says.
pub(crate) fn block_on_at<T, E, F>(
    py: Python<'_>,
    desk: &Arc<Desk>,
    future: F,
) -> PyResult<Result<T, E>>
where
    T: Send + 'static,
    E: Send + 'static,
    F: Future<Output = Result<T, E>> + Send + 'static,
{
    let _inside = Inside::enter(py);
    let runtime = runtime(py)?;
    let hears_signals = is_main_thread(py)?;
    let process = std::process::id();
    let outcome = py.detach(|| {
        let steps = Steps::new(future, Arc::clone(desk));
        let outcome = waited_for(&runtime, steps, hears_signals);
        stay_if_ending();
        outcome
    });
    let outcome = outcome.and_then(|outcome| outcome.map_err(|panic| panicked(py, &*panic)));
    // Forked meanwhile: it is for the parent to hand over.
    if std::process::id() == process {
        desk.clear(py)?;
    }
    outcome
}

/// Starts `future` on the runtime and gives an awaitable of the running asyncio loop; `finish` makes
/// a Python object or an exception of the outcome. Cancelling the awaitable drops the future, and
/// with it its request.
///
/// # Errors
/// `RuntimeError` where no asyncio loop is running in this thread.
pub(crate) fn spawn<T, E, F>(
    py: Python<'_>,
    future: F,
    finish: impl FnOnce(Python<'_>, Result<T, E>) -> PyResult<Py<PyAny>> + Send + 'static,
) -> PyResult<Bound<'_, PyAny>>
where
    T: Send + 'static,
    E: Send + 'static,
    F: Future<Output = Result<T, E>> + Send + 'static,
{
    spawn_at(py, Arc::default(), future, finish)
}

/// As [`spawn`], with a desk where more may lie than this call says.
pub(crate) fn spawn_at<T, E, F>(
    py: Python<'_>,
    desk: Arc<Desk>,
    future: F,
    finish: impl FnOnce(Python<'_>, Result<T, E>) -> PyResult<Py<PyAny>> + Send + 'static,
) -> PyResult<Bound<'_, PyAny>>
where
    T: Send + 'static,
    E: Send + 'static,
    F: Future<Output = Result<T, E>> + Send + 'static,
{
    let _inside = Inside::enter(py);
    if is_ending_here() {
        // No other thread may deliver any more, so it is waited for.
        let outcome = block_on_at(py, &desk, future)?;
        return awaitable::done(py, finish(py, outcome));
    }
    let runtime = runtime(py)?;
    awaitable::start(py, &runtime, async move {
        let mut steps = Steps::new(future, Arc::clone(&desk));
        let outcome = loop {
            if let Some(outcome) = steps.for_a_while().await {
                break outcome;
            }
        };
        drop(steps);
        let finish: awaitable::Finish = Box::new(move |py| {
            desk.clear(py)?;
            match outcome {
                Ok(outcome) => finish(py, outcome),
                Err(panic) => Err(panicked(py, &*panic)),
            }
        });
        finish
    })
}

/// Work on the runtime that nobody waits for. Dropped, it ends, and with it its request.
pub(crate) struct Aside {
    process: u32,
    task: AbortHandle,
}

impl Drop for Aside {
    fn drop(&mut self) {
        // In a forked child the task is the parent's, whose runtime must not be touched.
        if self.process == std::process::id() {
            self.task.abort();
        }
    }
}

/// Begins a task for whose outcome a call of the core waits: taken step by step like the call itself,
/// and saying what it says at the desk of that call. `None` where the process is ending.
pub(crate) fn begin_task(task: BoxFuture<'static, ()>) -> Option<AbortHandle> {
    if is_ending_here() {
        return None;
    }
    Some(tokio::spawn(step_by_step(Desk::of_this_step(), task)).abort_handle())
}

/// A panic has nobody to hear of it: whoever waits for what the work was to bring hears that it is
/// gone, and whoever asks for it later does it again.
fn step_by_step(
    desk: Arc<Desk>,
    work: impl Future<Output = ()> + Send,
) -> impl Future<Output = ()> + Send {
    // What the calls of a handler have to say would never end.
    let desk = if is_in_handler() { Arc::default() } else { desk };
    let done = async {
        work.await;
        Ok::<(), Error>(())
    };
    async move { drop(Steps::new(done, desk).await) }
}

/// Where work is begun that nobody waits for.
pub(crate) struct Asides(Arc<Runtime>);

/// `None` where the process is ending: nothing is begun any more that nobody waits for.
pub(crate) fn asides(py: Python<'_>) -> PyResult<Option<Asides>> {
    let _inside = Inside::enter(py);
    if is_ending_here() { Ok(None) } else { runtime(py).map(|runtime| Some(Asides(runtime))) }
}

impl Asides {
    /// Begins `future`. What it says lies on the desk until somebody else clears it.
    pub(crate) fn begin<F>(&self, desk: Arc<Desk>, future: F) -> Aside
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let task = self.0.spawn(step_by_step(desk, future));
        Aside { process: std::process::id(), task: task.abort_handle() }
    }
}

/// Drives the future on this thread, and looks up now and then. The runtime is left for that: a
/// signal handler may use siteline itself, and may fork. What it uses may be what this call has taken,
/// a scan or the token: the future goes on elsewhere meanwhile.
fn waited_for<T, E, F>(
    runtime: &Runtime,
    mut steps: Steps<F>,
    hears_signals: bool,
) -> PyResult<Outcome<T, E>>
where
    T: Send + 'static,
    E: Send + 'static,
    F: Future<Output = Result<T, E>> + Send + 'static,
{
    // To drop the future may start a task, and takes this for it.
    let _entered = runtime.enter();
    let process = std::process::id();
    loop {
        if let Some(outcome) = runtime.block_on(steps.for_a_while()) {
            return Ok(outcome);
        }
        stay_if_ending();
        if !hears_signals {
            continue;
        }
        if is_in_handler() {
            // Elsewhere, what it says would be told to the very handler that it is for.
            let heard = interrupted();
            if std::process::id() != process {
                std::mem::forget(steps);
                return Err(heard.err().unwrap_or_else(forked_meanwhile));
            }
            heard?;
            continue;
        }
        let elsewhere = Elsewhere::begin(runtime, steps);
        let heard = interrupted();
        if std::process::id() != process {
            // Nobody drives the runtime in the child, and the connections are the parent's.
            std::mem::forget(elsewhere);
            return Err(heard.err().unwrap_or_else(forked_meanwhile));
        }
        let outcome;
        (steps, outcome) = runtime
            .block_on(elsewhere.end())
            .map_err(|error| Python::attach(|py| raise(py, &error)))?;
        heard?;
        if let Some(outcome) = outcome {
            return Ok(outcome);
        }
    }
}

fn forked_meanwhile() -> PyErr {
    let error =
        Error::new(Kind::Fork, "the process forked while this call waited, in a signal handler")
            .with_hint("the parent's call goes on; call again in the child");
    Python::attach(|py| raise(py, &error))
}

/// The exception of a signal handler that ran just now: `KeyboardInterrupt` for Ctrl-C.
#[expect(
    clippy::redundant_closure_for_method_calls,
    reason = "the method itself is not general enough over lifetimes"
)]
fn interrupted() -> PyResult<()> {
    Python::attach(|py| py.check_signals())
}

/// Python runs signal handlers in its main thread only.
fn is_main_thread(py: Python<'_>) -> PyResult<bool> {
    let threading = py.import(intern!(py, "threading"))?;
    let main = threading.call_method0(intern!(py, "main_thread"))?;
    let here = threading.call_method0(intern!(py, "get_ident"))?;
    main.getattr(intern!(py, "ident"))?.eq(here)
}

/// Runs `work` on this thread with the interpreter released.
pub(crate) fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    let _inside = Inside::enter(py);
    let outcome = py.detach(|| {
        let outcome = catch_unwind(AssertUnwindSafe(work));
        stay_if_ending();
        outcome
    });
    outcome.map_err(|panic| panicked(py, &*panic))
}

/// Drops what holds open requests, as a wait does that is given up.
pub(crate) fn let_go<T: Send>(py: Python<'_>, held: T) -> PyResult<()> {
    let runtime = runtime(py)?;
    // To drop a future may start a task.
    detached(py, move || {
        let _entered = runtime.enter();
        undivided(|| drop(held));
    })
}

/// Runs a short step of the core that reads or writes files, on this thread, with the interpreter
/// released; no fork cuts through it.
pub(crate) fn step<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    detached(py, || undivided(work))
}

/// As [`step`], on a thread of its own: gives an awaitable of the running asyncio loop, which is not
/// held up. Once begun it is done to its end, whether or not somebody still waits for it.
///
/// # Errors
/// `RuntimeError` where no asyncio loop is running in this thread.
pub(crate) fn spawn_step<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
    finish: impl FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static,
) -> PyResult<Bound<'_, PyAny>> {
    let done = async move {
        match tokio::task::spawn_blocking(move || undivided(work)).await {
            Ok(outcome) => outcome,
            Err(lost) => match lost.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => Err(Error::new(Kind::Internal, "the runtime ended before its work")),
            },
        }
    };
    spawn(py, done, move |py, outcome| {
        outcome.map_err(|error| raise(py, &error)).and_then(|value| finish(py, value))
    })
}

/// Runs work that needs the interpreter, and may call Python code; a panic surfaces as
/// `InternalError` here too.
pub(crate) fn guarded<T>(work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    let _inside = Python::attach(Inside::enter);
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|panic| Python::attach(|py| Err(panicked(py, &*panic))))
}

fn panicked(py: Python<'_>, panic: &(dyn Any + Send)) -> PyErr {
    let what = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without words".to_owned());
    let error = Error::new(Kind::Internal, format!("siteline met a defect of its own: {what}"))
        .with_hint("The client can still be used. Please report this with what you called.");
    raise(py, &error)
}

/// A door for the tests: panics at each kind of entry, so that it is seen what becomes of it. No
/// wheel that users get has it, for those are built without debug assertions.
#[cfg(debug_assertions)]
pub(super) mod panic {
    use pyo3::prelude::*;

    use super::{block_on, detached, guarded, spawn};

    fn defect<T>() -> PyResult<T> {
        panic!("a panic for a test")
    }

    #[pyfunction]
    fn _panic<'py>(py: Python<'py>, at: &str) -> PyResult<Bound<'py, PyAny>> {
        match at {
            "wait" => block_on(py, async { defect::<()>() })?.map(|()| py.None().into_bound(py)),
            "await" => spawn(py, async { defect::<()>() }, |py, _| Ok(py.None())),
            "work" => detached(py, defect::<()>)?.map(|()| py.None().into_bound(py)),
            _ => guarded(defect),
        }
    }

    /// Adds `_panic`, past `add_function`, which would list it in `__all__`.
    pub(in crate::python) fn export(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.as_any().setattr("_panic", wrap_pyfunction!(_panic, module)?)
    }
}
