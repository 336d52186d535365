//! Fork and exit of a process that has the core loaded.
//!
//! **Fork.** A child has the memory of its parent and none of its threads. What a lock protects may
//! be half done there, for ever. So every step of the core that runs without the interpreter goes
//! through [`undivided`], and a fork waits until all of them are done. Runtime, connections, flights
//! and reads know which process they belong to, and begin anew in another.
//!
//! **End.** Once the interpreter finalizes, no thread may touch it: Python ends such a thread by
//! force, in the middle of Rust code, which aborts the process. So when the exit handlers run,
//! threads that wait in the core (daemon threads, by then) stay there for good, those that run Python
//! code for it come to an end, none enters any more, and nobody attaches but the thread that ends
//! the process. That one may go on using siteline, from exit handlers of others.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{OnceLock, PoisonError, RwLock, RwLockWriteGuard, TryLockError};
use std::thread::{self, ThreadId};
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::{Error, Kind};
use crate::python::bridge::errors::raise;

/// How long an exit waits for threads that run Python code on our behalf, a signer's say.
const LONGEST_EXIT: Duration = Duration::from_secs(1);
/// How long a fork may keep those waiting that may hold the interpreter.
const LONGEST_FORK: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(1);

/// Shared by the steps that a fork may not cut through, taken alone by the fork.
static STEPS: RwLock<()> = RwLock::new(());

thread_local! {
    /// Held by the thread that forks, from before the fork until after it.
    static STANDSTILL: RefCell<Option<RwLockWriteGuard<'static, ()>>> = const { RefCell::new(None) };
}

/// Counted by the children: asking for the number of a process is a call of the system.
static FORKS: AtomicUsize = AtomicUsize::new(0);

/// The thread that ends the process, once it does.
static ENDED_BY: OnceLock<ThreadId> = OnceLock::new();
/// Threads with frames of the core on their stack that will want the interpreter back.
static INSIDE: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// How often this thread has entered the core: a handler that it calls may call it again.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// Runs a short step of the core that a fork may not cut through. A step runs no Python code, and
/// none is begun with the interpreter held: the thread that forks may be waiting for it.
pub(crate) fn undivided<T>(step: impl FnOnce() -> T) -> T {
    let _shared = STEPS.read().unwrap_or_else(PoisonError::into_inner);
    step()
}

/// As [`undivided`], for steps that a consumer of an Arrow stream or the garbage collector begins: the
/// thread may hold the interpreter or not. A thread without it waits until a fork under way is done. A
/// thread with it would block the fork, which needs the interpreter: after a second the step runs all
/// the same, because no other thread can fork while this one holds the interpreter.
pub(crate) fn undivided_anywhere<T>(step: impl FnOnce() -> T) -> T {
    let mut waited = Duration::ZERO;
    let _shared = loop {
        match STEPS.try_read() {
            Ok(shared) => break Some(shared),
            Err(TryLockError::Poisoned(poisoned)) => break Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) if waited >= LONGEST_FORK => break None,
            Err(TryLockError::WouldBlock) => {
                thread::sleep(LOOK);
                waited += LOOK;
            }
        }
    };
    step()
}

/// Counts a thread with frames of the core on its stack. The interpreter may not end it there, so
/// an exit waits until none wants the interpreter back.
pub(crate) struct Inside(PhantomData<*const ()>);

impl Inside {
    /// Where the process is ending in another thread, this one goes no further.
    pub(crate) fn enter(py: Python<'_>) -> Self {
        let inside = Self::count();
        if is_ending_elsewhere() {
            stay(py);
        }
        inside
    }

    fn count() -> Self {
        if DEPTH.replace(DEPTH.get() + 1) == 0 {
            INSIDE.fetch_add(1, Ordering::SeqCst);
        }
        Self(PhantomData)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        let depth = DEPTH.get().saturating_sub(1);
        DEPTH.set(depth);
        if depth == 0 {
            leave();
        }
    }
}

fn leave() {
    // Never below zero: a fork in between has begun to count anew.
    let _ = INSIDE
        .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |count| Some(count.saturating_sub(1)));
}

/// For good, without the interpreter.
#[expect(clippy::disallowed_methods, reason = "it never comes back")]
fn stay(py: Python<'_>) {
    py.detach(stay_if_ending);
}

/// Before a thread goes back to the interpreter: where the process is ending, it stays here.
pub(crate) fn stay_if_ending() {
    if is_ending_elsewhere() {
        if DEPTH.replace(0) > 0 {
            leave();
        }
        loop {
            thread::park();
        }
    }
}

fn is_ending_elsewhere() -> bool {
    ENDED_BY.get().is_some_and(|ended_by| *ended_by != thread::current().id())
}

/// Whether the process is ending, and this thread ends it.
pub(crate) fn is_ending_here() -> bool {
    ENDED_BY.get().is_some_and(|ended_by| *ended_by == thread::current().id())
}

/// Runs `work` on this thread with the interpreter released.
#[expect(clippy::disallowed_methods, reason = "part of the one crossing")]
pub(crate) fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    let _inside = Inside::enter(py);
    let outcome = py.detach(|| {
        let outcome = catch_unwind(AssertUnwindSafe(work));
        stay_if_ending();
        outcome
    });
    outcome.map_err(|panic| panicked(py, &*panic))
}

/// Runs work that needs the interpreter, and may call Python code; a panic surfaces as
/// `InternalError` here too.
pub(crate) fn guarded<T>(work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    let _inside = Python::attach(Inside::enter);
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|panic| Python::attach(|py| Err(panicked(py, &*panic))))
}

/// `InternalError` for a panic.
pub(crate) fn panicked(py: Python<'_>, panic: &(dyn Any + Send)) -> PyErr {
    let what = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without words".to_owned());
    let error = Error::new(Kind::InternalError, format!("internal error in siteline: {what}"))
        .with_hint("The client can still be used. Please report this with what you called.");
    raise(py, &error)
}

/// Runs Python code on a thread of the core. `None` where the process is ending.
pub(crate) fn attached<T>(work: impl FnOnce(Python<'_>) -> T) -> Option<T> {
    let _inside = Inside::count();
    if is_ending_elsewhere() {
        return None;
    }
    Python::try_attach(work)
}

#[pyfunction]
fn before_fork(py: Python<'_>) -> PyResult<()> {
    let guard = detached(py, || {
        let guard = STEPS.write().unwrap_or_else(PoisonError::into_inner);
        STANDSTILL.set(Some(guard));
    });
    guard.map(drop)
}

#[pyfunction]
fn after_fork_in_parent() {
    STANDSTILL.take();
}

/// How often this process and those that it comes from have forked: a change means another process.
pub(crate) fn forks() -> usize {
    FORKS.load(Ordering::Relaxed)
}

#[pyfunction]
fn after_fork_in_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
    // The thread that forked is the only one there is.
    INSIDE.store(usize::from(DEPTH.get() > 0), Ordering::SeqCst);
    STANDSTILL.take();
}

/// Threads that wait stay where they are; those that run Python code for us get a moment to end.
#[pyfunction]
fn at_exit(py: Python<'_>) -> PyResult<()> {
    if ENDED_BY.set(thread::current().id()).is_err() {
        return Ok(());
    }
    detached(py, || {
        let mut waited = Duration::ZERO;
        // This thread is inside as well.
        while INSIDE.load(Ordering::SeqCst) > 1 && waited < LONGEST_EXIT {
            thread::sleep(LOOK);
            waited += LOOK;
        }
    })
}

/// Hears of forks and of the exit from now on.
pub(crate) fn watch(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let os = py.import("os")?;
    if os.hasattr("register_at_fork")? {
        let hooks = PyDict::new(py);
        hooks.set_item("before", wrap_pyfunction!(before_fork, module)?)?;
        hooks.set_item("after_in_parent", wrap_pyfunction!(after_fork_in_parent, module)?)?;
        hooks.set_item("after_in_child", wrap_pyfunction!(after_fork_in_child, module)?)?;
        os.call_method("register_at_fork", (), Some(&hooks))?;
    }
    py.import("atexit")?.call_method1("register", (wrap_pyfunction!(at_exit, module)?,))?;
    Ok(())
}
