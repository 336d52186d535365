//! Reads with several callers, cancelled reads, and reads after a fork.

use std::task::Poll;

use super::*;
use crate::client::ReadSettings;
use crate::client::collect::CollectOnce;
use crate::client::page_stream::PageStream;
use crate::client::scan::Scan;
use crate::client::table::{ReadFailure, Table};
use crate::data::query::QueryInput;
use crate::data::{DecodeSettings, Page, Query, Shape};
use crate::fork::pretend;
use crate::http::test_server::page_body;

/// A page of one point in this minute.
pub(super) fn page(minute: u32, cursor: Option<&str>) -> Act {
    Act::json(200, &page_body(minute, cursor))
}

pub(super) fn points(table: &Table) -> usize {
    table.merged.points.rows()
}

fn three_pages() -> Vec<Act> {
    vec![page(0, Some("a")), page(1, Some("b")), page(2, None)]
}

pub(super) fn scan(bench: &Bench) -> Scan {
    let input = QueryInput { site: vec!["S".to_owned()], ..QueryInput::default() };
    let query = Query::new(input).expect("a query");
    let decode = DecodeSettings::for_query(&query, Shape::default(), vec![]).expect("settings");
    let settings = ReadSettings::default();
    Scan::new(bench.client.clone(), query, decode, settings, (None, None)).expect("a scan")
}

pub(super) async fn next(stream: &Arc<PageStream>) -> Result<Option<Page>, ReadFailure> {
    Ok(stream.next(Deadline::NEVER).await?.map(|(page, _)| page))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r10_each_page_is_returned_to_one_caller() {
    let bench = Bench::new(three_pages()).await;
    let stream = scan(&bench).pages().expect("a chain");
    let tasks = (0..20).map(|_| {
        let stream = Arc::clone(&stream);
        tokio::spawn(async move { next(&stream).await.expect("read").map(|p| p.sequence) })
    });
    let given = join_all(tasks).await.into_iter();
    let mut given: Vec<u64> = given.filter_map(|task| task.expect("no panic")).collect();
    given.sort_unstable();
    assert_eq!(given, [1, 2, 3]);
    assert_eq!(bench.sent(), 3);
}

#[tokio::test]
async fn r3_a_chain_fails_in_a_forked_process() {
    let bench = Bench::new(three_pages()).await;
    let stream = scan(&bench).pages().expect("a chain");
    stream.read_next().await.expect("read");
    let _child = pretend(1);
    assert!(
        stream.take_progress().is_none() && stream.take_page().is_pending(),
        "the parent's page"
    );
    assert!(
        !stream.has_finished_prefetch()
            && stream.receive_finished().is_none()
            && !stream.may_prefetch()
    );
    let failure = next(&stream).await.expect_err("the parent's chain");
    assert_eq!(failure.error.kind(), Kind::ForkError);
    assert_eq!(bench.sent(), 1);
}

#[tokio::test]
async fn r3_a_forked_process_keeps_a_complete_table() {
    let bench = Bench::new(three_pages()).await;
    let collect = CollectOnce::new(scan(&bench));
    let _reading = collect.reading().stream.lock().await;
    let _child = pretend(1);
    let table = collect.table().await.expect("its own read");
    let _step = collect.reading().stream.lock().await;
    let _grandchild = pretend(2);
    assert!(collect.complete().is_some_and(|known| Arc::ptr_eq(known, &table)));
    let table = collect.partial().expect("merged").table.expect("a table");
    assert!(!table.is_partial, "while another caller is in a step");
    assert!(Arc::ptr_eq(&collect.table().await.expect("remembered"), &table));
    assert_eq!(bench.sent(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_callers_read_the_complete_table_once() {
    let bench = Bench::new(three_pages()).await;
    let collect = Arc::new(CollectOnce::new(scan(&bench)));
    let tasks = (0..10).map(|_| {
        let collect = Arc::clone(&collect);
        tokio::spawn(async move { collect.table().await.expect("read") })
    });
    let tables = join_all(tasks).await;
    let first = tables[0].as_ref().expect("no panic");
    assert!(tables.iter().flatten().all(|table| Arc::ptr_eq(table, first)));
    assert_eq!(bench.sent(), 3);
}

#[tokio::test]
async fn r5_a_cancelled_collect_continues_after_its_last_page() {
    let mut script = three_pages();
    script.insert(1, Act::hang());
    let bench = Bench::new(script).await;
    let collect = Arc::new(CollectOnce::new(scan(&bench)));
    let waiting = {
        let collect = Arc::clone(&collect);
        tokio::spawn(async move { collect.table().await })
    };
    until(|| bench.sent() >= 2).await;
    waiting.abort();
    waiting.await.expect_err("aborted");
    let table = collect.table().await.expect("the rest");
    assert_eq!((table.merged.points.rows(), table.provenance.pages), (3, 3));
    let sent = bench.server.other_requests();
    assert_eq!(sent.len(), 4, "the first page was requested once");
    assert_eq!(sent[1].raw, sent[2].raw);
}

/// A scan with these replies to the request of its second page.
async fn failing(replies: &[Act]) -> (Bench, CollectOnce) {
    let mut script = three_pages();
    script.splice(1..1, replies.iter().cloned());
    let bench = Bench::new(script).await;
    let collect = CollectOnce::new(scan(&bench));
    (bench, collect)
}

#[tokio::test]
async fn p15_a_failed_collect_continues_with_its_cursor() {
    let down = Act::with_headers(503, &[], "");
    let later = Act::with_headers(429, &["Retry-After: 600"], "");
    for (replies, kind) in [
        (vec![down; 4], Kind::ServiceUnavailable),
        (vec![Act::close(); 4], Kind::TransportError),
        (vec![later], Kind::RateLimited),
        (vec![Act::with_headers(403, &[], "")], Kind::ScopeError),
        (vec![Act::json(200, "{}")], Kind::ProtocolError),
        (vec![Act::json(409, "{}")], Kind::RequestRejected),
    ] {
        let (bench, collect) = failing(&replies).await;
        let failure = collect.table().await.expect_err("it fails");
        assert_eq!(failure.error.kind(), kind);
        assert_eq!(failure.bookmark.clone().expect("a bookmark").pages(), 1);
        let partial = failure.partial.clone().expect("a page");
        assert_eq!(partial.merged.points.rows(), 1);
        assert_eq!(collect.pages_left(Some(3)), Some(2), "{kind}");
        let read_at = partial.provenance.read_at;
        bench.clock().advance(Duration::from_secs(7));

        let table = collect.table().await.expect("the rest");
        assert_eq!((table.merged.points.rows(), table.provenance.pages), (3, 3), "{kind}");
        assert_eq!(table.provenance.read_at, read_at, "when the read began");
        let sent = bench.server.other_requests();
        assert_eq!(sent.len(), 3 + replies.len(), "{kind}: no page was read twice");
        assert!(sent[1..=replies.len() + 1].iter().all(|request| request.raw == sent[1].raw));

        // The error still contains the pages that a new scan needs.
        let rest = scan(&bench).resume(failure.bookmark.expect("one"), failure.partial);
        assert!(rest.expect("its own bookmark").onto.is_some());
        assert_eq!(partial.merged.points.rows(), 1);
    }
}

#[tokio::test]
async fn p15_a_collect_with_an_unusable_cursor_restarts() {
    let refused = |status| Act::json(status, r#"{"error":"no"}"#);
    let looped = page(1, Some("a"));
    for (reply, kind) in [
        (refused(400), Kind::CursorRejected),
        (refused(404), Kind::CursorRejected),
        (refused(410), Kind::CursorRejected),
        (refused(414), Kind::RequestRejected),
        (looped, Kind::CursorLoop),
    ] {
        let (bench, collect) = failing(&[reply, page(0, Some("a"))]).await;
        let failure = collect.table().await.expect_err("it fails");
        assert_eq!(failure.error.kind(), kind);
        assert_eq!(failure.partial.expect("a page").merged.points.rows(), 1);
        let table = collect.table().await.expect("from the start");
        assert_eq!((table.merged.points.rows(), table.provenance.pages), (3, 3), "{kind}");
        assert_eq!(bench.sent(), 5);
    }
}

#[tokio::test]
async fn each_page_is_reported_once_before_it_can_be_taken() {
    let bench = Bench::new(three_pages()).await;
    let stream = scan(&bench).pages().expect("a chain");
    assert!(stream.take_progress().is_none());
    for number in 1..=3 {
        // A page that was not taken is not requested again.
        for _ in 0..2 {
            stream.read_next().await.expect("read");
            assert!(stream.take_page().is_pending(), "it is not reported yet");
        }
        assert_eq!(bench.sent() as u64, number);
        assert_eq!(stream.take_progress().map(|progress| progress.pages), Some(number));
        assert!(stream.take_progress().is_none());
        assert!(matches!(stream.take_page(), Poll::Ready(Some(page)) if page.sequence == number));
    }
    assert!(matches!(stream.take_page(), Poll::Ready(None)));
}
