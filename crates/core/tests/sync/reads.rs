//! Reading a store: points, coverage and lateness.

use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::TimestampMicrosecondType;
use jiff::Timestamp;
use siteline_core::Kind;
use siteline_core::store::{Flagged, Store, View};
use siteline_core::sync::{FeedCoverage, FeedLateness, ReadSpec, Unread, WindowState};
use siteline_sandbox::Options;

use crate::harness::{DAY, HOUR, Harness, at, input, seconds};
use crate::target::Stored;

/// A store with two days of the feed, the first one settled.
async fn synced() -> (Harness, Arc<Stored>) {
    let harness = Harness::new(Options::default(), input());
    let stored = harness.target.clone();
    harness.advance(2 * DAY);
    assert!(harness.sync().await.expect("a sync").complete);
    (harness, stored)
}

fn all(view: View) -> ReadSpec {
    ReadSpec::new("feed".to_owned(), (None, None), view).expect("a spec")
}

fn timestamps(spec: &ReadSpec, store: &Store) -> Vec<Timestamp> {
    let (mut reader, ..) = spec.open(store).expect("a snapshot");
    let mut timestamps = Vec::new();
    while let Some(batch) = reader.next_batch(1_000).expect("points") {
        let column = batch.column(5).as_primitive::<TimestampMicrosecondType>();
        let instant = |at: &i64| Timestamp::from_microsecond(*at).expect("a timestamp");
        timestamps.extend(column.values().iter().map(instant));
    }
    timestamps.sort_unstable();
    timestamps.dedup();
    timestamps
}

#[tokio::test]
async fn coverage_is_never_before_the_newest_read() {
    let (harness, stored) = synced().await;
    let coverage = FeedCoverage::read(stored.store(), "feed", None).expect("a coverage");
    assert!(coverage.now >= harness.state().newest_read().expect("a read"));
    assert_eq!(coverage.feed, harness.feed);
    let coverage = FeedCoverage::read(stored.store(), "feed", Some(harness.now())).expect("it");
    let first = &coverage.windows[0];
    assert_eq!((first.state, first.empty), (WindowState::Settled, Some(false)));
    assert_eq!(first.settled_at, first.read_at);
    let settled: i64 = coverage
        .windows
        .iter()
        .filter(|window| window.state == WindowState::Settled)
        .map(|window| window.end.as_second() - window.start.as_second())
        .sum();
    let lateness = FeedLateness::read(stored.store(), "feed").expect("a lateness");
    assert_eq!(lateness.settled, settled.unsigned_abs());
}

#[test]
fn a_read_spec_displays_and_serialises() {
    let (start, end) = (at("2026-11-01T00:00:00Z"), at("2026-11-02T00:00:00Z"));
    let new = |start, end| ReadSpec::new("feed".to_owned(), (start, end), View::as_of(7));
    let error = new(Some(end), Some(start)).expect_err("reversed");
    assert_eq!(error.kind(), Kind::QueryError);
    assert!(new(Some(start), Some(start)).is_err());
    let spec = new(Some(start), Some(end)).expect("a spec");
    let spec = ReadSpec { settled_only: true, flagged: Flagged::Drop, ..spec };
    assert_eq!(
        spec.to_string(),
        "feed as of page 7, from 2026-11-01T00:00:00Z, to 2026-11-02T00:00:00Z, final, \
         without withdrawn"
    );
    let text = serde_json::to_string(&spec).expect("JSON");
    assert_eq!(serde_json::from_str::<ReadSpec>(&text).expect("a spec"), spec);
    assert_eq!(spec.bounds(), Some((start.as_microsecond(), end.as_microsecond())));
    assert_eq!(all(View::changed_since(3)).to_string(), "feed since page 3");
}

#[tokio::test]
async fn s17_points_after_the_newest_instant_are_omitted() {
    let mut harness = Harness::without_lateness(input());
    let stored = harness.target.clone();
    // With a wrong clock the chain extends into the service's future, and covers less than it reads.
    harness.settings.now = Some(harness.now().checked_add(seconds(5 * HOUR)).expect("a time"));
    harness.sync().await.expect("a sync");
    let newest = harness.state().newest().expect("something was read");
    let points = harness.stored(harness.now());
    assert!(points.keys().any(|(_, at)| *at >= newest.as_microsecond()), "some points are later");
    let open = |start| {
        let spec = ReadSpec::new("feed".to_owned(), (start, None), View::LATEST).expect("a spec");
        timestamps(&spec, stored.store())
    };
    for start in [None, Some(at("2026-11-01T06:00:00Z"))] {
        let read = open(start);
        assert!(read.last().is_some_and(|last| *last < newest), "{read:?}");
    }
    let keep = ReadSpec { unread: Unread::Keep, ..all(View::LATEST) };
    assert!(timestamps(&keep, stored.store()).last() >= Some(&newest));
}
