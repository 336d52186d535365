//! The shares of the feeds of a store in a range, and the chains that read the rest.

use super::super::settings::Only;
use super::super::shares::{Asked, FeedShare, range_of, shares};
use super::*;
use crate::data::{Query, QueryInput};
use crate::error::{Kind, Result};

const SERVICE: &str = "http://127.0.0.1:1";

/// A feed with buckets of one minute that begins on this day, with these days settled.
fn known(name: &str, since: i64, settled: Option<(i64, i64)>) -> (String, FeedState) {
    let mut state = state(|input| {
        name.clone_into(&mut input.name);
        input.since = day(since).instants().0;
    });
    if let Some((from, to)) = settled {
        state.coverage.cover(days(from, to), day(to + 5).start);
    }
    (name.to_owned(), state)
}

fn minutes() -> Query {
    Query::new(QueryInput { interval_seconds: Some(60), ..QueryInput::default() }).expect("a query")
}

fn asked(query: &Query, range: Range) -> Asked<'_> {
    Asked { query, range, service: SERVICE, settle_lag: seconds(600), reads_once: false }
}

fn given(states: &[(String, FeedState)], range: Range) -> Result<Vec<FeedShare>> {
    shares(states, &asked(&minutes(), range))
}

/// Days, as numbers from the first one.
type Days = Vec<(i64, i64)>;

/// The name of a feed, its settled days, and the days that it must read.
type Share<'a> = (&'a str, Days, Days);

fn in_days(shares: &[FeedShare]) -> Vec<(String, Days, Days)> {
    let numbers = |ranges: &Ranges| {
        ranges.iter().map(|one| ((one.start - SINCE) / DAY, (one.end - SINCE) / DAY)).collect()
    };
    let row = |share: &FeedShare| {
        (share.name().to_owned(), numbers(&share.settled), numbers(&share.missing))
    };
    shares.iter().map(row).collect()
}

const OWN: &str = "data interval=1m";

#[test]
fn an_empty_store_gets_a_feed_for_the_range() {
    let shares = given(&[], days(3, 5)).expect("shares");
    assert_eq!(in_days(&shares), [(OWN.to_owned(), vec![], vec![(3, 5)])]);
    let input = shares[0].state.feed().input();
    assert_eq!((input.since, input.settle_lag), (day(3).instants().0, seconds(600)));
    assert!(!shares[0].is_redefined);
}

#[test]
fn a_single_read_accepts_unsettled_data() {
    let query = minutes();
    let once = |range| Asked { reads_once: true, settle_lag: seconds(0), ..asked(&query, range) };
    let (_, mut state) = super::shares::known(OWN, 0, None);
    // Read at its end, and therefore not settled.
    state.coverage.cover(days(0, 2), day(2).start);
    let states = [(OWN.to_owned(), state)];
    let known = shares(&states, &once(days(0, 3))).expect("shares");
    assert_eq!(in_days(&known), [(OWN.to_owned(), vec![(0, 2)], vec![(2, 3)])]);
    // A new feed reads the whole range in one chain.
    let new = shares(&[], &once(days(0, 30))).expect("shares");
    let window = i64::try_from(new[0].state.feed().input().window.as_secs()).expect("a width");
    let first = |second: i64| second.div_euclid(window);
    assert_eq!(first(day(0).start), first(day(30).start - 1));
}

#[test]
fn feeds_share_the_requested_days() {
    let mine = || vec![known("mine", 0, Some((1, 3)))];
    let several = vec![
        known(OWN, 0, Some((0, 4))),
        known("late", 4, Some((4, 6))),
        known("more", 4, Some((4, 8))),
    ];
    // The third day is a gap within the feed.
    let gap = || {
        let mut state = known("mine", 0, Some((0, 3)));
        state.1.coverage.cover(day(4), day(9).start);
        vec![state]
    };
    let cases: [(_, _, Vec<Share<'_>>); 6] = [
        (mine(), days(2, 6), vec![("mine", vec![(2, 3)], vec![(3, 6)])]),
        (mine(), days(1, 3), vec![("mine", vec![(1, 3)], vec![])]),
        // No feed reads what another has settled.
        (
            several,
            days(0, 9),
            vec![("more", vec![(4, 8)], vec![(8, 9)]), (OWN, vec![(0, 4)], vec![])],
        ),
        // The feed for reads covers the days before another feed begins.
        (
            vec![known("late", 4, Some((5, 6)))],
            days(2, 7),
            vec![("late", vec![(5, 6)], vec![(4, 5), (6, 7)]), (OWN, vec![], vec![(2, 4)])],
        ),
        // A feed reads its gap and adjoining days. Days further on would be a new gap.
        (gap(), days(2, 6), vec![("mine", vec![(2, 3), (4, 5)], vec![(3, 4), (5, 6)])]),
        (gap(), days(6, 8), vec![(OWN, vec![], vec![(6, 8)])]),
    ];
    for (states, range, expected) in cases {
        let shares = given(&states, range).expect("shares");
        let expected = expected
            .into_iter()
            .map(|(name, settled, missing)| (name.to_owned(), settled, missing));
        assert_eq!(in_days(&shares), expected.collect::<Vec<_>>());
        assert!(shares.iter().all(|share| !share.is_redefined));
    }
}

#[test]
fn the_feed_for_reads_has_a_unique_name() {
    let mut other = known(OWN, 0, Some((0, 9)));
    other.1 = {
        let input = FeedInput { line: Some("L1".to_owned()), ..other.1.feed().input().clone() };
        FeedState::new(&Feed::new(input).expect("a feed"), SERVICE)
    };
    let elsewhere = FeedState::new(known(OWN, 0, None).1.feed(), "http://127.0.0.1:2");
    for states in [vec![other], vec![(OWN.to_owned(), elsewhere)]] {
        let first = given(&states, days(0, 2)).expect("shares");
        assert_ne!(first[0].name(), OWN);
        assert!(first[0].name().starts_with(OWN));
        // The next read finds it.
        let again = [states, vec![(first[0].name().to_owned(), first[0].state.clone())]].concat();
        let second = given(&again, days(0, 3)).expect("shares");
        assert_eq!((second.len(), second[0].name()), (1, first[0].name()));
    }
}

#[test]
fn the_feed_for_reads_can_begin_earlier() {
    let mut states = [known(OWN, 4, Some((4, 6)))];
    let chain = UnfinishedChain { pages: 1, ..UnfinishedChain::new(day(7), Why::Reread, 1) };
    states[0].1.keep_chain(chain.clone());
    let shares = given(&states, days(2, 8)).expect("shares");
    assert_eq!(in_days(&shares), [(OWN.to_owned(), vec![(4, 6)], vec![(2, 4), (6, 8)])]);
    let state = &shares[0].state;
    assert_eq!(state.kept().since(), day(2).start);
    assert_eq!((&state.coverage, &state.chains), (&states[0].1.coverage, &vec![chain]));
    assert!(shares[0].is_redefined);

    states[0].1 = states[0].1.forget(day(5).instants().0).expect("a read time");
    assert_error(given(&states, days(2, 8)), Kind::QueryError, "were forgotten");
    assert_eq!(in_days(&given(&states, days(5, 8)).expect("shares"))[0].2, [(6, 8)]);
}

/// The page size of each feed, and whether it is redefined.
type Sizes = Vec<(Option<u32>, bool)>;

#[test]
fn the_feed_for_reads_adopts_the_page_size() {
    let mut states = [known(OWN, 0, Some((0, 2))), known("mine", 6, None)];
    let size = |states: &[(String, FeedState)], range, page_size| {
        let query = Query::new(QueryInput { page_size, ..minutes().input().clone() });
        let shares = shares(states, &asked(&query.expect("a query"), range)).expect("shares");
        shares.iter().map(|one| (one.state.feed().input().page_size, one.is_redefined)).collect()
    };
    let unfinished = UnfinishedChain::new(day(2), Why::Reread, 1);
    let expected: [(_, _, Sizes); 4] = [
        (days(1, 3), Some(9), vec![(Some(9), true)]),
        (days(1, 3), None, vec![(None, false)]),
        // Nothing is read, or another feed reads it.
        (days(0, 1), Some(9), vec![(None, false)]),
        (days(6, 7), Some(9), vec![(None, false)]),
    ];
    for (range, page_size, expected) in expected {
        let sizes: Sizes = size(&states, range, page_size);
        assert_eq!(sizes, expected, "{page_size:?}");
    }
    // Unfinished chains keep their page size.
    states[0].1.keep_chain(unfinished);
    let sizes: Sizes = size(&states, days(1, 3), Some(9));
    assert_eq!(sizes, [(None, false)]);
}

#[test]
fn only_the_page_size_may_differ() {
    let states = [known("mine", 0, Some((0, 9)))];
    for (change, is_same) in [
        ((|input| input.page_size = Some(7)) as fn(&mut QueryInput), true),
        (|input| input.site = vec!["S1".to_owned()], false),
        (|input| input.line = vec!["L1".to_owned()], false),
        (|input| input.interval_seconds = Some(120), false),
        (|input| input.interval_seconds = None, false),
        (|input| input.filters = vec![("a".to_owned(), vec!["1".to_owned()])], false),
    ] {
        let mut input = minutes().input().clone();
        change(&mut input);
        let query = Query::new(input).expect("a query");
        let shares = shares(&states, &asked(&query, day(1))).expect("shares");
        assert_eq!(shares[0].name() == "mine", is_same, "{query}");
        assert_eq!(shares[0].missing.is_empty(), is_same, "{query}");
    }
    let query = minutes();
    let elsewhere = Asked { service: "http://127.0.0.1:2", ..asked(&query, day(1)) };
    assert_eq!(shares(&states, &elsewhere).expect("shares")[0].name(), OWN);
}

#[test]
fn any_parameters_give_a_valid_name() {
    let name = |input: QueryInput| {
        let query = Query::new(input).expect("a query");
        let shares = shares(&[], &asked(&query, day(0))).expect("shares");
        shares[0].name().to_owned()
    };
    let input = QueryInput::default;
    assert_eq!(name(input()), "data everything");
    let ids = |site: &str| QueryInput {
        site: vec![site.to_owned()],
        line: vec!["L 2".to_owned()],
        filters: vec![("machineId".to_owned(), vec!["M1".to_owned(), "M2".to_owned()])],
        interval_seconds: Some(300),
        ..input()
    };
    assert_eq!(name(ids("S1")), "data site=S1 line=L 2 machineId=M1,M2 interval=5m");
    let long = |last: &str| name(ids(&format!("{}{last}", "x".repeat(400))));
    assert_ne!(long("a"), long("b"));
    assert!(long("a").chars().count() <= 200);
    // Buckets of a week need a window of that length.
    let weeks = QueryInput { interval_seconds: Some(7 * 86_400), ..input() };
    assert_eq!(name(weeks), "data interval=7d");
}

#[test]
fn a_range_without_a_start_is_refused() {
    assert_error(range_of(&minutes()), Kind::QueryError, "start=None");
}

fn planned_within(state: &FeedState, only: Range, now: i64) -> Vec<(Why, Range)> {
    let (none, only) = (Ranges::none(), Only { ranges: only.into(), ..Only::default() });
    let known = FeedRun::new(state.clone(), Some(only));
    let steps = steps(&[known], &PlanTerms { now, until: None, reread: &none, clock: Some(now) });
    steps.iter().map(|step| (step.why, step.range)).collect()
}

#[test]
fn only_unsettled_requested_ranges_are_read() {
    let mut state = state(|_| {});
    // Day 0 is due, day 1 is settled, day 3 is unread. None of them is requested.
    state.coverage.cover(day(0), day(0).end);
    state.coverage.cover(day(1), day(8).start);
    let now = day(9).start;
    assert_eq!(planned_within(&state, day(1), now), []);
    assert_eq!(planned_within(&state, day(0), now), [(Why::Reread, day(0))]);
    let half = Range::new(day(1).start, day(2).start + HOUR + 1);
    let rest = Range::new(day(2).start, day(2).start + HOUR + MINUTE);
    assert_eq!(planned_within(&state, half, now), [(Why::Reread, rest)], "whole buckets");
    // The range within the settle lag or in the future is one chain of any length.
    let horizon = now - 5 * MINUTE;
    let behind = Range::new(horizon - HOUR, horizon);
    let ahead = Range::new(horizon, now + 90 * DAY);
    let read = planned_within(&state, Range::new(behind.start, ahead.end), now);
    assert_eq!(read, [(Why::Reread, behind), (Why::Reread, ahead)]);
}

#[test]
fn an_unfinished_chain_is_resumed_if_recent_enough() {
    let now = day(9).start;
    let chain = |range, began| UnfinishedChain {
        began: Some(began),
        pages: 2,
        bookmark: Some("bookmark".to_owned()),
        ..UnfinishedChain::new(range, Why::Backfill, 1)
    };
    let mut state = state(|_| {});
    let morning = Range::new(day(8).start, day(8).start + 6 * HOUR);
    for (range, began, resumed) in [
        (morning, now - HOUR, Why::Resume),
        (morning, now - HOUR - 1, Why::Reread),
        // It began after the lateness of its day.
        (day(5), day(7).start, Why::Resume),
        (day(5), day(7).start - 1, Why::Reread),
    ] {
        state.chains = vec![chain(range, began)];
        assert_eq!(planned_within(&state, range, now), [(resumed, range)]);
    }
    // A chain of the same request is resumed at any age.
    let began = now - 9 * HOUR;
    let range = Range::new(day(8).start, day(8).start + HOUR);
    state.chains = vec![chain(range, began)];
    let (none, resumed_since) = (Ranges::none(), Some(Range::new(began, now).instants().0));
    let only = Only { ranges: range.into(), resumed_since };
    let known = FeedRun::new(state.clone(), Some(only));
    let terms = PlanTerms { now, until: None, reread: &none, clock: Some(now) };
    assert_eq!(steps(&[known], &terms)[0].why, Why::Resume);
    // The range within the settle lag at its beginning may lack points.
    let last = Range::new(now - 3 * HOUR, now - 2 * HOUR);
    for (began, resumed) in
        [(last.end + 5 * MINUTE, Why::Resume), (last.end + 5 * MINUTE - 1, Why::Reread)]
    {
        state.chains = vec![chain(last, began)];
        assert_eq!(planned_within(&state, last, began + HOUR), [(resumed, last)]);
    }
    // A chain beyond the requested range is not resumed.
    state.chains = vec![chain(days(4, 6), day(8).start)];
    assert_eq!(planned_within(&state, day(5), now), [(Why::Reread, day(5))]);
    state.chains[0].why = Why::Audit;
    assert_eq!(planned_within(&state, days(4, 6), now)[0].0, Why::Reread);
}
