//! Threads for blocking work. If the system refuses a thread, tokio's own pool panics or lets work
//! wait forever. This pool returns an error instead.

use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::limits;
use crate::fork::Owned;

/// Maximum number of threads in the pool. Further work waits until one of them is free.
const MOST: usize = 512;
/// How long an idle thread is kept.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

static POOL: Owned<Pool> = Owned::empty();

type Work = Box<dyn FnOnce() + Send>;

/// The error if the system refused to start a thread. Its text names the limits.
#[derive(Debug, thiserror::Error)]
pub(crate) struct NoThread {
    user: Option<u64>,
    container: Option<u64>,
}

impl NoThread {
    /// Creates the error with the current limits.
    pub(super) fn now() -> Self {
        Self { user: limits::threads_of_user(), container: limits::threads_of_container() }
    }
}

impl fmt::Display for NoThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the system starts no more threads")?;
        let user = self.user.map(|most| ("user", most, "RLIMIT_NPROC"));
        let container = self.container.map(|most| ("container", most, "pids.max"));
        for (who, most, limit) in user.into_iter().chain(container) {
            write!(f, "; this {who} may have {most} processes and threads ({limit})")?;
        }
        Ok(())
    }
}

/// Finds the [`NoThread`] in an error, if a refused thread is the reason for it.
pub(crate) fn found_no_thread(error: &io::Error) -> Option<&NoThread> {
    let inner = error.get_ref()?;
    match inner.downcast_ref::<io::Error>() {
        Some(error) => found_no_thread(error),
        None => inner.downcast_ref(),
    }
}

/// Starts a thread. Returns an error that contains [`NoThread`] if the system refuses it.
pub fn start<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    Builder::new().name(name.to_owned()).spawn(work).map_err(|_| no_thread())
}

/// Creates the I/O error for a thread that the system refused.
pub fn no_thread() -> io::Error {
    io::Error::new(io::ErrorKind::WouldBlock, NoThread::now())
}

/// Runs blocking work on a thread of the pool, within the caller's runtime. The work continues to
/// its end even if the future is dropped. If the work panics, the panic resumes in the caller.
///
/// # Errors
/// Returns an error that contains [`NoThread`] if the system refuses a thread. Nothing has run.
pub async fn on_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    let (sender, ended) = oneshot::channel::<Result<T, Box<dyn Any + Send>>>();
    let counted = move || drop(sender.send(catch_unwind(AssertUnwindSafe(work))));
    begin(counted).map_err(|refused| refused.1)?;
    match ended.await {
        Ok(Ok(outcome)) => Ok(outcome),
        Ok(Err(panic)) => resume_unwind(panic),
        // A pool thread always sends a result. A closed channel means that the process is exiting.
        Err(_) => Err(io::Error::other("the process is exiting")),
    }
}

/// Work for which no thread could be started, and the error.
pub struct Refused(pub Box<dyn FnOnce() + Send>, pub io::Error);

/// Starts work on a thread of the pool, within the caller's runtime.
///
/// # Errors
/// Returns the work in [`Refused`] if no thread is free and the system refuses another.
pub fn begin(work: impl FnOnce() + Send + 'static) -> Result<(), Refused> {
    let runtime = Handle::try_current().ok();
    let within = move || {
        let _entered = runtime.as_ref().map(Handle::enter);
        work();
    };
    POOL.get_or_init(Pool::default).begin(Box::new(within))
}

#[derive(Default)]
struct Pool {
    state: Mutex<PoolState>,
    has_work: Condvar,
}

#[derive(Default)]
struct PoolState {
    queue: VecDeque<Work>,
    /// Number of threads that wait for work.
    idle: usize,
    threads: usize,
}

impl Pool {
    fn state(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&'static self, work: Work) -> Result<(), Refused> {
        let mut state = self.state();
        let is_enough = state.idle > state.queue.len() || state.threads >= MOST;
        state.queue.push_back(work);
        if is_enough {
            self.has_work.notify_one();
            return Ok(());
        }
        // The lock is still held, so no other thread can take this work if its thread fails.
        match start("siteline-work", || self.run()) {
            Ok(_detached) => {
                state.threads += 1;
                Ok(())
            }
            Err(error) => match state.queue.pop_back() {
                Some(work) => Err(Refused(work, error)),
                None => Ok(()),
            },
        }
    }

    /// Runs queued work until the thread has been idle for [`KEEP_ALIVE`].
    fn run(&self) {
        let mut state = self.state();
        loop {
            if let Some(work) = state.queue.pop_front() {
                drop(state);
                // A panic must not end this thread. `on_thread` passes the panic to its caller.
                drop(catch_unwind(AssertUnwindSafe(work)));
                state = self.state();
                continue;
            }
            state.idle += 1;
            let waited =
                self.has_work.wait_timeout_while(state, KEEP_ALIVE, |state| state.queue.is_empty());
            let timed_out;
            (state, timed_out) = waited.unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
            if timed_out.timed_out() {
                state.threads -= 1;
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "each test runs on a runtime of its own")]

    use std::sync::mpsc::channel;

    use super::*;

    #[tokio::test]
    async fn work_runs_within_its_callers_runtime() {
        let (sender, receiver) = channel();
        let work = move || {
            sender.send(Handle::try_current().is_ok()).expect("someone waits");
            std::thread::current().id()
        };
        let worker = on_thread(work).await.expect("a thread");
        assert_ne!(worker, std::thread::current().id());
        assert!(receiver.recv().expect("it was done"));
    }

    #[tokio::test]
    async fn a_panic_resumes_in_the_caller() {
        let panics = tokio::spawn(on_thread(|| -> u32 { panic!("a panic for a test") }));
        let joined = panics.await.expect_err("it panics");
        assert!(joined.is_panic());
        assert_eq!(on_thread(|| 2).await.expect("a thread"), 2);
    }

    #[test]
    fn each_work_has_a_thread_while_others_wait() {
        let (done, ended) = channel();
        let mut senders = Vec::new();
        for number in 0..4 {
            let (sender, end) = channel::<()>();
            senders.push(sender);
            let done = done.clone();
            let work = move || {
                let _ended = end.recv();
                done.send(number).expect("someone waits");
            };
            assert!(begin(work).is_ok());
        }
        // The last work ends first, so no work waits for another one's thread.
        for number in (0..4).rev() {
            drop(senders.pop());
            assert_eq!(ended.recv(), Ok(number));
        }
    }

    #[test]
    fn a_refused_thread_names_the_limit() {
        let limits = |user, container| NoThread { user, container }.to_string();
        assert!(
            limits(Some(64), None).contains("may have 64 processes and threads (RLIMIT_NPROC)")
        );
        assert!(limits(None, Some(9)).contains("this container may have 9"));
        assert!(
            limits(Some(64), Some(9))
                .ends_with("; this container may have 9 processes and threads (pids.max)")
        );
        assert_eq!(limits(None, None), "the system starts no more threads");
        let refused = io::Error::new(io::ErrorKind::WouldBlock, NoThread::now());
        assert!(found_no_thread(&io::Error::other(refused)).is_some());
        assert!(found_no_thread(&io::ErrorKind::WouldBlock.into()).is_none());
    }
}
