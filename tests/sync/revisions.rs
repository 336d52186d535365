//! Points that come late, are revised or withdrawn after they were read (§4.4.6, §4.5.4, §4.5.5).

use siteline::sandbox::{AsOf, Identity, Options, Point};
use siteline::sync::{FeedInput, WindowState};

use crate::bench::{Bench, DAY, HOUR, MINUTE, at, input, seconds};

fn point(timestamp: &str, value: f64) -> Point {
    let value = Some(value);
    let timestamp = at(timestamp).as_microsecond();
    Point { timestamp, value, minimum: value, maximum: value, ..Point::default() }
}

fn series(number: usize) -> Identity {
    Identity::new("S1", "L1", "M1", "D11", &format!("tag-{number}"))
}

/// Two series of hourly points since midnight, loaded at six in the evening.
fn loaded(overlap: u64) -> Bench {
    let input = FeedInput { interval_seconds: Some(3_600), overlap: seconds(overlap), ..input() };
    let bench = Bench::new(Options::default(), FeedInput { page_size: Some(3), ..input });
    let of_hours = |number: u32| {
        (0..17)
            .map(|hour| point(&format!("2026-11-01T{hour:02}:00:00Z"), f64::from(hour + number)))
            .collect()
    };
    let data = vec![(series(0), of_hours(0)), (series(1), of_hours(100))];
    bench.sandbox.load_points(3_600, data).expect("points");
    bench
}

#[tokio::test]
async fn s10_what_changed_after_it_was_read_is_right_after_the_lateness() {
    let mut bench = loaded(0);
    assert!(bench.sync().await.expect("a sync").complete);
    // A new value, a point that was not there, and one that goes.
    bench.sandbox.revise(&series(0), point("2026-11-01T03:00:00Z", -1.0)).expect("a point");
    bench.sandbox.revise(&series(1), point("2026-11-01T17:00:00Z", 7.0)).expect("a point");
    let gone = at("2026-11-01T05:00:00Z").as_microsecond();
    bench.sandbox.withdraw(&series(1), gone, None).expect("a point");
    bench.advance(HOUR);
    let report = bench.sync().await.expect("a sync");
    assert_eq!(report.feeds[0].applied.revised, 0, "there is no overlap");
    assert_ne!(bench.stored(bench.now()), bench.truth(bench.now(), AsOf::Now));
    bench.settle().await;
    assert_eq!(bench.stored(bench.now()).len(), 2 * 17);
}

#[tokio::test]
async fn s10_what_a_later_complete_read_does_not_bring_is_flagged_and_comes_back() {
    let mut bench = loaded(0);
    bench.sync().await.expect("a sync");
    let gone = at("2026-11-01T05:00:00Z");
    bench.sandbox.withdraw(&series(1), gone.as_microsecond(), None).expect("a point");
    bench.settings.reread = vec![(at("2026-11-01T05:30:00Z"), at("2026-11-01T06:00:00Z"))];
    let report = bench.sync().await.expect("a sync");
    assert_eq!((report.feeds[0].applied.flagged, report.feeds[0].applied.unchanged), (1, 1));
    bench.sandbox.revise(&series(1), point("2026-11-01T05:00:00Z", 105.0)).expect("a point");
    let report = bench.sync().await.expect("a sync");
    assert_eq!((report.feeds[0].applied.revised, report.feeds[0].applied.flagged), (1, 0));
}

#[tokio::test]
async fn p6_what_a_chain_brought_before_it_began_again_does_not_count() {
    let bench = loaded(0);
    drop(bench.sync_pages(2).await.expect("two pages"));
    let gone = at("2026-11-01T12:00:00Z").as_microsecond();
    assert!(bench.stored(bench.now()).keys().any(|(_, time)| *time == gone));
    bench.sandbox.withdraw(&series(0), gone, None).expect("a point");
    bench.advance(2 * HOUR);
    bench.sandbox.forget_cursors();
    let report = bench.sync().await.expect("a sync");
    assert_eq!((report.complete, report.feeds[0].applied.flagged), (true, 1));
    let oldest = bench.state().coverage().iter().map(|read| read.read_at).min();
    assert_eq!(oldest, Some(bench.now().as_second()), "the second beginning is what counts");
}

#[tokio::test]
async fn p10_the_overlap_brings_what_came_a_little_late() {
    let bench = loaded(3 * HOUR);
    bench.sync().await.expect("a sync");
    bench.sandbox.revise(&series(0), point("2026-11-01T15:00:00Z", -1.0)).expect("a point");
    bench.sandbox.revise(&series(0), point("2026-11-01T17:00:00Z", -2.0)).expect("a point");
    bench.advance(HOUR);
    let report = bench.sync().await.expect("a sync");
    let applied = report.feeds[0].applied;
    assert_eq!((applied.inserted, applied.revised), (1, 1), "{report:?}");
    assert_eq!(bench.stored(bench.now()), bench.truth(bench.now(), AsOf::Now));
}

#[tokio::test]
async fn p10_points_that_move_over_page_edges_are_right_after_the_lateness() {
    for seed in 0..20 {
        let mut bench = Bench::new(Options { seed, ..Options::default() }, input());
        // The service's data change under the cursor: an hour passes with each page.
        let run = bench.begin().expect("a run");
        while run.fetch().await.expect("a page") {
            run.apply().expect("room");
            bench.advance(10 * MINUTE);
        }
        drop(run);
        bench.settle().await;
        bench.check_ledger();
    }
}

#[tokio::test]
async fn a_window_is_unread_then_provisional_then_settling_then_settled() {
    let mut bench = Bench::new(Options::default(), input());
    let first = at("2026-11-01T06:00:00Z");
    let state = |bench: &Bench| {
        let windows = bench.windows();
        windows.iter().find(|window| window.start == first).map(|window| window.state)
    };
    bench.settings.until = Some(first);
    bench.sync().await.expect("a sync");
    assert_eq!(state(&bench), Some(WindowState::Unread));
    bench.settings.until = None;
    let report = bench.sync().await.expect("a sync");
    assert_eq!(report.feeds[0].settled_through, None);
    assert_eq!(state(&bench), Some(WindowState::Provisional));
    bench.advance(2 * DAY);
    assert_eq!(state(&bench), Some(WindowState::Settling));
    let report = bench.sync().await.expect("a sync");
    assert_eq!(state(&bench), Some(WindowState::Settled));
    assert_eq!(report.feeds[0].settled_through, Some(at("2026-11-01T18:00:00Z")));
    assert!(report.complete);
}

#[tokio::test]
async fn an_empty_window_that_was_read_is_not_one_that_was_never_read() {
    let mut bench = loaded(0);
    bench.settings.until = Some(at("2026-11-01T06:00:00Z"));
    bench.sandbox.load_points(3_600, vec![(series(2), Vec::new())]).expect("nothing");
    bench.feed = siteline::sync::Feed::new(FeedInput {
        name: "empty".to_owned(),
        interval_seconds: Some(3_600),
        filters: vec![("tagGuid".to_owned(), vec!["tag-2".to_owned()])],
        ..input()
    })
    .expect("a feed");
    let report = bench.sync().await.expect("a sync");
    assert!(report.complete);
    assert_eq!((report.requests, report.feeds[0].applied.inserted), (1, 0));
    let states: Vec<_> = bench.windows().iter().map(|window| window.state).collect();
    assert_eq!(states, [WindowState::Provisional, WindowState::Unread, WindowState::Unread,]);
}
