//! Ranges with a chain that the service does not end. They are restarted a limited number of times, then
//! set aside for a day. The other ranges are read.

use jiff::Timestamp;
use siteline_core::Kind;
use siteline_core::store::View;
use siteline_core::sync::{
    FeedInput, ReadSpec, SkippedRange, SyncReport, SyncSettings, WindowState,
};
use siteline_sandbox::{AsOf, Effect, Fault, When};

use crate::harness::{DAY, HOUR, Harness, at, input, on_data, seconds};

/// Two days in windows of six hours. The newest window is read first.
fn two_days() -> Harness {
    let input = FeedInput { settle_lag: seconds(0), page_size: Some(5), ..input() };
    let harness = Harness::without_lateness(input);
    harness.advance(DAY + 6 * HOUR);
    harness
}

/// The cursor of each page is too long for a URL.
fn long_cursors(times: u64) -> Fault {
    let cursor = "x".repeat(66_000).into();
    let effect = Effect::Members(vec![("nextCursor".to_owned(), Some(cursor))]);
    on_data(When::Times { count: times, skip: 0 }, effect)
}

fn only(report: &SyncReport) -> &SkippedRange {
    let [one] = &report.feeds[0].skipped[..] else { panic!("{:?}", report.feeds) };
    one
}

fn first_again(report: &SyncReport) -> &SkippedRange {
    report.feeds[0].skipped.iter().min_by_key(|one| one.until).expect("one")
}

#[tokio::test]
async fn p13_p4_too_long_cursors_pause_their_range() {
    let mut harness = two_days();
    harness.sandbox.fault(long_cursors(2));
    let error = harness.sync().await.expect_err("one window cannot be read");
    assert_eq!(error.kind(), Kind::RequestRejected);
    let text = error.to_string();
    assert!(text.contains("is skipped until 2026-11-04T00:00:00Z"), "{text}");
    assert!(text.contains("reread="), "{text}");
    assert!(text.contains("a cursor of 66000 bytes"), "{text}");
    let of_newest = |harness: &Harness| {
        let log = harness.sandbox.stats().log;
        log.iter().filter(|one| one.query.contains("to=2026-11-03T00")).count()
    };
    assert_eq!(of_newest(&harness), 2, "two starts, and the long URL was not sent");
    assert_eq!(harness.client.data_requests(), harness.requests());

    // The other windows were read.
    let (newest, truth) = (at("2026-11-02T18:00:00Z"), harness.truth(harness.now(), AsOf::Now));
    assert!(
        truth
            .range(..)
            .filter(|((_, time), _)| *time < newest.as_microsecond())
            .all(|(key, values)| harness.stored(harness.now()).get(key) == Some(values))
    );
    let windows = harness.windows();
    let aside: Vec<_> = windows.iter().filter(|window| window.skipped_until.is_some()).collect();
    assert_eq!((aside.len(), aside[0].state), (1, WindowState::Unread));
    assert_eq!((aside[0].start, aside[0].end), (newest, at("2026-11-03T00:00:00Z")));

    // The next runs do not pay for it again, and report it.
    for _ in 0..3 {
        let report = harness.sync().await.expect("a sync");
        assert!(!report.complete && report.requests == 0, "{report:?}");
        let one = only(&report);
        assert_eq!((one.error.as_str(), one.pages), ("RequestRejected", 1));
        assert_eq!((one.start, one.end), (newest, at("2026-11-03T00:00:00Z")));
        assert_eq!(report.resumes_at, Some(one.until));
        assert_eq!(report.tasks.len(), 1);
        assert_eq!((harness.plan().tasks, harness.plan().skipped), (vec![], 1));
    }
    // Fresh data is read.
    harness.advance(HOUR);
    let report = harness.sync().await.expect("a sync");
    assert!(!report.complete && report.requests > 0 && of_newest(&harness) == 2);

    // It is retried on request.
    harness.settings.reread = vec![(newest, at("2026-11-03T00:00:00Z"))];
    assert_eq!(harness.plan().skipped, 0);
    let report = harness.sync().await.expect("a sync");
    assert!(report.complete && report.feeds[0].skipped.is_empty() && harness.equals_truth());
}

#[tokio::test]
async fn p14_an_endless_chain_costs_once_a_day() {
    let mut harness = two_days();
    // Each page is empty and has a new cursor.
    harness.sandbox.fault(on_data(When::Every(1), Effect::EmptyPage));
    harness.settings.until = Some(at("2026-11-01T06:00:00Z"));
    let error = harness.sync().await.expect_err("no end");
    assert_eq!((error.kind(), harness.requests()), (Kind::EndlessChain, 1_024));
    let text = error.to_string();
    for part in ["1024 pages were read (no estimate)", "counted", "window="] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let report = harness.sync().await.expect("a sync");
    assert_eq!((harness.requests(), only(&report).pages), (1_024, 1_024));
    harness.sandbox.clear_faults();
    harness.settings.until = None;
    let report = harness.sync().await.expect("the other windows");
    assert!(!report.complete && report.feeds[0].skipped.len() == 1);
    harness.settings.reread = vec![(at("2026-11-01T00:00:00Z"), at("2026-11-01T06:00:00Z"))];
    assert!(harness.sync().await.expect("a sync").complete && harness.equals_truth());
    // With an estimate, ten times the expected pages are read.
    harness.settings.reread.clear();
    harness.advance(6 * HOUR);
    harness.sandbox.fault(on_data(When::Every(1), Effect::EmptyPage));
    let before = harness.requests();
    let pages = harness.plan().tasks.into_iter().map(|task| task.pages.expect("known").max(10));
    let expected: u64 = pages.sum();
    assert_eq!(harness.sync().await.expect_err("no end").kind(), Kind::EndlessChain);
    assert_eq!(harness.requests() - before, 10 * expected);
}

#[tokio::test]
async fn p14_three_endless_chains_pause_a_feed() {
    let mut harness = two_days();
    harness.sandbox.fault(on_data(When::Every(1), Effect::EmptyPage));
    assert_eq!(harness.sync().await.expect_err("no end").kind(), Kind::EndlessChain);
    assert_eq!(harness.requests(), 3 * 1_024);
    for _ in 0..3 {
        harness.advance(6 * HOUR);
        assert_eq!(harness.plan().tasks, []);
        let report = harness.sync().await.expect("a sync");
        assert_eq!((harness.requests(), report.feeds[0].skipped.len()), (3 * 1_024, 3));
        assert!(!report.complete && report.tasks.len() > 1);
        assert_eq!(report.resumes_at, Some(first_again(&report).until));
    }
    // It is read on request, and after the day.
    harness.sandbox.clear_faults();
    harness.settings.reread = vec![(at("2026-11-01T00:00:00Z"), at("2026-11-01T06:00:00Z"))];
    assert!(harness.sync().await.expect("a sync").requests > 0);
    harness.settings.reread.clear();
    harness.advance(6 * HOUR);
    assert!(harness.sync().await.expect("a sync").complete && harness.equals_truth());
}

#[tokio::test]
async fn p14_endless_chain_pages_are_counted_over_runs() {
    let mut harness = two_days();
    harness.sandbox.fault(on_data(When::Every(1), Effect::EmptyPage));
    harness.settings.until = Some(at("2026-11-01T06:00:00Z"));
    let mut runs = 0;
    while harness.requests() < 990 {
        drop(harness.sync_pages(90).await.expect("pages"));
        runs += 1;
    }
    assert_eq!(harness.sync().await.expect_err("no end").kind(), Kind::EndlessChain);
    assert_eq!((runs, harness.requests()), (11, 1_024));
}

#[tokio::test]
async fn p13_s16_paused_ranges_are_unread() {
    let harness = two_days();
    let stored = harness.target.clone();
    // The newest window ends after two pages with a cursor that is too long.
    let cursor = "x".repeat(66_000).into();
    let effect = Effect::Members(vec![("nextCursor".to_owned(), Some(cursor))]);
    for nth in [2, 4] {
        harness.sandbox.fault(on_data(When::Nth(nth), effect.clone()));
    }
    harness.sync().await.expect_err("one window cannot be read");
    let newest = at("2026-11-02T18:00:00Z");
    let read = |range| ReadSpec::new("feed".to_owned(), range, View::LATEST).expect("a range");
    let spec = read((Some(at("2026-11-02T12:00:00Z")), Some(at("2026-11-02T22:00:00Z"))));
    assert!(spec.open(stored.store()).expect("until now").2.is_some());
    let spec = read((Some(newest), Some(at("2026-11-02T22:00:00Z"))));
    let error = spec.open(stored.store()).expect_err("it was never read");
    assert_eq!(error.kind(), Kind::UnreadRange);
    // The same applies without a range, although ten of its points are stored.
    assert!(harness.stored(harness.now()).keys().any(|(_, at)| *at >= newest.as_microsecond()));
    let (_, whole, warning) = read((None, None)).open(stored.store()).expect("what was read");
    assert_eq!(whole.coverage.unread.iter().count(), 1);
    assert!(warning.is_some_and(|warning| warning.contains("2026-11-02T18:00:00Z")));

    // An hour later the window is a gap. The error names the next step.
    harness.advance(HOUR);
    harness.sync().await.expect("the rest");
    let spec = read((Some(at("2026-11-02T12:00:00Z")), Some(at("2026-11-03T00:30:00Z"))));
    let text = spec.open(stored.store()).expect_err("a gap").to_string();
    assert!(text.contains("2026-11-04T00:00:00Z, or immediately with reread="), "{text}");
}

#[tokio::test]
async fn unstorable_values_pause_their_range() {
    let bounds = [at("2026-11-02T08:00:00Z"), at("2026-11-02T08:05:00Z")];
    let [first, end] = bounds.map(Timestamp::as_microsecond);
    for concurrency in [1, 4] {
        let mut harness = two_days();
        harness.settings = SyncSettings { concurrency, ..harness.settings.clone() };
        harness.target.refuse(first..end);
        let error = harness.sync().await.expect_err("one range cannot be stored");
        assert_eq!(error.kind(), Kind::StoreError);
        let text = error.to_string();
        assert!(text.contains("no such text\n2026-11-0"), "{text}");
        assert!(error.context().spans.is_empty());

        // Everything else was stored, and the range is not paid for again.
        let spent = harness.requests();
        let report = harness.sync().await.expect("it is skipped");
        assert_eq!(harness.requests(), spent, "{concurrency}");
        let aside = only(&report);
        assert!(aside.start <= bounds[0] && bounds[1] <= aside.end && aside.error == "StoreError");
        let outside =
            |time: i64| !(aside.start.as_microsecond()..aside.end.as_microsecond()).contains(&time);
        let (stored, truth) =
            (harness.stored(harness.now()), harness.truth(harness.now(), AsOf::Now));
        assert!(truth.iter().all(|(key, point)| !outside(key.1) || stored[key] == *point));
        assert!(!stored.keys().any(|(_, time)| (first..end).contains(time)));
        assert_eq!(harness.state_chains(), 0);
    }
}
