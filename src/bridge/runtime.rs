//! The only crossing between Python and the core. Only [`block_on`], [`spawn`] (in asyncio) and [`detached`]
//! release the interpreter or block on a future. Ctrl-C is checked here.

#![expect(clippy::disallowed_methods, reason = "the one crossing")]

use std::any::Any;
use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::mpsc::sync_channel;
use std::task::{Context, Poll};
use std::thread::available_parallelism;

use futures_util::future::BoxFuture;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use crate::bridge::event_loop::{EventLoop, Running, start_handing_over};
use crate::bridge::events::{Origin, WANTED, Waiter, Wanted, after_events};
use crate::bridge::process::{
    Inside, POLL_INTERVAL, forked, is_ending_here, panicked, stay_if_ending,
};
use crate::prelude::*;
use siteline_core::fork::{Owned, Process};
use siteline_core::system::{on_thread, start};

/// How long to wait for a busy driver.
const LONGEST_WANTED: Duration = Duration::from_secs(1);

/// The fewest and most threads for connections and asyncio calls. Other calls run on the threads that wait
/// for them.
const DRIVER_THREADS: [usize; 2] = [2, 8];

static RUNTIME: Owned<Runtime> = Owned::empty();

/// It is made with the interpreter released, because a thread that forks waits for all steps and may need the
/// interpreter.
fn runtime(py: Python<'_>) -> PyResult<&'static Runtime> {
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    detached(py, || without_fork(own_runtime))?.or_raise()
}

/// A forked child gets a new one. The inherited one is leaked: its threads do not exist in the child, and
/// dropping it would wait for them.
fn own_runtime() -> Result<&'static Runtime, Error> {
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let [fewest, most] = DRIVER_THREADS;
    let threads = available_parallelism().map_or(fewest, |cores| cores.get().clamp(fewest, most));
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(threads).thread_name("siteline").enable_all();
    let made =
        start_handing_over().and_then(|()| check_threads(threads)).and_then(|()| builder.build());
    let made = made.map_err(|error| {
        Error::system(Kind::TransportError, "siteline could not start its threads", &error)
            .with(|context| context.unsent = true)
    })?;
    // Another thread may have been faster.
    Ok(RUNTIME.get_or_init(|| made))
}

/// Fails early if the system refuses threads: tokio panics without the first, and never retries the others.
fn check_threads(threads: usize) -> io::Result<()> {
    let (sender, end) = sync_channel::<()>(0);
    let end = Arc::new(Mutex::new(end));
    let begun: io::Result<Vec<_>> = (0..threads)
        .map(|_| {
            let end = Arc::clone(&end);
            start("siteline", move || end.lock().recv().is_ok())
        })
        .collect();
    drop(sender);
    begun.map(|threads| threads.into_iter().for_each(|thread| drop(thread.join())))
}

pub(super) type Outcome<T> = Result<T, Box<dyn Any + Send>>;

/// A future of the core, with its origin. No fork happens while it is polled or dropped.
pub(super) struct Steps<T> {
    origin: Option<Arc<Origin>>,
    future: Option<BoxFuture<'static, T>>,
}

impl<T> Steps<T> {
    fn new(origin: Option<Arc<Origin>>, future: BoxFuture<'static, T>) -> Self {
        Self { origin, future: Some(future) }
    }

    /// Polls until the sender is dropped.
    async fn until(mut self, stopped: oneshot::Receiver<()>) -> (Self, Option<Outcome<T>>) {
        let outcome = tokio::select! {
            biased;
            _ = stopped => None,
            outcome = &mut self => Some(outcome),
        };
        (self, outcome)
    }
}

impl<T> Future for Steps<T> {
    type Output = Outcome<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let origin = self.origin.clone();
        let Some(future) = &mut self.future else { return Poll::Pending };
        let poll = || Origin::run_if_known(origin, || future.as_mut().poll(context));
        without_fork(|| catch_unwind(AssertUnwindSafe(poll)))
            .map_or_else(|panic| Poll::Ready(Err(panic)), |poll| poll.map(Ok))
    }
}

impl<T> Drop for Steps<T> {
    fn drop(&mut self) {
        let (origin, future) = (self.origin.take(), self.future.take());
        without_fork(|| Origin::run_if_known(origin, || drop(future)));
    }
}

/// The blocking driver. An exception of a handler of signals or events drops the future and its request.
pub(crate) fn block_on<T: Send + 'static>(
    py: Python<'_>,
    events: &Arc<Events>,
    future: BoxFuture<'static, T>,
) -> PyResult<T> {
    let _inside = Inside::enter(py);
    let origin = events.begin(py, None)?;
    block_on_steps(py, events, Steps::new(Some(origin), future))
}

fn block_on_steps<T: Send + 'static>(
    py: Python<'_>,
    events: &Arc<Events>,
    steps: Steps<T>,
) -> PyResult<T> {
    let runtime = runtime(py)?;
    let handles_signals = is_main_thread(py)?;
    let process = Process::current();
    let _driver = events.drive();
    let outcome = py.detach(|| {
        let outcome = waited_for(runtime, steps, handles_signals, events);
        stay_if_ending();
        outcome
    });
    let outcome = outcome.and_then(|outcome| outcome.map_err(|panic| panicked(py, &*panic)));
    // A forked child leaves the events to its parent.
    let handled = if process.is_current() { events.handle(py) } else { Ok(()) };
    after_events(py, handled, outcome)
}

/// The asyncio driver. `finish` converts the output on the thread of the loop.
pub(crate) fn spawn<T: Send + 'static>(
    py: Python<'_>,
    events: Arc<Events>,
    future: BoxFuture<'static, T>,
    finish: impl FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static,
) -> PyResult<Running> {
    let _inside = Inside::enter(py);
    let event_loop = EventLoop::running(py)?;
    let origin = events.begin(py, Some(Arc::clone(&event_loop)))?;
    let steps = Steps::new(Some(origin), future);
    if is_ending_here() {
        // No other thread may attach to the interpreter now.
        let outcome = block_on_steps(py, &events, steps)?;
        return Ok(Running::ended(event_loop, events, Box::new(|py| finish(py, outcome))));
    }
    let runtime = runtime(py)?;
    Ok(Running::begin(runtime, event_loop, events, steps, |py, outcome| match outcome {
        Ok(outcome) => finish(py, outcome),
        Err(panic) => Err(panicked(py, &*panic)),
    }))
}

/// The call that waits for the task reports its panic.
pub(crate) fn spawn_task(work: BoxFuture<'static, ()>) -> Option<AbortHandle> {
    if is_ending_here() {
        return None;
    }
    let steps = Steps::new(Origin::current(), work);
    Some(tokio::spawn(async move { drop(steps.await) }).abort_handle())
}

/// Polls the future on this thread. Handlers of signals and events may use siteline, fork, or wait for a lock
/// of this call. So this thread leaves the runtime, and the future runs in the background meanwhile.
fn waited_for<T: Send + 'static>(
    runtime: &Runtime,
    mut steps: Steps<T>,
    handles_signals: bool,
    events: &Events,
) -> PyResult<Outcome<T>> {
    // Dropping the future may start a task, which needs the runtime.
    let _entered = runtime.enter();
    let process = Process::current();
    loop {
        let waited = runtime.block_on(timeout(POLL_INTERVAL, async {
            tokio::select! {
                biased;
                outcome = &mut steps => Some(outcome),
                () = events.due(WANTED) => None,
            }
        }));
        if let Ok(Some(outcome)) = waited {
            return Ok(outcome);
        }
        stay_if_ending();
        if !handles_signals && !Waiter::has_due(events) {
            continue;
        }
        let (stop, stopped) = oneshot::channel();
        let background = runtime.spawn(steps.until(stopped));
        let handled = Python::attach(|py| {
            py.check_signals()?;
            Waiter::handle(py, events)
        });
        if !process.is_current() {
            // The child has no runtime threads, and the connections belong to the parent.
            std::mem::forget((stop, background));
            return Err(handled.err().unwrap_or_else(forked));
        }
        drop(stop);
        let outcome;
        (steps, outcome) = runtime
            .block_on(background)
            .map_err(|_| Error::new(Kind::InternalError, "the runtime ended before its work"))
            .or_raise()?;
        handled?;
        if let Some(outcome) = outcome {
            return Ok(outcome);
        }
    }
}

fn is_main_thread(py: Python<'_>) -> PyResult<bool> {
    let threading = py.import(intern!(py, "threading"))?;
    let main = threading.call_method0(intern!(py, "main_thread"))?;
    let here = threading.call_method0(intern!(py, "get_ident"))?;
    main.getattr(intern!(py, "ident"))?.eq(here)
}

/// Runs a short step that reads or writes files. No fork interrupts it.
pub(crate) fn step<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    detached(py, || without_fork(work))
}

/// A [`step`] within the runtime, so that it may start tasks.
pub(crate) fn step_in_runtime<T: Send>(
    py: Python<'_>,
    events: &Arc<Events>,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    let _inside = Inside::enter(py);
    let origin = events.latest();
    let done = detached(py, || {
        let _entered = without_fork(own_runtime)?.enter();
        Ok::<_, Error>(without_fork(|| Origin::run_if_known(origin, work)))
    })?;
    done.or_raise()
}

/// Runs blocking work for the same call. Its panic is resumed here.
pub(crate) async fn on_blocking_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Error> {
    let origin = Origin::current();
    let work = move || Origin::run_if_known(origin, work);
    on_thread(work).await.map_err(|refused| Error::no_thread(&refused))
}

/// Lets the driver of the call run Python code. Without a driver, or if it is busy, a thread of the core runs
/// the code.
pub(crate) async fn run_for_caller<T: Send + 'static>(
    work: impl FnOnce(Python<'_>) -> PyResult<T> + Send + 'static,
) -> Result<T, Error> {
    let (sender, mut answer) = oneshot::channel();
    let wanted = Wanted::new(Box::new(move |py| {
        if sender.is_closed() {
            return Ok(());
        }
        work(py).map(|done| drop(sender.send(done)))
    }));
    let asked = Origin::current().is_some_and(|origin| origin.ask(Arc::clone(&wanted)));
    let answered = if asked { timeout(LONGEST_WANTED, &mut answer).await.ok() } else { None };
    let answered = if let Some(answered) = answered {
        answered
    } else {
        on_blocking_thread(move || {
            attached(|py| {
                wanted.serve(py).unwrap_or_else(|raised| raised.write_unraisable(py, None));
            })
        })
        .await?;
        answer.await
    };
    answered
        .map_err(|_| Error::new(Kind::ClosedError, "The call ended before its signer was called."))
}

/// For tests: a panic at each kind of entry. Release wheels do not contain it.
#[cfg(debug_assertions)]
pub(crate) mod panic {
    use crate::prelude::*;

    fn defect<T>() -> PyResult<T> {
        panic!("a panic for a test")
    }

    #[pyfunction]
    fn _panic(py: Python<'_>, at: &str) -> PyResult<Option<Call>> {
        let events = Arc::default();
        match at {
            "future" => {
                Ok(Some(Call::new(events, async { defect::<()>() }, |py, _| Ok(py.None()))))
            }
            "result" => Ok(Some(Call::new(events, async {}, |_, ()| defect()))),
            "work" => detached(py, defect::<()>)?.map(|()| None),
            _ => guarded(defect),
        }
    }

    pub(crate) fn export(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add_function(wrap_pyfunction!(_panic, module)?)
    }
}
