//! [`Steps`]: a future of the core as Python waits for it, here or [`Elsewhere`].

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
use crate::python::logging::Desk;
use crate::python::process::undivided;

/// How often a wait looks up: for Ctrl-C, for records to hand over, for the end of the process.
const LOOK_UP: Duration = Duration::from_millis(50);

/// What came of a future: its own outcome, or what it panicked with.
pub(crate) type Outcome<T, E> = Result<Result<T, E>, Box<dyn Any + Send>>;

/// A future, and what came of it, if it came to its end.
type Gone<T, E, F> = (Steps<F>, Option<Outcome<T, E>>);

/// A future of the core, taken step by step, its end included: no fork cuts through one.
pub(crate) struct Steps<F> {
    future: Option<Pin<Box<F>>>,
    desk: Arc<Desk>,
}

impl<F> Steps<F> {
    /// What it says lies on this desk until somebody clears it.
    pub(crate) fn new(future: F, desk: Arc<Desk>) -> Self {
        Self { future: Some(Box::pin(future)), desk }
    }
}

impl<T, E, F: Future<Output = Result<T, E>>> Steps<F> {
    /// What came of the future, or `None` when it is time to look up. Records that wait are handed
    /// over meanwhile.
    pub(crate) async fn for_a_while(&mut self) -> Option<Outcome<T, E>> {
        let outcome = tokio::time::timeout(LOOK_UP, &mut *self).await.ok();
        if outcome.is_none() && self.desk.is_waiting() {
            let desk = Arc::clone(&self.desk);
            tokio::task::spawn_blocking(move || desk.clear_meanwhile());
        }
        outcome
    }
}

impl<T, E, F: Future<Output = Result<T, E>>> Future for Steps<F> {
    type Output = Outcome<T, E>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { future, desk } = &mut *self;
        let Some(future) = future else { return Poll::Pending };
        let poll = AssertUnwindSafe(|| future.as_mut().poll(context));
        match undivided(|| desk.during(|| catch_unwind(poll))) {
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
pub(crate) struct Elsewhere<T, E, F> {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Gone<T, E, F>>,
}

impl<T, E, F> Elsewhere<T, E, F>
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

    /// How far it has gone.
    ///
    /// # Errors
    /// `InternalError` where the runtime has ended.
    pub(crate) async fn end(self) -> Result<Gone<T, E, F>, Error> {
        // It may have come to its end.
        let _ = self.stop.send(());
        let lost = |_| Error::new(Kind::Internal, "the runtime ended before its work");
        self.task.await.map_err(lost)
    }
}
