//! Failures and interruptions in the middle of a chain.

use siteline_core::Kind;
use siteline_core::store::Target as _;
use siteline_core::sync::FeedInput;
use siteline_sandbox::{Effect, When};

use crate::harness::{DAY, Harness, client_of, finish, input, on_data, pages_of, reply, seconds};

/// Eighteen hours in one window. The chain has more than a dozen pages.
fn one_chain() -> Harness {
    let input = FeedInput { window: seconds(DAY), settle_lag: seconds(0), ..input() };
    Harness::without_lateness(input)
}

/// The number of pages of the chain without a failure.
async fn pages() -> u64 {
    let harness = one_chain();
    let report = harness.sync().await.expect("a sync");
    assert!(report.complete && harness.equals_truth());
    assert_eq!((report.feeds[0].chains, report.requests), (1, pages_of(&report)));
    pages_of(&report)
}

#[tokio::test]
async fn p6_a_rejected_cursor_restarts_its_chain() {
    let (harness, pages) = (one_chain(), pages().await);
    drop(harness.sync_pages(4).await.expect("four pages"));
    harness.sandbox.forget_cursors();
    let report = harness.sync().await.expect("a sync");
    assert!(report.complete && harness.equals_truth());
    assert_eq!(report.feeds[0].applied.flagged, 0);
    assert_eq!(harness.requests(), 4 + 1 + pages);
    assert_eq!(harness.state().sequence(), 4 + pages, "one number for each page that arrived");
}

#[tokio::test]
async fn p6_p13_a_third_rejected_cursor_pauses_the_range() {
    for (effect, expected) in
        [(Effect::ForgetCursors, Kind::CursorRejected), (Effect::CycleCursors(1), Kind::CursorLoop)]
    {
        let harness = one_chain();
        harness.sandbox.fault(on_data(When::Every(2), effect));
        let error = harness.sync().await.expect_err("no chain continues");
        assert_eq!(error.kind(), expected);
        assert_eq!(harness.requests(), 6, "three starts with two pages each");
        assert_eq!(harness.state().unfinished_chains(), 0);
        assert!(harness.state().coverage().covered().is_empty());
        harness.sandbox.clear_faults();
        let report = harness.sync().await.expect("a sync");
        let [skipped] = &report.feeds[0].skipped[..] else { panic!("{report:?}") };
        assert_eq!((report.complete, &skipped.error), (false, &expected.to_string()));
        assert_eq!(harness.requests(), 6, "no retry on the same day");
        harness.advance(DAY);
        assert!(harness.sync().await.expect("a sync").complete && harness.equals_truth());
    }
}

#[tokio::test]
async fn p6_restarts_are_counted_over_runs() {
    let harness = one_chain();
    let mut runs = 0;
    while runs == 0 || harness.state_chains() > 0 {
        // The run is dropped after one page or one rejected cursor.
        drop(harness.sync_pages(1).await.expect("the pending write is applied"));
        runs += 1;
        harness.sandbox.forget_cursors();
        assert!(runs < 20, "without an end");
    }
    assert_eq!(harness.requests(), 6);
    assert!(harness.state().coverage().covered().is_empty());
}

/// Two days in windows of six hours, each a chain.
fn several_chains() -> Harness {
    let input = FeedInput { settle_lag: seconds(0), ..input() };
    let harness = Harness::without_lateness(input);
    harness.advance(2 * DAY);
    harness
}

#[tokio::test]
async fn range_errors_return_after_other_ranges() {
    let page = |status, body: &'static str| Effect::Reply {
        status,
        headers: vec![],
        body: body.as_bytes().into(),
    };
    // A chain of one window cannot be shorter.
    for (effect, kind) in [
        (page(404, ""), Kind::RequestRejected),
        (page(400, ""), Kind::RequestRejected),
        (page(413, ""), Kind::RequestRejected),
        (page(414, ""), Kind::RequestRejected),
        (page(200, "[]"), Kind::ProtocolError),
    ] {
        let harness = several_chains();
        harness.sandbox.fault(on_data(When::Nth(1), effect));
        let error = harness.sync().await.expect_err("one range is skipped");
        assert_eq!(error.kind(), kind);
        assert_eq!(harness.plan().tasks.len(), 1, "everything else was read");
        assert_eq!(harness.plan().skipped, 0, "the next run reads it");
        assert!(harness.sync().await.expect("a sync").complete && harness.equals_truth());
    }
}

#[tokio::test]
async fn a_failing_feed_costs_three_requests() {
    let harness = several_chains();
    harness.sandbox.fault(on_data(When::Every(1), reply(404)));
    let error = harness.sync().await.expect_err("nothing can be read");
    assert_eq!((error.kind(), harness.requests()), (Kind::RequestRejected, 3));
}

#[tokio::test]
async fn p6_a_bookmark_of_another_subject_restarts_its_chain() {
    let mut harness = one_chain();
    drop(harness.sync_pages(4).await.expect("four pages"));
    harness.client = client_of(&harness.sandbox, harness.sandbox.clock().clone(), |_| {});
    let report = harness.sync().await.expect("a sync");
    assert!(report.complete && harness.equals_truth());
    assert_eq!(report.requests, pages().await);
}

#[tokio::test]
async fn s15_an_interrupted_run_continues_from_its_bookmark() {
    let pages = pages().await;
    for read in 0..=pages {
        let harness = one_chain();
        drop(harness.sync_pages(usize::try_from(read).expect("few")).await.expect("pages"));
        assert_eq!(harness.state_chains(), usize::from(read > 0 && read < pages), "{read}");
        let report = harness.sync().await.expect("a sync");
        assert!(report.complete && harness.equals_truth(), "after {read} pages");
        assert_eq!(harness.requests(), pages, "no page was read twice");
        assert_eq!(report.feeds[0].sequence, pages);
    }
}

#[tokio::test]
async fn a_page_rejected_for_space_stays_pending() {
    let harness = one_chain();
    let run = harness.begin().expect("a run");
    assert!(run.fetch().await.expect("a page"));
    harness.target.fail(2);
    for _ in 0..2 {
        assert_eq!(run.apply().expect_err("no space").kind(), Kind::StoreFull);
        assert!(run.fetch().await.expect("the page stays pending"));
        assert!(harness.target.state("feed").expect("a target").is_none(), "nothing was written");
    }
    assert_eq!(run.apply().expect("space").pages, 1);
    assert!(finish(&run).await.expect("the rest").complete && harness.equals_truth());
    assert_eq!(harness.requests(), pages().await);
}

#[tokio::test]
async fn a_range_rejected_as_too_long_is_divided() {
    let input = FeedInput { page_size: Some(5_000), settle_lag: seconds(0), ..input() };
    let harness = Harness::without_lateness(input);
    let refusal = Effect::Reply { status: 400, headers: vec![], body: r#"{"error":"no"}"#.into() };
    // The last window is read first, then the two before it in one chain.
    harness.sandbox.fault(on_data(When::Nth(2), refusal.clone()));
    let report = harness.sync().await.expect("a sync");
    assert!(report.complete && harness.equals_truth());
    assert_eq!((report.requests, report.feeds[0].chains), (4, 3));
    // The limit is kept, so windows that become due together are several chains.
    harness.advance(4 * DAY);
    let planned = harness.plan().tasks;
    assert!(planned.len() > 10, "{planned:?}");
    let long = planned.iter().find(|task| task.end.duration_since(task.start).as_hours() > 7);
    assert_eq!(long, None, "longer than a window and its overlap");
    harness.sandbox.fault(on_data(When::Nth(1), refusal));
    assert_eq!(harness.sync().await.expect_err("refused").kind(), Kind::RequestRejected);
    assert!(harness.sync().await.expect("a sync").complete && harness.equals_truth());
}

#[tokio::test]
async fn other_rejections_do_not_divide_a_range() {
    let input = FeedInput { page_size: Some(5_000), settle_lag: seconds(0), ..input() };
    let harness = Harness::without_lateness(input);
    harness.sandbox.fault(on_data(When::Nth(2), reply(404)));
    assert_eq!(harness.sync().await.expect_err("refused").kind(), Kind::RequestRejected);
    assert_eq!(harness.requests(), 2, "each chain once");
    let report = harness.sync().await.expect("a sync");
    assert!(report.complete && harness.equals_truth());
    assert_eq!(report.requests, 1, "two windows in one chain");
}

#[tokio::test]
async fn a_runs_debug_text_contains_no_cursor() {
    let harness = one_chain();
    let run = harness.sync_pages(3).await.expect("three pages");
    assert!(run.fetch().await.expect("a page"));
    let state = harness.state();
    let bytes = String::from_utf8(state.to_bytes()).expect("text");
    let bookmark = bytes.split("\"bookmark\":\"").nth(1).and_then(|rest| rest.split('"').next());
    let bookmark = bookmark.expect("a bookmark");
    let text = format!("{run:?} {state:?} {:?}", run.report());
    assert!(!text.contains(bookmark) && !text.contains("~&%"), "{text}");
}
