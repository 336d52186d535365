//! The requests that a run spends and reserves, and their order.

use jiff::Timestamp;
use siteline_base::clock::Clock;
use siteline_core::Kind;
use siteline_core::client::ClientSettings;
use siteline_core::sync::{Feed, FeedInput, Why};
use siteline_sandbox::{AsOf, Endpoint, Options, When};

use crate::harness::{DAY, HOUR, Harness, MINUTE, at, input, on_data, reply};

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
async fn no_request_is_made_without_a_new_bucket() {
    let harness = limited(1_000);
    assert!(harness.sync().await.expect("a sync").complete);
    for pause in [0, MINUTE, MINUTE] {
        harness.advance(pause);
        let report = harness.sync().await.expect("a sync");
        assert_eq!((report.requests, report.complete), (0, true), "no poll of the newest bucket");
    }
    harness.advance(10 * MINUTE);
    assert_eq!(harness.sync().await.expect("a sync").requests, 1);
}

#[tokio::test]
async fn a_run_continues_after_the_allowance_resets() {
    let harness = limited(6);
    let report = harness.sync().await.expect("it returns");
    assert!(!report.complete && !report.tasks.is_empty());
    assert_eq!((report.requests, report.allowance.left), (6, Some(0)));
    assert_eq!(report.resumes_at, Some(at("2026-11-02T00:00:00Z")));
    let again = harness.sync().await.expect("it returns");
    assert_eq!((again.requests, again.complete), (0, false));
    assert_eq!(again.tasks, report.tasks);
    assert_eq!(report.pages(), 6);
    harness.advance(6 * HOUR);
    assert_eq!(harness.sync().await.expect("it returns").requests, 6);
    harness.check_ledger();
    assert_eq!(harness.sandbox.stats().replies(Endpoint::Data, 429), 0, "none was refused");
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
async fn the_services_own_allowance_ends_a_run() {
    let harness = with(Options { daily_allowance: Some(5), ..Options::default() }, |_| {});
    let report = harness.sync().await.expect("it returns");
    assert!(!report.complete);
    assert_eq!((report.pages(), report.requests), (5, 6), "the sixth was refused");
    assert_eq!(report.resumes_at.map(Timestamp::as_second), Some(1_793_577_600));
    assert_eq!(harness.sync().await.expect("it returns").requests, 0);
    harness.advance(6 * HOUR + 1);
    assert_eq!(harness.sync().await.expect("it returns").pages(), 5);
}

#[tokio::test]
async fn b13_a_plan_makes_no_request() {
    let harness = limited(1_000);
    let plan = harness.plan();
    assert_eq!((plan.pages, harness.sandbox.stats().token_requests), (None, 0));
    harness.sync().await.expect("a sync");
    harness.advance(DAY);
    let plan = harness.plan();
    let classes: Vec<Why> = plan.tasks.iter().map(|task| task.why).collect();
    assert!(classes.starts_with(&[Why::Recent, Why::Recent, Why::Backfill]), "{plan:?}");
    let expected = plan.pages.expect("known by now");
    let report = harness.sync().await.expect("a sync");
    assert!(report.pages().abs_diff(expected) <= 2, "{expected} {}", report.pages());
    assert_eq!(harness.plan().tasks, []);
}

#[tokio::test]
async fn b13_a_plan_shows_that_it_exceeds_the_allowance() {
    let harness = limited(12);
    harness.sync().await.expect("a sync");
    harness.advance(4 * DAY);
    let plan = harness.plan();
    assert!(plan.pages.is_some_and(|pages| pages > 12), "{plan:?}");
    assert_eq!(plan.allowance.left, Some(12));
    assert_eq!(plan.allowance.resets_at, at("2026-11-06T00:00:00Z"));
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
async fn fresh_data_is_read_before_filling() {
    let mut harness = limited(21);
    let since = at("2026-10-01T00:00:00Z");
    harness.feed = Feed::new(FeedInput { since, ..input() }).expect("a feed");
    let mut unfinished = 0;
    for day in 1..=6 {
        let report = harness.sync().await.expect("it returns");
        assert!(!report.complete);
        let read = report.feeds[0].newest.map(Timestamp::as_second);
        assert_eq!(read, Some(at("2026-11-01T17:50:00Z").as_second() + (day - 1) * 86_400));
        unfinished += harness.state_chains();
        harness.advance(DAY);
    }
    assert!(unfinished > 0, "no run ended in the middle of a chain");
    assert_eq!(harness.sandbox.stats().replies(Endpoint::Data, 429), 0);
    harness.check_ledger();
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

#[tokio::test]
async fn requested_then_fresh_then_due_ranges() {
    let mut harness = limited(1_000);
    harness.settings.until = Some(at("2026-11-01T09:00:00Z"));
    harness.sync().await.expect("a sync");
    harness.settings.until = None;
    harness.advance(3 * DAY);
    harness.settings.reread = vec![(at("2026-11-01T02:00:00Z"), at("2026-11-01T03:00:00Z"))];
    let before = harness.sandbox.stats().log.len();
    assert!(harness.sync().await.expect("a sync").complete);
    let stats = harness.sandbox.stats();
    let begun: Vec<String> = stats.log[before..]
        .iter()
        .filter(|one| one.path.ends_with("/data") && !one.query.contains("cursor"))
        .map(|one| one.query.split("from=").nth(1).expect("a start")[..13].to_owned())
        .collect();
    assert_eq!(begun[..2], ["2026-11-01T02", "2026-11-04T12"], "{begun:?}");
    assert_eq!(begun[2], "2026-11-01T00", "settling, without the reread range");
    let end = at("2026-11-04T17:50:00Z");
    assert!(harness.stored(end) == harness.truth(end, AsOf::Now));
}
