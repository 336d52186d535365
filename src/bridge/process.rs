//! Fork and exit. A forked child has no threads of its parent, so a lock that one held stays locked. So each
//! step without the interpreter runs in [`without_fork`], and a fork waits for all steps. Python kills a
//! thread that attaches during finalization, which aborts the process. So at exit, waiting threads stay in
//! the core, threads that run Python code get time to finish, and only the thread that ends the process may
//! enter.

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

const LONGEST_EXIT: Duration = Duration::from_secs(1);
const LONGEST_FORK: Duration = Duration::from_secs(1);
/// How often an exit or a step checks its condition.
const MOMENT: Duration = Duration::from_millis(1);
/// How often a wait checks for signals, events and the end of the process.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Steps lock it for reading, and a fork for writing.
static STEPS: RwLock<()> = RwLock::new(());

thread_local! {
    static IN_STEP: Cell<bool> = const { Cell::new(false) };
    /// Held by the forking thread during the fork.
    static FORK_LOCK: RefCell<Option<RwLockWriteGuard<'static, ()>>> = const { RefCell::new(None) };
    /// The depth of calls: a handler may call the core again.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

static ENDED_BY: OnceLock<ThreadId> = OnceLock::new();
/// The number of threads that will attach to the interpreter again.
static INSIDE: AtomicUsize = AtomicUsize::new(0);

/// Runs a short step that a fork must not interrupt. It must not hold the interpreter: a forking thread waits
/// for the step, and may need it.
pub(crate) fn without_fork<T>(step: impl FnOnce() -> T) -> T {
    if IN_STEP.get() {
        // A second lock would deadlock with a waiting fork.
        return step();
    }
    let _shared = STEPS.read().unwrap_or_else(PoisonError::into_inner);
    IN_STEP.set(true);
    let _in_step = InStep;
    step()
}

struct InStep;

impl Drop for InStep {
    fn drop(&mut self) {
        IN_STEP.set(false);
    }
}

/// For steps of Arrow consumers or the garbage collector, which may hold the interpreter. After
/// [`LONGEST_FORK`] the step is safe: this thread holds the interpreter, so no other thread can fork.
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

/// A thread in the core, for which an exit waits.
pub(crate) struct Inside(PhantomData<*const ()>);

impl Inside {
    /// If another thread ends the process, this one stays here.
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
    // A fork may have reset the count.
    let _ = INSIDE
        .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |count| Some(count.saturating_sub(1)));
}

/// If another thread ends the process, this one never attaches again.
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

pub(crate) fn is_ending_here() -> bool {
    ENDED_BY.get().is_some_and(|ended_by| *ended_by == thread::current().id())
}

/// Runs `work` with the interpreter released. A panic becomes an `InternalError`.
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

/// A panic of `work`, which may call Python code, becomes an `InternalError`.
pub(crate) fn guarded<T>(work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    let _inside = Python::attach(Inside::enter);
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|panic| Python::attach(|py| Err(panicked(py, &*panic))))
}

pub(crate) fn panicked(py: Python<'_>, panic: &(dyn Any + Send)) -> PyErr {
    let what = text_and_place_of(panic);
    let error = Error::new(Kind::InternalError, format!("internal error in siteline: {what}"))
        .with_hint("The client can still be used. Please report this with what you called.");
    raise(py, &error)
}

/// The error in a child that was forked during a call.
pub(super) fn forked() -> PyErr {
    Error::new(Kind::ForkError, "The process forked while this call waited.")
        .with_hint("The parent's call continues; call again in the child.")
        .into_py_err()
}

/// Runs Python code on a thread of the core, unless the process is ending.
pub(crate) fn attached<T>(work: impl FnOnce(Python<'_>) -> T) -> Option<T> {
    let _inside = Inside::count();
    if is_ending_elsewhere() {
        return None;
    }
    Python::try_attach(work)
}

#[pyfunction]
fn before_fork(py: Python<'_>) -> PyResult<()> {
    detached(py, || FORK_LOCK.set(Some(STEPS.write().unwrap_or_else(PoisonError::into_inner))))
}

#[pyfunction]
fn after_fork_in_parent() {
    FORK_LOCK.take();
}

#[pyfunction]
fn after_fork_in_child() {
    // The child has only the forking thread.
    INSIDE.store(usize::from(DEPTH.get() > 0), Ordering::SeqCst);
    FORK_LOCK.take();
}

/// Waits briefly for threads that run Python code, and removes the files of shared clocks.
#[pyfunction]
fn at_exit(py: Python<'_>) -> PyResult<()> {
    if ENDED_BY.set(thread::current().id()).is_err() {
        return Ok(());
    }
    detached(py, || {
        let mut waited = Duration::ZERO;
        while INSIDE.load(Ordering::SeqCst) > 1 && waited < LONGEST_EXIT {
            thread::sleep(MOMENT);
            waited += MOMENT;
        }
        Clock::unshare_all();
    })
}

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
