//! Calls that a task starts and the waiting caller finishes.

use std::future::pending;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::task::AbortHandle;
use tokio::task::yield_now;

use super::until;
use crate::client::background_call::{BackgroundCall, Handover};
use crate::fork::pretend;

#[expect(clippy::unnecessary_wraps, reason = "a `Spawner`")]
fn spawn(work: BoxFuture<'static, ()>) -> Option<AbortHandle> {
    Some(tokio::spawn(work).abort_handle())
}

fn start<T: Send + 'static>(call: impl Future<Output = T> + Send + 'static) -> BackgroundCall<T> {
    BackgroundCall::start(&spawn, Handover::default(), call).expect("a task")
}

fn poll_once<T>(outcome: &mut (impl Future<Output = T> + Unpin)) -> Poll<T> {
    outcome.poll_unpin(&mut Context::from_waker(Waker::noop()))
}

#[tokio::test]
async fn the_result_of_a_finished_task_is_available_at_once() {
    let call = start(async { 1 });
    assert!(call.finished().is_none());
    until(|| call.is_finished()).await;
    assert!(call.is_ready());
    assert_eq!((call.finished(), call.finished(), call.outcome().await), (Some(1), None, None));
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
async fn the_next_caller_continues_a_cancelled_call() {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let handover = Handover::default();
    let reached = handover.clone();
    let call = async move {
        reached.reached().await;
        receiver.await.expect("sent")
    };
    let call = BackgroundCall::start(&spawn, handover, call).expect("a task");
    until(|| call.is_ready()).await;
    let mut first = Box::pin(call.outcome());
    assert!(poll_once(&mut first).is_pending());
    drop(first);
    sender.send(2).expect("a receiver");
    for _ in 0..10 {
        yield_now().await;
    }
    assert!(!call.is_finished(), "its task has ended");
    assert_eq!(call.outcome().await, Some(2));
}

#[tokio::test]
async fn the_task_drives_the_call_to_the_handover() {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let call = start(async move {
        receiver.await.expect("sent");
        tokio::task::id()
    });
    let waiting = tokio::spawn(async move { (tokio::task::id(), call.outcome().await) });
    for _ in 0..10 {
        yield_now().await;
    }
    sender.send(()).expect("a receiver");
    let (own, driven_by) = waiting.await.expect("ran");
    assert!(driven_by.is_some_and(|driver| driver != own), "{driven_by:?}");
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

#[tokio::test]
async fn a_dropped_call_ends_and_a_fork_hides_it() {
    let owned = Arc::new(());
    let inside = Arc::clone(&owned);
    let call = start(async move {
        pending::<()>().await;
        drop(inside);
    });
    let child = pretend(1);
    assert!(!call.is_ready() && poll_once(&mut Box::pin(call.outcome())).is_ready());
    drop(child);
    yield_now().await;
    assert_eq!(Arc::strong_count(&owned), 2);
    drop(call);
    yield_now().await;
    assert_eq!(Arc::strong_count(&owned), 1);
}
