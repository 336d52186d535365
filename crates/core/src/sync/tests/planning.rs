//! The planned chains at different times.

use super::super::plan::MOST_PAGES;
use super::super::run_state::RunState;
use super::super::settings::SyncSettings;
use super::*;

/// A feed with buckets of an hour, windows of six hours, a lateness of a day, and no settle lag.
fn hourly() -> FeedState {
    state(|input| {
        input.interval_seconds = Some(3_600);
        input.settle_lag = Duration::ZERO;
        input.window = seconds(6 * HOUR);
    })
}

fn covered(state: &mut FeedState, from: i64, to: i64, read_at: i64) {
    state.coverage.cover(hours(from, to), SINCE + read_at * HOUR);
}

#[test]
fn the_first_run_reads_the_last_window_first() {
    let steps = planned(&hourly(), SINCE + 20 * HOUR, &Ranges::none());
    let fill = |from, to| (Why::Backfill, from, to);
    assert_eq!(in_hours(&steps), [(Why::Recent, 18, 20), fill(0, 6), fill(6, 12), fill(12, 18)]);
    // On a window boundary the last window has just ended.
    let steps = planned(&hourly(), SINCE + 18 * HOUR, &Ranges::none());
    assert_eq!(in_hours(&steps)[0], (Why::Recent, 12, 18));
}

#[test]
fn nothing_is_planned_without_a_new_bucket() {
    let mut state = state(|_| {});
    let now = SINCE + 2 * HOUR;
    assert!(!run(&mut state, now).is_empty());
    assert!(planned(&state, now, &Ranges::none()).is_empty());
    assert!(planned(&state, now + 59, &Ranges::none()).is_empty(), "the newest minute");
    assert_eq!(planned(&state, now + 60, &Ranges::none()).len(), 1);
    assert!(planned(&state, SINCE - DAY, &Ranges::none()).is_empty(), "before its beginning");
}

#[test]
fn the_last_window_is_fresh_with_an_overlap() {
    let mut state = hourly();
    covered(&mut state, 0, 10, 10);
    let steps = planned(&state, SINCE + 12 * HOUR, &Ranges::none());
    assert_eq!(in_hours(&steps), [(Why::Recent, 9, 12)]);
    let steps = planned(&state, SINCE + 21 * HOUR, &Ranges::none());
    let expected = [
        (Why::Recent, 9, 10),
        (Why::Recent, 18, 21),
        (Why::Backfill, 10, 12),
        (Why::Backfill, 12, 18),
    ];
    assert_eq!(in_hours(&steps), expected);
}

#[test]
fn unfinished_chains_are_resumed_unless_superseded() {
    let mut state = hourly();
    covered(&mut state, 0, 2, 2);
    let range = hours(1, 5);
    let began = Some(SINCE + 5 * HOUR);
    state.keep_chain(UnfinishedChain { began, ..UnfinishedChain::new(range, Why::Recent, 0) });
    let steps = planned(&state, SINCE + 8 * HOUR, &Ranges::none());
    // The fresh range is planned as if the chain had ended.
    let edge = [(Why::Recent, 4, 8)];
    assert_eq!(in_hours(&steps), [&[(Why::Resume, 1, 5)], &edge[..]].concat());
    let steps = planned(&state, SINCE + 31 * HOUR, &Ranges::none());
    assert!(steps.iter().all(|step| step.why != Why::Resume), "its window is due");
    assert!(in_hours(&steps).contains(&(Why::Settle, 0, 6)));
    covered(&mut state, 1, 5, 6);
    let steps = planned(&state, SINCE + 8 * HOUR, &Ranges::none());
    assert!(steps.iter().all(|step| step.why != Why::Resume), "read by a later chain");
    state.drop_superseded(SINCE + 8 * HOUR);
    assert_eq!(state.unfinished_chains(), 0);
}

#[test]
fn until_limits_and_reread_adds_ranges() {
    let mut state = hourly();
    covered(&mut state, 0, 20, 48);
    let known = [FeedRun::new(state.clone(), None)];
    let at = |hour: i64| SINCE + hour * HOUR;
    // The range to reread is widened to complete buckets.
    let reread = Ranges::from(Range::new(at(3) + 5, at(5)));
    let terms = |until| PlanTerms { now: at(48), until, reread: &reread, clock: None };
    let steps_to = |hour| in_hours(&steps(&known, &terms(Some(at(hour)))));
    assert_eq!(steps_to(4), [(Why::Reread, 3, 4)]);
    assert_eq!(steps_to(20), [(Why::Reread, 3, 5)]);
    assert_eq!(steps_to(22), [(Why::Reread, 3, 5), (Why::Recent, 20, 22)]);
}

#[test]
fn feeds_are_planned_together_in_order_of_class() {
    let (mut one, mut other) = (hourly(), hourly());
    covered(&mut one, 0, 3, 3);
    covered(&mut other, 0, 29, 29);
    let none = Ranges::none();
    let known = [&one, &other].map(|state| FeedRun::new(state.clone(), None));
    let terms = PlanTerms { now: SINCE + 32 * HOUR, until: None, reread: &none, clock: None };
    let order: Vec<_> = steps(&known, &terms).iter().map(|step| (step.why, step.feed)).collect();
    assert!(order.is_sorted_by_key(|(why, _)| *why), "{order:?}");
    assert_eq!(order[..2], [(Why::Recent, 1), (Why::Recent, 0)]);
    assert!(order.contains(&(Why::Settle, 0)) && order.contains(&(Why::Settle, 1)));
}

#[test]
fn neighbouring_windows_are_joined_into_chains() {
    let mut state = state(|_| {});
    let now = SINCE + 365 * DAY + 6 * MINUTE;
    let steps = run(&mut state, now);
    let days: Vec<i64> = steps.iter().map(|step| step.range.seconds() / DAY).collect();
    // Each chain is at most twice as long as the previous one, up to the limit.
    assert_eq!(days[..7], [0, 1, 2, 4, 8, 16, 31]);
    assert!(days[7..].iter().all(|days| *days <= 31), "{days:?}");
    assert!(steps.len() < 20, "{}", steps.len());
}

#[test]
fn a_window_of_many_pages_is_divided() {
    let mut state = state(|_| {});
    state.density.learn(HOUR, 101, 100_000, 0);
    let steps = planned(&state, SINCE + 3 * DAY, &Ranges::none());
    assert!(steps.iter().all(|step| step.pages.is_some_and(|pages| pages <= MOST_PAGES)));
    let fill: Vec<Range> =
        steps.iter().filter(|step| step.why == Why::Backfill).map(|step| step.range).collect();
    assert!(fill.iter().all(|range| range.seconds() == fill[0].seconds()), "{fill:?}");
    assert_eq!(DAY % fill[0].seconds(), 0);
}

#[test]
fn pages_of_windows_due_today_are_reserved() {
    let mut state = hourly();
    covered(&mut state, 0, 30, 30);
    let reserved_by = |state: &FeedState, left, hour: i64| {
        let (states, now) = (vec![state.clone()], instant(SINCE + 31 * HOUR));
        let mut run = RunState::new(states, &SyncSettings::default(), now).expect("a run");
        run.set_reset(&allowance(left, SINCE + hour * HOUR));
        run.reserve().0
    };
    let reserved = |left, hour| reserved_by(&state, left, hour);
    // Windows become due at hours 36, 42 and 48; the allowance resets at 48.
    assert_eq!(reserved(Some(100), 48), 2);
    assert_eq!(reserved(Some(100), 36), 0);
    assert_eq!(reserved(None, 48), 0);
    state.density.learn(6 * HOUR, 5, 5_000, 1_000);
    assert_eq!(reserved_by(&state, Some(9), 48), 10);
}
