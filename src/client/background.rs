//! [`BackgroundTask`]: work that goes on beside whoever wants its outcome. The core has no runtime of
//! its own: a [`Spawner`] of the client's settings starts the task.

use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

/// Starts tasks on the runtime that drives the client.
pub trait Spawner: Send + Sync {
    /// Starts a task; `None` where no task is started any more, because the process is ending. Called
    /// within that runtime only.
    fn spawn(&self, work: BoxFuture<'static, ()>) -> Option<AbortHandle>;
}

impl<F: Fn(BoxFuture<'static, ()>) -> Option<AbortHandle> + Send + Sync> Spawner for F {
    fn spawn(&self, work: BoxFuture<'static, ()>) -> Option<AbortHandle> {
        self(work)
    }
}

/// A task of the runtime, and its outcome once it has one. Dropped, the task is aborted, and with it
/// its request. In a forked child, whose task it is not, dropping it touches nothing.
pub(super) struct BackgroundTask<T> {
    outcome: oneshot::Receiver<T>,
    task: Option<AbortHandle>,
    process: u32,
}

impl<T: Send + 'static> BackgroundTask<T> {
    /// Starts the work; `None` where no task is started any more.
    pub(super) fn start(
        spawner: &dyn Spawner,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Option<Self> {
        let (sender, outcome) = oneshot::channel();
        let task = spawner.spawn(Box::pin(async move { drop(sender.send(work.await)) }))?;
        Some(Self { outcome, task: Some(task), process: std::process::id() })
    }

    /// For ending the work where it is, while its outcome is waited for.
    pub(super) fn abort_handle(&self) -> Option<AbortHandle> {
        self.task.clone()
    }
}

/// `None` where the task ended without an outcome: it was aborted, or it panicked.
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
