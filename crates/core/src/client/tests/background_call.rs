//! Calls that a task starts and the waiting caller finishes.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::task::AbortHandle;
use tokio::task::yield_now;

use super::until;
use crate::client::background_call::{BackgroundCall, Handover};

#[expect(clippy::unnecessary_wraps, reason = "a `Spawner`")]
fn spawn(work: BoxFuture<'static, ()>) -> Option<AbortHandle> {
    Some(tokio::spawn(work).abort_handle())
}

fn start<T: Send + 'static>(call: impl Future<Output = T> + Send + 'static) -> BackgroundCall<T> {
    BackgroundCall::start(&spawn, Handover::default(), call).expect("a task")
}

#[tokio::test]
async fn a_call_waits_for_a_caller_at_the_handover() {
    let handover = Handover::default();
    let waiting = handover.clone();
    let call = async move {
        waiting.reached().await;
        tokio::task::id()
    };
    let call = BackgroundCall::start(&spawn, handover, call).expect("a task");
    until(|| call.is_ready()).await;
    assert!(!call.is_finished() && call.finished().is_none());
    let (own, driven_by) =
        tokio::spawn(async move { (tokio::task::id(), call.outcome().await) }).await.expect("ran");
    assert_eq!(driven_by, Some(own), "and not its own task");
}

#[tokio::test]
async fn the_caller_continues_the_call_of_an_aborted_task() {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let tasks = Arc::new(crate::lock::Mutex::new(Vec::new()));
    let kept = Arc::clone(&tasks);
    let spawner = move |work: BoxFuture<'static, ()>| {
        kept.lock().push(tokio::spawn(work).abort_handle());
        Some(tokio::spawn(async {}).abort_handle())
    };
    let call = async move { receiver.await.expect("sent") };
    let call = BackgroundCall::start(&spawner, Handover::default(), call).expect("a task");
    let waiting = tokio::spawn(async move { call.outcome().await });
    yield_now().await;
    tasks.lock().iter().for_each(AbortHandle::abort);
    yield_now().await;
    sender.send(3).expect("a receiver");
    assert_eq!(waiting.await.expect("ran"), Some(3));
}

#[tokio::test]
async fn a_call_that_panics_has_no_result() {
    let call = start(async { panic!("on purpose") });
    yield_now().await;
    let outcome: Option<()> = call.outcome().await;
    assert_eq!(outcome, None);
}
