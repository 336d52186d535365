//! Long work of the core on files: Ctrl-C ends it, and a callback can see how far it is.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use pyo3::prelude::*;

use crate::bridge::errors::IntoPyErr as _;
use crate::bridge::errors::OrRaise as _;
use crate::bridge::process::{detached, without_fork};
use siteline_base::lock::Mutex;
use siteline_core::error::{Error, Kind};
use siteline_core::fork::Process;
use siteline_core::system::start;

/// How often a wait checks for Ctrl-C and calls its callback.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Runs `work` on a thread of its own, because signals are handled on this one. It also calls `meanwhile`
/// now and then. Where one of them raises, `stop` is called, which lets the work end soon, and its end is
/// waited for: nothing of it goes on after the exception. A fork waits for the work.
pub(crate) fn long_work<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send + 'static,
    stop: impl Fn(),
    mut meanwhile: impl FnMut() -> PyResult<()>,
) -> PyResult<T> {
    let (sender, ended) = sync_channel(1);
    let begun = start("siteline-store", move || {
        // The one who waits has gone where the process was forked.
        drop(sender.send(catch_unwind(AssertUnwindSafe(|| without_fork(work)))));
    });
    drop(
        begun
            .map_err(|error| {
                Error::system(
                    Kind::StoreError,
                    "The work on the store needs another thread",
                    &error,
                )
            })
            .or_raise()?,
    );
    let (process, mut ended, mut raised) = (Process::current(), Some(ended), None);
    while let Some(waiting) = ended.take() {
        let (waiting, outcome) = detached(py, move || {
            let outcome = waiting.recv_timeout(POLL_INTERVAL);
            (waiting, outcome)
        })?;
        match outcome {
            Ok(outcome) => {
                let outcome = detached(py, || outcome.unwrap_or_else(|panic| resume_unwind(panic)));
                return raised.map_or(outcome, Err);
            }
            Err(RecvTimeoutError::Timeout) => ended = Some(waiting),
            Err(RecvTimeoutError::Disconnected) => {}
        }
        if raised.is_none() {
            raised = py.check_signals().and_then(|()| meanwhile()).err();
            if !process.is_current() {
                // A child that a handler forked: the thread is its parent's.
                break;
            }
            if raised.is_some() {
                stop();
            }
        }
    }
    Err(raised.unwrap_or_else(|| forked().into_py_err()))
}

/// Runs `work` on a thread of its own, which Ctrl-C leaves to itself: it reads a file that may be a pipe
/// without a writer, or decrypts a key. If the system has no thread, it runs on this one.
pub(crate) fn left_on_interrupt<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let (sender, ended) = sync_channel(1);
    let work = Arc::new(Mutex::new(Some(work)));
    let theirs = Arc::clone(&work);
    let begun = start("siteline-file", move || {
        let taken = theirs.lock().take();
        // The one who waits may have gone.
        drop(sender.send(taken.map(|work| catch_unwind(AssertUnwindSafe(work)))));
    });
    if begun.is_err() {
        let taken = work.lock().take();
        return taken.map_or_else(|| Err(forked().into_py_err()), |work| detached(py, work));
    }
    let (process, mut ended) = (Process::current(), ended);
    loop {
        let (waiting, outcome) = detached(py, move || {
            let outcome = ended.recv_timeout(POLL_INTERVAL);
            (ended, outcome)
        })?;
        ended = waiting;
        match outcome {
            Ok(Some(outcome)) => {
                return detached(py, || outcome.unwrap_or_else(|panic| resume_unwind(panic)));
            }
            Err(RecvTimeoutError::Timeout) => {}
            Ok(None) | Err(RecvTimeoutError::Disconnected) => return Err(forked().into_py_err()),
        }
        py.check_signals()?;
        if !process.is_current() {
            return Err(forked().into_py_err());
        }
    }
}

fn forked() -> Error {
    Error::new(Kind::ForkError, "the process forked while this call worked")
        .with_hint("The parent's call goes on; call again in the child.")
}
