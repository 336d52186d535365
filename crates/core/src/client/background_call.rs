//! A call that starts in a background task and can be handed over to the waiting caller. The task
//! sends the request early, and the caller decodes the body: columns written by another core are
//! slow to read.

use std::future::poll_fn;
use std::mem::replace;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use futures_util::task::AtomicWaker;
use tokio::task::AbortHandle;

use super::background::Spawner;
use crate::fork::Owned;
use crate::lock::Mutex;

/// The point at which the task of a call stops and the waiting caller continues it.
#[derive(Clone, Default)]
pub(super) struct Handover(Arc<Flags>);

#[derive(Default)]
struct Flags {
    is_reached: AtomicBool,
    is_done: AtomicBool,
}

impl Handover {
    /// Completes when a caller waits for the result. Called within the call.
    pub(super) async fn reached(&self) {
        self.0.is_reached.store(true, Ordering::SeqCst);
        // No waker is needed, because the caller polls the call itself.
        poll_fn(|_| if self.is_done() { Poll::Ready(()) } else { Poll::Pending }).await;
    }

    /// Resets the handover before the call is repeated. Called within the call.
    pub(super) fn repeat(&self) {
        self.0.is_reached.store(false, Ordering::SeqCst);
    }

    fn is_reached(&self) -> bool {
        self.0.is_reached.load(Ordering::SeqCst)
    }

    fn is_done(&self) -> bool {
        self.0.is_done.load(Ordering::SeqCst)
    }

    fn finish(&self) {
        self.0.is_done.store(true, Ordering::SeqCst);
    }
}

/// Dropping it drops the connection. It is empty in a forked child.
pub(super) struct BackgroundCall<T>(Owned<Started<T>>);

struct Started<T> {
    shared: Arc<Shared<T>>,
    task: AbortHandle,
}

struct Shared<T> {
    handover: Handover,
    waiter: AtomicWaker,
    is_finished: AtomicBool,
    state: Mutex<CallState<T>>,
}

enum CallState<T> {
    Running(BoxFuture<'static, T>),
    Finished(T),
    /// The result was taken, or the call panicked.
    Over,
}

impl<T: Send + 'static> BackgroundCall<T> {
    /// Starts the call; `None` if the process is exiting.
    pub(super) fn start(
        spawner: &Spawner,
        handover: Handover,
        call: impl Future<Output = T> + Send + 'static,
    ) -> Option<Self> {
        let shared = Arc::new(Shared {
            handover,
            waiter: AtomicWaker::new(),
            is_finished: AtomicBool::new(false),
            state: Mutex::new(CallState::Running(Box::pin(call))),
        });
        let driver = Driver(Arc::clone(&shared));
        let task = spawner(Box::pin(poll_fn(move |context| driver.0.poll_task(context))))?;
        Some(Self(Owned::new(Started { shared, task })))
    }

    pub(super) fn is_finished(&self) -> bool {
        self.shared().is_some_and(|shared| shared.is_finished.load(Ordering::SeqCst))
    }

    /// Whether the call has ended or reached the handover.
    pub(super) fn is_ready(&self) -> bool {
        self.shared().is_some_and(|shared| shared.is_ready())
    }

    pub(super) fn finished(&self) -> Option<T> {
        if self.is_finished() { self.shared()?.state.lock().take() } else { None }
    }

    /// `None` if the call panicked. For one caller at a time: if it is cancelled, the next one
    /// continues the call.
    pub(super) fn outcome(&self) -> impl Future<Output = Option<T>> + Send + 'static + use<T> {
        let shared = self.shared().cloned();
        poll_fn(move |context| match &shared {
            Some(shared) => shared.poll_outcome(context),
            None => Poll::Ready(None),
        })
    }

    fn shared(&self) -> Option<&Arc<Shared<T>>> {
        self.0.get().map(|started| &started.shared)
    }
}

impl<T> Shared<T> {
    fn is_ready(&self) -> bool {
        self.is_finished.load(Ordering::SeqCst) || self.handover.is_reached()
    }

    fn poll_task(&self, context: &mut Context<'_>) -> Poll<()> {
        // Checked before locking, so that no worker thread waits while a caller decodes.
        if self.handover.is_done() {
            return Poll::Ready(());
        }
        let mut state = self.state.lock();
        // If the task polled after the caller, the call would lose the caller's waker.
        if self.handover.is_done() {
            return Poll::Ready(());
        }
        let poll = self.drive(&mut state, context);
        drop(state);
        if self.is_ready() {
            self.waiter.wake();
        }
        poll
    }

    fn poll_outcome(&self, context: &mut Context<'_>) -> Poll<Option<T>> {
        self.waiter.register(context.waker());
        if !self.is_ready() && !self.handover.is_done() {
            return Poll::Pending;
        }
        self.handover.finish();
        let mut state = self.state.lock();
        self.drive(&mut state, context).map(|()| state.take())
    }

    fn drive(&self, state: &mut CallState<T>, context: &mut Context<'_>) -> Poll<()> {
        // If the call panics, the state stays `Over`.
        match replace(state, CallState::Over) {
            CallState::Running(mut call) => match call.as_mut().poll(context) {
                Poll::Ready(outcome) => *state = CallState::Finished(outcome),
                Poll::Pending => {
                    *state = CallState::Running(call);
                    return Poll::Pending;
                }
            },
            ended => *state = ended,
        }
        self.is_finished.store(true, Ordering::SeqCst);
        Poll::Ready(())
    }
}

impl<T> CallState<T> {
    fn take(&mut self) -> Option<T> {
        match replace(self, Self::Over) {
            Self::Finished(outcome) => Some(outcome),
            other => {
                *self = other;
                None
            }
        }
    }
}

/// The task's side of a call. If the task ends early, the waiting caller continues.
struct Driver<T>(Arc<Shared<T>>);

impl<T> Drop for Driver<T> {
    fn drop(&mut self) {
        self.0.handover.finish();
        self.0.waiter.wake();
    }
}

impl<T> Drop for Started<T> {
    fn drop(&mut self) {
        self.task.abort();
    }
}
