//! Feeds of which a part was forgotten: it is not read again, and no read takes it for empty.

use super::super::range_coverage::{Known, RangeCoverage, Unread};
use super::super::{WindowState, plan};
use super::*;
use crate::error::Kind;

/// A feed of which ten days were read, half a day after their end, and their lateness is over for eight.
fn ten_days() -> FeedState {
    let mut state = state(|_| {});
    state.coverage.cover(Range::new(SINCE, SINCE + 10 * DAY), SINCE + 10 * DAY + DAY / 2);
    state
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a timestamp")
}

fn day(number: i64) -> Timestamp {
    at(SINCE + number * DAY)
}

/// The ranges that a run plans, in hours after the feed's beginning.
fn planned_at(state: &FeedState, now: i64, reread: &Ranges) -> Vec<(Why, i64, i64)> {
    let known = FeedRun::new(state.clone(), None);
    let steps = plan::steps(&[known], &PlanTerms { now, until: None, reread, clock: Some(now) });
    let hours = |second: i64| (second - SINCE) / HOUR;
    steps.iter().map(|s| (s.why, hours(s.range.start), hours(s.range.end))).collect()
}

#[test]
fn what_was_forgotten_is_planned_for_no_reason() {
    let now = SINCE + 12 * DAY;
    let mut state = state(|input| input.audit_pages = 50);
    // Days 3 to 5 were never read; day 9 is due.
    for (from, to) in [(0, 3), (5, 9)] {
        state.coverage.cover(Range::new(SINCE + from * DAY, SINCE + to * DAY), now - DAY);
    }
    state.coverage.cover(Range::new(SINCE + 9 * DAY, SINCE + 10 * DAY), SINCE + 10 * DAY);
    state.density.learn(DAY, 2, 1_440, 720);
    let all = Ranges::from(Range::new(SINCE - DAY, now));
    for reread in [Ranges::none(), all] {
        let before = planned_at(&state, now, &reread);
        assert!(before.iter().any(|(_, start, _)| *start < 90), "{before:?}");
        let kept = state.forget(at(SINCE + 4 * DAY + 90)).expect("read");
        let after = planned_at(&kept, now, &reread);
        assert!(after.iter().all(|(_, start, _)| *start >= 96), "{after:?}");
        assert!(
            after.iter().any(|(_, start, _)| *start < 120),
            "what is kept is filled: {after:?}"
        );
    }
}

#[test]
fn a_feed_begins_where_its_points_are_kept() {
    let state = ten_days();
    assert_eq!(state.settled_through(), Some(day(9)));
    // Half a minute is not on the grid of the buckets.
    let kept = state.forget(at(SINCE + 3 * DAY + 30)).expect("read");
    assert_eq!((kept.kept_from, kept.feed()), (Some(SINCE + 3 * DAY), state.feed()));
    assert_eq!([kept.read_through(), kept.settled_through()], [Some(day(10)), Some(day(9))]);
    let windows: Vec<_> = kept.windows(day(11)).iter().map(|w| (w.start, w.state)).collect();
    let expected = (0..3).map(|number| (day(number), WindowState::Forgotten));
    assert_eq!(windows[..3], expected.collect::<Vec<_>>());
    assert_eq!(windows[3], (day(3), WindowState::Settled));
    assert_eq!(kept.windows(day(11)).len(), state.windows(day(11)).len());
    // An earlier time changes nothing, a later one forgets more, and the whole is possible.
    assert_eq!(kept.forget(day(2)).expect("read"), kept);
    assert_eq!(kept.forget(day(5)).expect("read").kept_from, Some(SINCE + 5 * DAY));
    assert_eq!(kept.forget(day(10)).expect("read").read_through(), None);
    let error = kept.forget(at(SINCE + 10 * DAY + 60)).expect_err("never read");
    assert_eq!(error.kind(), Kind::QueryError);
    assert!(error.to_string().contains("the newest instant of feed \"feed\""), "{error}");
    let fresh = FeedState::new(state.feed(), "http://127.0.0.1:1");
    assert_eq!(fresh.forget(day(1)).expect_err("never read").kind(), Kind::QueryError);
    assert_eq!(fresh.forget(day(-1)).expect("nothing to forget"), fresh);
}

#[test]
fn the_state_keeps_what_was_forgotten_also_when_the_feed_is_redefined() {
    let kept = ten_days().forget(day(3)).expect("read");
    assert_eq!(FeedState::from_bytes(&kept.to_bytes()).expect("a state"), kept);
    let times = feed(|input| input.lateness = seconds(2 * DAY));
    let redefined = kept.redefine(&times).expect("times may change");
    assert_eq!((redefined.feed(), redefined.kept_from), (&times, Some(SINCE + 3 * DAY)));
    kept.check(kept.feed(), "http://127.0.0.1:1").expect("the definition is the same");
}

#[test]
fn chains_that_reach_before_it_are_given_up_and_begin_again_where_points_are_kept() {
    let mut state = ten_days();
    let now = SINCE + 10 * DAY + DAY / 2;
    for (from, to) in [(1, 2), (2, 4), (5, 6)] {
        let range = Range::new(SINCE + from * DAY, SINCE + to * DAY);
        let chain = UnfinishedChain::new(range, Why::Reread, 0);
        state.keep_chain(UnfinishedChain { began: Some(now), pages: 1, ..chain });
        state.coverage = without(&state, range);
    }
    let kept = state.forget(day(3)).expect("read");
    assert_eq!(kept.unfinished_chains(), 1);
    let begun: Vec<Range> = kept.begun().iter().collect();
    let days = |from, to| Range::new(SINCE + from * DAY, SINCE + to * DAY);
    assert_eq!(begun, [days(3, 4), days(5, 6)], "their points are not all there");
    let planned = planned_at(&kept, now, &Ranges::none());
    assert!(planned.contains(&(Why::Resume, 120, 144)), "{planned:?}");
    assert!(planned.contains(&(Why::Backfill, 72, 96)), "{planned:?}");
}

/// The coverage without a range.
fn without(state: &FeedState, range: Range) -> super::super::coverage::Coverage {
    let mut left = super::super::coverage::Coverage::default();
    for read in state.coverage.iter() {
        for part in Ranges::from(read.range).without(&range.into()).iter() {
            left.cover(part, read.read_at);
        }
    }
    left
}

#[test]
fn s22_a_read_of_what_was_forgotten_fails_or_says_so() {
    let kept = ten_days().forget(day(3)).expect("read");
    let found = |start: Option<i64>, end: Option<i64>| {
        RangeCoverage::new((start.map(day), end.map(day)), &Known::of(&kept), false)
    };
    let days = |from, to| Ranges::from(Range::new(SINCE + from * DAY, SINCE + to * DAY));
    let part = found(Some(1), Some(5));
    assert_eq!((&part.forgotten, &part.unread, part.complete), (&days(1, 3), &days(1, 3), false));
    let error = part.check("feed", Unread::Error).expect_err("forgotten");
    assert_eq!(error.kind(), Kind::UnreadRange);
    let text = error.to_string();
    let shown = format!("feed \"feed\": forgotten: {} to {}", day(1), day(3));
    assert!(text.contains(&shown) && !text.contains("unread:"), "{text}");
    assert!(error.context().hint.as_deref().is_some_and(|hint| hint.contains("another name")));
    assert_eq!(error.context().spans, [(day(1), day(3))]);
    let warning = part.check("feed", Unread::Warn).expect("a warning").expect("one");
    assert!(warning.contains("forgotten: ") && warning.contains("left out"), "{warning}");
    // Without a range a read begins where points are kept.
    let all = found(None, None);
    assert!(all.complete && all.forgotten.is_empty() && all.unread.is_empty());
    assert!(found(Some(3), Some(9)).complete);
    let both = found(Some(2), Some(12)).to_string();
    let unread = format!("unread: {} to {}", day(10), day(12));
    assert_eq!(both, format!("{unread}; forgotten: {} to {}", day(2), day(3)));
}

#[test]
fn windows_that_were_forgotten_need_no_reserve() {
    let mut state = state(|input| input.lateness = seconds(5 * DAY));
    state.coverage.cover(Range::new(SINCE, SINCE + 4 * DAY), SINCE + 4 * DAY);
    state.density.learn(DAY, 2, 1_440, 720);
    let (now, resets_at) = (SINCE + 5 * DAY, SINCE + 9 * DAY);
    let reserved = |state: &FeedState| plan::reserve_of(state, now, resets_at);
    assert_eq!(reserved(&state), 6, "three windows become due");
    assert_eq!(reserved(&state.forget(day(2)).expect("read")), 2);
}
