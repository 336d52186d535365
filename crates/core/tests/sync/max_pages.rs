//! Runs that may ask for so many pages: what they ask for, what they leave, and that the next one goes on.

use siteline_base::clock::Clock;
use siteline_core::Kind;
use siteline_core::sync::{EndedBy, Feed, FeedInput, SyncReport};
use siteline_sandbox::{AsOf, Effect, Endpoint, Fault, Options, When};

use crate::harness::{HOUR, Harness, at, input};

/// A plant of five feeds whose runs may ask for so many pages.
fn plant(max_pages: u64, concurrency: usize, allowance: Option<u64>) -> Harness {
    let clock = Clock::frozen_at(at("2026-11-01T18:00:00Z"));
    let options = Options { lateness: false, ..Options::default() };
    let mut harness = Harness::with(options, input(), clock.clone(), clock, |settings| {
        settings.daily_allowance = allowance;
    });
    let feed = |number| FeedInput { name: format!("feed {number}"), ..input() };
    harness.beside = (1..5).map(|number| Feed::new(feed(number)).expect("a feed")).collect();
    harness.settings.concurrency = concurrency;
    harness.settings.max_pages = Some(max_pages);
    harness
}

fn data_requests(harness: &Harness) -> u64 {
    harness.sandbox.stats().data_requests
}

/// The report of a run that left something, which another can read at once.
fn left_by_its_limit(report: &SyncReport) {
    assert_eq!((report.complete, report.resumes_at), (false, None));
    assert_eq!(report.ended_by, Some(EndedBy::MaxPages));
    assert!(!report.tasks.is_empty());
}

#[tokio::test]
async fn runs_of_few_pages_read_the_same_as_one_run_and_no_page_twice() {
    let mut whole = plant(1, 1, None);
    whole.settings.max_pages = None;
    let whole = whole.sync().await.expect("a sync");
    assert!(whole.complete && whole.ended_by.is_none() && whole.pages() > 30);
    for (max_pages, concurrency) in [(1, 1), (3, 1), (1, 8), (3, 2), (7, 8), (30, 3)] {
        let harness = plant(max_pages, concurrency, None);
        let mut paid = 0;
        loop {
            let report = harness.sync().await.expect("a sync");
            let asked = data_requests(&harness) - paid;
            assert_eq!((report.pages(), report.requests), (asked, asked), "all are kept");
            assert!(asked <= max_pages, "{asked} of {max_pages}, {concurrency} at once");
            paid += asked;
            if report.complete {
                assert_eq!(report.ended_by, None);
                break;
            }
            left_by_its_limit(&report);
            assert_eq!(asked, max_pages);
        }
        assert_eq!(paid, whole.pages(), "{max_pages}, {concurrency} at once");
        let end = at("2026-11-01T17:50:00Z");
        assert_eq!(harness.stored(end), harness.truth(end, AsOf::Now));
        harness.check_ledger();
    }
}

#[tokio::test]
async fn a_run_of_exactly_as_many_pages_as_there_are_is_complete() {
    let mut harness = plant(1, 8, None);
    harness.settings.max_pages = None;
    let pages = harness.sync().await.expect("a sync").pages();
    for concurrency in [1, 8] {
        let report = plant(pages, concurrency, None).sync().await.expect("a sync");
        assert!(report.complete && report.ended_by.is_none() && report.tasks.is_empty());
        let report = plant(pages - 1, concurrency, None).sync().await.expect("a sync");
        left_by_its_limit(&report);
        assert_eq!(report.pages(), pages - 1);
    }
}

#[tokio::test]
async fn a_repeat_of_a_page_is_not_counted() {
    for concurrency in [1, 8] {
        let harness = plant(4, concurrency, None);
        let effect = Effect::Unavailable { retry_after: None };
        harness.sandbox.fault(Fault { on: Endpoint::Data, when: When::Every(3), effect });
        let report = harness.sync().await.expect("a sync");
        left_by_its_limit(&report);
        assert_eq!(report.pages(), 4);
        assert!(report.requests > 4, "{}", report.requests);
    }
}

#[tokio::test]
async fn a_page_whose_request_was_dropped_is_counted_once() {
    for (concurrency, max_pages) in [(1, 5), (3, 8), (8, 8)] {
        let harness = plant(max_pages, concurrency, None);
        let (run, dropped) = harness.sync_dropping(9).await;
        assert!(dropped > 0);
        let report = run.report().expect("a report");
        left_by_its_limit(&report);
        assert_eq!(report.pages(), max_pages);
        assert!(run.progress().done, "{:?}", run.progress());
    }
}

#[tokio::test]
async fn the_progress_expects_no_more_pages_than_the_run_may_ask_for() {
    let mut harness = plant(1, 1, None);
    // So that the pages of the next windows are known.
    harness.settings.max_pages = None;
    assert!(harness.sync().await.expect("a sync").complete);
    harness.advance(12 * HOUR);
    harness.settings.max_pages = Some(3);
    let run = harness.begin().expect("a run");
    let mut expected = Vec::new();
    while run.fetch().await.expect("a page") {
        let progress = run.apply().expect("space");
        expected.push((progress.pages_expected, progress.done));
    }
    assert_eq!(expected, [(Some(3), false), (Some(3), false), (Some(3), true)]);
}

#[tokio::test]
async fn a_run_that_the_allowance_ends_says_so_whatever_the_limit() {
    for (allowance, max_pages) in [(5, 6), (5, 5)] {
        let report = plant(max_pages, 8, Some(allowance)).sync().await.expect("it returns");
        assert_eq!((report.pages(), report.complete), (5, false));
        assert_eq!(report.ended_by, Some(EndedBy::Allowance));
        assert_eq!(report.resumes_at, Some(at("2026-11-02T00:00:00Z")));
    }
    let report = plant(5, 8, Some(6)).sync().await.expect("it returns");
    left_by_its_limit(&report);
}

#[tokio::test]
async fn what_is_set_aside_is_told_from_what_the_limit_left() {
    let mut harness = plant(1, 1, None);
    harness.beside.clear();
    harness.settings.max_pages = None;
    let effect = Effect::RepeatCursor;
    harness.sandbox.fault(Fault { on: Endpoint::Data, when: When::Every(1), effect });
    assert!(harness.sync().await.is_err());
    harness.sandbox.clear_faults();
    harness.advance(12 * HOUR);
    for (max_pages, ended_by) in [(1, EndedBy::MaxPages), (1_000, EndedBy::Skipped)] {
        harness.settings.max_pages = Some(max_pages);
        let report = harness.sync().await.expect("a sync");
        assert_eq!((report.complete, report.ended_by), (false, Some(ended_by)));
        assert_eq!(report.resumes_at.is_some(), ended_by == EndedBy::Skipped);
    }
}

#[tokio::test]
async fn a_range_that_fails_is_an_error_of_a_bounded_run_too() {
    let harness = plant(3, 1, None);
    let effect = Effect::Reply { status: 404, headers: vec![], body: "{}".into() };
    harness.sandbox.fault(Fault { on: Endpoint::Data, when: When::Nth(1), effect });
    let error = harness.sync().await.expect_err("a range was refused");
    assert_eq!(error.kind(), Kind::RequestRejected);
    assert_eq!(data_requests(&harness), 3);
}
