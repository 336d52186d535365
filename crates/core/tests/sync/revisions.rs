//! Points that arrive, are revised or are withdrawn after a read.

use siteline_core::sync::{Feed, FeedInput, WindowState};
use siteline_sandbox::{AsOf, Identity, Options, Point};

use crate::harness::{HOUR, Harness, MINUTE, at, input, seconds};
use crate::test_kit::trials;

fn point(timestamp: &str, value: f64) -> Point {
    let value = Some(value);
    let timestamp = at(timestamp).as_microsecond();
    Point { timestamp, value, minimum: value, maximum: value, ..Point::default() }
}

fn series(number: usize) -> Identity {
    Identity::new("S1", "L1", "M1", "D11", &format!("tag-{number}"))
}

/// A harness at 18:00 with two series of hourly points since midnight.
fn loaded(overlap: u64) -> Harness {
    let input = FeedInput { interval_seconds: Some(3_600), overlap: seconds(overlap), ..input() };
    let harness = Harness::new(Options::default(), FeedInput { page_size: Some(3), ..input });
    let of_hours = |number: u32| {
        (0..17)
            .map(|hour| point(&format!("2026-11-01T{hour:02}:00:00Z"), f64::from(hour + number)))
            .collect()
    };
    let data = vec![(series(0), of_hours(0)), (series(1), of_hours(100))];
    harness.sandbox.load_points(3_600, data).expect("points");
    harness
}

#[tokio::test]
async fn s10_late_changes_are_stored_after_the_lateness() {
    let mut harness = loaded(0);
    assert!(harness.sync().await.expect("a sync").complete);
    // A new value, a new point, and a withdrawn one.
    harness.sandbox.revise(&series(0), point("2026-11-01T03:00:00Z", -1.0)).expect("a point");
    harness.sandbox.revise(&series(1), point("2026-11-01T17:00:00Z", 7.0)).expect("a point");
    let gone = at("2026-11-01T05:00:00Z").as_microsecond();
    harness.sandbox.withdraw(&series(1), gone, None).expect("a point");
    harness.advance(HOUR);
    let report = harness.sync().await.expect("a sync");
    assert_eq!(report.feeds[0].applied.revised, 0, "there is no overlap");
    assert_ne!(harness.stored(harness.now()), harness.truth(harness.now(), AsOf::Now));
    harness.settle().await;
    assert_eq!(harness.stored(harness.now()).len(), 2 * 17);
}

#[tokio::test]
async fn s10_a_missing_point_is_flagged_until_it_returns() {
    let mut harness = loaded(0);
    harness.sync().await.expect("a sync");
    let gone = at("2026-11-01T05:00:00Z");
    harness.sandbox.withdraw(&series(1), gone.as_microsecond(), None).expect("a point");
    harness.settings.reread = vec![(at("2026-11-01T05:30:00Z"), at("2026-11-01T06:00:00Z"))];
    let report = harness.sync().await.expect("a sync");
    assert_eq!((report.feeds[0].applied.flagged, report.feeds[0].applied.unchanged), (1, 1));
    harness.sandbox.revise(&series(1), point("2026-11-01T05:00:00Z", 105.0)).expect("a point");
    let report = harness.sync().await.expect("a sync");
    assert_eq!((report.feeds[0].applied.revised, report.feeds[0].applied.flagged), (1, 0));
}

#[tokio::test]
async fn p6_pages_before_a_restart_do_not_count() {
    let harness = loaded(0);
    drop(harness.sync_pages(2).await.expect("two pages"));
    let gone = at("2026-11-01T12:00:00Z").as_microsecond();
    assert!(harness.stored(harness.now()).keys().any(|(_, time)| *time == gone));
    harness.sandbox.withdraw(&series(0), gone, None).expect("a point");
    harness.advance(2 * HOUR);
    harness.sandbox.forget_cursors();
    let report = harness.sync().await.expect("a sync");
    assert_eq!((report.complete, report.feeds[0].applied.flagged), (true, 1));
    let oldest = harness.state().coverage().iter().map(|read| read.read_at).min();
    assert_eq!(oldest, Some(harness.now().as_second()), "the restart counts");
}

#[tokio::test]
async fn p10_the_overlap_brings_slightly_late_points() {
    let harness = loaded(3 * HOUR);
    harness.sync().await.expect("a sync");
    harness.sandbox.revise(&series(0), point("2026-11-01T15:00:00Z", -1.0)).expect("a point");
    harness.sandbox.revise(&series(0), point("2026-11-01T17:00:00Z", -2.0)).expect("a point");
    harness.advance(HOUR);
    let report = harness.sync().await.expect("a sync");
    let applied = report.feeds[0].applied;
    assert_eq!((applied.inserted, applied.revised), (1, 1), "{report:?}");
    assert_eq!(harness.stored(harness.now()), harness.truth(harness.now(), AsOf::Now));
}

#[tokio::test]
async fn p10_points_moving_between_pages_become_correct() {
    for seed in 0..u64::from(trials(20)) {
        let mut harness = Harness::new(Options { seed, ..Options::default() }, input());
        // Time passes with each page, so the data changes during the chain.
        let run = harness.begin().expect("a run");
        while run.fetch().await.expect("a page") {
            run.apply().expect("space");
            harness.advance(10 * MINUTE);
        }
        drop(run);
        harness.settle().await;
        harness.check_ledger();
    }
}

#[tokio::test]
async fn an_empty_window_counts_as_read() {
    let mut harness = loaded(0);
    harness.settings.until = Some(at("2026-11-01T06:00:00Z"));
    harness.sandbox.load_points(3_600, vec![(series(2), Vec::new())]).expect("nothing");
    harness.feed = Feed::new(FeedInput {
        name: "empty".to_owned(),
        interval_seconds: Some(3_600),
        filters: vec![("tagGuid".to_owned(), vec!["tag-2".to_owned()])],
        ..input()
    })
    .expect("a feed");
    let report = harness.sync().await.expect("a sync");
    assert!(report.complete);
    assert_eq!((report.requests, report.feeds[0].applied.inserted), (1, 0));
    let states: Vec<_> = harness.windows().iter().map(|window| window.state).collect();
    assert_eq!(states, [WindowState::Provisional, WindowState::Unread, WindowState::Unread,]);
}

#[tokio::test]
async fn s21_audits_find_and_store_late_points() {
    let mut harness = loaded(0);
    let input = FeedInput { audit_pages: 20, ..harness.feed.input().clone() };
    harness.feed = Feed::new(input).expect("a feed");
    harness.settle().await;
    harness.settings.until = None;
    for hour in 0..17 {
        for number in [0, 1] {
            let late = point(&format!("2026-11-01T{hour:02}:00:00Z"), -7.0);
            harness.sandbox.revise(&series(number), late).expect("a point");
        }
    }
    let mut late = 0;
    for _ in 0..48 {
        harness.advance(6 * HOUR);
        let report = harness.sync().await.expect("a sync");
        late += report.feeds[0].late;
        let applied = report.feeds[0].applied;
        assert!(applied.inserted == 0 && applied.flagged == 0, "{applied:?}");
    }
    // The next read of the window returns the audited points, so each point is counted at most once.
    assert!((2..=34).contains(&late), "{late}");
    harness.settle().await;
}
