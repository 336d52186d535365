//! Locks, feed definitions that conflict with a state, and wrong clocks.

use std::sync::Arc;

use jiff::SignedDuration;
use siteline::Kind;
use siteline::clock::Clock;
use siteline::data::Identity;
use siteline::sandbox::{AsOf, Options};
use siteline::sync::{Feed, FeedInput, FeedState, Run, SyncSettings, WindowState};

use crate::bench::{Bench, DAY, HOUR, MINUTE, at, input, seconds};

fn bench() -> Bench {
    Bench::new(Options { lateness: false, ..Options::default() }, input())
}

#[tokio::test]
async fn s6_a_second_run_of_a_feed_is_refused_at_once() {
    let bench = bench();
    let first = bench.begin().expect("a run");
    assert_eq!(bench.begin().expect_err("taken").kind(), Kind::StoreBusy);
    drop(first);
    bench.sync().await.expect("a sync");
}

#[tokio::test]
async fn a_changed_definition_is_refused_before_anything_is_sent() {
    let mut bench = bench();
    bench.sync().await.expect("a sync");
    let before = bench.sandbox.stats().data_requests;
    bench.feed = Feed::new(FeedInput { overlap: seconds(7_200), ..input() }).expect("a feed");
    let error = bench.begin().expect_err("changed");
    assert_eq!(error.kind(), Kind::FeedChanged);
    assert!(error.to_string().contains("overlap was 1h, is 2h"), "{error}");
    let other = FeedInput { name: "other".to_owned(), ..bench.feed.input().clone() };
    let feeds = [bench.feed.clone(), Feed::new(other).expect("a feed")];
    let begun = Run::begin(&bench.client, bench.target.clone(), &feeds, SyncSettings::default());
    assert_eq!(begun.expect_err("changed").kind(), Kind::FeedChanged);
    assert_eq!(bench.sandbox.stats().data_requests, before);
    let state = bench.state().redefine(&bench.feed).expect("times may change");
    bench.target.replace_state("feed", &state.to_bytes());
    bench.sync().await.expect("a sync: the locks of the refused runs are gone");
}

#[tokio::test]
async fn a_feed_that_comes_twice_and_a_range_that_is_none_are_refused() {
    let mut bench = bench();
    let feeds = [bench.feed.clone(), bench.feed.clone()];
    let begun = Run::begin(&bench.client, bench.target.clone(), &feeds, SyncSettings::default());
    assert_eq!(begun.expect_err("twice").kind(), Kind::QueryError);
    bench.settings.reread = vec![(at("2026-11-01T02:00:00Z"), at("2026-11-01T02:00:00Z"))];
    assert_eq!(bench.begin().expect_err("no range").kind(), Kind::QueryError);
}

#[tokio::test]
async fn until_bounds_a_run_and_the_same_again_asks_for_nothing() {
    let mut bench = bench();
    let until = at("2026-11-01T09:00:00Z");
    bench.settings.until = Some(until);
    let report = bench.sync().await.expect("a sync");
    assert!(report.complete);
    assert_eq!(report.feeds[0].read_through, Some(until));
    assert_eq!(bench.stored(bench.now()), bench.truth(until, AsOf::Now));
    assert_eq!(bench.sync().await.expect("a sync").requests, 0);
}

#[tokio::test]
async fn a_bucket_that_begins_before_until_is_read_whole() {
    let mut bench = bench();
    let until = at("2026-11-01T09:04:59Z");
    bench.settings.until = Some(until);
    let report = bench.sync().await.expect("a sync");
    assert_eq!((report.complete, report.feeds[0].read_through), (true, Some(until)));
    assert!(bench.stored(bench.now()) == bench.truth(at("2026-11-01T09:10:00Z"), AsOf::Now));
    let log = bench.sandbox.stats().log;
    assert!(log.iter().any(|one| one.query.contains("T09%3A10%3A00")), "{log:?}");
    assert_eq!(bench.sync().await.expect("a sync").requests, 0);
}

#[tokio::test]
async fn a_rehearsal_ahead_of_time_ends_and_claims_nothing_of_the_future() {
    let mut bench = bench();
    bench.settings.now = Some(at("2026-11-09T00:00:00Z"));
    let report = bench.sync().await.expect("it ends");
    assert!(report.complete);
    assert_eq!(report.feeds[0].read_through, Some(at("2026-11-01T17:50:00Z")));
    assert_eq!(report.feeds[0].settled_through, None);
    bench.settings.now = None;
    bench.settle().await;
}

#[tokio::test]
async fn feeds_are_read_together_and_reported_apart() {
    let bench = bench();
    let other = FeedInput {
        name: "other".to_owned(),
        filters: vec![("machineId".to_owned(), vec!["M2".to_owned()])],
        ..input()
    };
    let feeds = [bench.feed.clone(), Feed::new(other).expect("a feed")];
    let settings = SyncSettings { deadline: Some(seconds(HOUR)), ..SyncSettings::default() };
    let run = Run::begin(&bench.client, bench.target.clone(), &feeds, settings).expect("a run");
    assert!(!run.progress().done);
    let mut newest = None;
    while run.fetch().await.expect("a page") {
        let progress = run.apply().expect("room");
        assert!(progress.newest >= newest && progress.fraction.is_none_or(|_| progress.done));
        newest = progress.newest;
    }
    let (progress, report) = (run.progress(), run.report().expect("a report"));
    assert!(progress.done && progress.fraction == Some(1.0) && report.complete);
    assert_eq!((progress.pages, progress.requests), (report.pages(), report.requests));
    let names: Vec<&str> = report.feeds.iter().map(|feed| feed.name.as_str()).collect();
    assert_eq!(names, ["feed", "other"]);
    for feed in &report.feeds {
        let points = bench.target.points(&feed.name);
        assert_eq!(points.len() as u64, feed.applied.inserted);
        let machine = if feed.name == "feed" { "M1" } else { "M2" };
        let is_own = |Identity(ids): &Identity| ids[2].as_deref() == Some(machine);
        assert!(points.keys().all(|(identity, _)| is_own(identity)));
    }
    let inserted: u64 = report.feeds.iter().map(|feed| feed.applied.inserted).sum();
    assert_eq!(progress.points, inserted);
}

#[tokio::test]
async fn a_deadline_ends_a_run_and_the_next_goes_on() {
    let mut bench = bench();
    bench.settings.deadline = Some(seconds(0));
    let error = bench.sync().await.expect_err("no time");
    assert_eq!(error.kind(), Kind::DeadlineExceeded);
    bench.settings.deadline = None;
    assert!(bench.sync().await.expect("a sync").complete);
}

/// After a sync, with the service's clock and ours, which is wrong by so many hours.
fn with_clock(hours: i64) -> (Bench, Clock, Clock) {
    with_clock_by(SignedDuration::from_hours(hours))
}

fn with_clock_by(wrong: SignedDuration) -> (Bench, Clock, Clock) {
    let theirs = Clock::frozen_at(at("2026-11-01T18:00:00Z"));
    let ours = Clock::frozen_at(theirs.wall().checked_add(wrong).expect("a time"));
    let options = Options { lateness: false, ..Options::default() };
    let input = FeedInput { since: at("2026-10-30T12:00:00Z"), ..input() };
    let bench = Bench::with(options, input, theirs.clone(), ours.clone(), |_| {});
    (bench, theirs, ours)
}

#[tokio::test]
async fn s9_a_clock_that_is_a_day_behind_or_ahead_leaves_no_gap() {
    for wrong in [-23, -5, 5, 23] {
        let (mut bench, theirs, ours) = with_clock(wrong);
        let report = bench.sync().await.expect("a sync");
        assert!(report.complete);
        let read = report.feeds[0].read_through.expect("something");
        assert!(read <= at("2026-11-01T17:50:10Z"), "{wrong} h: claims the future: {read}");
        // Learnt with the first reply: the same run reads up to the service's time.
        assert!(read >= at("2026-11-01T17:40:00Z"), "{wrong} h: {read}");
        // The clock is set right, and another process goes on.
        let right = SignedDuration::from_hours(-wrong);
        ours.shift_wall(right);
        bench.client = crate::bench::client_of(&bench.sandbox, ours.clone(), |_| {});
        for clock in [&theirs, &ours] {
            clock.advance(seconds(3 * HOUR));
        }
        assert!(bench.sync().await.expect("a sync").complete);
        let unread = |bench: &Bench| {
            bench.windows().iter().any(|window| window.state == WindowState::Unread)
        };
        assert!(!unread(&bench), "{wrong} h: {:?}", bench.windows());
        let together = Clock::clone(&theirs);
        bench.client = crate::bench::client_of(&bench.sandbox, together, |_| {});
        bench.settle().await;
    }
}

#[tokio::test]
async fn a_clock_that_is_seconds_ahead_makes_no_chain_begin_later_than_it_did() {
    let (bench, theirs, _) = with_clock_by(SignedDuration::from_secs(4));
    assert!(bench.sync().await.expect("a sync").complete);
    let began = bench.state().newest_read().expect("a read");
    let late = began.duration_since(theirs.wall());
    assert!(late <= SignedDuration::from_secs(2), "{late:#}");
}

#[tokio::test]
async fn s9_a_clock_set_back_between_two_runs_asks_for_nothing_until_there_is_more() {
    let (bench, theirs, ours) = with_clock(0);
    bench.sync().await.expect("a sync");
    let requests = bench.sandbox.stats().data_requests;
    // Both clocks: nobody can know better.
    theirs.shift_wall(SignedDuration::from_hours(-24));
    ours.shift_wall(SignedDuration::from_hours(-24));
    assert!(bench.sync().await.expect("a sync").complete);
    assert_eq!(bench.sandbox.stats().data_requests, requests);
    for clock in [&theirs, &ours] {
        clock.advance(seconds(DAY + HOUR));
    }
    let report = bench.sync().await.expect("a sync");
    assert_eq!(report.feeds[0].read_through, Some(at("2026-11-01T18:50:00Z")));
    assert_eq!(bench.stored(bench.now()), bench.truth(at("2026-11-01T18:50:00Z"), AsOf::Now));
}

#[tokio::test]
async fn s9_clocks_more_than_a_day_apart_cover_nothing() {
    let (bench, theirs, ours) = with_clock(0);
    drop(bench.sync_pages(2).await.expect("two pages"));
    let state = bench.state();
    // The token that is there is still good for both.
    ours.shift_wall(SignedDuration::from_hours(-25));
    let error = bench.sync().await.expect_err("days apart");
    assert_eq!(error.kind(), Kind::ClockSkewError, "{error}");
    assert!(error.context().skew_seconds.is_some_and(|skew| skew > 86_400.0));
    assert_eq!(bench.state(), state);
    ours.shift_wall(SignedDuration::from_hours(25));
    for clock in [&theirs, &ours] {
        clock.advance(seconds(MINUTE));
    }
    assert!(bench.sync().await.expect("a sync").complete);
}

#[tokio::test]
async fn a_run_can_be_shared_by_threads_and_its_reading_sent_to_one() {
    let bench = bench();
    let run = Arc::new(bench.begin().expect("a run"));
    let reading: Vec<_> = (0..4)
        .map(|_| {
            let run = Arc::clone(&run);
            tokio::spawn(async move { run.finish().await })
        })
        .collect();
    for reading in reading {
        reading.await.expect("no panic").expect("a report");
    }
    let report = run.report().expect("a report");
    assert!(report.complete);
    assert_eq!(report.requests, report.pages(), "each page once");
    let end = at("2026-11-01T17:50:00Z");
    assert!(bench.stored(end) == bench.truth(end, AsOf::Now));
}

#[tokio::test]
async fn a_state_that_is_damaged_or_newer_is_told_with_its_feed() {
    let bench = bench();
    bench.sync().await.expect("a sync");
    let mut bytes = bench.state().to_bytes();
    bytes[20] ^= 1;
    bench.target.replace_state("feed", &bytes);
    let error = bench.begin().expect_err("damaged");
    assert_eq!(error.kind(), Kind::StoreCorrupt);
    assert!(error.to_string().contains("feed \"feed\""), "{error}");
    let fresh = FeedState::new(&bench.feed, bench.client.base_url().as_str());
    bench.target.replace_state("feed", &fresh.to_bytes());
    let run = Arc::new(bench.begin().expect("a run"));
    assert!(run.check_process().is_ok());
}
