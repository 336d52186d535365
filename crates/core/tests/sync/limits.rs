//! Boundary cases of runs: clocks, locks, feeds without a page, progress, and unfinished chains.

use jiff::SignedDuration;
use siteline_core::store::{Target as _, View};
use siteline_core::sync::{FeedInput, FeedState, ReadSpec};
use siteline_core::{Error, Kind};
use siteline_sandbox::{AsOf, Options};

use crate::harness::{HOUR, Harness, MINUTE, at, input, seconds};

#[tokio::test]
async fn s9_a_page_rejected_for_skew_is_retried() {
    let (harness, theirs, ours) = Harness::with_clock(SignedDuration::ZERO);
    let run = harness.sync_pages(2).await.expect("two pages");
    let state = harness.state();
    // The cached token is still valid by both clocks.
    ours.step(SignedDuration::from_hours(-25));
    for _ in 0..2 {
        let error = run.fetch().await.expect_err("days apart");
        assert_eq!(error.kind(), Kind::ClockSkewError);
        assert!(error.context().skew_seconds.is_some_and(|skew| skew > 86_400.0));
    }
    assert_eq!(harness.state(), state);
    ours.step(SignedDuration::from_hours(25));
    let report = run.finish().await.expect("the run continues");
    assert!(report.complete);
    assert_eq!(report.requests, report.pages() + 2);
    let end = at("2026-11-01T17:50:00Z");
    assert!(harness.stored(theirs.wall()) == harness.truth(end, AsOf::Now));
}

#[tokio::test]
async fn plans_follow_clock_changes_above_five_seconds() {
    for (step, moved) in [(5, 0), (6, 6)] {
        let (harness, theirs, ours) = Harness::with_clock(SignedDuration::from_secs(-6));
        harness.sync().await.expect("a sync");
        theirs.advance(seconds(HOUR));
        ours.advance(seconds(HOUR));
        let known = harness.client.now();
        theirs.step(SignedDuration::from_secs(step));
        let report = harness.sync().await.expect("a sync");
        assert!(report.complete && report.requests > 0);
        assert_eq!(report.now.duration_since(known), SignedDuration::from_secs(moved), "{step}");
    }
}

#[tokio::test]
async fn a_complete_run_stores_every_feed() {
    // There is nothing to read yet.
    let input = FeedInput { since: at("2026-11-01T18:00:00Z"), ..input() };
    let harness = Harness::new(Options::default(), input);
    let run = harness.begin().expect("a run");
    assert!(run.finish().await.expect("a sync").complete);
    let stored = || harness.target.state("feed").expect("a target");
    assert_eq!(stored(), None);
    harness.target.fail(1);
    assert_eq!(run.keep().expect_err("no space").kind(), Kind::StoreFull);
    run.keep().expect("space");
    let kept = FeedState::from_bytes(&stored().expect("a state")).expect("a valid state");
    assert_eq!(kept, FeedState::new(&harness.feed, harness.client.base_url().as_str()));
    // Existing states are not written again.
    harness.target.fail(1);
    run.keep().expect("nothing to write");
    harness.target.fail(0);
    drop(run);
    harness.advance(HOUR);
    let run = harness.begin().expect("a run");
    assert!(run.finish().await.expect("a sync").pages() > 0);
    harness.target.fail(1);
    run.keep().expect("nothing to write");
}

#[tokio::test]
async fn s20_only_locked_feeds_are_waited_for() {
    let harness = Harness::without_lateness(input());
    let before = harness.now();
    harness.target.store().close();
    let error = harness.begin_when_free(5 * MINUTE).await.expect_err("no locks");
    assert_eq!((error.kind(), harness.now()), (Kind::ClosedError, before));
    assert!(!error.to_string().contains("waited"), "{error}");
}

#[tokio::test]
async fn s17_only_changes_include_unfinished_chains() {
    let harness = Harness::without_lateness(input());
    let stored = harness.target.clone();
    drop(harness.sync_pages(1).await.expect("a page"));
    let read = |view| {
        let spec = ReadSpec::new("feed".to_owned(), (None, None), view).expect("a spec");
        let (mut reader, read, warning) = spec.open(stored.store())?;
        let mut rows = 0;
        while let Some(batch) = reader.next_batch(1_000)? {
            rows += batch.num_rows();
        }
        Ok::<_, Error>((rows, read.sequence, warning))
    };
    assert_eq!(read(View::Latest).expect_err("nothing was read").kind(), Kind::UnreadRange);
    let (rows, sequence, warning) = read(View::ChangedSince(0)).expect("the page");
    assert_eq!((rows, sequence), (25, 1));
    assert!(
        warning
            .is_some_and(|text| text.contains("only the points of these parts that have arrived"))
    );
    // The next changes begin after it.
    harness.sync().await.expect("a sync");
    let (rest, _, warning) = read(View::ChangedSince(sequence)).expect("the rest");
    let all = harness.stored(harness.now()).len();
    assert_eq!((rows + rest, warning), (all, None));
}
