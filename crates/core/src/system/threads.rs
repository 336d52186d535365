//! Threads for blocking work. If the system refuses a thread, tokio's pool panics or lets work wait
//! forever. Here it is an error.

use std::any::Any;
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use tokio::runtime::Handle;
use tokio::sync::{Semaphore, oneshot};

use super::limits;
use crate::fork::Owned;

/// Maximum number of threads with blocking work. Further work waits until one of them ends.
const MOST: usize = 512;

static PLACES: Owned<Arc<Semaphore>> = Owned::empty();

/// The error if the system refused to start a thread. Its text names the limits.
#[derive(Debug, thiserror::Error)]
pub(super) struct NoThread;

impl fmt::Display for NoThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&refused(limits::threads_of_user(), limits::threads_of_container()))
    }
}

/// Describes a refused thread by the limits of the user and of the container.
fn refused(user: Option<u64>, container: Option<u64>) -> String {
    let user = user.map(|most| ("user", most, "RLIMIT_NPROC"));
    let container = container.map(|most| ("container", most, "pids.max"));
    let limits = [user, container].into_iter().flatten().map(|(who, most, limit)| {
        format!("; this {who} may have {most} processes and threads ({limit})")
    });
    format!("the system starts no more threads{}", limits.collect::<String>())
}

/// Whether a refused thread is the reason for an error.
pub(super) fn is_no_thread(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| match inner.downcast_ref::<io::Error>() {
        Some(error) => is_no_thread(error),
        None => inner.is::<NoThread>(),
    })
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
    io::Error::new(io::ErrorKind::WouldBlock, NoThread)
}

/// Runs blocking work on a thread of its own, within the caller's runtime. The work continues to its
/// end even if the future is dropped. If the work panics, the panic resumes in the caller.
///
/// # Errors
/// Returns an error that contains [`NoThread`] if the system refuses a thread. Nothing has run.
pub async fn on_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    let places = PLACES.get_or_init(|| Arc::new(Semaphore::new(MOST)));
    let place = Arc::clone(places).acquire_owned().await;
    let (sender, ended) = oneshot::channel::<Result<T, Box<dyn Any + Send>>>();
    let runtime = Handle::try_current().ok();
    start("siteline-work", move || {
        let _entered = runtime.as_ref().map(Handle::enter);
        let outcome = catch_unwind(AssertUnwindSafe(work));
        drop(place);
        drop(sender.send(outcome));
    })?;
    match ended.await {
        Ok(Ok(outcome)) => Ok(outcome),
        Ok(Err(panic)) => resume_unwind(panic),
        // A thread always sends a result. A closed channel means that the process is exiting.
        Err(_) => Err(io::Error::other("the process is exiting")),
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

    #[tokio::test]
    async fn each_work_has_a_thread_while_others_wait() {
        let (done, ended) = channel();
        let mut senders = Vec::new();
        for number in 0..4 {
            let (sender, end) = channel::<()>();
            senders.push(sender);
            let done = done.clone();
            tokio::spawn(on_thread(move || {
                let _ended = end.recv();
                done.send(number).expect("someone waits");
            }));
            tokio::task::yield_now().await;
        }
        // The last work ends first, so no work waits for another one's thread.
        for number in (0..4).rev() {
            drop(senders.pop());
            assert_eq!(ended.recv(), Ok(number));
        }
    }

    #[test]
    fn a_refused_thread_names_the_limit() {
        assert!(
            refused(Some(64), None).contains("may have 64 processes and threads (RLIMIT_NPROC)")
        );
        assert!(refused(None, Some(9)).contains("this container may have 9"));
        assert!(
            refused(Some(64), Some(9))
                .ends_with("; this container may have 9 processes and threads (pids.max)")
        );
        assert_eq!(refused(None, None), "the system starts no more threads");
        assert!(is_no_thread(&io::Error::other(no_thread())));
        assert!(!is_no_thread(&io::ErrorKind::WouldBlock.into()));
    }
}
