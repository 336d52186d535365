//! [`BackgroundTask`]: a task that runs concurrently with the caller that waits for its result. The
//! core has no runtime: a [`Spawner`] of the client's settings starts the task.

use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

/// Starts a task on the runtime that drives the client; `None` if the process is exiting. Called only
/// within that runtime.
pub type Spawner = dyn Fn(BoxFuture<'static, ()>) -> Option<AbortHandle> + Send + Sync;

/// A task of the runtime; as a future, its result. Dropping it aborts the task and its request. In a
/// forked child, dropping it has no effect.
pub(super) struct BackgroundTask<T> {
    outcome: oneshot::Receiver<T>,
    task: Option<AbortHandle>,
    process: u32,
}

impl<T: Send + 'static> BackgroundTask<T> {
    /// Starts the task; `None` if the process is exiting.
    pub(super) fn start(
        spawner: &Spawner,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Option<Self> {
        let (sender, outcome) = oneshot::channel();
        let task = spawner(Box::pin(async move { drop(sender.send(work.await)) }))?;
        Some(Self { outcome, task: Some(task), process: std::process::id() })
    }

    /// A handle to abort the task while a caller waits for it.
    pub(super) fn abort_handle(&self) -> Option<AbortHandle> {
        self.task.clone()
    }
}

/// `None` if the task was aborted or panicked.
impl<T> Future for BackgroundTask<T> {
    type Output = Option<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        Pin::new(&mut self.outcome).poll(context).map(Result::ok)
    }
}

impl<T> Drop for BackgroundTask<T> {
    fn drop(&mut self) {
        let task = self.task.take();
        if self.process == std::process::id() {
            task.inspect(AbortHandle::abort);
        } else {
            mem::forget((task, mem::replace(&mut self.outcome, oneshot::channel().1)));
        }
    }
}
