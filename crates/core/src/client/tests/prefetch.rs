//! Prefetched pages: requested after the previous page was taken, or before it is decoded.

use std::sync::atomic::AtomicUsize;
use std::task::{Context, Poll, Waker};

use futures_util::future::BoxFuture;

use super::reads::{next, page, points, scan};
use super::*;
use crate::client::collect::{CollectOnce, Step};
use crate::client::page_request::{PageRequest, Prefetch};
use crate::client::page_stream::PageStream;
use crate::http::test_server::page_body;

/// A large page. The next one is requested before this one is decoded.
pub(super) fn large(body: &str) -> Act {
    Act::json(200, &format!("{}{body}", " ".repeat(200_000)))
}

/// Four large pages.
fn large_pages() -> Vec<Act> {
    let cursors = [Some("a"), Some("b"), Some("c"), None];
    (0..).zip(cursors).map(|(minute, cursor)| large(&page_body(minute, cursor))).collect()
}

/// The cursors of the requests.
fn cursors(bench: &Bench) -> Vec<Option<String>> {
    let cursor = |raw: &str| Some(raw.split("cursor=").nth(1)?.split(' ').next()?.to_owned());
    bench.server.other_requests().iter().map(|request| cursor(&request.raw)).collect()
}

fn within(bench: &Bench, limit: Duration) -> Deadline {
    Deadline::after(bench.client.time().clock(), Some(limit))
}

fn many_pages(pages: u32) -> Vec<Act> {
    let cursor = |minute| (minute + 1 < pages).then(|| format!("c{minute}"));
    (0..pages).map(|minute| page(minute, cursor(minute).as_deref())).collect()
}

async fn stream_after_two(bench: &Bench) -> Arc<PageStream> {
    let stream = scan(bench).pages().expect("a chain");
    for _ in 0..2 {
        next(&stream).await.expect("read");
    }
    stream
}

/// A bench with these replies, and the number of its running tasks.
async fn counted(script: Vec<Act>) -> (Bench, Arc<AtomicUsize>) {
    struct Running(Arc<AtomicUsize>);
    impl Drop for Running {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::SeqCst);
        }
    }
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let spawner = move |work: BoxFuture<'static, ()>| {
        counted.fetch_add(1, Ordering::SeqCst);
        let running = Running(Arc::clone(&counted));
        let work = async move {
            work.await;
            drop(running);
        };
        Some(tokio::spawn(work).abort_handle())
    };
    let set = |settings: &mut ClientSettings| settings.spawner = Arc::new(spawner);
    (Bench::with(vec![], script, set).await, count)
}

/// Whether the body of the prefetched page has arrived.
fn has_arrived(stream: &PageStream) -> bool {
    stream.position.lock().prefetched.as_ref().is_some_and(PageRequest::has_arrived)
}

async fn step(collect: &CollectOnce) -> Step {
    collect.step(Deadline::NEVER).await.expect("a step")
}

#[tokio::test]
async fn r16_prefetching_starts_after_the_second_page() {
    let bench = Bench::new(many_pages(5)).await;
    let stream = scan(&bench).pages().expect("a chain");
    for number in 1..=4 {
        assert_eq!(next(&stream).await.expect("read").expect("a page").sequence, number);
        for _ in 0..3 {
            stream.prefetch();
            a_while().await;
        }
        if number >= 2 {
            until(|| stream.has_finished_prefetch()).await;
        }
        assert_eq!(stream.has_finished_prefetch(), number >= 2);
        assert_eq!(bench.sent(), usize::try_from(number).expect("small") + usize::from(number > 1));
    }
    assert!(matches!(stream.receive_finished(), Some(Ok(()))), "it is finished");
    assert_eq!(next(&stream).await.expect("read").map(|page| page.sequence), Some(5));
    stream.prefetch();
    assert!(!stream.has_prefetched(), "it was the last");
    assert!(matches!(stream.take_page(), Poll::Ready(None)));
    assert_eq!(bench.sent(), 5);
}

#[tokio::test]
async fn r16_a_large_page_starts_no_prefetch() {
    let bench = Bench::new(large_pages()).await;
    let stream = stream_after_two(&bench).await;
    assert_eq!(bench.sent(), 2);
    stream.prefetch();
    until(|| stream.has_finished_prefetch()).await;
    stream.read_next().await.expect("read");
    a_while().await;
    assert_eq!(bench.sent(), 3);
}

#[tokio::test]
async fn a_failed_prefetch_is_returned_to_one_caller() {
    let mut script = many_pages(3);
    script.insert(2, Act::json(404, "{}"));
    let bench = Bench::new(script).await;
    let stream = stream_after_two(&bench).await;
    stream.prefetch();
    until(|| stream.has_finished_prefetch()).await;
    assert!(!stream.may_prefetch());
    let failure = next(&stream).await.expect_err("refused");
    assert_eq!(failure.error.kind(), Kind::CursorRejected);
    assert_eq!(failure.bookmark.expect("a bookmark").pages(), 2);
    assert!(!stream.may_prefetch(), "a failed page is not prefetched again");
    assert_eq!(bench.sent(), 3);
    assert_eq!(next(&stream).await.expect("requested again").expect("a page").sequence, 3);
}

#[tokio::test]
async fn p9_r5_the_last_cancelled_caller_ends_the_request() {
    let mut script = many_pages(3);
    script.insert(2, Act::hang());
    let (bench, running) = counted(script).await;
    let stream = stream_after_two(&bench).await;
    stream.prefetch();
    until(|| bench.sent() == 3).await;
    let waiting = [tokio::spawn(stream.read_next()), tokio::spawn(stream.read_next())];
    a_while().await;
    stream.stop_prefetch();
    a_while().await;
    assert_eq!(running.load(Ordering::SeqCst), 1, "callers wait for it");
    for (waiter, left) in waiting.into_iter().zip([1, 0]) {
        a_while().await;
        waiter.abort();
        waiter.await.expect_err("aborted");
        a_while().await;
        assert_eq!(running.load(Ordering::SeqCst), left);
    }
    assert!(!stream.may_prefetch(), "once per page taken");
    assert_eq!(next(&stream).await.expect("read").expect("a page").sequence, 3);
    assert_eq!(bench.sent(), 4);
}

#[tokio::test]
async fn p9_dropping_a_stream_ends_its_request() {
    let mut script = many_pages(3);
    script[2] = Act::hang();
    let (bench, running) = counted(script).await;
    let stream = stream_after_two(&bench).await;
    stream.prefetch();
    until(|| bench.sent() == 3).await;
    assert_eq!(running.load(Ordering::SeqCst), 1);
    drop(stream);
    until(|| running.load(Ordering::SeqCst) == 0).await;
}

#[tokio::test]
async fn without_tasks_pages_are_read_in_place() {
    let set = |settings: &mut ClientSettings| settings.spawner = Arc::new(|_| None);
    let bench = Bench::with(vec![], many_pages(3), set).await;
    let stream = stream_after_two(&bench).await;
    stream.prefetch();
    assert!(!stream.has_prefetched());
    assert_eq!(next(&stream).await.expect("read").expect("a page").sequence, 3);
    let script = vec![large(&page_body(0, Some("a"))), large(&page_body(1, None))];
    let bench = Bench::with(vec![], script, set).await;
    let table = CollectOnce::new(scan(&bench)).table().await.expect("a complete table");
    assert_eq!((points(&table), bench.sent()), (2, 2));
}

#[tokio::test]
async fn the_page_after_a_large_one_is_prefetched_once() {
    let bench = Bench::new(large_pages()).await;
    let collect = CollectOnce::new(scan(&bench));
    for (number, expected) in [(1, 2), (2, 3), (3, 4), (4, 4)] {
        assert!(matches!(step(&collect).await, Step::Page(progress) if progress.pages == number));
        // Without another step, exactly one request is sent.
        until(|| bench.sent() >= expected).await;
        a_while().await;
        assert_eq!(bench.sent(), expected);
    }
    let Step::Whole(table) = step(&collect).await else { panic!("four pages") };
    assert_eq!(points(&table), 4);
    let expected = [None, Some("a"), Some("b"), Some("c")].map(|one| one.map(str::to_owned));
    assert_eq!(cursors(&bench), expected);
    assert_eq!(bench.client.data_requests(), 4);
}

#[tokio::test]
async fn the_page_after_a_small_one_is_not_prefetched() {
    let bench = Bench::new(many_pages(2)).await;
    let collect = CollectOnce::new(scan(&bench));
    step(&collect).await;
    a_while().await;
    assert_eq!(bench.sent(), 1);
}

#[tokio::test]
async fn a_rejected_large_page_loses_no_page() {
    let wrong = page_body(1, Some("b")).replace("\"value\":1", "\"value\":[]");
    let script = vec![large(&page_body(0, Some("a"))), large(&wrong), page(2, None)];
    let bench = Bench::new(script).await;
    let collect = CollectOnce::new(scan(&bench));
    step(&collect).await;
    let failure = collect.step(Deadline::NEVER).await.expect_err("refused");
    assert_eq!(failure.error.kind(), Kind::ProtocolError);
    assert_eq!(failure.bookmark.expect("a bookmark").pages(), 1);
    assert_eq!(failure.partial.expect("a page").merged.points.rows(), 1);
    assert!(bench.sent() <= 3);
}

#[tokio::test]
async fn stopping_or_dropping_a_collect_ends_its_request() {
    for is_stopped in [true, false] {
        let script = vec![large(&page_body(0, Some("a"))), Act::hang(), page(1, None)];
        let (bench, running) = counted(script).await;
        let collect = CollectOnce::new(scan(&bench));
        step(&collect).await;
        until(|| bench.sent() == 2).await;
        if is_stopped {
            collect.stop_prefetch();
            assert_eq!(points(&collect.table().await.expect("requested again")), 2);
        } else {
            drop(collect);
        }
        until(|| running.load(Ordering::SeqCst) == 0).await;
    }
}

#[tokio::test]
async fn a_prefetched_page_has_the_deadline_of_its_caller() {
    let bench = Bench::new(vec![large(&page_body(0, Some("a"))), Act::hang()]).await;
    let collect = CollectOnce::new(scan(&bench));
    step(&collect).await;
    let failure =
        collect.step(within(&bench, Duration::from_millis(10))).await.expect_err("it hangs");
    assert_eq!(failure.error.kind(), Kind::DeadlineExceeded);
    assert_eq!(failure.bookmark.expect("a bookmark").pages(), 1);

    let later = Act::with_headers(429, &["Retry-After: 30"], "");
    let bench = Bench::new(vec![large(&page_body(0, Some("a"))), later, page(1, None)]).await;
    let collect = CollectOnce::new(scan(&bench));
    collect.step(within(&bench, Duration::from_secs(10))).await.expect("a page");
    // The deadline of the first caller was too short for the pause.
    step(&collect).await;
    assert_eq!(bench.sent(), 3);
}

#[tokio::test]
async fn pages_without_retries_refill_the_retry_quota() {
    for make in
        [page as fn(u32, Option<&str>) -> Act, |minute, next| large(&page_body(minute, next))]
    {
        // Ten retries use up the quota, unless it is refilled.
        let pages = (0..150_u32).flat_map(|number| {
            let refused = (number % 12 == 5).then(|| Act::with_headers(503, &[], ""));
            refused.into_iter().chain([make(number % 60, Some(&number.to_string()))])
        });
        let bench = Bench::new(pages.chain([page(0, None)]).collect()).await;
        CollectOnce::new(scan(&bench)).table().await.expect("all retries");
        assert_eq!(bench.client.data_requests(), 151 + 13);
    }
}

#[tokio::test]
async fn a_prefetch_with_a_stale_cursor_is_dropped() {
    let cut = large("{\"nextCursor\":\"stale\",\"series\":[");
    let script = vec![cut, page(9, None), page(0, Some("a")), page(1, None)];
    let bench = Bench::new(script).await;
    let table = CollectOnce::new(scan(&bench)).table().await.expect("a complete table");
    let expected = [None, Some("stale"), None, Some("a")].map(|one| one.map(str::to_owned));
    assert_eq!(cursors(&bench), expected);
    let timestamps = table.merged.points.timestamps.values();
    assert_eq!(timestamps[1] - timestamps[0], 60_000_000, "{timestamps:?}");
    assert_eq!(points(&table), 2);
}

#[tokio::test]
async fn the_last_caller_ends_the_retry_of_a_prefetch() {
    let cut = Act::json(200, "{\"value\": [");
    let bench =
        Bench::new(vec![large(&page_body(0, Some("a"))), cut, Act::hang(), page(1, None)]).await;
    let stream = scan(&bench).stream(Prefetch::AtCursor).expect("a chain");
    next(&stream).await.expect("read");
    until(|| has_arrived(&stream)).await;
    let mut waiting = Box::pin(next(&stream));
    while bench.sent() < 3 {
        assert!(waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        tokio::task::yield_now().await;
    }
    drop(waiting);
    assert!(!stream.has_prefetched());
    assert_eq!(next(&stream).await.expect("read").map(|page| page.sequence), Some(2));
}

#[tokio::test]
async fn a_prefetched_body_is_kept_for_its_caller() {
    let bench = Bench::new(vec![large(&page_body(0, Some("a"))), page(1, None)]).await;
    let stream = scan(&bench).stream(Prefetch::AtCursor).expect("a chain");
    next(&stream).await.expect("read");
    until(|| has_arrived(&stream)).await;
    assert!(
        !stream.has_finished_prefetch() && stream.receive_finished().is_none(),
        "it is not decoded"
    );
    stream.stop_prefetch();
    assert!(stream.has_prefetched(), "its body has arrived");
    assert_eq!(next(&stream).await.expect("read").map(|page| page.sequence), Some(2));
    assert_eq!(bench.sent(), 2);
}
