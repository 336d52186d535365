//! Simulations of many runs in sequence.

use proptest::prelude::*;

use super::super::coverage::WindowState;
use super::*;

/// The number of reads of each hour since the beginning, by class.
fn counts(history: &[PlanStep], hours: i64, why: &[Why]) -> Vec<usize> {
    let mut counts = vec![0; usize::try_from(hours).expect("a small number")];
    for step in history.iter().filter(|step| why.contains(&step.why)) {
        let first = (step.range.start - SINCE).div_euclid(HOUR).max(0);
        let last = (step.range.end - 1 - SINCE).div_euclid(HOUR).min(hours - 1);
        for hour in first..=last {
            counts[usize::try_from(hour).expect("a small number")] += 1;
        }
    }
    counts
}

#[test]
fn a_year_of_hourly_runs_settles_each_day_once() {
    let mut state = state(|input| input.settle_lag = Duration::ZERO);
    let mut history = Vec::new();
    for hour in 1..=365 * 24 {
        history.extend(run(&mut state, SINCE + hour * HOUR));
    }
    let all = [Why::Recent, Why::Settle, Why::Backfill, Why::Reread];
    let settled_hours = (365 - 1) * 24;
    // Each hour is read as fresh data, as overlap, and to settle it.
    assert!(counts(&history, settled_hours, &all).iter().all(|count| *count == 3));
    assert!(counts(&history, settled_hours, &[Why::Settle]).iter().all(|count| *count == 1));
    assert_eq!(history.iter().filter(|step| step.why == Why::Settle).count(), 364);
    assert_eq!(history.len(), 365 * 24 + 364);
    assert_eq!(state.settled_through().map(Timestamp::as_second), Some(SINCE + 364 * DAY));
}

#[test]
fn the_coverage_of_frequent_reads_stays_small() {
    let mut state = state(|input| input.lateness = seconds(7 * DAY));
    let mut now = SINCE + DAY;
    run(&mut state, now);
    let mut most = 0;
    for _ in 0..3_000 {
        now += MINUTE;
        run(&mut state, now);
        most = most.max(state.coverage.len());
    }
    assert!((900..=1_000).contains(&most), "{most}");
    assert_eq!(state.coverage.covered(), Ranges::from(to_horizon(&state, now)));
    now += 9 * DAY;
    run(&mut state, now);
    let settled = state.coverage.settled(state.feed());
    assert!(settled.contains(state.feed().range_to(now - 8 * DAY)));
}

fn any_state() -> impl Strategy<Value = FeedState> {
    let window = prop_oneof![Just(HOUR), Just(6 * HOUR), Just(DAY), Just(2 * DAY)];
    let width = prop_oneof![Just(None), Just(Some(60_u32)), Just(Some(420)), Just(Some(3_600))];
    (window, width, 0..3 * HOUR, 0..3 * DAY, 0..HOUR, 0..DAY).prop_map(
        |(window, width, overlap, lateness, lag, since)| {
            state(|input| {
                input.since = instant(SINCE + since);
                input.window = seconds(window);
                input.interval_seconds = width;
                input.overlap = seconds(overlap);
                input.lateness = seconds(lateness);
                input.settle_lag = seconds(lag);
            })
        },
    )
}

/// The settled windows at the newest read.
fn settled_windows(state: &FeedState) -> Ranges {
    let Some(newest) = state.newest_read() else { return Ranges::none() };
    let windows = state.windows(newest).into_iter();
    windows
        .filter(|window| window.state == WindowState::Settled)
        .map(|window| Range::between(window.start, window.end))
        .collect()
}

fn to_horizon(state: &FeedState, now: i64) -> Range {
    let feed = state.feed();
    feed.range_to(feed.horizon(now))
}

proptest! {
    #![proptest_config(crate::test_kit::cases(200))]

    #[test]
    fn a_run_leaves_no_gap(
        mut state in any_state(),
        pauses in proptest::collection::vec(1..4 * DAY, 1..12),
    ) {
        let mut now = SINCE;
        for pause in pauses {
            now += pause;
            let steps = run(&mut state, now);
            let to_horizon = to_horizon(&state, now);
            prop_assert_eq!(state.coverage.covered(), Ranges::from(to_horizon), "a gap at {}", now);
            prop_assert!(planned(&state, now, &Ranges::none()).is_empty());
            prop_assert_eq!(state.settled(), settled_windows(&state));
            let due = Range::new(i64::MIN, state.feed().settled_before(now));
            let settled = state.coverage.settled(state.feed());
            prop_assert!(settled.contains(to_horizon.and(due)), "due and not settled at {}", now);
            for step in steps {
                prop_assert_eq!(step.range.and(to_horizon), step.range, "outside the feed's range");
            }
        }
    }

    #[test]
    fn everything_is_settled_after_its_lateness(
        mut state in any_state(),
        runs in proptest::collection::vec((1..2 * DAY, 0..6_usize), 1..12),
    ) {
        // Runs stop after a few chains, as with a used-up allowance.
        let mut now = SINCE;
        for (pause, chains) in runs {
            now += pause;
            let mut done = Ranges::none();
            for _ in 0..chains {
                let Some(step) = planned(&state, now, &done).first().copied() else { break };
                read(&mut state, &step, now);
                done.add(step.range);
            }
        }
        let end = now;
        now += 3 * DAY + 3 * DAY + 2 * HOUR;
        run(&mut state, now);
        let settled = state.coverage.settled(state.feed());
        prop_assert!(settled.contains(state.feed().range_to(end)));
    }

    #[test]
    fn rereads_are_limited(
        mut state in any_state(),
        period in HOUR..DAY,
        runs in 1..60_i64,
    ) {
        let mut history = Vec::new();
        for number in 1..=runs {
            history.extend(run(&mut state, SINCE + DAY + number * period));
        }
        // The end of the reads advances in steps of at least this length.
        let (overlap, width) = (state.feed().overlap(), state.feed().width());
        let advance = crate::data::ranges::floor(period, width).max(width);
        let bound = 1 + (overlap + advance - 1) / advance + 1;
        let hours = (DAY + runs * period) / HOUR;
        // This counts instants instead of hours, because two chains may meet within an hour.
        for minute in 0..hours * 6 {
            let at = SINCE + minute * 10 * MINUTE;
            let count = history.iter().filter(|step| step.range.start <= at && at < step.range.end);
            let count = i64::try_from(count.count()).expect("a small number");
            prop_assert!(count <= bound, "{} was read {} times, bound {}", at, count, bound);
        }
    }

    #[test]
    fn s9_a_wrong_clock_leaves_no_gap(
        mut state in any_state(),
        wrong in prop_oneof![Just(-DAY), Just(DAY), -DAY..DAY, DAY..30 * DAY],
        pauses in proptest::collection::vec(1..DAY, 2..8),
        wrong_run in 0..8_usize,
    ) {
        // One run is planned by a wrong clock. Its chains cover ranges by the service's time.
        let mut now = SINCE + DAY;
        for (number, pause) in pauses.iter().enumerate() {
            now += pause;
            let planned_for = if number == wrong_run % pauses.len() { now + wrong } else { now };
            run_of(&mut state, planned_for, now);
            let limit = to_horizon(&state, now).end;
            prop_assert!(state.coverage.end().is_none_or(|end| end <= limit), "the future");
        }
        now += 1;
        run(&mut state, now);
        prop_assert_eq!(state.coverage.covered(), Ranges::from(to_horizon(&state, now)));
        now += 6 * DAY + 2 * HOUR;
        run(&mut state, now);
        let settled = state.coverage.settled(state.feed());
        prop_assert!(settled.contains(state.feed().range_to(now - 6 * DAY)));
    }

    #[test]
    fn only_late_chains_settle(
        mut state in any_state(),
        reads in proptest::collection::vec((0..5 * DAY, 1..2 * DAY, 0..8 * DAY), 1..10),
    ) {
        for (start, length, began) in &reads {
            let range = Range::new(SINCE + start, SINCE + start + length);
            let step = PlanStep { feed: 0, why: Why::Recent, range, pages: None, fills: false };
            read(&mut state, &step, SINCE + began);
        }
        let feed = state.feed().clone();
        let lateness = i64::try_from(feed.input().lateness.as_secs()).expect("seconds");
        for at in (SINCE..SINCE + 7 * DAY).step_by(1_801) {
            let window_end = crate::data::ranges::floor(at, feed.window()) + feed.window();
            let settles = reads.iter().any(|(start, length, began)| {
                let in_range = (SINCE + start..SINCE + start + length).contains(&at);
                let was_there = at < feed.horizon(SINCE + began);
                let end = crate::data::ranges::ceil(window_end, feed.width());
                in_range && was_there && end + lateness <= SINCE + began
            });
            let instant = Range::new(at, at + 1);
            prop_assert_eq!(state.coverage.settled(&feed).contains(instant), settles, "{}", at);
        }
    }
}
