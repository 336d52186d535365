//! How much of the daily allowance a run spends, in which order, and how much it leaves (§4.5.6, §8).

use jiff::Timestamp;
use siteline::Kind;
use siteline::client::ClientSettings;
use siteline::clock::Clock;
use siteline::sandbox::{AsOf, Effect, Endpoint, Fault, Options, When};
use siteline::sync::{Feed, FeedInput, Why};

use crate::bench::{Bench, DAY, HOUR, MINUTE, at, input};

fn limited(limit: u64) -> Bench {
    with(Options { lateness: false, ..Options::default() }, |settings| {
        settings.daily_allowance = Some(limit);
    })
}

fn with(options: Options, change: impl FnOnce(&mut ClientSettings)) -> Bench {
    let clock = Clock::frozen_at(at("2026-11-01T18:00:00Z"));
    Bench::with(options, input(), clock.clone(), clock, change)
}

#[tokio::test]
async fn nothing_is_asked_where_nothing_is_new() {
    let bench = limited(1_000);
    assert!(bench.sync().await.expect("a sync").complete);
    for pause in [0, MINUTE, MINUTE] {
        bench.advance(pause);
        let report = bench.sync().await.expect("a sync");
        assert_eq!(
            (report.requests, report.complete),
            (0, true),
            "the newest bucket is not polled"
        );
    }
    bench.advance(10 * MINUTE);
    assert_eq!(bench.sync().await.expect("a sync").requests, 1);
}

#[tokio::test]
async fn a_spent_allowance_ends_a_run_at_a_page_and_it_goes_on_the_next_day() {
    let bench = limited(6);
    let report = bench.sync().await.expect("it returns");
    assert!(!report.complete && !report.todo.is_empty());
    assert_eq!((report.requests, report.allowance.left), (6, Some(0)));
    assert_eq!(report.resumes_at, Some(at("2026-11-02T00:00:00Z")));
    let again = bench.sync().await.expect("it returns");
    assert_eq!((again.requests, again.complete), (0, false));
    assert_eq!(again.todo, report.todo);
    assert_eq!(report.pages(), 6);
    bench.advance(6 * HOUR);
    assert_eq!(bench.sync().await.expect("it returns").requests, 6);
    bench.check_ledger();
    assert_eq!(bench.sandbox.stats().replies(Endpoint::Data, 429), 0, "none was refused");
}

#[tokio::test]
async fn b5_nothing_is_sent_where_the_ledger_has_none_left() {
    let bench = limited(0);
    let report = bench.sync().await.expect("it returns");
    assert_eq!((report.requests, report.complete), (0, false));
    let stats = bench.sandbox.stats();
    assert_eq!((stats.data_requests, stats.token_requests), (0, 0));
}

#[tokio::test]
async fn an_allowance_that_only_the_service_knows_ends_a_run_just_so() {
    let bench = with(Options { daily_allowance: Some(5), ..Options::default() }, |_| {});
    let report = bench.sync().await.expect("it returns");
    assert!(!report.complete);
    assert_eq!((report.pages(), report.requests), (5, 6), "the sixth was refused");
    assert_eq!(report.resumes_at.map(Timestamp::as_second), Some(1_793_577_600));
    assert_eq!(bench.sync().await.expect("it returns").requests, 0);
    bench.advance(6 * HOUR + 1);
    assert_eq!(bench.sync().await.expect("it returns").pages(), 5);
}

#[tokio::test]
async fn b13_a_plan_costs_nothing_and_says_what_is_read() {
    let bench = limited(1_000);
    let plan = bench.plan();
    assert_eq!((plan.pages, bench.sandbox.stats().token_requests), (None, 0));
    bench.sync().await.expect("a sync");
    bench.advance(DAY);
    let plan = bench.plan();
    let classes: Vec<Why> = plan.tasks.iter().map(|task| task.why).collect();
    assert!(classes.starts_with(&[Why::Edge, Why::Edge, Why::Fill]), "{plan:?}");
    let expected = plan.pages.expect("known by now");
    let report = bench.sync().await.expect("a sync");
    assert!(report.pages().abs_diff(expected) <= 2, "{expected} {}", report.pages());
    assert_eq!(bench.plan().tasks, []);
}

#[tokio::test]
async fn b13_a_plan_that_is_over_what_is_left_shows_it() {
    let bench = limited(12);
    bench.sync().await.expect("a sync");
    bench.advance(4 * DAY);
    let plan = bench.plan();
    assert!(plan.pages.is_some_and(|pages| pages > 12), "{plan:?}");
    assert_eq!(plan.allowance.left, Some(12));
    assert_eq!(plan.allowance.resets_at, at("2026-11-06T00:00:00Z"));
}

#[tokio::test]
async fn filling_leaves_the_pages_of_windows_that_become_due_today() {
    let bench = with(Options { lateness: false, ..Options::default() }, |settings| {
        settings.daily_allowance = Some(30);
    });
    // Windows of six hours, four pages each; due two days after their end.
    bench.sync().await.expect("a sync");
    bench.advance(DAY);
    bench.sync().await.expect("a sync");
    bench.advance(11 * HOUR);
    // Five in the morning of the third day: two windows of the first become due within it.
    let mut bench = bench;
    let since = at("2026-10-20T00:00:00Z");
    let older = FeedInput { name: "older".to_owned(), since, ..input() };
    let feeds = [bench.feed.clone(), Feed::new(older).expect("a feed")];
    let plan = siteline::sync::plan(&bench.client, &*bench.target, &feeds, &bench.settings);
    let reserve = plan.expect("a plan").reserve;
    assert!((4..=16).contains(&reserve), "{reserve}");
    let target = std::sync::Arc::clone(&bench.target);
    let run = siteline::sync::Run::begin(&bench.client, target, &feeds, bench.settings.clone());
    let report = run.expect("a run").finish().await.expect("it returns");
    assert!(!report.complete);
    assert!(report.todo.iter().all(|task| task.why == Why::Fill || task.why == Why::Resume));
    assert_eq!(report.allowance.left, Some(reserve), "{report:?}");
    assert_eq!(report.resumes_at, Some(at("2026-11-04T00:00:00Z")));
    // They are there when the windows are due.
    bench.settings.until = Some(at("2026-11-03T00:00:00Z"));
    bench.advance(8 * HOUR);
    let report = bench.sync().await.expect("a sync");
    assert!(report.feeds[0].settled_through >= Some(at("2026-11-01T12:00:00Z")), "{report:?}");
}

#[tokio::test]
async fn what_is_fresh_is_read_each_day_however_much_there_is_to_fill() {
    let mut bench = limited(21);
    let since = at("2026-10-01T00:00:00Z");
    bench.feed = Feed::new(FeedInput { since, ..input() }).expect("a feed");
    let mut waiting = 0;
    for day in 1..=6 {
        let report = bench.sync().await.expect("it returns");
        assert!(!report.complete);
        let read = report.feeds[0].read_through.map(Timestamp::as_second);
        assert_eq!(read, Some(at("2026-11-01T17:50:00Z").as_second() + (day - 1) * 86_400));
        waiting += bench.state_chains();
        bench.advance(DAY);
    }
    assert!(waiting > 0, "some run ended in the middle of filling, and was gone on with");
    assert_eq!(bench.sandbox.stats().replies(Endpoint::Data, 429), 0);
    bench.check_ledger();
}

#[tokio::test]
async fn a_repeat_that_would_eat_the_reserve_puts_off_its_chain_and_no_other() {
    let bench = with(Options { lateness: false, ..Options::default() }, |settings| {
        settings.daily_allowance = Some(24);
    });
    bench.sync().await.expect("a sync");
    bench.advance(DAY + 11 * HOUR);
    let everything = Effect::Reply { status: 503, headers: vec![], body: "{}".into() };
    let fault = Fault { on: Endpoint::Data, when: When::Every(1), effect: everything };
    bench.sandbox.fault(fault);
    let report = loop {
        match bench.sync().await {
            Ok(report) => break report,
            Err(error) => assert_eq!(error.kind(), Kind::ServiceUnavailable),
        }
    };
    bench.sandbox.clear_faults();
    // Each chain that does not fill was tried once, and none twice.
    assert!(!report.complete && report.allowance.left > Some(0), "{report:?}");
    let urgent = report.todo.iter().filter(|task| task.why != Why::Fill).count();
    assert_eq!((report.requests, report.pages()), (urgent as u64, 0), "{report:?}");
    assert_eq!(report.resumes_at, Some(at("2026-11-04T00:00:00Z")));
    let again = bench.sync().await.expect("a sync");
    assert_eq!(again.feeds[0].read_through, Some(at("2026-11-03T04:50:00Z")), "{again:?}");
    bench.check_ledger();
}

#[tokio::test]
async fn what_is_asked_for_comes_before_what_is_fresh_and_that_before_what_is_old() {
    let mut bench = limited(1_000);
    bench.settings.until = Some(at("2026-11-01T09:00:00Z"));
    bench.sync().await.expect("a sync");
    bench.settings.until = None;
    bench.advance(3 * DAY);
    bench.settings.reread = vec![(at("2026-11-01T02:00:00Z"), at("2026-11-01T03:00:00Z"))];
    let before = bench.sandbox.stats().log.len();
    assert!(bench.sync().await.expect("a sync").complete);
    let stats = bench.sandbox.stats();
    let begun: Vec<String> = stats.log[before..]
        .iter()
        .filter(|one| one.path.ends_with("/data") && !one.query.contains("cursor"))
        .map(|one| one.query.split("from=").nth(1).expect("a start")[..13].to_owned())
        .collect();
    let edge = ["2026-11-01T02", "2026-11-04T12"];
    assert_eq!(begun[..2], edge, "{begun:?}");
    assert_eq!(begun[2], "2026-11-01T00", "settling, without what was just read");
    let end = at("2026-11-04T17:50:00Z");
    assert!(bench.stored(end) == bench.truth(end, AsOf::Now));
}
