//! Pages that are asked for while the one before is decoded.

use std::cell::{Cell, RefCell};
use std::sync::atomic::AtomicUsize;
use std::task::{Context, Waker};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::task::AbortHandle;

use super::reads::{body, page, scan};
use super::*;
use crate::client::gather::Gathering;
use crate::client::scan::Step;
use crate::client::whole::{SoFar, Whole};

/// One that is decoded while the next is on its way.
fn large(body: &str) -> Act {
    Act::json(200, &format!("{}{body}", " ".repeat(200_000)))
}

fn within(bench: &Bench, limit: Duration) -> Deadline {
    Deadline::after(bench.client.time().clock(), Some(limit))
}

#[tokio::test]
async fn the_page_after_a_large_one_is_asked_for_early_and_once() {
    let cursors = [Some("a"), Some("b"), Some("c"), None];
    let script = (0..).zip(cursors).map(|(minute, cursor)| large(&body(minute, cursor)));
    let bench = Bench::new(script.collect()).await;
    let mut reading = scan(&bench).read().expect("a chain");
    for (number, requests) in [(1, 2), (2, 3), (3, 4), (4, 4)] {
        assert!(
            matches!(reading.step(Deadline::NEVER).await, Ok(Step::Page(news)) if news.pages == number)
        );
        // No step is taken meanwhile: it goes on by itself.
        while bench.server.other_requests().len() < requests {
            tokio::task::yield_now().await;
        }
    }
    let Ok(Step::Whole(table)) = reading.step(Deadline::NEVER).await else { panic!("four pages") };
    assert_eq!(table.merged.points.rows(), 4);
    let asked = bench.server.other_requests();
    let cursors: Vec<_> = asked
        .iter()
        .map(|asked| asked.raw.split("cursor=").nth(1).map(|rest| &rest[..1]))
        .collect();
    assert_eq!(cursors, [None, Some("a"), Some("b"), Some("c")]);
    assert_eq!(bench.client.data_requests(), 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_page_after_a_large_one_is_asked_for_before_that_is_decoded() {
    let bench = Bench::new(vec![large(&body(0, Some("a"))), large(&body(1, None))]).await;
    let (mut reading, client) = (scan(&bench).read().expect("a chain"), bench.client.clone());
    // On the one worker there is: what it leaves for afterwards is begun afterwards.
    let step = async move {
        reading.step(Deadline::NEVER).await.expect("a page");
        client.data_requests()
    };
    assert_eq!(tokio::spawn(step).await.expect("no panic"), 2);
}

#[tokio::test]
async fn what_was_asked_for_early_ends_with_the_rest_and_is_asked_for_again() {
    let script = vec![large(&body(0, Some("a"))), Act::hang(), page(1, None)];
    let bench = Bench::new(script).await;
    let whole = Whole::new(scan(&bench));
    assert!(matches!(whole.step(Deadline::NEVER).await, Ok(Step::Page(_))));
    while bench.server.other_requests().len() < 2 {
        tokio::task::yield_now().await;
    }
    drop(whole.rest().expect("the second page"));
    assert!(whole.rest().is_none());
    assert_eq!(whole.table().await.expect("the whole").merged.points.rows(), 2);
    assert_eq!(bench.server.other_requests().len(), 3);
}

#[tokio::test]
async fn a_large_page_that_is_refused_costs_one_request_more_and_no_page() {
    let wrong = body(1, Some("b")).replace("\"value\":1", "\"value\":[]");
    let script = vec![large(&body(0, Some("a"))), large(&wrong), page(2, None)];
    let bench = Bench::new(script).await;
    let mut reading = scan(&bench).read().expect("a chain");
    reading.step(Deadline::NEVER).await.expect("a page");
    let failure = reading.step(Deadline::NEVER).await.expect_err("refused");
    assert_eq!(failure.error.kind(), Kind::Protocol);
    assert_eq!(failure.bookmark.expect("a bookmark").pages(), 1);
    assert_eq!(failure.partial.expect("a page").merged.points.rows(), 1);
    assert!(bench.server.other_requests().len() <= 3);
}

#[tokio::test]
async fn what_was_asked_for_early_ends_with_whoever_drops_it() {
    static UNDER_WAY: AtomicUsize = AtomicUsize::new(0);
    struct UnderWay;
    impl Drop for UnderWay {
        fn drop(&mut self) {
            UNDER_WAY.fetch_sub(1, Ordering::SeqCst);
        }
    }
    #[expect(clippy::unnecessary_wraps, reason = "as it is called")]
    fn begin(task: BoxFuture<'static, ()>) -> Option<AbortHandle> {
        UNDER_WAY.fetch_add(1, Ordering::SeqCst);
        let under_way = UnderWay;
        let task = async move {
            task.await;
            drop(under_way);
        };
        Some(tokio::spawn(task).abort_handle())
    }
    for is_rest in [true, false] {
        let script = vec![large(&body(0, Some("a"))), Act::hang()];
        let bench = Bench::with(vec![], script, |settings| settings.begin_task = begin).await;
        let whole = Whole::new(scan(&bench));
        whole.step(Deadline::NEVER).await.expect("a page");
        assert_eq!(UNDER_WAY.load(Ordering::SeqCst), 1);
        if is_rest {
            drop(whole.rest());
        } else {
            drop(whole);
        }
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert_eq!(UNDER_WAY.load(Ordering::SeqCst), 0);
    }
}

#[tokio::test]
async fn who_waits_for_what_another_asked_for_early_has_a_deadline_of_its_own() {
    let bench = Bench::new(vec![large(&body(0, Some("a"))), Act::hang()]).await;
    let mut reading = scan(&bench).read().expect("a chain");
    reading.step(Deadline::NEVER).await.expect("a page");
    let failure =
        reading.step(within(&bench, Duration::from_millis(10))).await.expect_err("it hangs");
    assert_eq!(failure.error.kind(), Kind::DeadlineExceeded);
    assert_eq!(failure.bookmark.expect("a bookmark").pages(), 1);

    let later = Act::with_headers(429, &["Retry-After: 30"], "");
    let bench = Bench::new(vec![large(&body(0, Some("a"))), later, page(1, None)]).await;
    let mut reading = scan(&bench).read().expect("a chain");
    reading.step(within(&bench, Duration::from_secs(10))).await.expect("a page");
    // The one who asked for it had no time to wait.
    reading.step(Deadline::NEVER).await.expect("another page");
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
        Whole::new(scan(&bench)).table().await.expect("all repeats");
        assert_eq!(bench.client.data_requests(), 151 + 13);
    }
}

#[tokio::test]
async fn a_request_that_is_gone_without_an_outcome_is_an_error_and_no_wait() {
    #[expect(clippy::unnecessary_wraps, reason = "as it is called")]
    fn lose(task: BoxFuture<'static, ()>) -> Option<AbortHandle> {
        drop(task);
        Some(tokio::spawn(async {}).abort_handle())
    }
    let script = vec![large(&body(0, Some("a"))), page(1, None)];
    let bench = Bench::with(vec![], script, |settings| settings.begin_task = lose).await;
    let mut reading = scan(&bench).read().expect("a chain");
    reading.step(Deadline::NEVER).await.expect("a page");
    let failure = reading.step(Deadline::NEVER).await.expect_err("lost");
    assert_eq!(failure.error.kind(), Kind::Internal);
    assert!(matches!(reading.step(Deadline::NEVER).await, Ok(Step::Page(_))));
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
        settings.begin_task = pay_first;
        settings.daily_allowance = Some(3);
    };
    let bench = Bench::with(vec![], script, set).await;
    let wholes = [Arc::new(Whole::new(scan(&bench))), Arc::new(Whole::new(scan(&bench)))];
    let other = Arc::clone(&wholes[1]);
    let mut another = async move { drop(other.step(Deadline::NEVER).await) }.boxed();
    while bench.server.other_requests().is_empty() {
        poll_once(&mut another);
        tokio::task::yield_now().await;
    }
    ANOTHER.set(Some(another));

    let gathering = Gathering::new(&bench.client, wholes.to_vec(), 2).expect("two scans");
    let failure = gathering.finish().await.expect_err("three requests and no more");
    assert_eq!(failure.error.kind(), Kind::AllowanceExhausted);
    assert_eq!(failure.index, 1, "while the first decodes its first page");
    assert_eq!(bench.server.other_requests().len(), 3);
    let pages = |so_far: &SoFar| so_far.partial.as_ref().map(|table| table.merged.report.pages);
    assert_eq!(failure.scans.iter().map(pages).collect::<Vec<_>>(), [Some(2), None]);
}
