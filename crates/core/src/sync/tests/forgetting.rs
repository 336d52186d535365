//! Feeds with a forgotten range: it is not read again, and no read treats it as empty.

use super::super::range_coverage::{RangeCoverage, Unread};
use super::super::{WindowState, plan};
use super::*;
use crate::error::Kind;

/// A feed with ten days, read half a day after their end. Eight of them are settled.
fn ten_days() -> FeedState {
    let mut state = state(|_| {});
    state.coverage.cover(days(0, 10), SINCE + 10 * DAY + DAY / 2);
    state
}

fn midnight(number: i64) -> Timestamp {
    day(number).instants().0
}

/// The planned ranges, in hours after the feed's beginning.
fn planned_at(state: &FeedState, now: i64, reread: &Ranges) -> Vec<(Why, i64, i64)> {
    let known = FeedRun::new(state.clone(), None);
    in_hours(&steps(&[known], &PlanTerms { now, until: None, reread, clock: Some(now) }))
}

#[test]
fn forgotten_ranges_are_never_planned() {
    let now = SINCE + 12 * DAY;
    let mut state = state(|input| input.audit_pages = 50);
    // Days 3 and 4 are unread, day 9 is due.
    for (from, to) in [(0, 3), (5, 9)] {
        state.coverage.cover(days(from, to), now - DAY);
    }
    state.coverage.cover(day(9), SINCE + 10 * DAY);
    state.density.learn(DAY, 2, 1_440, 720);
    let all = Ranges::from(Range::new(SINCE - DAY, now));
    for reread in [Ranges::none(), all] {
        let before = planned_at(&state, now, &reread);
        assert!(before.iter().any(|(_, start, _)| *start < 90), "{before:?}");
        let kept = state.forget(instant(SINCE + 4 * DAY + 90)).expect("read");
        let after = planned_at(&kept, now, &reread);
        assert!(after.iter().all(|(_, start, _)| *start >= 96), "{after:?}");
        assert!(after.iter().any(|(_, start, _)| *start < 120), "the rest is filled: {after:?}");
    }
}

#[test]
fn a_feed_begins_after_its_forgotten_range() {
    let state = ten_days();
    assert_eq!(state.settled_through(), Some(midnight(9)));
    // Half a minute is not on the grid of the buckets.
    let kept = state.forget(instant(SINCE + 3 * DAY + 30)).expect("read");
    assert_eq!((kept.kept_from, kept.feed()), (Some(SINCE + 3 * DAY), state.feed()));
    assert_eq!(
        [kept.read_through(), kept.settled_through()],
        [Some(midnight(10)), Some(midnight(9))]
    );
    let windows: Vec<_> = kept.windows(midnight(11)).iter().map(|w| (w.start, w.state)).collect();
    let expected = (0..3).map(|number| (midnight(number), WindowState::Forgotten));
    assert_eq!(windows[..3], expected.collect::<Vec<_>>());
    assert_eq!(windows[3], (midnight(3), WindowState::Settled));
    assert_eq!(kept.windows(midnight(11)).len(), state.windows(midnight(11)).len());
    // An earlier time changes nothing, a later time forgets more, and everything can be forgotten.
    assert_eq!(kept.forget(midnight(2)).expect("read"), kept);
    assert_eq!(kept.forget(midnight(5)).expect("read").kept_from, Some(SINCE + 5 * DAY));
    assert_eq!(kept.forget(midnight(10)).expect("read").read_through(), None);
    assert_error(
        kept.forget(instant(SINCE + 10 * DAY + 60)),
        Kind::QueryError,
        "the newest instant of feed \"feed\"",
    );
    let fresh = FeedState::new(state.feed(), "http://127.0.0.1:1");
    assert_eq!(fresh.forget(midnight(1)).expect_err("never read").kind(), Kind::QueryError);
    assert_eq!(fresh.forget(midnight(-1)).expect("nothing to forget"), fresh);
}

#[test]
fn a_redefined_feed_keeps_its_forgotten_range() {
    let kept = ten_days().forget(midnight(3)).expect("read");
    assert_eq!(FeedState::from_bytes(&kept.to_bytes()).expect("a state"), kept);
    let times = feed(|input| input.lateness = seconds(2 * DAY));
    let redefined = kept.redefine(&times).expect("times may change");
    assert_eq!((redefined.feed(), redefined.kept_from), (&times, Some(SINCE + 3 * DAY)));
    kept.check(kept.feed(), "http://127.0.0.1:1").expect("the definition is the same");
}

#[test]
fn forgetting_abandons_earlier_chains() {
    let mut state = state(|_| {});
    let now = SINCE + 10 * DAY + DAY / 2;
    for (from, to) in [(0, 1), (4, 5), (6, 10)] {
        state.coverage.cover(days(from, to), now);
    }
    for (from, to) in [(1, 2), (2, 4), (5, 6)] {
        let chain = UnfinishedChain::new(days(from, to), Why::Reread, 0);
        state.keep_chain(UnfinishedChain { began: Some(now), pages: 1, ..chain });
    }
    let kept = state.forget(midnight(3)).expect("read");
    assert_eq!(kept.unfinished_chains(), 1);
    let begun: Vec<Range> = kept.begun().iter().collect();
    assert_eq!(begun, [days(3, 4), days(5, 6)], "incomplete");
    let planned = planned_at(&kept, now, &Ranges::none());
    assert!(planned.contains(&(Why::Resume, 120, 144)), "{planned:?}");
    assert!(planned.contains(&(Why::Backfill, 72, 96)), "{planned:?}");
}

#[test]
fn s22_a_read_of_forgotten_ranges_fails() {
    let kept = ten_days().forget(midnight(3)).expect("read");
    let found = |start: Option<i64>, end: Option<i64>| {
        RangeCoverage::new((start.map(midnight), end.map(midnight)), &kept, None, false)
    };
    let part = found(Some(1), Some(5));
    assert_eq!(
        (&part.forgotten, &part.unread, part.complete),
        (&days(1, 3).into(), &days(1, 3).into(), false)
    );
    let error = part.check("feed", Unread::Error).expect_err("forgotten");
    assert_eq!(error.kind(), Kind::UnreadRange);
    let text = error.to_string();
    let forgotten = format!("feed \"feed\": forgotten: {} to {}", midnight(1), midnight(3));
    assert!(text.contains(&forgotten) && !text.contains("unread:"), "{text}");
    assert!(error.context().hint.as_deref().is_some_and(|hint| hint.contains("another name")));
    assert_eq!(error.context().spans, [(midnight(1), midnight(3))]);
    let warning = part.check("feed", Unread::Warn).expect("a warning").expect("one");
    assert!(warning.contains("forgotten: ") && warning.contains("omitted"), "{warning}");
    // Without a range, a read begins after the forgotten range.
    let all = found(None, None);
    assert!(all.complete && all.forgotten.is_empty() && all.unread.is_empty());
    assert!(found(Some(3), Some(9)).complete);
    let both = found(Some(2), Some(12)).to_string();
    let unread = format!("unread: {} to {}", midnight(10), midnight(12));
    assert_eq!(both, format!("{unread}; forgotten: {} to {}", midnight(2), midnight(3)));
}

#[test]
fn forgotten_windows_need_no_reserve() {
    let mut state = state(|input| input.lateness = seconds(5 * DAY));
    state.coverage.cover(days(0, 4), SINCE + 4 * DAY);
    state.density.learn(DAY, 2, 1_440, 720);
    let (now, resets_at) = (SINCE + 5 * DAY, SINCE + 9 * DAY);
    let reserved = |state: &FeedState| plan::reserve_of(state, &state.coverage, now, resets_at);
    assert_eq!(reserved(&state), 6, "three windows become due");
    assert_eq!(reserved(&state.forget(midnight(2)).expect("read")), 2);
}
