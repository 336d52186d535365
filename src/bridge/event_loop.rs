//! The asynchronous driver. One thread of the core hands jobs to loops, because `call_soon_threadsafe` needs
//! the interpreter. A call ends silently if its loop is closed, its awaitable is cancelled or dropped, or the
//! interpreter is ending.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::{io, iter};

use pyo3::types::PyWeakrefReference;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use crate::bridge::events::{ALL, Origin, after_events};
use crate::bridge::process::{Inside, POLL_INTERVAL};
use crate::bridge::runtime::{Outcome, Steps};
use crate::prelude::*;
use siteline_core::fork::{Owned, Process};
use siteline_core::system;

pub(super) type Job = Box<dyn FnOnce(Python<'_>) -> PyResult<()> + Send>;

type Posted = (Arc<EventLoop>, Job);

/// To the thread that hands jobs over.
static JOBS: Owned<Sender<Posted>> = Owned::empty();

pub(crate) struct EventLoop {
    /// Weak, because threads of the core drop it without the interpreter, which delays the release.
    object: Py<PyAny>,
    is_closed: AtomicBool,
    /// Whether the call that it awaits was cancelled.
    is_cancelled: AtomicBool,
}

/// The thread stays, so that results are delivered even if the system starts no more threads.
pub(super) fn start_handing_over() -> io::Result<()> {
    if JOBS.get().is_some() {
        return Ok(());
    }
    let (sender, jobs) = channel::<Posted>();
    system::start("siteline-wake", move || {
        while let Ok(first) = jobs.recv() {
            let event_loop = Arc::clone(&first.0);
            // One job at a time would wait for a busy loop each time.
            let ready = iter::once(first).chain(jobs.try_iter()).collect();
            if attached(|py| schedule_all(py, ready)).is_none() {
                event_loop.is_closed.store(true, Ordering::Relaxed);
            }
        }
    })?;
    // If another thread was faster, this one ends with its sender.
    JOBS.get_or_init(|| sender);
    Ok(())
}

impl EventLoop {
    pub(crate) fn running(py: Python<'_>) -> PyResult<Arc<Self>> {
        static RUNNING: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let event_loop = RUNNING.import(py, "asyncio", "get_running_loop")?.call0()?;
        let object = PyWeakrefReference::new(&event_loop)?.into_any().unbind();
        let (is_closed, is_cancelled) = Default::default();
        Ok(Arc::new(Self { object, is_closed, is_cancelled }))
    }

    fn object<'py>(&self, py: Python<'py>) -> Object<'py> {
        self.object.bind(py).call0().unwrap_or_else(|_| py.None().into_bound(py))
    }

    /// A closed loop or an ending process drops the job.
    pub(super) fn post(self: &Arc<Self>, job: Job) {
        if let Some(jobs) = JOBS.get() {
            // The thread never ends.
            drop(jobs.send((Arc::clone(self), job)));
        }
    }

    /// Schedules the jobs of these handles of the loop.
    fn schedule(&self, py: Python<'_>, loops: Vec<Arc<Self>>, jobs: Vec<Job>) {
        let (event_loop, jobs) = (self.object(py), Scheduled(Mutex::new(jobs)));
        let scheduled = event_loop.call_method1(intern!(py, "call_soon_threadsafe"), (jobs,));
        let Err(raised) = scheduled else { return };
        let is_closed = event_loop.call_method0(intern!(py, "is_closed"));
        if is_closed.and_then(|is_closed| is_closed.is_truthy()).unwrap_or(true) {
            for its in loops {
                its.is_closed.store(true, Ordering::Relaxed);
            }
        } else {
            raised.write_unraisable(py, None);
        }
    }
}

/// Wakes each loop once, because that costs it a system call and an iteration.
fn schedule_all(py: Python<'_>, mut ready: Vec<Posted>) {
    while let Some((event_loop, _)) = ready.first() {
        let event_loop = Arc::clone(event_loop);
        let of_loop = |(its, _): &mut Posted| its.object.is(&event_loop.object);
        let (loops, jobs) = ready.extract_if(.., of_loop).unzip();
        event_loop.schedule(py, loops, jobs);
    }
}

#[pyclass(frozen)]
struct Scheduled(Mutex<Vec<Job>>);

#[pymethods]
impl Scheduled {
    /// Runs all jobs, even if one raises.
    fn __call__(&self, py: Python<'_>) -> PyResult<()> {
        let jobs = std::mem::take(&mut *self.0.lock());
        jobs.into_iter().map(|job| guarded(|| job(py))).fold(Ok(()), Result::and)
    }
}

type Finish = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;

#[derive(Default)]
struct Waiting {
    /// Keeps the task alive, because loops have only weak references to tasks.
    future: Option<Py<PyAny>>,
    finish: Option<Finish>,
}

/// An awaited call, for `siteline._awaiting.drive`.
#[pyclass(frozen)]
pub(crate) struct Running {
    event_loop: Arc<EventLoop>,
    events: Arc<Events>,
    waiting: Arc<Mutex<Waiting>>,
    /// `None` if the call has ended.
    task: Option<AbortHandle>,
    process: Process,
}

impl Running {
    pub(super) fn begin<T: Send + 'static>(
        runtime: &Runtime,
        event_loop: Arc<EventLoop>,
        events: Arc<Events>,
        mut steps: Steps<T>,
        finish: impl FnOnce(Python<'_>, Outcome<T>) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> Self {
        let waiting = Arc::<Mutex<Waiting>>::default();
        let (wanted, theirs, queue) =
            (Arc::clone(&waiting), Arc::clone(&event_loop), Arc::clone(&events));
        let task = runtime.spawn(async move {
            let outcome = drive(&mut steps, &queue, || wake(&wanted, &theirs)).await;
            drop(steps);
            without_fork(|| {
                wanted.lock().finish = Some(Box::new(move |py| finish(py, outcome)));
            });
            wake(&wanted, &theirs);
        });
        let (task, process) = (Some(task.abort_handle()), Process::current());
        Self { event_loop, events, waiting, task, process }
    }

    pub(super) fn ended(event_loop: Arc<EventLoop>, events: Arc<Events>, finish: Finish) -> Self {
        let waiting = Arc::new(Mutex::new(Waiting { future: None, finish: Some(finish) }));
        Self { event_loop, events, waiting, task: None, process: Process::current() }
    }
}

#[pymethods]
impl Running {
    /// Returns a future to wait for, or the result.
    fn step(&self, py: Python<'_>) -> PyResult<Step> {
        let _inside = Inside::enter(py);
        loop {
            let finish = self.waiting.lock().finish.take();
            let handled = guarded(|| self.events.handle(py));
            if let Some(finish) = finish {
                let outcome = after_events(py, handled, guarded(|| finish(py)));
                return outcome.map(|result| (None, Some(result)));
            }
            handled?;
            let future = self.event_loop.object(py).call_method0(intern!(py, "create_future"))?;
            let future = future.unbind();
            let mut waiting = self.waiting.lock();
            if waiting.finish.is_none() {
                waiting.future = Some(future.clone_ref(py));
                return Ok((Some(future), None));
            }
        }
    }

    /// Ends a call without a result. In a forked child it does nothing.
    fn cancel(&self) {
        self.event_loop.is_cancelled.store(true, Ordering::Relaxed);
        if let Some(task) = self.task.as_ref().filter(|_| self.process.is_current()) {
            task.abort();
        }
    }
}

fn wake(waiting: &Mutex<Waiting>, event_loop: &Arc<EventLoop>) {
    let Some(future) = without_fork(|| waiting.lock().future.take()) else { return };
    event_loop.post(Box::new(move |py| {
        let future = future.bind(py);
        if future.call_method0(intern!(py, "done"))?.is_truthy()? {
            return Ok(());
        }
        future.call_method1(intern!(py, "set_result"), (py.None(),)).map(drop)
    }));
}

/// Events wait briefly for the end of their call before they wake the loop.
async fn drive<T>(steps: &mut Steps<T>, events: &Events, wake: impl Fn()) -> Outcome<T> {
    loop {
        tokio::select! {
            biased;
            outcome = &mut *steps => return outcome,
            () = events.due(ALL) => {}
        }
        if let Ok(outcome) = timeout(POLL_INTERVAL, &mut *steps).await {
            return outcome;
        }
        wake();
    }
}

/// The loop was closed, or the process is ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LoopClosed;

type Task = Arc<Mutex<Option<Py<PyAny>>>>;

type Read = Box<dyn FnOnce(Python<'_>, PyResult<Object<'_>>) + Send>;

type Step = (Option<Py<PyAny>>, Option<Py<PyAny>>);

#[pyclass(frozen)]
struct Answer(Mutex<Option<Read>>, Task, Arc<EventLoop>);

#[pymethods]
impl Answer {
    /// Whether the core soon drops the future that waits for this answer.
    #[getter]
    fn is_cancelled(&self) -> bool {
        self.2.is_cancelled.load(Ordering::Relaxed)
    }

    fn __call__(&self, task: &Object<'_>) {
        let py = task.py();
        let _inside = Inside::enter(py);
        drop(self.1.lock().take());
        let read = self.0.lock().take();
        if let Some(read) = read {
            read(py, task.call_method0(intern!(py, "result")));
        }
    }
}

/// Dropping it cancels the coroutine.
struct Asking {
    event_loop: Arc<EventLoop>,
    task: Task,
    has_ended: bool,
}

impl Drop for Asking {
    fn drop(&mut self) {
        if self.has_ended {
            return;
        }
        // The loop may not have begun it.
        let task = Arc::clone(&self.task);
        self.event_loop.post(Box::new(move |py| {
            let task = task.lock().take();
            task.map_or(Ok(()), |task| task.call_method0(py, intern!(py, "cancel")).map(drop))
        }));
    }
}

/// Calls an async function on the loop of the call, with its context variables. `read` converts the outcome
/// there.
pub(crate) async fn ask<T: Send + 'static>(
    (origin, event_loop): (Arc<Origin>, Arc<EventLoop>),
    function: Arc<Py<PyAny>>,
    argument: Vec<u8>,
    read: impl FnOnce(Python<'_>, PyResult<Object<'_>>) -> T + Send + 'static,
) -> Result<T, LoopClosed> {
    static BEGIN: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let (sender, mut answer) = oneshot::channel();
    let (task, theirs) = (Task::default(), Arc::clone(&event_loop));
    let mut asking =
        Asking { event_loop: Arc::clone(&event_loop), task: Arc::clone(&task), has_ended: false };
    event_loop.post(Box::new(move |py| {
        if sender.is_closed() {
            return Ok(());
        }
        let read: Read = Box::new(move |py, outcome| drop(sender.send(read(py, outcome))));
        let answer = Answer(Mutex::new(Some(read)), Arc::clone(&task), theirs);
        let answer = Bound::new(py, answer)?;
        let begin = BEGIN.import(py, "siteline._awaiting", "begin")?;
        let arguments = (begin, &answer, &*function, PyBytes::new(py, &argument));
        *task.lock() = Some(origin.in_context(py, arguments)?.unbind());
        Ok(())
    }));
    loop {
        match timeout(POLL_INTERVAL, &mut answer).await {
            Ok(answer) => {
                asking.has_ended = true;
                return answer.map_err(|_| LoopClosed);
            }
            Err(_) if event_loop.is_closed.load(Ordering::Relaxed) => return Err(LoopClosed),
            // Detects a closed loop, which has no callback.
            Err(_) => event_loop.post(Box::new(|_| Ok(()))),
        }
    }
}
