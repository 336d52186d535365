//! The order of chains that are read concurrently.

use std::sync::atomic::Ordering;

use super::super::pending_write::Change;
use super::super::run_state::RunState;
use super::super::settings::SyncSettings;
use super::*;
use crate::data::{Chain, DecodeSettings, Shape};
use crate::error::{Error, Kind};
use crate::store::Applied;

const NOW: i64 = SINCE + 20 * HOUR;

fn named(number: usize) -> FeedState {
    state(|input| {
        input.name = format!("feed {number}");
        input.window = seconds(6 * HOUR);
        input.settle_lag = seconds(0);
    })
}

fn run(states: Vec<FeedState>) -> RunState {
    RunState::new(states, &SyncSettings::default(), instant(NOW)).expect("a run")
}

/// Begins the next chain.
fn next(run: &mut RunState, left: Option<u64>) -> Option<PlanStep> {
    let step = run.next(|| Ok(allowance(left, SINCE + DAY))).expect("an allowance")?;
    let query = run.state(step.feed).feed().query_of(step.range).expect("a query");
    let settings = DecodeSettings::for_query(&query, Shape::default(), Vec::new());
    let chain = Chain::new(query, Arc::new(settings.expect("settings")), "origin", None);
    run.begin(step, chain, run.chain(&step));
    Some(step)
}

/// Begins chains until none may begin. Returns their classes and feeds.
fn begun(run: &mut RunState) -> Vec<(Why, usize)> {
    std::iter::from_fn(|| next(run, None)).map(|step| (step.why, step.feed)).collect()
}

/// Applies the only page of a current chain.
fn read(run: &mut RunState, feed: usize) {
    arrives(run, feed);
    applied(run);
}

fn arrives(run: &mut RunState, feed: usize) {
    let step = run.under_way[&feed].step;
    let page = page(run.state(feed).next_sequence, true, 0..0);
    let read_at = instant(NOW);
    let chain = UnfinishedChain { began: Some(NOW), pages: 1, ..run.chain(&step) };
    run.write(feed, chain, Change::Page { page, read_at, begun_here: true });
    run.chain_over(feed);
}

fn applied(run: &mut RunState) {
    let write = run.pending.pop_front().expect("a write");
    let state = run.after(&write);
    run.applied(&write, state, Some(Applied::default()));
}

#[test]
fn a_feed_has_one_chain_at_a_time() {
    let mut run = run((0..3).map(named).collect());
    assert_eq!(begun(&mut run), [(Why::Recent, 0), (Why::Recent, 1), (Why::Recent, 2)]);
    arrives(&mut run, 1);
    assert_eq!(begun(&mut run), [], "its page is pending, and the others are more urgent");
    applied(&mut run);
    assert_eq!(begun(&mut run), [], "the others are in progress");
    read(&mut run, 2);
    read(&mut run, 0);
    assert_eq!(begun(&mut run), [(Why::Backfill, 0), (Why::Backfill, 1), (Why::Backfill, 2)]);
    assert!(!run.expected_pages().1, "chains are in progress");
    read(&mut run, 0);
    assert_eq!(begun(&mut run), [(Why::Backfill, 0)], "its next window");
}

#[test]
fn a_chain_waits_for_more_urgent_classes() {
    let mut states: Vec<FeedState> = (0..2).map(named).collect();
    // After a long pause the first feed has two fresh ranges. The second only has windows to fill.
    states[0].coverage.cover(Range::new(SINCE, SINCE + 10 * HOUR), SINCE + 10 * HOUR);
    states[1].coverage.cover(Range::new(SINCE + 6 * HOUR, NOW), NOW);
    let mut run = run(states);
    assert_eq!(begun(&mut run), [(Why::Recent, 0)]);
    read(&mut run, 0);
    assert_eq!(begun(&mut run), [(Why::Recent, 0)], "its other fresh range");
    read(&mut run, 0);
    assert_eq!(begun(&mut run), [(Why::Backfill, 1), (Why::Backfill, 0)]);
}

#[test]
fn a_resumed_fill_leaves_pages_for_urgent_chains() {
    let unfinished = |why| {
        let mut state = named(usize::from(why == Why::Recent));
        let range = Range::new(SINCE, SINCE + 6 * HOUR);
        let began = Some(NOW - HOUR);
        state.keep_chain(UnfinishedChain { began, ..UnfinishedChain::new(range, why, 0) });
        state
    };
    let mut run = run(vec![unfinished(Why::Backfill), unfinished(Why::Recent)]);
    let step = next(&mut run, Some(9)).expect("a step");
    assert_eq!((step.why, step.feed, step.fills), (Why::Resume, 0, true));
    // It leaves a page for each more urgent chain.
    let urgent = run.urgent_pages();
    assert!(urgent >= 3, "{urgent}");
    assert_eq!(run.under_way[&0].spending.must_remain.load(Ordering::Relaxed), urgent);
    assert_eq!(begun(&mut run), [(Why::Resume, 1)]);
    // It leaves the pages of the concurrent urgent chain until they are read.
    let keeps = |run: &RunState| run.under_way[&0].spending.must_remain.load(Ordering::Relaxed);
    assert_eq!(keeps(&run), urgent);
    read(&mut run, 1);
    assert_eq!(keeps(&run), run.urgent_pages());
    read(&mut run, 0);
    assert_eq!(begun(&mut run), [(Why::Recent, 0), (Why::Recent, 1)]);
}

#[test]
fn expected_pages_include_planned_and_pending_pages() {
    let mut states: Vec<FeedState> = (0..2).map(named).collect();
    for state in &mut states {
        state.coverage.cover(Range::new(SINCE, NOW - HOUR), NOW - HOUR);
        state.density.learn(6 * HOUR, 1, 360, 360);
    }
    let mut run = run(states);
    assert_eq!(run.expected_pages(), (Some(2), false));
    begun(&mut run);
    assert_eq!(run.expected_pages(), (Some(2), false), "in progress");
    arrives(&mut run, 0);
    assert_eq!(run.expected_pages(), (Some(2), false), "not yet applied");
    applied(&mut run);
    assert_eq!(run.expected_pages(), (Some(1), false));
    read(&mut run, 1);
    assert_eq!(run.expected_pages(), (Some(0), true));
}

#[test]
fn p13_a_feed_is_planned_after_its_pause() {
    let mut state = named(0);
    state.coverage.cover(Range::new(SINCE + 6 * HOUR, NOW), NOW);
    let range = Range::new(SINCE, SINCE + 6 * HOUR);
    let chain = UnfinishedChain { pages: 1, ..UnfinishedChain::new(range, Why::Backfill, 0) };
    state.give_up(&chain, Some((NOW - 2, Kind::EndlessChain)));
    let mut run = run(vec![state]);
    let now = run.now;
    for (clock, is_planned) in [(NOW, false), (NOW - 2 + DAY - 1, false), (NOW - 2 + DAY, true)] {
        run.set_times(instant(clock), now);
        assert_eq!(!run.is_planned_out(), is_planned, "{clock}");
    }
    run.set_times(instant(NOW), now);
    assert!(run.is_planned_out(), "the clock is set back");
    run.skip(0, range, Error::new(Kind::RequestRejected, "refused"));
    run.set_times(instant(NOW + 2 * DAY), now);
    assert!(run.is_planned_out(), "it failed");
}

#[test]
fn concurrent_chains_leave_each_others_reserve() {
    let mut states: Vec<FeedState> = (0..2)
        .map(|number| {
            state(|input| {
                input.name = format!("feed {number}");
                (input.window, input.lateness) = (seconds(6 * HOUR), seconds(11 * HOUR));
                input.settle_lag = seconds(0);
            })
        })
        .collect();
    for state in &mut states {
        // One window is unread. It becomes due today.
        state.coverage.cover(Range::new(SINCE, SINCE + 6 * HOUR), NOW);
        state.coverage.cover(Range::new(SINCE + 12 * HOUR, NOW), NOW);
        state.density.learn(6 * HOUR, 4, 400, 100);
    }
    let mut run = run(states);
    let keeps = |run: &RunState, feed: usize| {
        run.under_way[&feed].spending.must_remain.load(Ordering::Relaxed)
    };
    let first = next(&mut run, Some(99)).expect("a step");
    assert_eq!((first.why, first.pages, keeps(&run, first.feed)), (Why::Backfill, Some(4), 0));
    let second = next(&mut run, Some(99)).expect("a step");
    assert_eq!([first, second].map(|step| keeps(&run, step.feed)), [4, 4]);
    arrives(&mut run, second.feed);
    assert_eq!(keeps(&run, first.feed), 4, "its page is not yet applied");
    applied(&mut run);
    let (reserved, coming) = run.reserve();
    assert_eq!(keeps(&run, first.feed), reserved);
    assert!(reserved > 0 && coming > 0);
    // A rejected chain adds nothing.
    let chain = run.chain(&first);
    run.refused(first.feed, &chain, &allowance(Some(1), SINCE + DAY), None);
    run.chain_over(first.feed);
    assert_eq!(run.reserve().1, 0);
}
