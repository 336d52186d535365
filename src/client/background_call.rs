//! [`BackgroundCall`]: a call that a task drives until somebody waits for its outcome, who drives it from
//! then on. So a request leaves early, and what is left to do once its reply is here can be done by the
//! thread that uses the outcome ([`Handover::wait`]): what another core has written is slow to read.

use std::future::poll_fn;
use std::mem::replace;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use tokio::task::AbortHandle;

use super::background::Spawner;
use crate::fork::Owned;
use crate::lock::Mutex;

/// Whether somebody drives a call in the place of its task.
#[derive(Clone, Default)]
pub(super) struct Handover(Arc<Flags>);

#[derive(Default)]
struct Flags {
    is_done: AtomicBool,
    is_awaited: AtomicBool,
}

impl Handover {
    /// Waits, within the call, until somebody waits for its outcome.
    pub(super) async fn wait(&self) {
        self.0.is_awaited.store(true, Ordering::SeqCst);
        // Whoever takes the call over polls it.
        poll_fn(|_| if self.is_done() { Poll::Ready(()) } else { Poll::Pending }).await;
    }

    fn is_done(&self) -> bool {
        self.0.is_done.load(Ordering::SeqCst)
    }
}

/// Dropped, it drops the call, and with it its connection. In a forked child, whose call it is not,
/// there is nothing of it.
pub(super) struct BackgroundCall<T>(Owned<Started<T>>);

struct Started<T> {
    shared: Arc<Shared<T>>,
    task: AbortHandle,
}

struct Shared<T> {
    handover: Handover,
    is_finished: AtomicBool,
    state: Mutex<State<T>>,
}

enum State<T> {
    Running(BoxFuture<'static, T>),
    Finished(T),
    /// The outcome was taken, or the call panicked.
    Over,
}

impl<T: Send + 'static> BackgroundCall<T> {
    /// Starts the call; `None` where no task is started any more.
    pub(super) fn start(
        spawner: &dyn Spawner,
        handover: Handover,
        call: impl Future<Output = T> + Send + 'static,
    ) -> Option<Self> {
        let state = Mutex::new(State::Running(Box::pin(call)));
        let shared = Arc::new(Shared { handover, is_finished: AtomicBool::new(false), state });
        let driven = Arc::clone(&shared);
        let task = spawner.spawn(Box::pin(poll_fn(move |context| driven.poll_task(context))))?;
        Some(Self(Owned::new(Started { shared, task })))
    }

    /// Whether the outcome is here.
    pub(super) fn is_finished(&self) -> bool {
        self.shared().is_some_and(|shared| shared.is_finished.load(Ordering::SeqCst))
    }

    /// Whether the call has come as far as it does before somebody waits for its outcome.
    pub(super) fn is_ready(&self) -> bool {
        let is_awaited = |flags: &Flags| flags.is_awaited.load(Ordering::SeqCst);
        self.is_finished() || self.shared().is_some_and(|shared| is_awaited(&shared.handover.0))
    }

    /// The outcome, where it is here.
    pub(super) fn finished(&self) -> Option<T> {
        if self.is_finished() { self.shared()?.state.lock().take() } else { None }
    }

    /// The outcome; `None` where the call panicked. For one at a time: who gives up leaves the call
    /// where it is, to the next one.
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
    fn poll_task(&self, context: &mut Context<'_>) -> Poll<()> {
        // Asked first, so that no worker waits for the lock of one who decodes.
        if self.handover.is_done() {
            return Poll::Ready(());
        }
        let mut state = self.state.lock();
        // And again: the call wakes the last one who polled it.
        if self.handover.is_done() { Poll::Ready(()) } else { self.drive(&mut state, context) }
    }

    fn poll_outcome(&self, context: &mut Context<'_>) -> Poll<Option<T>> {
        self.handover.0.is_done.store(true, Ordering::SeqCst);
        let mut state = self.state.lock();
        self.drive(&mut state, context).map(|()| state.take())
    }

    fn drive(&self, state: &mut State<T>, context: &mut Context<'_>) -> Poll<()> {
        // A call that panics is over.
        match replace(state, State::Over) {
            State::Running(mut call) => match call.as_mut().poll(context) {
                Poll::Ready(outcome) => *state = State::Finished(outcome),
                Poll::Pending => {
                    *state = State::Running(call);
                    return Poll::Pending;
                }
            },
            ended => *state = ended,
        }
        self.is_finished.store(true, Ordering::SeqCst);
        Poll::Ready(())
    }
}

impl<T> State<T> {
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

impl<T> Drop for Started<T> {
    fn drop(&mut self) {
        self.task.abort();
    }
}
