//! The coverage of a feed: how it is thinned, and the effect of late changes.

use super::super::coverage::Coverage;
use super::*;

/// Covers ranges of hours in this order, each with the hour of its read.
fn covered(reads: &[(i64, i64, i64)]) -> Coverage {
    let mut coverage = Coverage::default();
    for (start, end, read_at) in reads {
        coverage.cover(hours(*start, *end), SINCE + read_at * HOUR);
    }
    coverage
}

/// The start, end and read time of each range, in hours.
fn in_hours(coverage: &Coverage) -> Vec<(i64, i64, i64)> {
    let hours = |second: i64| (second - SINCE) / HOUR;
    let reads = coverage.iter();
    reads.map(|one| (hours(one.range.start), hours(one.range.end), hours(one.read_at))).collect()
}

#[test]
fn s21_a_late_change_unsettles_only_its_window() {
    for interval_seconds in [60, 420] {
        // Everything except the last window is settled.
        let feed = feed(|input| {
            input.interval_seconds = Some(interval_seconds);
            input.window = seconds(6 * HOUR);
            input.lateness = seconds(10 * HOUR);
        });
        let reads = [(0, 8, 50), (8, 30, 60), (30, 36, 40)];
        assert_eq!(covered(&reads).settled(&feed), hours(0, 30).into());
        for (changed, window) in [
            ((6, 12), (6, 12)),
            ((9, 10), (6, 12)),
            ((7, 9), (6, 12)),
            ((11, 13), (6, 18)),
            ((0, 1), (0, 6)),
        ] {
            let mut coverage = covered(&reads);
            coverage.unsettle(hours(changed.0, changed.1), &feed);
            let window = Ranges::from(hours(window.0, window.1));
            let settled = Ranges::from(hours(0, 30)).without(&window);
            assert_eq!(coverage.settled(&feed), settled, "{changed:?}");
            // The coverage itself does not change.
            assert_eq!(coverage.covered(), hours(0, 36).into(), "{changed:?}");
            assert!(coverage.is_canonical(), "{changed:?}: {coverage:?}");
        }
    }
}

#[test]
fn s21_unsettled_and_unread_ranges_do_not_change() {
    let feed = feed(|input| {
        input.window = seconds(6 * HOUR);
        input.lateness = seconds(10 * HOUR);
    });
    let mut coverage = covered(&[(0, 7, 50), (8, 9, 10), (11, 20, 60)]);
    coverage.unsettle(hours(8, 9), &feed);
    // The window from 6 to 12 is settled at hour 22.
    let expected = [(0, 6, 50), (6, 7, 21), (8, 9, 10), (11, 12, 21), (12, 20, 60)];
    assert_eq!(in_hours(&coverage), expected);
    let times: Vec<i64> = coverage.iter().map(|read| read.read_at - SINCE).collect();
    assert_eq!(times[1], 22 * HOUR - 1);
}

#[test]
fn only_unsettled_neighbours_in_a_window_are_joined() {
    // A window is settled two days after its beginning.
    let feed = feed(|_| {});
    for (reads, thinned, why) in [
        (vec![(1, 2, 9), (2, 3, 5)], vec![(1, 3, 5)], "the older time counts"),
        (vec![(1, 2, 5), (2, 3, 9)], vec![(1, 3, 5)], "the older time counts"),
        (vec![(0, 1, 47), (1, 24, 46), (24, 25, 47)], vec![(0, 24, 46), (24, 25, 47)], "windows"),
        (vec![(1, 2, 5), (3, 4, 9)], vec![(1, 2, 5), (3, 4, 9)], "a gap between them"),
        (vec![(22, 24, 30), (24, 26, 31)], vec![(22, 24, 30), (24, 26, 31)], "two windows"),
        (vec![(1, 2, 48), (2, 3, 9)], vec![(1, 2, 48), (2, 3, 9)], "the first is settled"),
        (vec![(1, 2, 9), (2, 3, 48)], vec![(1, 2, 9), (2, 3, 48)], "the second is settled"),
        (vec![(1, 2, 9), (2, 30, 10)], vec![(1, 2, 9), (2, 30, 10)], "extends further"),
        (
            vec![(0, 2, 3), (2, 4, 5), (4, 6, 7), (30, 31, 32), (31, 32, 33)],
            vec![(0, 6, 3), (30, 32, 32)],
            "more than two",
        ),
        (vec![(24, 26, 71), (26, 28, 70)], vec![(24, 28, 70)], "only the previous window is due"),
    ] {
        let mut coverage = covered(&reads);
        coverage.thin(&feed);
        assert_eq!(in_hours(&coverage), thinned, "{why}");
    }
}
