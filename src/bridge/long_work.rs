//! Long work on files runs on another thread, so that the caller's thread handles signals.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};

use crate::bridge::process::{POLL_INTERVAL, forked};
use crate::prelude::*;
use siteline_core::fork::Process;
use siteline_core::system::{Refused, begin};

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

/// Runs `work`, which Ctrl-C abandons: it reads a file that may be a pipe, or decrypts a key.
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
    match begin(move || drop(sender.send(catch_unwind(AssertUnwindSafe(work))))) {
        Ok(()) => {}
        Err(Refused(work, _)) if may_run_here => detached(py, work)?,
        Err(Refused(_, error)) => {
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
