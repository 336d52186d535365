//! The requests that a run spends and reserves, and their order.

use siteline_base::clock::Clock;
use siteline_core::Kind;
use siteline_core::client::ClientSettings;
use siteline_core::sync::{Feed, FeedInput, Why};
use siteline_sandbox::{Options, When};

use crate::harness::{DAY, HOUR, Harness, at, input, on_data, reply};

fn limited(limit: u64) -> Harness {
    with(Options { lateness: false, ..Options::default() }, |settings| {
        settings.daily_allowance = Some(limit);
    })
}

fn with(options: Options, change: impl FnOnce(&mut ClientSettings)) -> Harness {
    let clock = Clock::frozen_at(at("2026-11-01T18:00:00Z"));
    Harness::with(options, input(), clock.clone(), clock, change)
}

#[tokio::test]
async fn b5_no_request_without_a_remaining_allowance() {
    let harness = limited(0);
    let report = harness.sync().await.expect("it returns");
    assert_eq!((report.requests, report.complete), (0, false));
    let stats = harness.sandbox.stats();
    assert_eq!((stats.data_requests, stats.token_requests), (0, 0));
}

#[tokio::test]
async fn filling_reserves_pages_for_due_windows() {
    let mut harness = limited(30);
    // Each window of six hours has four pages and becomes due two days after its end.
    harness.sync().await.expect("a sync");
    harness.advance(DAY);
    harness.sync().await.expect("a sync");
    harness.advance(11 * HOUR);
    // It is 05:00 of the third day. Two windows of the first day become due on this day.
    let since = at("2026-10-20T00:00:00Z");
    let older = FeedInput { name: "older".to_owned(), since, ..input() };
    harness.others = vec![Feed::new(older).expect("a feed")];
    let reserve = harness.plan().reserve;
    assert!((4..=16).contains(&reserve), "{reserve}");
    let report = harness.sync().await.expect("it returns");
    harness.others.clear();
    assert!(!report.complete);
    assert!(report.tasks.iter().all(|task| task.why == Why::Backfill || task.why == Why::Resume));
    assert_eq!(report.allowance.left, Some(reserve), "{report:?}");
    assert_eq!(report.resumes_at, Some(at("2026-11-04T00:00:00Z")));
    // The reserve is sufficient when the windows are due.
    harness.settings.until = Some(at("2026-11-03T00:00:00Z"));
    harness.advance(8 * HOUR);
    let report = harness.sync().await.expect("a sync");
    assert!(report.feeds[0].settled_through >= Some(at("2026-11-01T12:00:00Z")), "{report:?}");
}

#[tokio::test]
async fn a_retry_within_the_reserve_defers_its_chain() {
    let harness = limited(24);
    harness.sync().await.expect("a sync");
    harness.advance(DAY + 11 * HOUR);
    harness.sandbox.fault(on_data(When::Every(1), reply(503)));
    let report = loop {
        match harness.sync().await {
            Ok(report) => break report,
            Err(error) => assert_eq!(error.kind(), Kind::ServiceUnavailable),
        }
    };
    harness.sandbox.clear_faults();
    // Each chain that does not fill was requested exactly once.
    assert!(!report.complete && report.allowance.left > Some(0), "{report:?}");
    let urgent = report.tasks.iter().filter(|task| task.why != Why::Backfill).count();
    assert_eq!((report.requests, report.pages()), (urgent as u64, 0), "{report:?}");
    assert_eq!(report.resumes_at, Some(at("2026-11-04T00:00:00Z")));
    let again = harness.sync().await.expect("a sync");
    assert_eq!(again.feeds[0].newest, Some(at("2026-11-03T04:50:00Z")), "{again:?}");
    harness.check_ledger();
}
