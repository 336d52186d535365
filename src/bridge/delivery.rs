//! Gives the results of tasks to the event loops that await them, and the log records of calls that
//! wait to their loggers. One thread at a time does so, because it needs the interpreter: threads that
//! wait for the interpreter cost more than what they deliver. It takes all that has come meanwhile,
//! and wakes each loop once for it. A call with a record that a logger wants gets a thread of its own,
//! because a handler may wait.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use pyo3::exceptions::{PyRuntimeError, PyStopIteration};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::bridge::logging::LogBuffer;
use crate::bridge::notes::{CallNotes, tell_before};
use crate::bridge::process::{Inside, attached, panicked, without_fork};
use siteline_base::lock::Mutex;
use siteline_core::fork::Owned;
use siteline_core::system::{self, Refused};

/// Makes the result of a task, a Python object or an exception, with the interpreter held.
pub(crate) type Finish = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;

/// So many results are made before the first of them is given to its loop.
const MOST: usize = 64;

static QUEUE: Owned<Mutex<Queue>> = Owned::empty();

/// To the thread that delivers.
static TURNS: Owned<Sender<Turn>> = Owned::empty();

/// What no thread delivers yet.
#[derive(Default)]
struct Queue {
    entries: VecDeque<Entry>,
    /// Whether a thread delivers them, or is about to.
    has_thread: bool,
}

enum Entry {
    Result(TaskResult),
    /// The pending log records of a call that waits.
    Records(Arc<LogBuffer>),
}

/// A task that has ended, and who awaits it.
pub(super) struct TaskResult {
    pub(super) receiver: Receiver,
    pub(super) finish: Finish,
    /// The log records of the call, which are emitted first.
    pub(super) buffer: Arc<LogBuffer>,
}

/// Who awaits the result of a task.
pub(super) struct Receiver {
    pub(super) event_loop: Py<PyAny>,
    /// A weak reference to the awaitable.
    pub(super) waiter: Py<PyAny>,
    /// The asyncio task that made the call, or `None`.
    pub(super) task: Py<PyAny>,
}

/// Starts the thread that delivers, unless this process has one. It stays, so that a result is delivered
/// even while the system starts no more threads.
///
/// # Errors
/// If the system refuses the thread.
pub(super) fn start() -> io::Result<()> {
    if TURNS.get().is_some() {
        return Ok(());
    }
    let (sender, turns) = channel();
    system::start("siteline-deliver", move || turns.into_iter().for_each(deliver_all))?;
    // Where another thread was faster, its sender stays, and this thread ends with its own.
    TURNS.get_or_init(|| sender);
    Ok(())
}

/// Has the result delivered. Called within the runtime, without the interpreter.
pub(super) fn deliver(result: TaskResult) {
    begin(Entry::Result(result));
}

/// Has the records of a call that waits emitted. Called within the runtime, without the interpreter.
pub(super) fn emit_meanwhile(buffer: Arc<LogBuffer>) {
    begin(Entry::Records(buffer));
}

fn begin(entry: Entry) {
    // No fork finds the queue half made: its child would wait for the other half.
    let Some(turn) = without_fork(|| enqueue(entry)) else { return };
    // It is a task of its own, because that of a call may be cancelled here.
    tokio::spawn(async move {
        // What has become ready together ends together: the tasks that are ready now run before.
        tokio::task::yield_now().await;
        // It needs the interpreter, so it never runs on a thread that drives connections.
        if let Some(turns) = TURNS.get() {
            drop(turns.send(turn));
        }
    });
}

/// The turn, unless another thread has it and will find the entry.
fn enqueue(entry: Entry) -> Option<Turn> {
    let mut queue = QUEUE.get_or_init(Mutex::default).lock();
    queue.entries.push_back(entry);
    let is_taken = std::mem::replace(&mut queue.has_thread, true);
    if is_taken { None } else { Some(Turn) }
}

/// The task of delivering all entries. Where it is dropped before its end, the next entry starts it
/// again.
struct Turn;

impl Turn {
    /// The oldest entries; none ends the turn.
    fn next(self) -> Option<(Self, Vec<Entry>)> {
        let mut queue = QUEUE.get()?.lock();
        let count = queue.entries.len().min(MOST);
        if count == 0 {
            // In the same step, so that an entry that comes now starts the next turn.
            queue.has_thread = false;
            std::mem::forget(self);
            return None;
        }
        let entries = queue.entries.drain(..count).collect();
        drop(queue);
        Some((self, entries))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(queue) = QUEUE.get() {
            queue.lock().has_thread = false;
        }
    }
}

/// Delivers all entries, and those that come meanwhile.
fn deliver_all(mut turn: Turn) {
    // Each time it looks whether the process is ending: then no one awaits the results any more.
    while let Some(Some(next)) = attached(|py| {
        let (turn, entries) = turn.next()?;
        // After a panic outside of what makes a result, the others are delivered all the same.
        drop(catch_unwind(AssertUnwindSafe(|| deliver_together(py, entries))));
        Some(turn)
    }) {
        turn = next;
    }
}

fn deliver_together(py: Python<'_>, entries: Vec<Entry>) {
    let mut batches: Vec<Batch<'_>> = Vec::new();
    for entry in entries {
        match entry {
            Entry::Result(result) if result.buffer.is_quiet(py) => {
                let buffer = Arc::clone(&result.buffer);
                finish_into(&mut batches, py, result, |_| buffer.raised().map_or(Ok(()), Err));
            }
            // A handler of `logging` may wait, even for another result.
            Entry::Result(result) => {
                on_its_own(move || {
                    let _delivered = attached(|py| deliver_alone(py, result));
                });
            }
            Entry::Records(buffer) if buffer.is_quiet(py) => {}
            Entry::Records(buffer) => {
                on_its_own(move || buffer.flush_meanwhile());
            }
        }
    }
    schedule(py, batches);
}

/// Does work on a thread of its own, or here if the system refuses one: later results wait for it then.
fn on_its_own(work: impl FnOnce() + Send + 'static) {
    if let Err(Refused(work, _)) = system::begin(work) {
        work();
    }
}

/// Delivers a result after its log records.
fn deliver_alone(py: Python<'_>, result: TaskResult) {
    let (mut batches, buffer) = (Vec::new(), Arc::clone(&result.buffer));
    finish_into(&mut batches, py, result, |py| buffer.flush(py));
    schedule(py, batches);
}

/// The results for one event loop.
struct Batch<'py> {
    event_loop: Bound<'py, PyAny>,
    waiters: Vec<Bound<'py, PyAny>>,
    outcomes: Vec<Delivered>,
}

/// The outcome of a call, and what its loop tells before.
type Delivered = (PyResult<Py<PyAny>>, Option<Arc<CallNotes>>);

/// Makes the result, unless it is no longer awaited, and adds it to the batch of its loop.
fn finish_into<'py>(
    batches: &mut Vec<Batch<'py>>,
    py: Python<'py>,
    result: TaskResult,
    log: impl FnOnce(Python<'py>) -> PyResult<()>,
) {
    let TaskResult { receiver: Receiver { event_loop, waiter, task }, finish, buffer } = result;
    let event_loop = event_loop.into_bound(py);
    match waiter.into_bound(py).call0() {
        Ok(waiter) if waiter.is_none() || is_closed(&event_loop) => {}
        Ok(waiter) => {
            let finish = AssertUnwindSafe(|| log(py).and_then(|()| finish(py)));
            let outcome = catch_unwind(finish).unwrap_or_else(|panic| Err(panicked(py, &*panic)));
            let known = batches.iter().position(|batch| batch.event_loop.is(&event_loop));
            let at = known.unwrap_or_else(|| {
                batches.push(Batch { event_loop, waiters: Vec::new(), outcomes: Vec::new() });
                batches.len() - 1
            });
            batches[at].waiters.push(waiter);
            batches[at].outcomes.push((outcome, buffer.notes_to_tell().cloned()));
        }
        Err(raised) => raised.write_unraisable(py, None),
    }
    // Dropped without the interpreter, it would be kept until the interpreter is next held.
    task.drop_ref(py);
}

fn is_closed(event_loop: &Bound<'_, PyAny>) -> bool {
    let closed = event_loop.call_method0(intern!(event_loop.py(), "is_closed"));
    closed.and_then(|closed| closed.is_truthy()).unwrap_or(true)
}

/// Has each loop complete its awaitables. Does nothing where a loop is closed.
fn schedule(py: Python<'_>, batches: Vec<Batch<'_>>) {
    for Batch { event_loop, waiters, outcomes } in batches {
        let scheduled = Py::new(py, Delivery(Mutex::new(outcomes))).and_then(|delivery| {
            let arguments = (delivery, PyList::new(py, waiters)?);
            event_loop.call_method1(intern!(py, "call_soon_threadsafe"), arguments)
        });
        // The loop may have been closed since it was checked.
        if let Err(raised) = scheduled
            && !is_closed(&event_loop)
        {
            raised.write_unraisable(py, None);
        }
    }
}

/// The results of tasks. The loop calls it in its thread, with the awaitables.
#[pyclass(frozen)]
struct Delivery(Mutex<Vec<Delivered>>);

#[pymethods]
impl Delivery {
    fn __call__(&self, waiters: &Bound<'_, PyList>) -> PyResult<()> {
        let py = waiters.py();
        let _inside = Inside::enter(py);
        let outcomes = std::mem::take(&mut *self.0.lock());
        let mut settled = Ok(());
        for (waiter, (outcome, notes)) in waiters.iter().zip(outcomes) {
            // The others get theirs even if this one fails.
            settled = settled.and(settle_pending(&waiter, outcome, notes.as_ref()));
        }
        settled
    }
}

fn settle_pending(
    waiter: &Bound<'_, PyAny>,
    outcome: PyResult<Py<PyAny>>,
    notes: Option<&Arc<CallNotes>>,
) -> PyResult<()> {
    let py = waiter.py();
    // It was cancelled meanwhile, and the loop has already resumed the task that awaited it.
    let is_done = || waiter.call_method0(intern!(py, "done"))?.is_truthy();
    if is_done()? {
        return Ok(());
    }
    let outcome = tell_before(py, notes, outcome);
    // What is told may have cancelled it.
    if is_done()? { outcome.map(drop) } else { settle(waiter, outcome) }
}

/// Completes an awaitable of the loop that runs in this thread.
pub(super) fn settle(waiter: &Bound<'_, PyAny>, outcome: PyResult<Py<PyAny>>) -> PyResult<()> {
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
