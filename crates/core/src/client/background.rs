//! A task that runs concurrently with the caller that waits for its result. The core has no
//! runtime, so the [`Spawner`] of the settings starts the task.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use crate::fork::Owned;

/// `None` if the process is exiting. Called only within the client's runtime.
pub(crate) type Spawner = dyn Fn(BoxFuture<'static, ()>) -> Option<AbortHandle> + Send + Sync;

/// Dropping it aborts the task and its request. It is empty in a forked child.
pub(super) struct BackgroundTask<T>(Owned<RunningTask<T>>);

struct RunningTask<T> {
    outcome: oneshot::Receiver<T>,
    task: AbortHandle,
}

impl<T: Send + 'static> BackgroundTask<T> {
    /// `None` if the process is exiting.
    pub(super) fn start(
        spawner: &Spawner,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Option<Self> {
        let (sender, outcome) = oneshot::channel();
        let task = spawner(Box::pin(async move { drop(sender.send(work.await)) }))?;
        Some(Self(Owned::new(RunningTask { outcome, task })))
    }

    pub(super) fn is_finished(&self) -> bool {
        self.0.get().is_some_and(|running| running.task.is_finished())
    }
}

/// `None` if the task was aborted or panicked.
impl<T> Future for BackgroundTask<T> {
    type Output = Option<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        let Some(running) = self.0.get_mut() else { return Poll::Ready(None) };
        Pin::new(&mut running.outcome).poll(context).map(Result::ok)
    }
}

impl<T> Drop for RunningTask<T> {
    fn drop(&mut self) {
        self.task.abort();
    }
}
