//! Long work on files runs on another thread, so that the caller's thread handles signals.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};

use crate::bridge::process::{POLL_INTERVAL, forked};
use crate::prelude::*;
use siteline_core::fork::Process;
use siteline_core::system::start;

/// If Ctrl-C or `meanwhile` raises, it calls `stop` and waits for the end. A fork waits for the work.
pub(crate) fn long_work<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send + 'static,
    stop: impl Fn(),
    mut meanwhile: impl FnMut() -> PyResult<()>,
) -> PyResult<T> {
    let mut raised = None;
    let watch = || {
        if raised.is_none() {
            raised = py.check_signals().and_then(|()| meanwhile()).err();
            if raised.is_some() {
                stop();
            }
        }
        Ok(())
    };
    let outcome = beside(py, move || without_fork(work), false, watch);
    raised.map_or(outcome, Err)
}

/// Runs `work`, which Ctrl-C abandons: it reads a file that may be a pipe, decrypts a key, or asks an agent.
pub(crate) fn left_on_interrupt<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    beside(py, work, true, || py.check_signals())
}

fn beside<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send + 'static,
    may_run_here: bool,
    mut meanwhile: impl FnMut() -> PyResult<()>,
) -> PyResult<T> {
    let (sender, mut ended) = sync_channel(1);
    // A refused thread drops its closure, so both share the work.
    let work = Arc::new(Mutex::new(Some(work)));
    let run = move || {
        let outcome = work.lock().take().map(|work| catch_unwind(AssertUnwindSafe(work)));
        outcome.map(|outcome| sender.send(outcome));
    };
    match start("siteline-work", run.clone()) {
        Ok(_detached) => drop(run),
        Err(_) if may_run_here => detached(py, run)?,
        Err(error) => {
            let message = "The work on the store needs another thread";
            return Err(Error::system(Kind::StoreError, message, &error).into_py_err());
        }
    }
    let process = Process::current();
    loop {
        let outcome;
        (ended, outcome) = detached(py, move || {
            let outcome = ended.recv_timeout(POLL_INTERVAL);
            (ended, outcome)
        })?;
        match outcome {
            Ok(outcome) => {
                return detached(py, || outcome.unwrap_or_else(|panic| resume_unwind(panic)));
            }
            // A forked child has no thread that does the work.
            Err(RecvTimeoutError::Timeout) if process.is_current() => meanwhile()?,
            Err(_) => return Err(forked()),
        }
    }
}
