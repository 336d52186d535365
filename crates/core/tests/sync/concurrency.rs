//! Concurrent requests: their number, their order, the pages that are reserved, and the cost of a
//! kill.

use siteline_base::clock::Clock;
use siteline_core::Kind;
use siteline_core::sync::{Feed, FeedInput, SyncReport, Why};
use siteline_sandbox::{Effect, Endpoint, Options, When};

use crate::harness::{
    DAY, HOUR, Harness, MINUTE, at, finish, input, on_data, pages_of, reply, seconds,
};

/// A plant with this number of feeds, and this concurrency.
pub(crate) fn plant(
    feeds: u32,
    concurrency: usize,
    options: Options,
    allowance: Option<u64>,
) -> Harness {
    let clock = Clock::frozen_at(at("2026-11-01T18:00:00Z"));
    let options = Options { lateness: false, ..options };
    let mut harness = Harness::with(options, input(), clock.clone(), clock, |settings| {
        settings.daily_allowance = allowance;
    });
    let feed = |number| FeedInput { name: format!("feed {number:02}"), ..input() };
    let feeds = (0..feeds).map(|number| Feed::new(feed(number)).expect("a feed"));
    harness.others = feeds.collect();
    harness.feed = harness.others.remove(0);
    harness.settings.concurrency = concurrency;
    harness
}

fn equals_truth(harness: &Harness) -> bool {
    harness.equals_truth_to(at("2026-11-01T17:50:00Z"))
}

/// Waits during a fetch until every allowed request has been sent.
async fn sent(harness: &Harness, expected: u64) {
    while harness.requests() < expected {
        tokio::task::yield_now().await;
    }
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    assert_eq!(harness.requests(), expected);
}

#[tokio::test]
async fn concurrency_limits_the_requests_in_flight() {
    for (concurrency, expected) in [(0, 1), (1, 1), (8, 8)] {
        let harness = plant(12, concurrency, Options::default(), Some(1_000));
        // No request is answered, so all of them stay in flight.
        harness.sandbox.fault(on_data(When::Every(1), Effect::Hang));
        let run = harness.begin().expect("a run");
        tokio::select! {
            more = run.fetch() => panic!("nothing was answered: {more:?}"),
            () = sent(&harness, expected) => {}
        }
        assert_eq!(run.progress().requests, expected, "each is counted before it is sent");
        let left = harness.client.allowance().expect("a ledger").left;
        assert_eq!(left, Some(1_000 - expected));
        // The fetch was dropped. The run can continue.
        harness.sandbox.clear_faults();
        let report = finish(&run).await.expect("a sync");
        assert!(report.complete && equals_truth(&harness));
    }
}

#[tokio::test]
async fn the_next_page_is_requested_while_applying() {
    let harness = plant(1, 2, Options::default(), None);
    let run = harness.begin().expect("a run");
    assert!(run.fetch().await.expect("a page"));
    sent(&harness, 2).await;
    assert!(run.fetch().await.expect("the same page"));
    sent(&harness, 2).await;
    assert_eq!(run.apply().expect("space").pages, 1);
    assert!(finish(&run).await.expect("a sync").complete && equals_truth(&harness));
    harness.check_ledger();
}

#[tokio::test]
async fn the_report_does_not_depend_on_concurrency() {
    let mut outcomes: Vec<SyncReport> = Vec::new();
    for concurrency in [1, 2, 8] {
        let harness = plant(5, concurrency, Options::default(), None);
        outcomes.push(harness.sync().await.expect("a sync"));
        assert!(equals_truth(&harness));
        harness.advance(3 * DAY);
        outcomes.push(harness.sync().await.expect("a sync"));
        harness.check_ledger();
    }
    for [first, second] in outcomes.as_chunks().0 {
        for (found, expected) in [(first, &outcomes[0]), (second, &outcomes[1])] {
            assert_eq!(found.feeds, expected.feeds);
            assert_eq!((found.requests, found.complete), (expected.requests, true));
            assert!(found.feeds.is_sorted_by_key(|feed| &feed.name) && found.feeds.len() == 5);
        }
    }
}

/// The starts of the chains that were begun, in the order of their requests.
fn starts(harness: &Harness, after: usize) -> Vec<String> {
    let log = harness.sandbox.stats().log;
    let begun = log[after..].iter().filter(|one| one.path.ends_with("/data"));
    let begun = begun.filter(|one| !one.query.contains("cursor"));
    begun.map(|one| one.query.split("from=").nth(1).expect("a start")[..13].to_owned()).collect()
}

#[tokio::test]
async fn the_allowance_is_spent_on_urgent_chains_first() {
    for known_to_the_service in [false, true] {
        for limit in [3, 12, 20, 31] {
            let options = Options {
                daily_allowance: known_to_the_service.then_some(limit),
                ..Options::default()
            };
            let ours = (!known_to_the_service).then_some(limit);
            let harness = plant(10, 8, options, ours);
            let report = harness.sync().await.expect("it returns");
            assert!(!report.complete && report.resumes_at.is_some());
            let stats = harness.sandbox.stats();
            let refused = stats.replies(Endpoint::Data, 429);
            assert_eq!(pages_of(&report), limit, "all pages are kept");
            assert_eq!(refused > 0, known_to_the_service, "{refused}");
            assert!(refused <= 8, "only requests in flight: {refused}");
            // The last windows of all feeds are read before any fill.
            let begun = starts(&harness, 0);
            assert!(begun.is_sorted_by_key(|start| start != "2026-11-01T12"), "{begun:?}");
            assert_eq!(harness.sync().await.expect("it returns").requests, 0);
            harness.check_ledger();
        }
    }
}

#[tokio::test]
async fn s15_a_killed_run_loses_only_requests_in_flight() {
    let harness = plant(6, 1, Options::default(), None);
    assert!(harness.sync().await.expect("a sync").complete);
    let needed = harness.requests();
    for applied in [0, 1, 7, 20, 33] {
        let harness = plant(6, 8, Options::default(), None);
        drop(harness.sync_pages(applied).await.expect("pages"));
        let report = harness.sync().await.expect("a sync");
        assert!(report.complete && equals_truth(&harness), "after {applied} pages");
        let paid = harness.requests();
        assert!(paid >= needed && paid <= needed + 8, "{paid} instead of {needed}");
        let sequences: u64 = report.feeds.iter().map(|feed| feed.sequence).sum();
        assert_eq!(sequences, needed, "no page was applied twice");
    }
}

#[tokio::test]
async fn pages_in_flight_are_kept_after_an_error() {
    let harness = plant(8, 8, Options::default(), None);
    harness.sandbox.fault(on_data(When::Nth(3), reply(403)));
    let run = harness.begin().expect("a run");
    let mut pages = 0;
    let error = loop {
        match run.fetch().await {
            Ok(more) => assert!(more),
            Err(error) => break error,
        }
        pages = run.apply().expect("space").pages;
    };
    assert_eq!(error.kind(), Kind::ScopeError);
    let sent = harness.requests();
    assert_eq!(pages, sent - 1, "all others were applied");
    assert!(finish(&run).await.expect("the run continues").complete && equals_truth(&harness));
    harness.check_ledger();
}

#[tokio::test]
async fn b1_a_requested_pause_applies_to_all_chains() {
    let harness = plant(20, 8, Options::default(), None);
    let wait = ("Retry-After".to_owned(), "30".to_owned());
    let throttled = Effect::Reply { status: 429, headers: vec![wait], body: "{}".into() };
    harness.sandbox.fault(on_data(When::Nth(1), throttled));
    assert!(harness.sync().await.expect("a sync").complete && equals_truth(&harness));
    let log = harness.sandbox.stats().log;
    let times: Vec<_> =
        log.iter().filter(|one| one.path.ends_with("/data")).map(|one| one.at).collect();
    let soon = times.iter().filter(|at| at.duration_since(times[0]).as_secs() < 30).count();
    assert!(soon <= 8, "{soon} were sent before the pause was over");
}

#[tokio::test]
async fn a_dropped_fetch_does_not_change_chains() {
    for (feeds, concurrency, later) in [(1, 1, 1), (4, 4, 7)] {
        // A dropped fetch may cost a token request. Above the limit the client would pause.
        let options = Options { token_requests_per_minute: 10_000, ..Options::default() };
        let harness = plant(feeds, concurrency, options.clone(), None);
        let began = harness.now();
        let (run, dropped) = harness.sync_dropping(later).await;
        assert!(dropped > 20, "only {dropped} were dropped");
        let report = run.report().expect("a report");
        assert_eq!(harness.now(), began, "a request was retried");
        assert!(report.complete && equals_truth(&harness));
        let whole = plant(feeds, concurrency, options, None).sync().await.expect("a sync");
        assert_eq!(pages_of(&report), pages_of(&whole));
        // A dropped request is counted, and may have been sent.
        let (ours, theirs) = (harness.client.data_requests(), harness.requests());
        let most = theirs + concurrency as u64 * dropped;
        assert!((theirs..=most).contains(&ours), "{ours} {theirs} {dropped}");
    }
}

#[tokio::test]
async fn a_deadline_and_an_end_bound_all_chains() {
    let mut harness = plant(8, 8, Options::default(), None);
    // The bucket at 05:50 begins before the end.
    harness.settings.until = Some(at("2026-11-01T05:54:59Z"));
    let report = harness.sync().await.expect("a sync");
    assert!(report.complete && harness.equals_truth_to(at("2026-11-01T06:00:00Z")));
    assert!(report.feeds.iter().all(|feed| feed.read_through == harness.settings.until));
    assert!(starts(&harness, 0).iter().all(|start| start.as_str() < "2026-11-01T06"));
    harness.settings.until = None;
    harness.settings.deadline = Some(seconds(MINUTE));
    // Eight concurrent requests pass the deadline, but not the expiry of an assertion in flight.
    harness.sandbox.fault(on_data(When::Every(1), Effect::Delay(seconds(10))));
    let error = harness.sync().await.expect_err("the clock advances with each request");
    assert_eq!(error.kind(), Kind::DeadlineExceeded);
    harness.sandbox.clear_faults();
    harness.settings.deadline = None;
    assert!(harness.sync().await.expect("a sync").complete && equals_truth(&harness));
}

#[tokio::test]
async fn the_reserve_includes_concurrent_chains() {
    // At 05:00 of the third day all feeds are new. Windows of the first day, with five pages each,
    // become due on the same day after they are filled.
    for limit in [60, 100, 140, 196] {
        for concurrency in [1, 8] {
            let harness = plant(8, concurrency, Options::default(), Some(limit));
            harness.advance(DAY + 11 * HOUR);
            let report = harness.sync().await.expect("it returns");
            assert!(!report.complete, "{report:?}");
            let (left, reserve) = (report.allowance.left.expect("a limit"), harness.plan().reserve);
            // A chain does not leave the pages that it adds itself, for at most two windows.
            assert!(left + 10 >= reserve, "{concurrency}: {left} of {limit}, {reserve} needed");
            harness.check_ledger();
        }
    }
}

/// A plant with one feed and this allowance.
fn one_feed(limit: u64) -> Harness {
    plant(1, 1, Options::default(), Some(limit))
}

#[tokio::test]
async fn b5_no_request_without_a_remaining_allowance() {
    let harness = one_feed(0);
    let report = harness.sync().await.expect("it returns");
    assert_eq!((report.requests, report.complete), (0, false));
    let stats = harness.sandbox.stats();
    assert_eq!((stats.data_requests, stats.token_requests), (0, 0));
}

#[tokio::test]
async fn filling_reserves_pages_for_due_windows() {
    let mut harness = one_feed(30);
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
    let harness = one_feed(24);
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
    assert_eq!((report.requests, pages_of(&report)), (urgent as u64, 0), "{report:?}");
    assert_eq!(report.resumes_at, Some(at("2026-11-04T00:00:00Z")));
    let again = harness.sync().await.expect("a sync");
    assert_eq!(again.feeds[0].newest, Some(at("2026-11-03T04:50:00Z")), "{again:?}");
    harness.check_ledger();
}
