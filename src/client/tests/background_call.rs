//! A call that a task begins, and whoever wants its outcome goes on with.

use std::future::pending;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::task::AbortHandle;
use tokio::task::yield_now;

use crate::client::background_call::{BackgroundCall, Handover};
use crate::fork::pretend;

#[expect(clippy::unnecessary_wraps, reason = "as it is called")]
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
async fn what_its_task_has_finished_is_there_at_once() {
    let call = start(async { 1 });
    assert!(call.finished().is_none());
    while !call.is_finished() {
        yield_now().await;
    }
    assert!(call.is_ready());
    assert_eq!((call.finished(), call.finished(), call.outcome().await), (Some(1), None, None));
}

#[tokio::test]
async fn at_the_handover_it_waits_for_whoever_wants_its_outcome() {
    let handover = Handover::default();
    let waiting = handover.clone();
    let call = async move {
        waiting.reached().await;
        tokio::task::id()
    };
    let call = BackgroundCall::start(&spawn, handover, call).expect("a task");
    while !call.is_ready() {
        yield_now().await;
    }
    assert!(!call.is_finished() && call.finished().is_none());
    let (own, driven_by) =
        tokio::spawn(async move { (tokio::task::id(), call.outcome().await) }).await.expect("ran");
    assert_eq!(driven_by, Some(own), "and not its own task");
}

#[tokio::test]
async fn who_gives_up_leaves_it_to_the_next_one_who_waits() {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let handover = Handover::default();
    let reached = handover.clone();
    let call = async move {
        reached.reached().await;
        receiver.await.expect("sent")
    };
    let call = BackgroundCall::start(&spawn, handover, call).expect("a task");
    while !call.is_ready() {
        yield_now().await;
    }
    let mut first = Box::pin(call.outcome());
    assert!(poll_once(&mut first).is_pending());
    drop(first);
    sender.send(2).expect("it is there");
    for _ in 0..10 {
        yield_now().await;
    }
    assert!(!call.is_finished(), "its task has ended");
    assert_eq!(call.outcome().await, Some(2));
}

#[tokio::test]
async fn its_task_drives_it_up_to_the_handover_and_wakes_whoever_waits() {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let call = start(async move {
        receiver.await.expect("sent");
        tokio::task::id()
    });
    let waiting = tokio::spawn(async move { (tokio::task::id(), call.outcome().await) });
    for _ in 0..10 {
        yield_now().await;
    }
    sender.send(()).expect("it is there");
    let (own, driven_by) = waiting.await.expect("ran");
    assert!(driven_by.is_some_and(|driver| driver != own), "{driven_by:?}");
}

#[tokio::test]
async fn where_its_task_is_gone_whoever_waits_goes_on_with_it() {
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
    sender.send(3).expect("it is there");
    assert_eq!(waiting.await.expect("ran"), Some(3));
}

#[tokio::test]
async fn one_that_panics_has_no_outcome() {
    let call = start(async { panic!("on purpose") });
    yield_now().await;
    let outcome: Option<()> = call.outcome().await;
    assert_eq!(outcome, None);
}

#[tokio::test]
async fn dropped_it_drops_the_call_and_in_a_child_it_is_not_there() {
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
