//! Long work of the core on files, on a thread of its own, because signals are handled on the caller's.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
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

type Ended<T> = Receiver<Result<T, Box<dyn Any + Send>>>;

/// Runs `work`, and `meanwhile` now and then. If Ctrl-C or `meanwhile` raises, `stop` is called, which lets the
/// work end soon, and its end is waited for. A fork waits for the work.
pub(crate) fn long_work<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send + 'static,
    stop: impl Fn(),
    mut meanwhile: impl FnMut() -> PyResult<()>,
) -> PyResult<T> {
    let refused = "The work on the store needs another thread";
    let ended = begin("siteline-store", move || without_fork(work))
        .map_err(|(_, error)| Error::system(Kind::StoreError, refused, &error))
        .or_raise()?;
    let mut raised = None;
    let outcome = wait(py, ended, || {
        if raised.is_none() {
            raised = py.check_signals().and_then(|()| meanwhile()).err();
            if raised.is_some() {
                stop();
            }
        }
        Ok(())
    });
    raised.map_or(outcome, Err)
}

/// Runs `work`, which Ctrl-C leaves to itself: it reads a file that may be a pipe without a writer, or
/// decrypts a key. If the system has no thread, it runs on this one.
pub(crate) fn left_on_interrupt<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    match begin("siteline-file", work) {
        Ok(ended) => wait(py, ended, || py.check_signals()),
        Err((work, _)) => detached(py, work),
    }
}

/// Begins work on a thread; if the system refuses the thread, returns the work.
fn begin<T: Send + 'static, W: FnOnce() -> T + Send + 'static>(
    name: &str,
    work: W,
) -> Result<Ended<T>, (W, std::io::Error)> {
    let (sender, ended) = sync_channel(1);
    let work = Arc::new(Mutex::new(Some(work)));
    let theirs = Arc::clone(&work);
    let begun = start(name, move || {
        let taken = theirs.lock().take();
        // The waiting thread may have gone: it was interrupted, or the process was forked.
        drop(taken.map(|work| sender.send(catch_unwind(AssertUnwindSafe(work)))));
    });
    let Err(error) = begun else { return Ok(ended) };
    let refused = work.lock().take();
    refused.map_or(Ok(ended), |work| Err((work, error)))
}

fn wait<T: Send>(
    py: Python<'_>,
    mut ended: Ended<T>,
    mut meanwhile: impl FnMut() -> PyResult<()>,
) -> PyResult<T> {
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
            Err(RecvTimeoutError::Timeout) => meanwhile()?,
            Err(RecvTimeoutError::Disconnected) => return Err(forked()),
        }
        if !process.is_current() {
            return Err(forked());
        }
    }
}

fn forked() -> PyErr {
    Error::new(Kind::ForkError, "The process forked while this call worked.")
        .with_hint("The parent's call continues; call again in the child.")
        .into_py_err()
}
