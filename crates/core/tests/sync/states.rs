//! Locks, wrong clocks, the states of feeds, and their unfinished chains.

use std::sync::Arc;

use futures_util::FutureExt as _;
use jiff::SignedDuration;
use siteline_core::data::Identity;
use siteline_core::store::{Target as _, View};
use siteline_core::sync::{Feed, FeedInput, FeedState, ReadSpec, WindowState};
use siteline_core::{Error, Kind};
use siteline_sandbox::{AsOf, Options};

use crate::harness::{DAY, HOUR, Harness, MINUTE, at, client_of, finish, input, pages_of, seconds};

fn harness() -> Harness {
    Harness::without_lateness(input())
}

fn another(harness: &Harness) -> Feed {
    let other = FeedInput { name: "another".to_owned(), ..harness.feed.input().clone() };
    Feed::new(other).expect("a feed")
}

#[tokio::test]
async fn s20_a_run_plans_after_its_wait() {
    let mut harness = harness();
    let first = harness.begin().expect("a run");
    assert_eq!(harness.begin().expect_err("locked").kind(), Kind::StoreBusy);
    for (deadline, waited) in [(Some(seconds(9)), 9), (None, 120)] {
        harness.settings.deadline = deadline;
        let before = harness.now();
        let error = harness.begin_when_free(2 * MINUTE).await.expect_err("locked");
        assert_eq!(error.kind(), Kind::StoreBusy);
        assert!(error.to_string().contains(&format!("waited {waited} s")), "{error}");
        assert_eq!(harness.now().duration_since(before).as_secs(), waited);
    }
    let mut second = std::pin::pin!(harness.begin_when_free(2 * MINUTE));
    assert!((&mut second).now_or_never().is_none());
    let read = finish(&first).await.expect("a sync").requests;
    drop(first);
    let report = finish(&second.await.expect("free")).await.expect("a sync");
    assert!(read > 0 && report.requests == 0, "the first run has read everything");
}

#[tokio::test]
async fn s20_feeds_are_locked_in_name_order() {
    let mut harness = harness();
    harness.others = vec![another(&harness)];
    for (held, other, is_locked) in [("feed", "another", true), ("another", "feed", false)] {
        let lock = harness.target.lock(held).expect("free");
        let mut run = std::pin::pin!(harness.begin_when_free(5 * MINUTE));
        assert!((&mut run).now_or_never().is_none());
        assert_eq!(harness.target.lock(other).is_err(), is_locked, "{other}");
        drop(lock);
        drop(run.await.expect("free"));
    }
}

#[tokio::test]
async fn feeds_are_reported_separately() {
    let mut harness = harness();
    let other = FeedInput {
        name: "other".to_owned(),
        filters: vec![("machineId".to_owned(), vec!["M2".to_owned()])],
        ..input()
    };
    harness.others = vec![Feed::new(other).expect("a feed")];
    harness.settings.deadline = Some(seconds(HOUR));
    let run = harness.begin().expect("a run");
    assert!(!run.progress().done);
    let mut newest = None;
    while run.fetch().await.expect("a page") {
        let progress = run.apply().expect("space");
        assert!(progress.newest >= newest && progress.fraction.is_none_or(|_| progress.done));
        newest = progress.newest;
    }
    let (progress, report) = (run.progress(), run.report().expect("a report"));
    assert!(progress.done && progress.fraction == Some(1.0) && report.complete);
    assert_eq!((progress.pages, progress.requests), (pages_of(&report), report.requests));
    let names: Vec<&str> = report.feeds.iter().map(|feed| feed.name.as_str()).collect();
    assert_eq!(names, ["feed", "other"]);
    for feed in &report.feeds {
        let points = harness.target.points(&feed.name);
        assert_eq!(points.len() as u64, feed.applied.inserted);
        let machine = if feed.name == "feed" { "M1" } else { "M2" };
        let is_own = |Identity(ids): &Identity| ids[2].as_deref() == Some(machine);
        assert!(points.keys().all(|(identity, _)| is_own(identity)));
    }
    let inserted: u64 = report.feeds.iter().map(|feed| feed.applied.inserted).sum();
    assert_eq!(progress.points, inserted);
}

#[tokio::test]
async fn s9_a_clock_one_day_off_leaves_no_gap() {
    // The `Date` header has whole seconds, so the client assumes half a second more.
    let half = SignedDuration::from_millis(500);
    for wrong in [-24, -5, 5, 24].map(|hours| SignedDuration::from_hours(hours) + half) {
        let (mut harness, theirs, ours) = Harness::with_clock(wrong);
        let report = harness.sync().await.expect("a sync");
        assert!(report.complete);
        // The first reply corrects the time, and the same run reads up to the service's time.
        let end = at("2026-11-01T17:50:00Z");
        assert_eq!(report.feeds[0].read_through, Some(end), "{wrong:#}");
        assert!(harness.stored(theirs.wall()) == harness.truth(end, AsOf::Now), "{wrong:#}");
        // The clock is corrected, and another process continues.
        ours.step(-wrong);
        harness.client = client_of(&harness.sandbox, ours.clone(), |_| {});
        for clock in [&theirs, &ours] {
            clock.advance(seconds(3 * HOUR));
        }
        assert!(harness.sync().await.expect("a sync").complete);
        let unread = |harness: &Harness| {
            harness.windows().iter().any(|window| window.state == WindowState::Unread)
        };
        assert!(!unread(&harness), "{wrong:#}: {:?}", harness.windows());
        harness.client = client_of(&harness.sandbox, theirs.clone(), |_| {});
        harness.settle().await;
    }
}

#[tokio::test]
async fn a_fast_clock_does_not_delay_chains() {
    let (harness, theirs, _) = Harness::with_clock(SignedDuration::from_secs(4));
    assert!(harness.sync().await.expect("a sync").complete);
    let began = harness.state().newest_read().expect("a read");
    let late = began.duration_since(theirs.wall());
    assert!(late <= SignedDuration::from_secs(2), "{late:#}");
}

#[tokio::test]
async fn s9_a_clock_set_back_causes_no_request() {
    let (harness, theirs, ours) = Harness::with_clock(SignedDuration::ZERO);
    harness.sync().await.expect("a sync");
    let requests = harness.requests();
    // Both clocks are set back, so the client cannot detect it.
    theirs.step(SignedDuration::from_hours(-24));
    ours.step(SignedDuration::from_hours(-24));
    assert!(harness.sync().await.expect("a sync").complete);
    assert_eq!(harness.requests(), requests);
    for clock in [&theirs, &ours] {
        clock.advance(seconds(DAY + HOUR));
    }
    let report = harness.sync().await.expect("a sync");
    assert_eq!(report.feeds[0].read_through, Some(at("2026-11-01T18:50:00Z")));
    assert_eq!(harness.stored(harness.now()), harness.truth(at("2026-11-01T18:50:00Z"), AsOf::Now));
}

#[tokio::test]
async fn a_run_can_be_shared_by_threads() {
    let harness = harness();
    let run = Arc::new(harness.begin().expect("a run"));
    let reading: Vec<_> = (0..4)
        .map(|_| {
            let run = Arc::clone(&run);
            tokio::spawn(async move { finish(&run).await })
        })
        .collect();
    for reading in reading {
        reading.await.expect("no panic").expect("a report");
    }
    let report = run.report().expect("a report");
    assert!(report.complete);
    assert_eq!(report.requests, pages_of(&report), "each page once");
    assert!(harness.equals_truth_to(at("2026-11-01T17:50:00Z")));
}

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
    let report = finish(&run).await.expect("the run continues");
    assert!(report.complete);
    assert_eq!(report.requests, pages_of(&report) + 2);
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
async fn idle_days_do_not_move_a_plan() {
    let harness = harness();
    harness.sync().await.expect("a sync");
    harness.advance(8 * DAY);
    let planned = harness.plan();
    assert!(planned.now < harness.now(), "behind by the possible drift");
    let report = harness.sync().await.expect("a sync");
    assert_eq!(report.now, planned.now, "the newest range is read once");
}

#[tokio::test]
async fn a_complete_run_stores_every_feed() {
    // There is nothing to read yet.
    let input = FeedInput { since: at("2026-11-01T18:00:00Z"), ..input() };
    let harness = Harness::new(Options::default(), input);
    let run = harness.begin().expect("a run");
    assert!(finish(&run).await.expect("a sync").complete);
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
    assert!(pages_of(&finish(&run).await.expect("a sync")) > 0);
    harness.target.fail(1);
    run.keep().expect("nothing to write");
}

#[tokio::test]
async fn s20_only_locked_feeds_are_waited_for() {
    let harness = harness();
    let before = harness.now();
    harness.target.store().close();
    let error = harness.begin_when_free(5 * MINUTE).await.expect_err("no locks");
    assert_eq!((error.kind(), harness.now()), (Kind::ClosedError, before));
    assert!(!error.to_string().contains("waited"), "{error}");
}

#[tokio::test]
async fn s17_only_changes_include_unfinished_chains() {
    let harness = harness();
    let stored = harness.target.clone();
    drop(harness.sync_pages(1).await.expect("a page"));
    let read = |view| {
        let spec = ReadSpec::new("feed".to_owned(), (None, None), view).expect("a spec");
        let (mut reader, read, warning) = spec.open(stored.store())?;
        let mut rows = 0;
        while let Some(batch) = reader.next_batch(1_000)? {
            rows += batch.num_rows();
        }
        Ok::<_, Error>((rows, read.state.sequence, warning))
    };
    assert_eq!(read(View::LATEST).expect_err("nothing was read").kind(), Kind::UnreadRange);
    let (rows, sequence, warning) = read(View::changed_since(0)).expect("the page");
    assert_eq!((rows, sequence), (25, 1));
    assert!(
        warning
            .is_some_and(|text| text.contains("only the points of these parts that have arrived"))
    );
    // The next changes begin after it.
    harness.sync().await.expect("a sync");
    let (rest, _, warning) = read(View::changed_since(sequence)).expect("the rest");
    let all = harness.stored(harness.now()).len();
    assert_eq!((rows + rest, warning), (all, None));
}
