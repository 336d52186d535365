//! [`Steps`]: a future of the core as Python waits for it, here or in the background.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::oneshot;

use crate::bridge::delivery::emit_meanwhile;
use crate::bridge::logging::LogBuffer;
use crate::bridge::process::without_fork;
use siteline_core::error::{Error, Kind};
use siteline_core::system::on_thread;

/// How often a wait checks for Ctrl-C, for pending log records and for the end of the process.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The output of a future, or the payload of its panic.
pub(crate) type Outcome<T> = Result<T, Box<dyn Any + Send>>;

/// A future of the core. No fork happens while it is polled or dropped.
pub(crate) struct Steps<F> {
    future: Option<Pin<Box<F>>>,
    buffer: Arc<LogBuffer>,
}

impl<F: Future> Steps<F> {
    /// Its log records are pushed to this buffer. If a handler of `logging` makes the call, they are
    /// dropped.
    pub(crate) fn new(future: F, buffer: Arc<LogBuffer>) -> Self {
        Self { future: Some(Box::pin(future)), buffer: LogBuffer::for_call(buffer) }
    }

    /// Polls the future for at most [`POLL_INTERVAL`]: its outcome, or `None` if it is still pending.
    /// Then another thread emits the pending log records.
    pub(crate) async fn for_a_while(&mut self) -> Option<Outcome<F::Output>> {
        let outcome = tokio::time::timeout(POLL_INTERVAL, &mut *self).await.ok();
        if outcome.is_none() && self.buffer.has_progress() {
            emit_meanwhile(Arc::clone(&self.buffer));
        }
        outcome
    }

    /// Polls the future to its end. Records that are pending are emitted meanwhile by another thread,
    /// [`POLL_INTERVAL`] later: no timer runs without one.
    pub(crate) async fn complete(mut self) -> Outcome<F::Output> {
        let buffer = Arc::clone(&self.buffer);
        loop {
            tokio::select! {
                biased;
                outcome = &mut self => return outcome,
                () = buffer.progress() => {}
            }
            if let Some(outcome) = self.for_a_while().await {
                return outcome;
            }
        }
    }

    /// Polls the future until the sender is dropped. Returns it, and its outcome if it has ended.
    pub(crate) async fn until(
        mut self,
        stopped: oneshot::Receiver<()>,
    ) -> (Self, Option<Outcome<F::Output>>) {
        let outcome = tokio::select! {
            biased;
            _ = stopped => None,
            outcome = &mut self => Some(outcome),
        };
        (self, outcome)
    }
}

impl<F: Future> Future for Steps<F> {
    type Output = Outcome<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { future, buffer } = &mut *self;
        let Some(future) = future else { return Poll::Pending };
        let poll = AssertUnwindSafe(|| future.as_mut().poll(context));
        match without_fork(|| buffer.run(|| catch_unwind(poll))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(outcome)) => Poll::Ready(Ok(outcome)),
            Err(panic) => Poll::Ready(Err(panic)),
        }
    }
}

impl<F> Drop for Steps<F> {
    fn drop(&mut self) {
        without_fork(|| drop(self.future.take()));
    }
}

/// Does work on a thread that drives no connections, to its end. Its panic is resumed here.
///
/// # Errors
/// `TransportError` if the system refuses a thread.
pub(crate) async fn on_blocking_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Error> {
    on_thread(work).await.map_err(|refused| Error::no_thread(&refused))
}

pub(crate) fn runtime_ended() -> Error {
    Error::new(Kind::InternalError, "the runtime ended before its work")
}
