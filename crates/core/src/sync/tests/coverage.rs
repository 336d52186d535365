//! What reads have covered: how it is thinned, and what a late change does to it.

use super::super::coverage::{Coverage, WindowState};
use super::*;

/// Ranges of hours since the feeds' beginning, each read at such an hour, in this order.
fn covered(reads: &[(i64, i64, i64)]) -> Coverage {
    let mut coverage = Coverage::default();
    for (start, end, read_at) in reads {
        let range = Range::new(SINCE + start * HOUR, SINCE + end * HOUR);
        coverage.cover(range, SINCE + read_at * HOUR);
    }
    coverage
}

/// The same in hours.
fn shown(coverage: &Coverage) -> Vec<(i64, i64, i64)> {
    let hours = |second: i64| (second - SINCE) / HOUR;
    let reads = coverage.iter();
    reads.map(|one| (hours(one.range.start), hours(one.range.end), hours(one.read_at))).collect()
}

fn in_hours(start: i64, end: i64) -> Range {
    Range::new(SINCE + start * HOUR, SINCE + end * HOUR)
}

#[test]
fn s21_a_window_that_changed_after_its_lateness_is_settled_no_longer_and_its_neighbours_are() {
    for interval_seconds in [60, 420] {
        // Windows of six hours and a lateness of ten; everything is settled but the last window.
        let feed = feed(|input| {
            input.interval_seconds = Some(interval_seconds);
            input.window = seconds(6 * HOUR);
            input.lateness = seconds(10 * HOUR);
        });
        let reads = [(0, 8, 50), (8, 30, 60), (30, 36, 40)];
        assert_eq!(covered(&reads).settled(&feed), in_hours(0, 30).into());
        for (changed, window) in [
            ((6, 12), (6, 12)),
            ((9, 10), (6, 12)),
            ((7, 9), (6, 12)),
            ((11, 13), (6, 18)),
            ((0, 1), (0, 6)),
        ] {
            let mut coverage = covered(&reads);
            coverage.unsettle(in_hours(changed.0, changed.1), &feed);
            let window = Ranges::from(in_hours(window.0, window.1));
            let settled = Ranges::from(in_hours(0, 30)).without(&window);
            assert_eq!(coverage.settled(&feed), settled, "{changed:?}");
            // It was read before its lateness was over, and by no fewer chains than before.
            assert_eq!(coverage.covered(), in_hours(0, 36).into(), "{changed:?}");
            assert!(coverage.is_canonical(), "{changed:?}: {coverage:?}");
        }
    }
}

#[test]
fn s21_what_was_read_before_the_lateness_and_what_was_not_read_stay_as_they_are() {
    let feed = feed(|input| {
        input.window = seconds(6 * HOUR);
        input.lateness = seconds(10 * HOUR);
    });
    let mut coverage = covered(&[(0, 7, 50), (8, 9, 10), (11, 20, 60)]);
    coverage.unsettle(in_hours(8, 9), &feed);
    // The window from 6 to 12 is settled from hour 22 on.
    let expected = [(0, 6, 50), (6, 7, 21), (8, 9, 10), (11, 12, 21), (12, 20, 60)];
    assert_eq!(shown(&coverage), expected);
    let times: Vec<i64> = coverage.iter().map(|read| read.read_at - SINCE).collect();
    assert_eq!(times[1], 22 * HOUR - 1);
}

#[test]
fn neighbours_that_a_later_read_replaces_in_any_case_are_joined_and_no_others() {
    // Windows and a lateness of a day: a window is settled two days after it begins.
    let feed = feed(|_| {});
    for (reads, thinned, why) in [
        (vec![(1, 2, 9), (2, 3, 5)], vec![(1, 3, 5)], "the older time counts"),
        (vec![(1, 2, 5), (2, 3, 9)], vec![(1, 3, 5)], "the older time counts"),
        (vec![(0, 1, 47), (1, 24, 46), (24, 25, 47)], vec![(0, 24, 46), (24, 25, 47)], "windows"),
        (vec![(1, 2, 5), (3, 4, 9)], vec![(1, 2, 5), (3, 4, 9)], "a gap between them"),
        (vec![(22, 24, 30), (24, 26, 31)], vec![(22, 24, 30), (24, 26, 31)], "two windows"),
        (vec![(1, 2, 48), (2, 3, 9)], vec![(1, 2, 48), (2, 3, 9)], "the first is settled"),
        (vec![(1, 2, 9), (2, 3, 48)], vec![(1, 2, 9), (2, 3, 48)], "the second is settled"),
        (
            vec![(1, 2, 9), (2, 30, 10)],
            vec![(1, 2, 9), (2, 30, 10)],
            "it goes into the next window",
        ),
        (
            vec![(0, 2, 3), (2, 4, 5), (4, 6, 7), (30, 31, 32), (31, 32, 33)],
            vec![(0, 6, 3), (30, 32, 32)],
            "more than two",
        ),
        (
            vec![(24, 26, 71), (26, 28, 70)],
            vec![(24, 28, 70)],
            "its own lateness is not over, that of the window before is",
        ),
    ] {
        let mut coverage = covered(&reads);
        coverage.thin(&feed);
        assert_eq!(shown(&coverage), thinned, "{why}");
    }
}

#[test]
fn a_coverage_is_thinned_with_more_than_a_thousand_ranges() {
    let mut state = state(|_| {});
    for number in 1..=1_000 {
        let range = Range::new(SINCE + (number - 1) * MINUTE, SINCE + number * MINUTE);
        let began = SINCE + DAY + number;
        state.cover(&UnfinishedChain { began: Some(began), ..chain_of(range) }, 1);
        assert_eq!(i64::try_from(state.coverage.len()), Ok(number), "each has its own time");
    }
    let range = Range::new(SINCE + 1_000 * MINUTE, SINCE + 1_001 * MINUTE);
    let before = state.coverage.covered();
    state.cover(&UnfinishedChain { began: Some(SINCE + DAY), ..chain_of(range) }, 1);
    assert_eq!(state.coverage.len(), 1);
    assert_eq!(state.coverage.covered(), before.with(&range.into()));
}

fn chain_of(range: Range) -> UnfinishedChain {
    UnfinishedChain { pages: 1, points: 1, ..UnfinishedChain::new(range, Why::Recent, 0) }
}

#[test]
fn states_and_classes_are_shown_in_one_word() {
    let states =
        [WindowState::Unread, WindowState::Provisional, WindowState::Due, WindowState::Settled];
    let words = ["unread", "provisional", "due", "settled"];
    assert_eq!(states.map(|state| state.to_string()), words);
    let classes = [Why::Resume, Why::Reread, Why::Recent, Why::Settle, Why::Audit, Why::Backfill];
    let words = ["resume", "reread", "recent", "settle", "audit", "backfill"];
    assert_eq!(classes.map(|why| why.to_string()), words);
}
