//! Reads that many ask for, that are given up half way, or that a fork has cut in two.

use super::*;
use crate::client::pages::{Pages, Taken};
use crate::client::scan::{ReadSettings, Scan, Step};
use crate::client::whole::Whole;
use crate::data::query::QueryInput;
use crate::data::{DecodeSettings, Query, Shape};

/// A page of one point in this minute.
pub(super) fn page(minute: u32, cursor: Option<&str>) -> Act {
    Act::json(200, &body(minute, cursor))
}

pub(super) fn body(minute: u32, cursor: Option<&str>) -> String {
    let cursor = serde_json::to_string(&cursor).expect("JSON");
    format!(
        r#"{{"series":[{{"siteId":"S","lineId":"L","machineId":"M","deviceId":"D","tagGuid":"T",
            "points":[{{"timestamp":"2026-11-01T00:{minute:02}:00Z","value":1}}]}}],
            "nextCursor":{cursor}}}"#
    )
}

fn three_pages() -> Vec<Act> {
    vec![page(0, Some("a")), page(1, Some("b")), page(2, None)]
}

pub(super) fn scan(bench: &Bench) -> Scan {
    let input = QueryInput { site: Some("S".to_owned()), ..QueryInput::default() };
    let query = Query::new(input).expect("a query");
    let decode = DecodeSettings::for_query(&query, Shape::default(), vec![]).expect("settings");
    Scan::new(bench.client.clone(), query, decode, ReadSettings::default())
}

fn sequence(pages: &Pages) -> u64 {
    match pages.take() {
        Taken::Page(page) => page.sequence,
        other => panic!("no page: {other:?}"),
    }
}

#[tokio::test]
async fn a_page_that_was_read_for_one_who_gave_up_is_there_for_the_next() {
    let bench = Bench::new(three_pages()).await;
    let pages = scan(&bench).pages().expect("a chain");
    assert!(matches!(pages.take(), Taken::Nothing));
    pages.fill().await.expect("read");
    // Nobody took it; asking again reads nothing.
    pages.fill().await.expect("held");
    assert_eq!(bench.server.other_requests().len(), 1);
    assert_eq!(sequence(&pages), 1);
    assert!(matches!(pages.take(), Taken::Nothing));
    for expected in [Some(2), Some(3), None, None] {
        let page = pages.next().await.expect("read");
        assert_eq!(page.map(|page| page.sequence), expected);
    }
    assert!(matches!(pages.take(), Taken::Ended));
    assert_eq!(bench.server.other_requests().len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r10_each_page_is_given_once_however_many_ask() {
    let bench = Bench::new(three_pages()).await;
    let pages = Arc::new(scan(&bench).pages().expect("a chain"));
    let tasks: Vec<_> = (0..20)
        .map(|_| {
            let pages = Arc::clone(&pages);
            tokio::spawn(async move { pages.next().await.expect("read").map(|p| p.sequence) })
        })
        .collect();
    let mut given = Vec::new();
    for task in tasks {
        given.extend(task.await.expect("no panic"));
    }
    given.sort_unstable();
    assert_eq!(given, [1, 2, 3]);
    assert_eq!(bench.server.other_requests().len(), 3);
}

#[tokio::test]
async fn r5_a_read_that_is_given_up_asks_again_for_the_same_page() {
    let mut script = three_pages();
    script.insert(1, Act::hang());
    let bench = Bench::new(script).await;
    let pages = Arc::new(scan(&bench).pages().expect("a chain"));
    pages.next().await.expect("the first");
    let waiting = {
        let pages = Arc::clone(&pages);
        tokio::spawn(async move { pages.next().await })
    };
    while bench.server.other_requests().len() < 2 {
        tokio::task::yield_now().await;
    }
    waiting.abort();
    waiting.await.expect_err("given up");
    let second = pages.next().await.expect("read").expect("a page");
    assert_eq!(second.sequence, 2);
    let sent = bench.server.other_requests();
    assert_eq!(sent[1].raw, sent[2].raw);
}

#[tokio::test]
async fn r3_a_chain_is_not_followed_in_two_processes() {
    let bench = Bench::new(three_pages()).await;
    let mut pages = scan(&bench).pages().expect("a chain");
    pages.fill().await.expect("read");
    pages.inherit();
    assert!(matches!(pages.take(), Taken::Nothing), "the parent's page");
    let failure = pages.next().await.expect_err("the parent's chain");
    assert_eq!(failure.error.kind(), Kind::Fork);
    assert_eq!(bench.server.other_requests().len(), 1);
}

#[tokio::test]
async fn r3_what_the_parent_had_read_is_there_and_what_it_was_reading_is_read_anew() {
    let bench = Bench::new(three_pages()).await;
    let whole = Whole::new(scan(&bench));
    let held = whole.inherit();
    let _reading = held.lock().await;
    let table = whole.table().await.expect("a read of its own");
    whole.inherit();
    assert!(Arc::ptr_eq(&whole.table().await.expect("remembered"), &table));
    assert_eq!(bench.server.other_requests().len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_whole_is_read_once_however_many_ask() {
    let bench = Bench::new(three_pages()).await;
    let whole = Arc::new(Whole::new(scan(&bench)));
    let tasks: Vec<_> = (0..10)
        .map(|_| {
            let whole = Arc::clone(&whole);
            tokio::spawn(async move { whole.table().await.expect("read") })
        })
        .collect();
    let mut tables = Vec::new();
    for task in tasks {
        tables.push(task.await.expect("no panic"));
    }
    assert!(tables.iter().all(|table| Arc::ptr_eq(table, &tables[0])));
    assert_eq!(bench.server.other_requests().len(), 3);
}

#[tokio::test]
async fn r5_a_whole_that_is_given_up_goes_on_where_it_was() {
    let mut script = three_pages();
    script.insert(1, Act::hang());
    let bench = Bench::new(script).await;
    let whole = Arc::new(Whole::new(scan(&bench)));
    let waiting = {
        let whole = Arc::clone(&whole);
        tokio::spawn(async move { whole.table().await })
    };
    while bench.server.other_requests().len() < 2 {
        tokio::task::yield_now().await;
    }
    waiting.abort();
    waiting.await.expect_err("given up");
    let table = whole.table().await.expect("the rest");
    assert_eq!((table.merged.points.rows(), table.provenance.pages), (3, 3));
    let sent = bench.server.other_requests();
    assert_eq!(sent.len(), 4, "the first page was asked for once");
    assert_eq!(sent[1].raw, sent[2].raw);
}

#[tokio::test]
async fn progress_counts_pages_points_and_every_request() {
    let mut script = three_pages();
    script.insert(1, Act::json(503, "{}"));
    let bench = Bench::new(script).await;
    let whole = Whole::new(scan(&bench));
    let mut told = Vec::new();
    let table = loop {
        match whole.step(Deadline::NEVER).await.expect("a step") {
            Step::Page(progress) => told.push(progress),
            Step::Whole(table) => break table,
        }
    };
    assert_eq!(table.merged.points.rows(), 3);
    let counts = told.iter().map(|p| (p.pages, p.points, p.requests, p.done));
    assert_eq!(counts.collect::<Vec<_>>(), [(1, 1, 1, false), (2, 2, 3, false), (3, 3, 4, true)]);
    let newest = told[2].newest.map(|at| at.to_string());
    assert_eq!(newest.as_deref(), Some("2026-11-01T00:02:00Z"));
    assert_eq!([told[1].fraction, told[2].fraction], [None, Some(1.0)]);
}

#[tokio::test]
async fn each_page_is_news_once() {
    let bench = Bench::new(three_pages()).await;
    let pages = scan(&bench).pages().expect("a chain");
    assert!(pages.news().is_none());
    pages.fill().await.expect("read");
    assert_eq!(pages.news().map(|news| news.pages), Some(1));
    assert!(pages.news().is_none());
}

fn many_pages(pages: u32) -> Vec<Act> {
    let cursor = |minute| (minute + 1 < pages).then(|| format!("c{minute}"));
    (0..pages).map(|minute| page(minute, cursor(minute).as_deref())).collect()
}

#[tokio::test]
async fn r16_one_page_is_read_ahead_and_none_before_the_second_was_taken() {
    let bench = Bench::new(many_pages(5)).await;
    let pages = scan(&bench).pages().expect("a chain");
    let asked = || bench.server.other_requests().len();
    for number in 1..=4 {
        assert_eq!(pages.next().await.expect("read").expect("a page").sequence, number);
        for _ in 0..3 {
            if let Some(turn) = pages.begin_ahead() {
                pages.read_ahead(turn).await;
            }
        }
        let ahead = usize::from(number >= 2);
        assert_eq!(asked(), usize::try_from(number).expect("small") + ahead);
    }
    assert_eq!(pages.next().await.expect("read").map(|page| page.sequence), Some(5));
    assert!(!pages.begins_ahead(), "it was the last");
    assert!(matches!(pages.take(), Taken::Ended));
    assert_eq!(asked(), 5);
}

#[tokio::test]
async fn a_failure_of_what_was_read_ahead_is_told_once_to_whoever_asks() {
    let mut script = many_pages(3);
    script.insert(2, Act::json(404, "{}"));
    let bench = Bench::new(script).await;
    let pages = scan(&bench).pages().expect("a chain");
    for _ in 0..2 {
        pages.next().await.expect("read");
    }
    pages.read_ahead(pages.begin_ahead().expect("begun")).await;
    assert!(pages.begin_ahead().is_none(), "a failure is not asked for again");
    assert_eq!(bench.server.other_requests().len(), 3);
    let failure = pages.next().await.expect_err("refused");
    assert_eq!(failure.error.kind(), Kind::CursorRejected);
    assert_eq!(failure.bookmark.expect("a bookmark").pages(), 2);
    assert_eq!(bench.server.other_requests().len(), 3);
    assert_eq!(pages.next().await.expect("asked again").expect("a page").sequence, 3);
}

#[tokio::test]
async fn p9_what_is_read_ahead_ends_with_who_wanted_it_and_loses_no_page() {
    let mut script = many_pages(3);
    script.insert(2, Act::hang());
    let bench = Bench::new(script).await;
    let pages = Arc::new(scan(&bench).pages().expect("a chain"));
    for _ in 0..2 {
        pages.next().await.expect("read");
    }
    let ahead = {
        let (pages, turn) = (Arc::clone(&pages), pages.begin_ahead().expect("begun"));
        tokio::spawn(async move { pages.read_ahead(turn).await })
    };
    assert!(pages.begin_ahead().is_none(), "one is under way");
    while bench.server.other_requests().len() < 3 {
        tokio::task::yield_now().await;
    }
    ahead.abort();
    ahead.await.expect_err("given up");
    pages.give_up_ahead();
    assert!(pages.begin_ahead().is_none(), "once for each page that was taken");
    assert_eq!(pages.next().await.expect("read").expect("a page").sequence, 3);
}

#[tokio::test]
async fn what_was_given_up_before_it_came_to_its_turn_asks_for_nothing() {
    let bench = Bench::new(many_pages(4)).await;
    let pages = scan(&bench).pages().expect("a chain");
    for _ in 0..2 {
        pages.next().await.expect("read");
    }
    let late = pages.begin_ahead().expect("begun");
    pages.give_up_ahead();
    pages.next().await.expect("read");
    let turn = pages.begin_ahead().expect("begun");
    pages.read_ahead(late).await;
    assert_eq!(bench.server.other_requests().len(), 3);
    assert!(!pages.begins_ahead(), "the other one is under way");
    pages.read_ahead(turn).await;
    assert_eq!(pages.next().await.expect("read").expect("a page").sequence, 4);
    assert_eq!(bench.server.other_requests().len(), 4);
}

#[tokio::test]
async fn a_page_that_came_by_itself_is_not_given_before_its_news_was_heard() {
    let bench = Bench::new(many_pages(4)).await;
    let pages = scan(&bench).pages().expect("a chain");
    for number in 1..=4 {
        // As if it had come after somebody heard that there is no news.
        pages.fill().await.expect("read");
        assert!(matches!(pages.take_heard(), Taken::Nothing));
        assert_eq!(pages.news().map(|news| news.pages), Some(number));
        assert!(matches!(pages.take_heard(), Taken::Page(page) if page.sequence == number));
    }
    assert!(matches!(pages.take_heard(), Taken::Ended));
}
