//! Fork and exit of the process.
//!
//! **Fork.** A child has the memory of its parent, but none of its threads: a lock that one of them
//! held stays locked, and what it protects stays half changed. So every step of the core that runs
//! without the interpreter goes through [`without_fork`], and a fork waits until no step is running. The
//! runtime, connections and reads belong to one process, and are made anew in another.
//!
//! **Exit.** Once the interpreter finalizes, Python ends a thread that attaches to it, in the middle of
//! Rust code, which aborts the process. So when the exit handlers run: threads that wait in the core
//! (daemon threads by then) stay there; threads that run Python code for the core get time to finish it;
//! no thread enters the core or attaches to the interpreter any more, except the one that ends the
//! process. That one may still use siteline, in other exit handlers.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{OnceLock, PoisonError, RwLock, RwLockWriteGuard, TryLockError};
use std::thread::{self, ThreadId};

use pyo3::types::IntoPyDict as _;

use crate::bridge::panics::text_and_place_of;
use crate::prelude::*;

/// How long an exit waits for threads that run Python code for the core, such as a signer.
const LONGEST_EXIT: Duration = Duration::from_secs(1);
/// How long a step that may hold the interpreter waits for a fork.
const LONGEST_FORK: Duration = Duration::from_secs(1);
/// How often an exit and a step check what they wait for.
const MOMENT: Duration = Duration::from_millis(1);
/// How often a wait checks for Ctrl-C, for events and for the end of the process.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Locked for reading by each step that a fork must not interrupt, and for writing by the fork.
static STEPS: RwLock<()> = RwLock::new(());

thread_local! {
    /// Whether this thread has locked [`STEPS`] for reading.
    static IN_STEP: Cell<bool> = const { Cell::new(false) };
    /// The lock of the thread that forks, from before the fork until after it.
    static FORK_LOCK: RefCell<Option<RwLockWriteGuard<'static, ()>>> = const { RefCell::new(None) };
}

/// The thread that ends the process, from the exit handler on.
static ENDED_BY: OnceLock<ThreadId> = OnceLock::new();
/// The number of threads in the core that will attach to the interpreter again.
static INSIDE: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// How many calls of this thread are in the core: a handler that the core calls may call it again.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// Runs a short step of the core that a fork must not interrupt. It runs no Python code. It begins
/// without the interpreter: a thread that forks waits for the step, and may hold the interpreter.
pub(crate) fn without_fork<T>(step: impl FnOnce() -> T) -> T {
    if IN_STEP.get() {
        // To lock again would wait for a thread that waits to fork, and that thread for this one.
        return step();
    }
    let _shared = STEPS.read().unwrap_or_else(PoisonError::into_inner);
    let _in_step = InStep::begin();
    step()
}

/// Marks that this thread is in a step.
struct InStep;

impl InStep {
    fn begin() -> Self {
        IN_STEP.set(true);
        Self
    }
}

impl Drop for InStep {
    fn drop(&mut self) {
        IN_STEP.set(false);
    }
}

/// As [`without_fork`], for steps that a consumer of an Arrow stream or the garbage collector begins, with
/// the interpreter held or not. A fork in another thread is waited for, at most [`LONGEST_FORK`]. If this
/// thread holds the interpreter, which that fork needs, the step then runs all the same: no other thread
/// can fork while this one holds the interpreter.
pub(crate) fn without_fork_anywhere<T>(step: impl FnOnce() -> T) -> T {
    let mut waited = Duration::ZERO;
    let _shared = loop {
        match STEPS.try_read() {
            Ok(shared) => break Some(shared),
            Err(TryLockError::Poisoned(poisoned)) => break Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) if waited >= LONGEST_FORK => break None,
            Err(TryLockError::WouldBlock) => {
                thread::sleep(MOMENT);
                waited += MOMENT;
            }
        }
    };
    step()
}

/// Counts a thread that is in the core. Python must not end it there, so an exit waits for the threads
/// that will attach to the interpreter again.
pub(crate) struct Inside(PhantomData<*const ()>);

impl Inside {
    /// Where the process is ending in another thread, this one stays here, without the interpreter.
    #[expect(clippy::disallowed_methods, reason = "part of the one crossing")]
    pub(crate) fn enter(py: Python<'_>) -> Self {
        let inside = Self::count();
        if is_ending_elsewhere() {
            py.detach(stay_if_ending);
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
    // Not below zero: a fork meanwhile may have reset the count.
    let _ = INSIDE
        .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |count| Some(count.saturating_sub(1)));
}

/// Before a thread attaches to the interpreter: if another thread is ending the process, it stays here.
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

/// Whether this thread is ending the process.
pub(crate) fn is_ending_here() -> bool {
    ENDED_BY.get().is_some_and(|ended_by| *ended_by == thread::current().id())
}

/// Runs `work` on this thread with the interpreter released; a panic becomes an `InternalError`.
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

/// Runs `work`, which needs the interpreter and may call Python code; a panic becomes an
/// `InternalError`.
pub(crate) fn guarded<T>(work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    let _inside = Python::attach(Inside::enter);
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|panic| Python::attach(|py| Err(panicked(py, &*panic))))
}

/// `InternalError` for a panic.
pub(crate) fn panicked(py: Python<'_>, panic: &(dyn Any + Send)) -> PyErr {
    let what = text_and_place_of(panic);
    let error = Error::new(Kind::InternalError, format!("internal error in siteline: {what}"))
        .with_hint("The client can still be used. Please report this with what you called.");
    raise(py, &error)
}

/// For a call in a child that was forked while the call waited.
pub(super) fn forked() -> PyErr {
    Error::new(Kind::ForkError, "The process forked while this call waited.")
        .with_hint("The parent's call continues; call again in the child.")
        .into_py_err()
}

/// Runs Python code on a thread of the core. `None` if the process is ending.
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
        FORK_LOCK.set(Some(guard));
    });
    guard.map(drop)
}

#[pyfunction]
fn after_fork_in_parent() {
    FORK_LOCK.take();
}

#[pyfunction]
fn after_fork_in_child() {
    // The child has one thread: the one that forked.
    INSIDE.store(usize::from(DEPTH.get() > 0), Ordering::SeqCst);
    FORK_LOCK.take();
}

/// Waits a moment for threads that run Python code for the core, and removes the files of shared clocks.
#[pyfunction]
fn at_exit(py: Python<'_>) -> PyResult<()> {
    if ENDED_BY.set(thread::current().id()).is_err() {
        return Ok(());
    }
    detached(py, || {
        let mut waited = Duration::ZERO;
        // This thread is counted too.
        while INSIDE.load(Ordering::SeqCst) > 1 && waited < LONGEST_EXIT {
            thread::sleep(MOMENT);
            waited += MOMENT;
        }
        Clock::unshare_all();
    })
}

/// Registers what runs at a fork and at the exit.
pub(crate) fn watch(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let os = py.import("os")?;
    if os.hasattr("register_at_fork")? {
        let hooks = [
            ("before", wrap_pyfunction!(before_fork, module)?),
            ("after_in_parent", wrap_pyfunction!(after_fork_in_parent, module)?),
            ("after_in_child", wrap_pyfunction!(after_fork_in_child, module)?),
        ];
        os.call_method("register_at_fork", (), Some(&hooks.into_py_dict(py)?))?;
    }
    py.import("atexit")?.call_method1("register", (wrap_pyfunction!(at_exit, module)?,))?;
    Ok(())
}
