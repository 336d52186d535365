//! [`Steps`]: a future of the core as Python waits for it, here or in the background.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::error::{Error, Kind};
use crate::python::bridge::logging::LogBuffer;
use crate::python::bridge::process::undivided;

/// How often a wait looks up: for Ctrl-C, for records to hand over, for the end of the process.
const LOOK_UP: Duration = Duration::from_millis(50);

/// What came of a future: its own outcome, or what it panicked with.
pub(crate) type Outcome<T, E> = Result<Result<T, E>, Box<dyn Any + Send>>;

/// A future, and what came of it, if it came to its end.
type Stopped<T, E, F> = (Steps<F>, Option<Outcome<T, E>>);

/// A future of the core, taken step by step, its end included: no fork cuts through one.
pub(crate) struct Steps<F> {
    future: Option<Pin<Box<F>>>,
    buffer: Arc<LogBuffer>,
}

impl<F> Steps<F> {
    /// Its log records are pushed to this buffer; they are dropped where a handler of `logging` makes
    /// the call.
    pub(crate) fn new(future: F, buffer: Arc<LogBuffer>) -> Self {
        Self { future: Some(Box::pin(future)), buffer: LogBuffer::for_call(buffer) }
    }
}

impl<T, E, F: Future<Output = Result<T, E>>> Steps<F> {
    /// What came of the future, or `None` when it is time to look up. Records that wait are emitted
    /// over meanwhile.
    pub(crate) async fn for_a_while(&mut self) -> Option<Outcome<T, E>> {
        let outcome = tokio::time::timeout(LOOK_UP, &mut *self).await.ok();
        if outcome.is_none() && self.buffer.has_pending() {
            let buffer = Arc::clone(&self.buffer);
            tokio::task::spawn_blocking(move || buffer.flush_meanwhile());
        }
        outcome
    }
}

impl<T, E, F: Future<Output = Result<T, E>>> Future for Steps<F> {
    type Output = Outcome<T, E>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { future, buffer } = &mut *self;
        let Some(future) = future else { return Poll::Pending };
        let poll = AssertUnwindSafe(|| future.as_mut().poll(context));
        match undivided(|| buffer.run(|| catch_unwind(poll))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(outcome)) => Poll::Ready(Ok(outcome)),
            Err(panic) => Poll::Ready(Err(panic)),
        }
    }
}

impl<F> Drop for Steps<F> {
    fn drop(&mut self) {
        undivided(|| drop(self.future.take()));
    }
}

/// A future that goes on as a task of the runtime, while its thread runs handlers of signals.
pub(crate) struct BackgroundSteps<T, E, F> {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Stopped<T, E, F>>,
}

impl<T, E, F> BackgroundSteps<T, E, F>
where
    T: Send + 'static,
    E: Send + 'static,
    F: Future<Output = Result<T, E>> + Send + 'static,
{
    pub(crate) fn begin(runtime: &Runtime, mut steps: Steps<F>) -> Self {
        let (stop, stopped) = oneshot::channel();
        let task = runtime.spawn(async move {
            let outcome = tokio::select! {
                biased;
                _ = stopped => None,
                outcome = &mut steps => Some(outcome),
            };
            (steps, outcome)
        });
        Self { stop, task }
    }

    /// Stops it where it is.
    ///
    /// # Errors
    /// `InternalError` where the runtime has ended.
    pub(crate) async fn stop(self) -> Result<Stopped<T, E, F>, Error> {
        // It may have come to its end.
        let _ = self.stop.send(());
        let lost = |_| Error::new(Kind::InternalError, "the runtime ended before its work");
        self.task.await.map_err(lost)
    }
}
