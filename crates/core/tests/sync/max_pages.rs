//! Runs with a page limit.

use siteline_core::Kind;
use siteline_core::sync::{EndedBy, SyncReport};
use siteline_sandbox::{Effect, Options, When};

use crate::harness::{HOUR, Harness, at, on_data, pages_of, reply};

fn plant(max_pages: u64, concurrency: usize, allowance: Option<u64>) -> Harness {
    let mut harness = crate::concurrency::plant(5, concurrency, Options::default(), allowance);
    harness.settings.max_pages = Some(max_pages);
    harness
}

fn left_by_its_limit(report: &SyncReport) {
    assert_eq!((report.complete, report.resumes_at), (false, None));
    assert_eq!(report.ended_by, Some(EndedBy::MaxPages));
    assert!(!report.tasks.is_empty());
}

#[tokio::test]
async fn limited_runs_read_no_page_twice() {
    let mut whole = plant(1, 1, None);
    whole.settings.max_pages = None;
    let whole = whole.sync().await.expect("a sync");
    let pages = pages_of(&whole);
    assert!(whole.complete && whole.ended_by.is_none() && pages > 30);
    let few = [(1, 1), (3, 1), (1, 8), (3, 2), (7, 8), (30, 3)];
    let exact = [(pages - 1, 1), (pages - 1, 8), (pages, 1), (pages, 8)];
    for (max_pages, concurrency) in few.into_iter().chain(exact) {
        let harness = plant(max_pages, concurrency, None);
        let mut paid = 0;
        loop {
            let report = harness.sync().await.expect("a sync");
            let read = harness.requests() - paid;
            assert_eq!((pages_of(&report), report.requests), (read, read), "all are kept");
            assert!(read <= max_pages, "{read} of {max_pages}, concurrency {concurrency}");
            paid += read;
            if report.complete {
                assert_eq!(report.ended_by, None);
                break;
            }
            left_by_its_limit(&report);
            assert_eq!(read, max_pages);
        }
        assert_eq!(paid, pages, "{max_pages}, concurrency {concurrency}");
        assert!(harness.equals_truth_to(at("2026-11-01T17:50:00Z")));
        harness.check_ledger();
    }
}

#[tokio::test]
async fn a_repeat_of_a_page_is_not_counted() {
    for concurrency in [1, 8] {
        let harness = plant(4, concurrency, None);
        let effect = Effect::Unavailable { retry_after: None };
        harness.sandbox.fault(on_data(When::Every(3), effect));
        let report = harness.sync().await.expect("a sync");
        left_by_its_limit(&report);
        assert_eq!(pages_of(&report), 4);
        assert!(report.requests > 4, "{}", report.requests);
    }
}

#[tokio::test]
async fn a_dropped_request_is_counted_once() {
    for (concurrency, max_pages) in [(1, 5), (3, 8), (8, 8)] {
        let harness = plant(max_pages, concurrency, None);
        let (run, dropped) = harness.sync_dropping(9).await;
        assert!(dropped > 0);
        let report = run.report().expect("a report");
        left_by_its_limit(&report);
        assert_eq!(pages_of(&report), max_pages);
        assert!(run.progress().done, "{:?}", run.progress());
    }
}

#[tokio::test]
async fn expected_progress_respects_the_page_limit() {
    let mut harness = plant(1, 1, None);
    // The first run provides an estimate of the pages.
    harness.settings.max_pages = None;
    assert!(harness.sync().await.expect("a sync").complete);
    harness.advance(12 * HOUR);
    harness.settings.max_pages = Some(3);
    let run = harness.begin().expect("a run");
    let mut expected = Vec::new();
    while run.fetch().await.expect("a page") {
        assert_eq!(run.progress().pages_expected, Some(3), "includes the pending page");
        let progress = run.apply().expect("space");
        expected.push((progress.pages_expected, progress.done));
    }
    assert_eq!(expected, [(Some(3), false), (Some(3), false), (Some(3), true)]);
}

#[tokio::test]
async fn the_allowance_takes_precedence_over_the_limit() {
    for (allowance, max_pages) in [(5, 6), (5, 5)] {
        let report = plant(max_pages, 8, Some(allowance)).sync().await.expect("it returns");
        assert_eq!((pages_of(&report), report.complete), (5, false));
        assert_eq!(report.ended_by, Some(EndedBy::Allowance));
        assert_eq!(report.resumes_at, Some(at("2026-11-02T00:00:00Z")));
    }
    let report = plant(5, 8, Some(6)).sync().await.expect("it returns");
    left_by_its_limit(&report);
}

#[tokio::test]
async fn skipped_ranges_are_distinguished_from_the_limit() {
    let mut harness = plant(1, 1, None);
    harness.others.clear();
    harness.settings.max_pages = None;
    harness.sandbox.fault(on_data(When::Every(1), Effect::RepeatCursor));
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
async fn a_limited_run_reports_failed_ranges() {
    let harness = plant(3, 1, None);
    harness.sandbox.fault(on_data(When::Nth(1), reply(404)));
    let error = harness.sync().await.expect_err("a range was refused");
    assert_eq!(error.kind(), Kind::RequestRejected);
    assert_eq!(harness.requests(), 3);
}
