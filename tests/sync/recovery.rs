//! Failures in the middle of a chain, and runs that end there.

use std::sync::Arc;

use siteline::Kind;
use siteline::sandbox::{AsOf, Effect, Endpoint, Fault, Options, When};
use siteline::sync::{FeedInput, FeedState};

use crate::bench::{Bench, DAY, HOUR, at, client_of, input, seconds};

/// Eighteen hours in one window: one chain of a good dozen pages.
fn one_chain() -> Bench {
    let input = FeedInput { window: seconds(DAY), settle_lag: seconds(0), ..input() };
    Bench::new(Options { lateness: false, ..Options::default() }, input)
}

fn on_data(when: When, effect: Effect) -> Fault {
    Fault { on: Endpoint::Data, when, effect }
}

fn is_true(bench: &Bench) -> bool {
    bench.stored(bench.now()) == bench.truth(bench.now(), AsOf::Now)
}

/// The pages of the chain without a failure.
async fn pages() -> u64 {
    let bench = one_chain();
    let report = bench.sync().await.expect("a sync");
    assert!(report.complete && is_true(&bench));
    assert_eq!((report.feeds[0].chains, report.requests), (1, report.pages()));
    report.pages()
}

#[tokio::test]
async fn p6_a_dead_cursor_costs_its_chain_a_new_beginning() {
    let (bench, pages) = (one_chain(), pages().await);
    drop(bench.sync_pages(4).await.expect("four pages"));
    bench.sandbox.forget_cursors();
    let report = bench.sync().await.expect("a sync");
    assert!(report.complete && is_true(&bench));
    assert_eq!(report.feeds[0].applied.flagged, 0);
    assert_eq!(bench.sandbox.stats().data_requests, 4 + 1 + pages);
    assert_eq!(bench.state().sequence(), 4 + pages, "one number for each page that came");
}

#[tokio::test]
async fn p6_the_third_dead_cursor_is_told_and_the_next_run_begins_anew() {
    for effect in [Effect::ForgetCursors, Effect::CycleCursors(1)] {
        let bench = one_chain();
        let expected = match effect {
            Effect::ForgetCursors => Kind::CursorRejected,
            _ => Kind::CursorLoop,
        };
        bench.sandbox.fault(on_data(When::Every(2), effect));
        let error = bench.sync().await.expect_err("no chain goes on");
        assert_eq!(error.kind(), expected);
        assert_eq!(bench.sandbox.stats().data_requests, 6, "begun three times, two pages each");
        assert_eq!(bench.state().unfinished_chains(), 0);
        assert!(bench.state().coverage().covered().is_empty());
        bench.sandbox.clear_faults();
        assert!(bench.sync().await.expect("a sync").complete && is_true(&bench));
    }
}

#[tokio::test]
async fn p6_new_beginnings_are_counted_over_runs() {
    let bench = one_chain();
    let mut runs = 0;
    while runs == 0 || bench.state_chains() > 0 {
        // One page, or one dead cursor, and then the run is gone.
        drop(bench.sync_pages(1).await.expect("what waits is written"));
        runs += 1;
        bench.sandbox.forget_cursors();
        assert!(runs < 20, "without an end");
    }
    assert_eq!(bench.sandbox.stats().data_requests, 6);
    assert!(bench.state().coverage().covered().is_empty());
}

/// Two days in windows of six hours, each a chain.
fn several_chains() -> Bench {
    let input = FeedInput { settle_lag: seconds(0), ..input() };
    let bench = Bench::new(Options { lateness: false, ..Options::default() }, input);
    bench.advance(2 * DAY);
    bench
}

#[tokio::test]
async fn what_is_wrong_with_one_range_is_told_when_all_else_has_been_read() {
    let page = |status, body: &'static str| Effect::Reply {
        status,
        headers: vec![],
        body: body.as_bytes().into(),
    };
    for (effect, kind) in
        [(page(404, ""), Kind::RequestRejected), (page(200, "[]"), Kind::ProtocolError)]
    {
        let bench = several_chains();
        bench.sandbox.fault(on_data(When::Nth(1), effect));
        let error = bench.sync().await.expect_err("one range is left out");
        assert_eq!(error.kind(), kind);
        let left: Vec<_> = bench.plan().tasks;
        assert_eq!(left.len(), 1, "all else was read: {left:?}");
        assert!(bench.sync().await.expect("a sync").complete && is_true(&bench));
    }
}

#[tokio::test]
async fn a_feed_that_is_refused_again_and_again_costs_no_more_than_three_requests_a_run() {
    let bench = several_chains();
    let reply = Effect::Reply { status: 404, headers: vec![], body: Vec::new().into() };
    bench.sandbox.fault(on_data(When::Every(1), reply));
    let error = bench.sync().await.expect_err("nothing can be read");
    assert_eq!((error.kind(), bench.sandbox.stats().data_requests), (Kind::RequestRejected, 3));
}

#[tokio::test]
async fn p6_a_bookmark_of_another_subject_costs_a_new_beginning() {
    let mut bench = one_chain();
    drop(bench.sync_pages(4).await.expect("four pages"));
    bench.client = client_of(&bench.sandbox, bench.sandbox.clock().clone(), |_| {});
    let report = bench.sync().await.expect("a sync");
    assert!(report.complete && is_true(&bench));
    assert_eq!(report.requests, pages().await);
}

#[tokio::test]
async fn s15_a_run_interrupted_after_any_page_goes_on_from_its_bookmark() {
    let pages = pages().await;
    for read in 0..=pages {
        let bench = one_chain();
        drop(bench.sync_pages(usize::try_from(read).expect("few")).await.expect("pages"));
        assert_eq!(bench.state_chains(), usize::from(read > 0 && read < pages), "{read}");
        let report = bench.sync().await.expect("a sync");
        assert!(report.complete && is_true(&bench), "after {read} pages");
        assert_eq!(bench.sandbox.stats().data_requests, pages, "no page was read twice");
        assert_eq!(report.feeds[0].sequence, pages);
    }
}

#[tokio::test]
async fn s15_a_state_that_an_older_version_wrote_is_gone_on_from() {
    let bench = one_chain();
    drop(bench.sync_pages(2).await.expect("two pages"));
    let bytes = bench.target.state("feed").expect("a target").expect("a state");
    let text = String::from_utf8(bytes).expect("text");
    let bookmark = text.split("\"bookmark\":\"").nth(1).and_then(|rest| rest.split('"').next());
    // As version 0.1.0 has written it, but for the address and the cursor, which are new each time.
    let line = include_str!("state-1.json")
        .trim_end()
        .replace("SERVICE", bench.client.base_url().as_str())
        .replace("BOOKMARK", bookmark.expect("a bookmark"));
    let older = format!("{line}\ncrc32 {:08x}\n", crc32fast::hash(line.as_bytes())).into_bytes();
    let (ours, theirs) = (FeedState::from_bytes(text.as_bytes()), FeedState::from_bytes(&older));
    assert_eq!(ours.expect("a state"), theirs.expect("a state"), "\n{text}");
    bench.target.replace_state("feed", &older);
    let report = bench.sync().await.expect("a sync");
    assert!(report.complete && is_true(&bench));
    assert_eq!(bench.sandbox.stats().data_requests, pages().await);
}

#[tokio::test]
async fn a_chain_that_waited_while_others_were_read_goes_on_with_new_numbers() {
    let mut bench = one_chain();
    drop(bench.sync_pages(4).await.expect("four pages"));
    // It ends beyond this bound, and waits.
    bench.settings.until = Some(at("2026-11-01T06:00:00Z"));
    let between = bench.sync().await.expect("a sync");
    assert!(between.complete && between.pages() > 1);
    assert_eq!(bench.state_chains(), 1);
    bench.settings.until = None;
    let report = bench.sync().await.expect("a sync");
    assert!(report.complete && is_true(&bench));
    assert_eq!(report.feeds[0].applied.flagged, 0);
    assert_eq!(bench.state().sequence(), pages().await + between.pages());
}

#[tokio::test]
async fn a_page_that_was_fetched_and_not_applied_is_fetched_again() {
    let bench = one_chain();
    let run = bench.sync_pages(3).await.expect("three pages");
    assert!(run.fetch().await.expect("a page"));
    assert!(run.fetch().await.expect("the same page"), "one waits: nothing is asked for");
    assert_eq!(bench.sandbox.stats().data_requests, 4);
    drop(run);
    let report = bench.sync().await.expect("a sync");
    assert!(report.complete && is_true(&bench));
    assert_eq!(bench.sandbox.stats().data_requests, pages().await + 1);
}

#[tokio::test]
async fn a_page_that_could_not_be_applied_waits() {
    let bench = one_chain();
    let run = bench.begin().expect("a run");
    assert!(run.fetch().await.expect("a page"));
    bench.target.fail(2);
    for _ in 0..2 {
        assert_eq!(run.apply().expect_err("no room").kind(), Kind::StoreFull);
        assert!(run.fetch().await.expect("it waits"));
        assert!(bench.target.state("feed").expect("a target").is_none(), "nothing went down");
    }
    assert_eq!(run.apply().expect("room").pages, 1);
    assert!(run.finish().await.expect("the rest").complete && is_true(&bench));
    assert_eq!(bench.sandbox.stats().data_requests, pages().await);
}

#[tokio::test]
async fn a_fetch_that_is_dropped_half_way_leaves_the_chain_where_it_was() {
    let bench = one_chain();
    let run = bench.begin().expect("a run");
    let (mut turns, mut dropped) = (0, 0);
    loop {
        let patience = async {
            for _ in 0..turns {
                tokio::task::yield_now().await;
            }
        };
        let more = tokio::select! {
            biased;
            more = run.fetch() => Some(more.expect("a page")),
            () = patience => None,
        };
        match more {
            None => {
                dropped += 1;
                turns += 1;
            }
            Some(true) => {
                run.apply().expect("room");
                turns = 0;
            }
            Some(false) => break,
        }
    }
    assert!(dropped > 20, "only {dropped} were dropped");
    let report = run.report().expect("a report");
    assert!(report.complete && is_true(&bench));
    assert_eq!(report.pages(), pages().await);
    // Those that were dropped may have left or not: counted too often, never too seldom.
    let (ours, theirs) = (bench.client.data_requests(), bench.sandbox.stats().data_requests);
    assert!(ours >= theirs && ours <= theirs + dropped, "{ours} {theirs} {dropped}");
}

#[tokio::test]
async fn an_error_in_mid_chain_leaves_the_run_where_it_was() {
    let bench = one_chain();
    let run = bench.sync_pages(3).await.expect("three pages");
    let body = "{}".into();
    let effect = Effect::Reply { status: 403, headers: vec![], body };
    bench.sandbox.fault(on_data(When::Nth(1), effect));
    assert!(run.fetch().await.is_err());
    let report = run.finish().await.expect("it goes on");
    assert!(report.complete && is_true(&bench));
    assert_eq!(bench.sandbox.stats().data_requests, pages().await + 1);
}

#[tokio::test]
async fn a_range_of_several_windows_that_the_service_refuses_is_read_window_by_window() {
    let input = FeedInput { page_size: Some(5_000), settle_lag: seconds(0), ..input() };
    let bench = Bench::new(Options { lateness: false, ..Options::default() }, input);
    let refusal = Effect::Reply { status: 400, headers: vec![], body: r#"{"error":"no"}"#.into() };
    // The last window is read, then the two before it together.
    bench.sandbox.fault(on_data(When::Nth(2), refusal.clone()));
    let report = bench.sync().await.expect("a sync");
    assert!(report.complete && is_true(&bench));
    assert_eq!((report.requests, report.feeds[0].chains), (4, 3));
    // It is remembered: what becomes due together is not asked for together.
    bench.advance(4 * DAY);
    let planned = bench.plan().tasks;
    assert!(planned.len() > 10, "{planned:?}");
    let long = planned.iter().find(|task| task.end.duration_since(task.start).as_hours() > 7);
    assert_eq!(long, None, "a window, or the fresh one with its overlap");
    bench.sandbox.fault(on_data(When::Nth(1), refusal));
    assert_eq!(bench.sync().await.expect_err("refused").kind(), Kind::RequestRejected);
    assert!(bench.sync().await.expect("a sync").complete && is_true(&bench));
}

#[tokio::test]
async fn a_chain_whose_window_became_due_meanwhile_is_not_gone_on_with() {
    let bench = one_chain();
    drop(bench.sync_pages(3).await.expect("three pages"));
    bench.advance(4 * DAY);
    let report = bench.sync().await.expect("a sync");
    assert!(report.complete);
    let log = bench.sandbox.stats().log;
    let first_after = log.iter().find(|one| one.at.duration_since(log[0].at).as_hours() > 24);
    let after = log.iter().filter(|one| one.at.duration_since(log[0].at).as_hours() > 24);
    assert!(first_after.is_some());
    // All that is asked for of that range is asked for without its old cursor.
    let of_the_old = after.filter(|one| one.query.contains("to=2026-11-01T18"));
    assert_eq!(of_the_old.count(), 0);
    assert_eq!(bench.state().unfinished_chains(), 0);
}

#[tokio::test]
async fn no_text_of_a_run_holds_a_cursor() {
    let bench = one_chain();
    let run = bench.sync_pages(3).await.expect("three pages");
    assert!(run.fetch().await.expect("a page"));
    let state = bench.state();
    let bytes = String::from_utf8(state.to_bytes()).expect("text");
    let bookmark = bytes.split("\"bookmark\":\"").nth(1).and_then(|rest| rest.split('"').next());
    let bookmark = bookmark.expect("a bookmark");
    let text = format!("{run:?} {state:?} {:?}", run.report());
    assert!(!text.contains(bookmark) && !text.contains("~&%"), "{text}");
    let run = Arc::new(run);
    assert_eq!(run.progress().pages, 3);
    bench.advance(HOUR);
}
