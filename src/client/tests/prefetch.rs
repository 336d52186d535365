//! Pages that are asked for before they are wanted: by whoever takes the page before, or while that is
//! decoded.

use std::cell::{Cell, RefCell};
use std::sync::atomic::AtomicUsize;
use std::task::{Context, Poll, Waker};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::task::AbortHandle;

use super::reads::{body, next, page, scan};
use super::*;
use crate::client::collect::{CollectOnce, Partial, Step};
use crate::client::gather::Gathering;
use crate::client::page_request::Prefetch;
use crate::client::page_stream::PageStream;
use crate::client::table::Table;

/// One that is decoded while the next is on its way.
pub(super) fn large(body: &str) -> Act {
    Act::json(200, &format!("{}{body}", " ".repeat(200_000)))
}

fn within(bench: &Bench, limit: Duration) -> Deadline {
    Deadline::after(bench.client.time().clock(), Some(limit))
}

fn many_pages(pages: u32) -> Vec<Act> {
    let cursor = |minute| (minute + 1 < pages).then(|| format!("c{minute}"));
    (0..pages).map(|minute| page(minute, cursor(minute).as_deref())).collect()
}

fn asked(bench: &Bench) -> usize {
    bench.server.other_requests().len()
}

pub(super) async fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        tokio::task::yield_now().await;
    }
}

/// Longer than a request would take to leave.
pub(super) async fn a_while() {
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
}

/// A page stream of which two pages were taken.
async fn stream_after_two(bench: &Bench) -> Arc<PageStream> {
    let stream = scan(bench).pages().expect("a chain");
    for _ in 0..2 {
        next(&stream).await.expect("read");
    }
    stream
}

/// Starts tasks of tokio, and counts those that are under way.
fn counted(settings: &mut ClientSettings) -> Arc<AtomicUsize> {
    struct UnderWay(Arc<AtomicUsize>);
    impl Drop for UnderWay {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::SeqCst);
        }
    }
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    settings.spawner = Arc::new(move |work: BoxFuture<'static, ()>| {
        counted.fetch_add(1, Ordering::SeqCst);
        let under_way = UnderWay(Arc::clone(&counted));
        let work = async move {
            work.await;
            drop(under_way);
        };
        Some(tokio::spawn(work).abort_handle())
    });
    count
}

async fn step(collect: &CollectOnce) -> Step {
    collect.step(Deadline::NEVER).await.expect("a step")
}

fn points(table: &Table) -> usize {
    table.merged.points.rows()
}

// By whoever takes the page before.

#[tokio::test]
async fn r16_one_page_is_prefetched_and_none_before_the_second_was_taken() {
    let bench = Bench::new(many_pages(5)).await;
    let stream = scan(&bench).pages().expect("a chain");
    for number in 1..=4 {
        assert_eq!(next(&stream).await.expect("read").expect("a page").sequence, number);
        for _ in 0..3 {
            stream.prefetch();
            a_while().await;
        }
        assert_eq!(stream.is_here(), number >= 2);
        assert_eq!(
            asked(&bench),
            usize::try_from(number).expect("small") + usize::from(number > 1)
        );
    }
    assert!(matches!(stream.fill_at_once(), Some(Ok(()))), "it is here");
    assert_eq!(next(&stream).await.expect("read").map(|page| page.sequence), Some(5));
    stream.prefetch();
    assert!(!stream.has_prefetched(), "it was the last");
    assert!(matches!(stream.take(), Poll::Ready(None)));
    assert_eq!(asked(&bench), 5);
}

#[tokio::test]
async fn r16_of_pages_that_somebody_takes_one_by_one_a_large_one_asks_for_no_other() {
    let cursors = [Some("a"), Some("b"), Some("c"), None];
    let script = (0..).zip(cursors).map(|(minute, cursor)| large(&body(minute, cursor)));
    let bench = Bench::new(script.collect()).await;
    let stream = stream_after_two(&bench).await;
    assert_eq!(asked(&bench), 2);
    stream.prefetch();
    until(|| stream.is_here()).await;
    stream.fill().await.expect("read");
    a_while().await;
    assert_eq!(asked(&bench), 3);
}

#[tokio::test]
async fn the_failure_of_a_prefetched_page_is_for_whoever_asks_and_told_once() {
    let mut script = many_pages(3);
    script.insert(2, Act::json(404, "{}"));
    let bench = Bench::new(script).await;
    let stream = stream_after_two(&bench).await;
    stream.prefetch();
    until(|| stream.is_here()).await;
    assert!(!stream.may_prefetch());
    let failure = next(&stream).await.expect_err("refused");
    assert_eq!(failure.error.kind(), Kind::CursorRejected);
    assert_eq!(failure.bookmark.expect("a bookmark").pages(), 2);
    assert!(!stream.may_prefetch(), "a failure is not asked for again");
    assert_eq!(asked(&bench), 3);
    assert_eq!(next(&stream).await.expect("asked again").expect("a page").sequence, 3);
}

#[tokio::test]
async fn p9_r5_the_last_one_who_gives_up_waiting_ends_the_request_and_loses_no_page() {
    let mut script = many_pages(3);
    script.insert(2, Act::hang());
    let mut under_way = None;
    let bench = Bench::with(vec![], script, |settings| under_way = Some(counted(settings))).await;
    let under_way = under_way.expect("set");
    let stream = stream_after_two(&bench).await;
    stream.prefetch();
    until(|| asked(&bench) == 3).await;
    let waiting = [tokio::spawn(stream.fill()), tokio::spawn(stream.fill())];
    for (waiter, left) in waiting.into_iter().zip([1, 0]) {
        a_while().await;
        waiter.abort();
        waiter.await.expect_err("given up");
        a_while().await;
        assert_eq!(under_way.load(Ordering::SeqCst), left);
    }
    assert!(!stream.may_prefetch(), "once for each page that was taken");
    assert_eq!(next(&stream).await.expect("read").expect("a page").sequence, 3);
    assert_eq!(asked(&bench), 4);
}

#[tokio::test]
async fn who_gives_up_before_its_first_step_has_waited_and_what_is_here_is_kept() {
    let bench = Bench::new(many_pages(4)).await;
    let stream = stream_after_two(&bench).await;
    stream.prefetch();
    drop(stream.fill());
    assert!(!stream.has_prefetched());
    assert_eq!(next(&stream).await.expect("read").expect("a page").sequence, 3);
    assert_eq!(asked(&bench), 3, "it was given up before it was sent");
    stream.prefetch();
    until(|| stream.is_here()).await;
    drop(stream.fill());
    assert_eq!(next(&stream).await.expect("read").expect("a page").sequence, 4);
    assert_eq!(asked(&bench), 4);
}

#[tokio::test]
async fn a_page_that_somebody_waits_for_is_not_prefetched() {
    let mut script = many_pages(3);
    script[2] = Act::hang();
    let bench = Bench::new(script).await;
    let stream = stream_after_two(&bench).await;
    let waiting = tokio::spawn(stream.fill());
    until(|| asked(&bench) == 3).await;
    stream.prefetch();
    assert!(!stream.has_prefetched());
    waiting.abort();
}

#[tokio::test]
async fn p9_a_stream_that_is_dropped_ends_its_request() {
    let mut script = many_pages(3);
    script[2] = Act::hang();
    let mut under_way = None;
    let bench = Bench::with(vec![], script, |settings| under_way = Some(counted(settings))).await;
    let under_way = under_way.expect("set");
    let stream = stream_after_two(&bench).await;
    stream.prefetch();
    until(|| asked(&bench) == 3).await;
    assert_eq!(under_way.load(Ordering::SeqCst), 1);
    drop(stream);
    until(|| under_way.load(Ordering::SeqCst) == 0).await;
}

#[tokio::test]
async fn where_no_task_is_started_pages_are_read_in_place() {
    let set = |settings: &mut ClientSettings| settings.spawner = Arc::new(|_| None);
    let bench = Bench::with(vec![], many_pages(3), set).await;
    let stream = stream_after_two(&bench).await;
    stream.prefetch();
    assert!(!stream.has_prefetched());
    assert_eq!(next(&stream).await.expect("read").expect("a page").sequence, 3);
    let script = vec![large(&body(0, Some("a"))), large(&body(1, None))];
    let bench = Bench::with(vec![], script, set).await;
    let table = CollectOnce::new(scan(&bench)).table().await.expect("the whole");
    assert_eq!((points(&table), asked(&bench)), (2, 2));
}

// While the page before is decoded.

#[tokio::test]
async fn the_page_after_a_large_one_is_asked_for_early_and_once() {
    let cursors = [Some("a"), Some("b"), Some("c"), None];
    let script = (0..).zip(cursors).map(|(minute, cursor)| large(&body(minute, cursor)));
    let bench = Bench::new(script.collect()).await;
    let collect = CollectOnce::new(scan(&bench));
    for (number, requests) in [(1, 2), (2, 3), (3, 4), (4, 4)] {
        assert!(matches!(step(&collect).await, Step::Page(progress) if progress.pages == number));
        // No step is taken meanwhile: it goes on by itself, and by itself no further.
        until(|| asked(&bench) >= requests).await;
        a_while().await;
        assert_eq!(asked(&bench), requests);
    }
    let Step::Whole(table) = step(&collect).await else { panic!("four pages") };
    assert_eq!(points(&table), 4);
    let asked = bench.server.other_requests();
    let cursors: Vec<_> = asked
        .iter()
        .map(|asked| asked.raw.split("cursor=").nth(1).map(|rest| &rest[..1]))
        .collect();
    assert_eq!(cursors, [None, Some("a"), Some("b"), Some("c")]);
    assert_eq!(bench.client.data_requests(), 4);
}

#[tokio::test]
async fn the_page_after_a_small_one_is_not_asked_for_early() {
    let bench = Bench::new(many_pages(2)).await;
    let collect = CollectOnce::new(scan(&bench));
    step(&collect).await;
    a_while().await;
    assert_eq!(asked(&bench), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_page_after_a_large_one_is_asked_for_before_that_is_decoded() {
    let script = [Some("a"), Some("b"), None];
    let script = (0..).zip(script).map(|(minute, cursor)| large(&body(minute, cursor)));
    let bench = Bench::new(script.collect()).await;
    let (collect, client) = (CollectOnce::new(scan(&bench)), bench.client.clone());
    // On the one worker there is: what it leaves for afterwards is begun afterwards.
    let steps = async move {
        step(&collect).await;
        let after_one = client.data_requests();
        step(&collect).await;
        (after_one, client.data_requests())
    };
    assert_eq!(tokio::spawn(steps).await.expect("no panic"), (2, 3));
}

#[tokio::test]
async fn what_was_asked_for_early_ends_where_nobody_goes_on_and_is_asked_for_again() {
    let script = vec![large(&body(0, Some("a"))), Act::hang(), page(1, None)];
    let bench = Bench::new(script).await;
    let collect = CollectOnce::new(scan(&bench));
    assert!(matches!(step(&collect).await, Step::Page(_)));
    until(|| asked(&bench) == 2).await;
    assert!(collect.has_prefetched());
    collect.stop_prefetch();
    assert!(!collect.has_prefetched());
    assert_eq!(points(&collect.table().await.expect("the whole")), 2);
    assert_eq!(asked(&bench), 3);
}

#[tokio::test]
async fn a_large_page_that_is_refused_costs_one_request_more_and_no_page() {
    let wrong = body(1, Some("b")).replace("\"value\":1", "\"value\":[]");
    let script = vec![large(&body(0, Some("a"))), large(&wrong), page(2, None)];
    let bench = Bench::new(script).await;
    let collect = CollectOnce::new(scan(&bench));
    step(&collect).await;
    let failure = collect.step(Deadline::NEVER).await.expect_err("refused");
    assert_eq!(failure.error.kind(), Kind::ProtocolError);
    assert_eq!(failure.bookmark.expect("a bookmark").pages(), 1);
    assert_eq!(failure.partial.expect("a page").merged.points.rows(), 1);
    assert!(bench.server.other_requests().len() <= 3);
}

#[tokio::test]
async fn what_was_asked_for_early_ends_with_whoever_drops_it() {
    for is_stopped in [true, false] {
        let script = vec![large(&body(0, Some("a"))), Act::hang()];
        let mut under_way = None;
        let set = |settings: &mut ClientSettings| under_way = Some(counted(settings));
        let bench = Bench::with(vec![], script, set).await;
        let under_way = under_way.expect("set");
        let collect = CollectOnce::new(scan(&bench));
        step(&collect).await;
        assert_eq!(under_way.load(Ordering::SeqCst), 1);
        if is_stopped {
            collect.stop_prefetch();
        } else {
            drop(collect);
        }
        until(|| under_way.load(Ordering::SeqCst) == 0).await;
    }
}

#[tokio::test]
async fn r5_a_step_that_is_given_up_ends_the_request_and_stays_where_it_was() {
    let script = vec![large(&body(0, Some("a"))), large(&body(1, Some("b"))), Act::hang()];
    let mut under_way = None;
    let bench = Bench::with(vec![], script, |settings| under_way = Some(counted(settings))).await;
    let under_way = under_way.expect("set");
    let collect = Arc::new(CollectOnce::new(scan(&bench)));
    step(&collect).await;
    step(&collect).await;
    until(|| asked(&bench) == 3).await;
    let waiting = {
        let collect = Arc::clone(&collect);
        tokio::spawn(async move { drop(collect.step(Deadline::NEVER).await) })
    };
    a_while().await;
    assert_eq!(under_way.load(Ordering::SeqCst), 1);
    waiting.abort();
    waiting.await.expect_err("given up");
    until(|| under_way.load(Ordering::SeqCst) == 0).await;
    let partial = collect.partial().expect("merged");
    assert_eq!(partial.bookmark.map(|bookmark| bookmark.pages()), Some(2));
}

#[tokio::test]
async fn who_waits_for_what_another_asked_for_early_has_a_deadline_of_its_own() {
    let bench = Bench::new(vec![large(&body(0, Some("a"))), Act::hang()]).await;
    let collect = CollectOnce::new(scan(&bench));
    step(&collect).await;
    let failure =
        collect.step(within(&bench, Duration::from_millis(10))).await.expect_err("it hangs");
    assert_eq!(failure.error.kind(), Kind::DeadlineExceeded);
    assert_eq!(failure.bookmark.expect("a bookmark").pages(), 1);

    let later = Act::with_headers(429, &["Retry-After: 30"], "");
    let bench = Bench::new(vec![large(&body(0, Some("a"))), later, page(1, None)]).await;
    let collect = CollectOnce::new(scan(&bench));
    collect.step(within(&bench, Duration::from_secs(10))).await.expect("a page");
    // The one who asked for it had no time to wait.
    step(&collect).await;
    assert_eq!(bench.server.other_requests().len(), 3);
}

#[tokio::test]
async fn a_page_that_comes_at_once_pays_for_repeats_of_others_early_or_not() {
    for make in [page as fn(u32, Option<&str>) -> Act, |minute, next| large(&body(minute, next))] {
        // Ten repeats use up the budget, unless it is filled again.
        let pages = (0..150_u32).flat_map(|number| {
            let refused = (number % 12 == 5).then(|| Act::with_headers(503, &[], ""));
            refused.into_iter().chain([make(number % 60, Some(&number.to_string()))])
        });
        let bench = Bench::new(pages.chain([page(0, None)]).collect()).await;
        CollectOnce::new(scan(&bench)).table().await.expect("all repeats");
        assert_eq!(bench.client.data_requests(), 151 + 13);
    }
}

#[tokio::test]
async fn a_request_whose_task_is_gone_goes_on_with_whoever_wants_its_page() {
    #[expect(clippy::unnecessary_wraps, reason = "as it is called")]
    fn lose(task: BoxFuture<'static, ()>) -> Option<AbortHandle> {
        drop(task);
        Some(tokio::spawn(async {}).abort_handle())
    }
    let script = vec![large(&body(0, Some("a"))), page(1, None)];
    let bench = Bench::with(vec![], script, |settings| settings.spawner = Arc::new(lose)).await;
    let collect = CollectOnce::new(scan(&bench));
    step(&collect).await;
    assert!(collect.has_prefetched());
    assert!(matches!(step(&collect).await, Step::Page(_)));
    assert_eq!(asked(&bench), 2);
}

#[tokio::test]
async fn a_prefetched_body_that_was_cut_is_asked_for_again_within_the_same_step() {
    let cut = Act::json(200, "{\"value\": [");
    let script = vec![large(&body(0, Some("a"))), cut, page(1, None)];
    let bench = Bench::new(script).await;
    let collect = CollectOnce::new(scan(&bench));
    step(&collect).await;
    assert!(matches!(step(&collect).await, Step::Page(_)));
    assert_eq!(asked(&bench), 3);
}

#[tokio::test]
async fn a_repeat_for_a_prefetched_body_that_was_cut_ends_with_the_last_one_who_waits() {
    let cut = Act::json(200, "{\"value\": [");
    let bench = Bench::new(vec![large(&body(0, Some("a"))), cut, Act::hang(), page(1, None)]).await;
    let stream = scan(&bench).stream(Prefetch::AtCursor).expect("a chain");
    next(&stream).await.expect("read");
    until(|| stream.has_arrived()).await;
    let mut waiting = Box::pin(next(&stream));
    while asked(&bench) < 3 {
        assert!(waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        tokio::task::yield_now().await;
    }
    drop(waiting);
    assert!(!stream.has_prefetched());
    assert_eq!(next(&stream).await.expect("read").map(|page| page.sequence), Some(2));
}

#[tokio::test]
async fn the_body_of_a_prefetched_page_waits_for_whoever_wants_it_and_is_kept_for_them() {
    let bench = Bench::new(vec![large(&body(0, Some("a"))), page(1, None)]).await;
    let stream = scan(&bench).stream(Prefetch::AtCursor).expect("a chain");
    next(&stream).await.expect("read");
    until(|| stream.has_arrived()).await;
    assert!(!stream.is_here() && stream.fill_at_once().is_none(), "it is not decoded");
    stream.stop_prefetch();
    assert!(stream.has_prefetched(), "it is paid for");
    assert_eq!(next(&stream).await.expect("read").map(|page| page.sequence), Some(2));
    assert_eq!(asked(&bench), 2);
}

#[tokio::test]
async fn what_a_gathering_has_paid_for_meanwhile_is_read_when_the_allowance_ends() {
    thread_local! {
        static BEGUN: Cell<u32> = const { Cell::new(0) };
        static ANOTHER: RefCell<Option<BoxFuture<'static, ()>>> = const { RefCell::new(None) };
    }
    fn poll_once(task: &mut BoxFuture<'static, ()>) {
        assert!(task.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    /// Begins at once. After two scans comes the early page of the first: then what another reads is
    /// left to whoever waits for it.
    #[expect(clippy::unnecessary_wraps, reason = "as it is called")]
    fn pay_first(mut task: BoxFuture<'static, ()>) -> Option<AbortHandle> {
        poll_once(&mut task);
        if BEGUN.replace(BEGUN.get() + 1) == 2 {
            drop(ANOTHER.take());
        }
        Some(tokio::spawn(task).abort_handle())
    }
    let script = vec![Act::hang(), large(&body(0, Some("a"))), page(1, Some("b"))];
    let set = |settings: &mut ClientSettings| {
        settings.spawner = Arc::new(pay_first);
        settings.daily_allowance = Some(3);
    };
    let bench = Bench::with(vec![], script, set).await;
    let collects =
        [Arc::new(CollectOnce::new(scan(&bench))), Arc::new(CollectOnce::new(scan(&bench)))];
    let other = Arc::clone(&collects[1]);
    let mut another = async move { drop(other.step(Deadline::NEVER).await) }.boxed();
    while bench.server.other_requests().is_empty() {
        poll_once(&mut another);
        tokio::task::yield_now().await;
    }
    ANOTHER.set(Some(another));

    let gathering = Gathering::new(&bench.client, collects.to_vec(), 2).expect("two scans");
    let failure = gathering.finish().await.expect_err("three requests and no more");
    assert_eq!(failure.error.kind(), Kind::AllowanceExhausted);
    assert_eq!(failure.index, 1, "while the first decodes its first page");
    assert_eq!(bench.server.other_requests().len(), 3);
    let pages = |scan: &Partial| scan.table.as_ref().map(|table| table.merged.report.pages);
    assert_eq!(failure.scans.iter().map(pages).collect::<Vec<_>>(), [Some(2), None]);
}
