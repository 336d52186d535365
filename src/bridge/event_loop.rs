//! [`EventLoop`]: the asynchronous driver. A loop has one queue of jobs: to complete a call, to handle the
//! events of a call, to begin a coroutine of the user. They run in the thread of the loop. One thread of the
//! core wakes loops, because `call_soon_threadsafe` needs the interpreter; it runs nothing else in Python.
//!
//! Written by hand because of three cases: the loop is closed while a call is pending, the awaitable
//! is cancelled or dropped, the interpreter is ending. In each of them the call ends silently.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use pyo3::exceptions::{PyRuntimeError, PyStopIteration};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyWeakrefReference;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use crate::bridge::events::{ALL, Events, Origin, after_events};
use crate::bridge::process::{Inside, attached, panicked, without_fork};
use crate::bridge::runtime::{Outcome, Steps};
use siteline_base::lock::Mutex;
use siteline_core::error::{Error, Kind};
use siteline_core::fork::{Owned, Process};
use siteline_core::system;

/// How long events wait for the end of their call before the loop is woken for them, and how often a
/// pending coroutine checks whether its loop was closed: a loop has no callback for that.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Most jobs that run before the loop does other work.
const MOST: usize = 64;

pub(super) type Job = Box<dyn FnOnce(Python<'_>) -> PyResult<()> + Send>;

/// To the thread that wakes loops.
static WAKES: Owned<Sender<Wake>> = Owned::empty();

thread_local! {
    /// The loop that ran in this thread last.
    static LATEST: RefCell<Option<Arc<EventLoop>>> = const { RefCell::new(None) };
}

/// An event loop of asyncio.
pub(crate) struct EventLoop {
    /// A weak reference: threads of the core drop this without the interpreter, so that the loop would be kept
    /// until the interpreter is next held.
    object: Py<PyAny>,
    /// A forked child has its own.
    jobs: Owned<Mutex<Jobs>>,
    is_closed: AtomicBool,
}

#[derive(Default)]
struct Jobs {
    queue: VecDeque<Job>,
    /// Whether the loop will run them, or is about to be woken.
    is_woken: bool,
}

/// A task of the thread that wakes loops.
enum Wake {
    ForJobs(Arc<EventLoop>),
    IfClosed(Arc<EventLoop>),
}

/// Starts the thread that wakes loops, unless this process has one. It stays, so that a result is delivered
/// even if the system starts no more threads.
///
/// # Errors
/// If the system refuses the thread.
pub(super) fn start_waking() -> io::Result<()> {
    if WAKES.get().is_some() {
        return Ok(());
    }
    let (sender, wakes) = channel();
    system::start("siteline-wake", move || {
        for wake in wakes {
            match wake {
                Wake::ForJobs(event_loop) => event_loop.schedule(),
                Wake::IfClosed(event_loop) => event_loop.check(),
            }
        }
    })?;
    // If another thread was faster, its sender stays, and this thread ends with its own.
    WAKES.get_or_init(|| sender);
    Ok(())
}

impl EventLoop {
    /// The loop that is running in this thread.
    ///
    /// # Errors
    /// `RuntimeError` if none is running.
    pub(crate) fn running(py: Python<'_>) -> PyResult<Arc<Self>> {
        let event_loop = asyncio(py)?.call_method0(intern!(py, "get_running_loop"))?;
        let known = LATEST.with_borrow(Clone::clone);
        if let Some(known) = known.filter(|known| known.object(py).is(&event_loop)) {
            return Ok(known);
        }
        let object = PyWeakrefReference::new(&event_loop)?.into_any().unbind();
        let jobs = Owned::empty();
        let known = Arc::new(Self { object, jobs, is_closed: AtomicBool::new(false) });
        // The old one is dropped after the borrow, because that may run Python code.
        let _old = LATEST.replace(Some(Arc::clone(&known)));
        Ok(known)
    }

    /// The loop; Python's `None` if it no longer exists.
    fn object<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
        self.object.bind(py).call0().unwrap_or_else(|_| py.None().into_bound(py))
    }

    /// Has the loop run a job. If the loop is closed or the process is ending, the job is dropped.
    pub(super) fn post(self: &Arc<Self>, job: Job) {
        without_fork(|| {
            let mut jobs = self.jobs.get_or_init(Mutex::default).lock();
            jobs.queue.push_back(job);
            if !std::mem::replace(&mut jobs.is_woken, true) {
                self.wake(Wake::ForJobs);
            }
        });
    }

    fn wake(self: &Arc<Self>, wake: impl FnOnce(Arc<Self>) -> Wake) {
        if let Some(wakes) = WAKES.get() {
            // The thread never ends.
            drop(wakes.send(wake(Arc::clone(self))));
        }
    }

    fn schedule(self: &Arc<Self>) {
        let scheduled = attached(|py| {
            let event_loop = Arc::clone(self);
            let run = Bound::new(py, RunJobs { event_loop, has_run: AtomicBool::new(false) })?;
            let arguments = (run,);
            self.object(py).call_method1(intern!(py, "call_soon_threadsafe"), arguments).map(drop)
        });
        match scheduled {
            Some(Ok(())) => {}
            Some(Err(raised)) => {
                attached(|py| {
                    if !self.find_closed(py) {
                        raised.write_unraisable(py, None);
                    }
                    self.give_up();
                });
            }
            None => self.give_up(),
        }
    }

    /// Gives the jobs up if the loop was closed or the process is ending.
    fn check(&self) {
        if attached(|py| self.find_closed(py)).unwrap_or(true) {
            self.is_closed.store(true, Ordering::Relaxed);
            self.give_up();
        }
    }

    fn find_closed(&self, py: Python<'_>) -> bool {
        let closed = self.object(py).call_method0(intern!(py, "is_closed"));
        let is_closed = closed.and_then(|closed| closed.is_truthy()).unwrap_or(true);
        self.is_closed.fetch_or(is_closed, Ordering::Relaxed);
        is_closed
    }

    fn give_up(&self) {
        let given_up = self.jobs.get().map(|jobs| std::mem::take(&mut *jobs.lock()));
        drop(given_up);
    }
}

/// The module, for which `import` would search in each call.
fn asyncio(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    static ASYNCIO: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module = ASYNCIO.get_or_try_init(py, || py.import("asyncio").map(Bound::unbind))?;
    Ok(module.bind(py))
}

/// The callback in which a loop runs its jobs. A loop that is closed before drops it, and with it the jobs.
#[pyclass(frozen)]
struct RunJobs {
    event_loop: Arc<EventLoop>,
    has_run: AtomicBool,
}

#[pymethods]
impl RunJobs {
    fn __call__(slf: &Bound<'_, Self>) -> PyResult<()> {
        let (py, this) = (slf.py(), slf.get());
        let _inside = Inside::enter(py);
        this.has_run.store(true, Ordering::Relaxed);
        let Some(jobs) = this.event_loop.jobs.get() else { return Ok(()) };
        let count = jobs.lock().queue.len().min(MOST);
        let mut outcome = Ok(());
        for _ in 0..count {
            let Some(job) = jobs.lock().queue.pop_front() else { break };
            // The other jobs run even if this one fails, also after a panic outside of a call's own code.
            outcome = outcome.and(catch_unwind(AssertUnwindSafe(|| job(py))).unwrap_or(Ok(())));
        }
        let is_over = {
            let mut jobs = jobs.lock();
            jobs.is_woken = !jobs.queue.is_empty();
            !jobs.is_woken
        };
        if !is_over {
            this.has_run.store(false, Ordering::Relaxed);
            this.event_loop.object(py).call_method1(intern!(py, "call_soon"), (slf,))?;
        }
        outcome
    }
}

impl Drop for RunJobs {
    fn drop(&mut self) {
        if !*self.has_run.get_mut() {
            self.event_loop.give_up();
        }
    }
}

/// A call with its asyncio future.
struct Pending {
    /// Weak, so that a future that nobody awaits is dropped, and ends the call.
    future: Py<PyAny>,
    /// The asyncio task that made the call, or `None`: a loop has only weak references to its tasks, so the
    /// garbage collector could take the task while it waits.
    _task: Py<PyAny>,
    events: Arc<Events>,
}

impl Pending {
    /// The future, while it is pending.
    fn future<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let future = self.future.bind(py).call0()?;
        let is_over = future.is_none() || future.call_method0(intern!(py, "done"))?.is_truthy()?;
        Ok((!is_over).then_some(future))
    }

    /// Handles the events of the call meanwhile. An exception of a handler ends the call.
    fn handle_events(&self, py: Python<'_>) -> PyResult<()> {
        if self.future(py)?.is_none() {
            return Ok(());
        }
        match (self.events.handle(py), self.future(py)?) {
            (Err(raised), Some(future)) => settle(&future, Err(raised)),
            (handled, _) => handled,
        }
    }

    /// Completes the future, after the last events were handled.
    fn complete(
        &self,
        py: Python<'_>,
        finish: impl FnOnce(Python<'_>) -> PyResult<Py<PyAny>>,
    ) -> PyResult<()> {
        if self.future(py)?.is_none() {
            return Ok(());
        }
        let handled = self.events.handle(py);
        let outcome = catch_unwind(AssertUnwindSafe(|| finish(py)))
            .unwrap_or_else(|panic| Err(panicked(py, &*panic)));
        let outcome = after_events(py, handled, outcome);
        // A handler may have cancelled it.
        match self.future(py)? {
            Some(future) => settle(&future, outcome),
            None => outcome.map(drop),
        }
    }
}

/// Starts a call on `runtime`. Returns an asyncio future that is completed in the thread of the loop, with the
/// object or the exception that `finish` makes. Cancelling or dropping it drops the call, and with it the
/// request.
pub(super) fn begin<'py, T: Send + 'static>(
    py: Python<'py>,
    runtime: &Runtime,
    event_loop: Arc<EventLoop>,
    events: Arc<Events>,
    mut steps: Steps<T>,
    finish: impl FnOnce(Python<'_>, Outcome<T>) -> PyResult<Py<PyAny>> + Send + 'static,
) -> PyResult<Bound<'py, PyAny>> {
    let running = &event_loop.object(py);
    let future = running.call_method0(intern!(py, "create_future"))?;
    let pending = Arc::new(Pending {
        future: PyWeakrefReference::new(&future)?.into_any().unbind(),
        _task: asyncio(py)?.call_method1(intern!(py, "current_task"), (running,))?.unbind(),
        events,
    });
    let task = runtime.spawn(async move {
        let outcome = drive(&mut steps, &event_loop, &pending).await;
        drop(steps);
        event_loop.post(Box::new(move |py| pending.complete(py, |py| finish(py, outcome))));
    });
    let guard = Guard { task: task.abort_handle(), process: Process::current() };
    future.call_method1(intern!(py, "add_done_callback"), (guard,))?;
    Ok(future)
}

async fn drive<T>(
    steps: &mut Steps<T>,
    event_loop: &Arc<EventLoop>,
    pending: &Arc<Pending>,
) -> Outcome<T> {
    loop {
        tokio::select! {
            biased;
            outcome = &mut *steps => return outcome,
            () = pending.events.due(ALL) => {}
        }
        if let Ok(outcome) = timeout(POLL_INTERVAL, &mut *steps).await {
            return outcome;
        }
        let (sender, handled) = oneshot::channel::<()>();
        let call = Arc::clone(pending);
        event_loop.post(Box::new(move |py| {
            let _sender = sender;
            call.handle_events(py)
        }));
        tokio::select! {
            biased;
            outcome = &mut *steps => return outcome,
            _ = handled => {}
        }
    }
}

/// A future of the running loop that is done already.
///
/// # Errors
/// `RuntimeError` if no loop is running in this thread.
pub(crate) fn done(py: Python<'_>, outcome: PyResult<Py<PyAny>>) -> PyResult<Bound<'_, PyAny>> {
    let event_loop = asyncio(py)?.call_method0(intern!(py, "get_running_loop"))?;
    let future = event_loop.call_method0(intern!(py, "create_future"))?;
    settle(&future, outcome)?;
    Ok(future)
}

fn settle(future: &Bound<'_, PyAny>, outcome: PyResult<Py<PyAny>>) -> PyResult<()> {
    let py = future.py();
    let settled = match outcome {
        Ok(value) => future.call_method1(intern!(py, "set_result"), (value,)),
        Err(error) => {
            let error = if error.is_instance_of::<PyStopIteration>(py) {
                // An asyncio future refuses it, and would never be done. Python also replaces it by a
                // RuntimeError if a coroutine raises it.
                let renamed = PyRuntimeError::new_err("a callback raised StopIteration");
                renamed.set_cause(py, Some(error));
                renamed
            } else {
                error
            };
            future.call_method1(intern!(py, "set_exception"), (error.into_value(py),))
        }
    };
    settled.map(drop)
}

/// A callback of the future that ends the call: it is called when the future is done or cancelled, and
/// dropped with it otherwise. In a forked child it does nothing: the call is its parent's.
#[pyclass(frozen)]
struct Guard {
    task: AbortHandle,
    process: Process,
}

#[pymethods]
impl Guard {
    fn __call__(&self, _future: &Bound<'_, PyAny>) {
        self.abort();
    }
}

impl Guard {
    fn abort(&self) {
        if self.process.is_current() {
            self.task.abort();
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.abort();
    }
}

/// A coroutine of the user has no outcome: its loop was closed, or the process is ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LoopClosed;

impl LoopClosed {
    pub(crate) fn error(whose: &str) -> Error {
        let text = format!("{whose} did not finish, because its event loop was closed.");
        Error::new(Kind::ClosedError, text)
    }
}

/// Reads the outcome of an awaitable.
type Read = Box<dyn FnOnce(Python<'_>, PyResult<Bound<'_, PyAny>>) + Send>;

/// The callback of the task of an awaitable.
#[pyclass(frozen)]
struct Answer(Mutex<Option<Read>>);

#[pymethods]
impl Answer {
    fn __call__(&self, task: &Bound<'_, PyAny>) {
        let py = task.py();
        let _inside = Inside::enter(py);
        self.give(py, task.call_method0(intern!(py, "result")));
    }
}

impl Answer {
    fn give(&self, py: Python<'_>, outcome: PyResult<Bound<'_, PyAny>>) {
        let read = self.0.lock().take();
        if let Some(read) = read {
            read(py, outcome);
        }
    }
}

/// A coroutine that was asked for. Dropping this before its end cancels it.
struct Asking {
    event_loop: Arc<EventLoop>,
    asked: Arc<Asked>,
    has_ended: bool,
}

#[derive(Default)]
struct Asked {
    task: Mutex<Option<Py<PyAny>>>,
    is_unwanted: AtomicBool,
}

impl Drop for Asking {
    fn drop(&mut self) {
        if self.has_ended {
            return;
        }
        self.asked.is_unwanted.store(true, Ordering::Relaxed);
        let asked = Arc::clone(&self.asked);
        self.event_loop.post(Box::new(move |py| {
            let task = asked.task.lock().take();
            task.map_or(Ok(()), |task| task.call_method0(py, intern!(py, "cancel")).map(drop))
        }));
    }
}

/// Awaits what `call` returns on the loop that awaits the call, with the call's context variables. `read`
/// reads the outcome there. Dropping this future cancels the awaitable.
pub(crate) async fn ask<T: Send + 'static>(
    (origin, event_loop): (Arc<Origin>, Arc<EventLoop>),
    call: impl FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send + 'static,
    read: impl FnOnce(Python<'_>, PyResult<Bound<'_, PyAny>>) -> T + Send + 'static,
) -> Result<T, LoopClosed> {
    let (sender, mut answer) = oneshot::channel();
    let read: Read = Box::new(move |py, outcome| drop(sender.send(read(py, outcome))));
    let asked = Arc::<Asked>::default();
    let mut asking =
        Asking { event_loop: Arc::clone(&event_loop), asked: Arc::clone(&asked), has_ended: false };
    event_loop.post(Box::new(move |py| {
        if asked.is_unwanted.load(Ordering::Relaxed) {
            return Ok(());
        }
        let answer = Bound::new(py, Answer(Mutex::new(Some(read))))?;
        match call(py).and_then(|awaitable| begin_task(py, &origin, awaitable)) {
            Ok(task) => {
                task.call_method1(intern!(py, "add_done_callback"), (answer,))?;
                *asked.task.lock() = Some(task.unbind());
            }
            Err(raised) => answer.get().give(py, Err(raised)),
        }
        Ok(())
    }));
    loop {
        match timeout(POLL_INTERVAL, &mut answer).await {
            Ok(answer) => {
                asking.has_ended = true;
                return answer.map_err(|_| LoopClosed);
            }
            Err(_) if event_loop.is_closed.load(Ordering::Relaxed) => return Err(LoopClosed),
            Err(_) => event_loop.wake(Wake::IfClosed),
        }
    }
}

fn begin_task<'py>(
    py: Python<'py>,
    origin: &Origin,
    awaitable: Py<PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let ensure_future = asyncio(py)?.getattr(intern!(py, "ensure_future"))?;
    origin.in_context(py, (ensure_future, awaitable))
}
