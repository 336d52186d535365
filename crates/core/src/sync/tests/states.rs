//! The encoded states of feeds.

use super::super::coverage::WindowState;
use super::*;
use crate::error::{Kind, Result};

fn full() -> FeedState {
    let mut state = state(|input| {
        input.site = Some("S1".to_owned());
        input.filters = vec![("machineId".to_owned(), vec!["M1".to_owned(), "M2".to_owned()])];
        input.page_size = Some(500);
    });
    run(&mut state, SINCE + 3 * DAY);
    let bookmark = Some("secret-cursor".to_owned());
    let began = Some(SINCE + 4 * DAY);
    let chain = UnfinishedChain::new(day(3), Why::Recent, 1);
    state.keep_chain(UnfinishedChain { began, bookmark, ..chain });
    state.give_up(&UnfinishedChain { pages: 7, ..abandoned() }, Some((SINCE, Kind::EndlessChain)));
    state.next_sequence = 17;
    state
}

fn json(state: &FeedState) -> serde_json::Value {
    let bytes = state.to_bytes();
    let text = std::str::from_utf8(&bytes).expect("text");
    serde_json::from_str(text.lines().next().expect("a line")).expect("JSON")
}

/// Decodes a state with a valid checksum.
fn decoded(value: &serde_json::Value) -> Result<FeedState> {
    let line = value.to_string();
    let text = format!("{line}\ncrc32 {:08x}\n", libdeflater::crc32(line.as_bytes()));
    FeedState::from_bytes(text.as_bytes())
}

fn abandoned() -> UnfinishedChain {
    UnfinishedChain::new(day(4), Why::Backfill, 0)
}

#[test]
fn s17_an_abandoned_chain_stays_begun_until_read() {
    let mut state = state(|_| {});
    let chain = UnfinishedChain { pages: 2, began: Some(SINCE + 5 * DAY), ..abandoned() };
    state.keep_chain(chain.clone());
    // Another window, and a restarted chain.
    let feed = Feed::new(FeedInput { window: seconds(6 * HOUR), ..state.feed().input().clone() });
    let mut redefined = state.redefine(&feed.expect("a feed")).expect("a window may change");
    assert_eq!((redefined.unfinished_chains(), redefined.begun()), (0, chain.range.into()));
    state.keep_chain(chain.restarted(1).expect("once"));
    assert_eq!(state.begun(), chain.range.into());
    // A chain is dropped because its range is due.
    let mut due = UnfinishedChain { began: Some(SINCE + 4 * DAY), ..chain.clone() };
    due.bookmark = Some("old bookmark".to_owned());
    state.keep_chain(due);
    state.drop_superseded(SINCE + 9 * DAY);
    assert_eq!((state.unfinished_chains(), state.begun()), (0, chain.range.into()));
    for state in [&mut state, &mut redefined] {
        state.cover(&UnfinishedChain { began: Some(SINCE + 9 * DAY), ..abandoned() }, 0);
        assert_eq!(state.begun(), Ranges::none());
    }
}

#[test]
fn a_state_without_cursors_restarts_its_chains() {
    let state = full();
    let unfinished = day(3);
    assert!(String::from_utf8_lossy(&state.to_bytes()).contains("secret-cursor"));
    let without = state.clone().without_cursors();
    let bytes = without.to_bytes();
    assert!(!String::from_utf8_lossy(&bytes).contains("secret-cursor"));
    assert_eq!(FeedState::from_bytes(&bytes).expect("a state"), without);
    assert_eq!(without.unfinished_chains(), 0);
    assert_eq!((without.begun(), without.sequence()), (state.begun(), state.sequence()));
    let planned = |state: &FeedState| planned(state, SINCE + 4 * DAY + HOUR, &Ranges::none());
    assert!(planned(&state).iter().any(|step| (step.why, step.range) == (Why::Resume, unfinished)));
    assert!(planned(&without).iter().all(|step| step.why != Why::Resume));
    let reads: Ranges = planned(&without).iter().map(|step| step.range).collect();
    assert!(reads.contains(unfinished));
}

#[test]
fn s15_a_state_with_unknown_members_is_read() {
    let mut more = json(&full());
    for place in ["", "/chains/0", "/given_up/0", "/density", "/feed"] {
        more.pointer_mut(place).expect(place)["later"] = serde_json::json!([1]);
    }
    assert_eq!(decoded(&more).expect("a state"), full());
}

#[test]
fn s7_forged_values_in_a_state_are_refused() {
    let many = || serde_json::json!(u64::MAX);
    for (place, value, is_valid) in [
        ("/next_sequence", many(), false),
        ("/chains/0/first", many(), false),
        ("/chains/0/pages", many(), false),
        ("/chains/0/restarts", serde_json::json!(u32::MAX), false),
        ("/coverage", serde_json::json!([[0, 10, 1], [10, 15, 2], [20, 21, 1]]), true),
        ("/coverage", serde_json::json!([[0, 10, 1], [9, 15, 2]]), false),
        ("/coverage", serde_json::json!([[10, 15, 1], [0, 9, 2]]), false),
        ("/coverage", serde_json::json!([[5, 5, 1]]), false),
        ("/coverage", serde_json::json!([[6, 5, 1], [20, 21, 1]]), false),
    ] {
        let mut forged = json(&full());
        forged.pointer_mut(place).expect(place).clone_from(&value);
        let outcome = decoded(&forged).map(drop).map_err(|error| error.kind());
        let expected = if is_valid { Ok(()) } else { Err(Kind::StoreCorrupt) };
        assert_eq!(outcome, expected, "{place}: {value}");
    }
}

#[test]
fn s7_every_flipped_bit_of_a_state_is_detected() {
    let bytes = full().to_bytes();
    for bit in 0..bytes.len() * 8 {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let error = FeedState::from_bytes(&damaged).expect_err("damaged");
        assert_eq!(error.kind(), Kind::StoreCorrupt, "bit {bit}");
    }
    for length in 0..bytes.len() {
        assert!(FeedState::from_bytes(&bytes[..length]).is_err(), "{length} bytes");
    }
}

#[test]
fn s8_another_state_version_names_its_siteline() {
    let error = |version: u64| {
        let value = serde_json::json!({"version": version, "made_by": "9.1.0", "more": true});
        decoded(&value).expect_err("another version")
    };
    for (version, next_step) in [(3, "Upgrade siteline"), (1, "Sync into a new store")] {
        let error = error(version);
        assert_eq!(error.kind(), Kind::StoreError);
        let text = error.to_string();
        assert!(text.contains("made by siteline 9.1.0") && text.contains(next_step), "{text}");
    }
    assert_eq!(error(0).kind(), Kind::StoreCorrupt);
}

#[test]
fn a_changed_feed_is_rejected_with_its_differences() {
    let state = full();
    state.check(state.feed(), "http://127.0.0.1:1").expect("the same");
    let changed = |change: fn(&mut FeedInput)| {
        let mut input = state.feed().input().clone();
        change(&mut input);
        Feed::new(input).expect("a feed")
    };
    let times = changed(|input| {
        input.overlap = seconds(2 * HOUR);
        input.page_size = None;
    });
    let error = state.check(&times, "http://127.0.0.1:1").expect_err("changed");
    assert_eq!(error.kind(), Kind::FeedChanged);
    let text = error.to_string();
    assert!(text.contains("page_size was 500, is not sent; overlap was 1h, is 2h"), "{text}");
    assert!(text.contains("store.redefine(feed)"), "{text}");
    let error = state.check(state.feed(), "https://b.example").expect_err("another service");
    assert!(error.to_string().contains("base_url was http://127.0.0.1:1, is https://b.example"));

    let redefined = state.redefine(&times).expect("times may change");
    assert_eq!(redefined.feed(), &times);
    assert_eq!((redefined.unfinished_chains(), redefined.sequence()), (0, state.sequence()));
    assert_eq!(redefined.coverage(), state.coverage());
    let fixed: [fn(&mut FeedInput); 6] = [
        |input| input.name = "other".to_owned(),
        |input| input.site = None,
        |input| input.line = Some("L1".to_owned()),
        |input| input.filters.clear(),
        |input| input.interval_seconds = Some(120),
        |input| input.since = instant(SINCE + DAY),
    ];
    let later = state.check(&changed(fixed[5]), "http://127.0.0.1:1").expect_err("a later start");
    assert!(later.to_string().contains("is another time in each run"), "{later}");
    for change in fixed {
        assert_error(state.redefine(&changed(change)), Kind::FeedChanged, "new name");
    }
}

#[test]
fn a_feed_that_begins_earlier_keeps_its_state() {
    let mut state = state(|_| {});
    state.coverage.cover(days(0, 2), SINCE + 9 * DAY);
    state.keep_chain(UnfinishedChain::new(day(0), Why::Backfill, 1));
    let since = instant(SINCE - 3 * DAY);
    let earlier = Feed::new(FeedInput { since, ..state.feed().input().clone() }).expect("a feed");
    let redefined = state.redefine(&earlier).expect("it may begin earlier");
    assert_eq!(redefined.feed(), &earlier);
    assert_eq!((redefined.coverage(), &redefined.chains), (state.coverage(), &state.chains));
    assert_eq!((redefined.settled_through(), redefined.forgotten().is_empty()), (None, true));
    assert!(redefined.redefine(state.feed()).is_err(), "a later beginning");
    assert_error(
        state.check(&earlier, "http://127.0.0.1:1"),
        Kind::FeedChanged,
        "store.redefine(feed)",
    );

    let forgotten = state.forget(instant(SINCE + DAY)).expect("a read time");
    let error = forgotten.redefine(&earlier).expect_err("forgotten");
    assert_eq!(error.kind(), Kind::FeedChanged);
}

#[test]
fn page_estimates_are_kept_for_one_page_size() {
    let mut state = state(|input| input.page_size = Some(100));
    state.density.learn(HOUR, 4, 400, 100);
    let pages = |page_size| {
        let input = FeedInput { page_size, overlap: seconds(0), ..state.feed().input().clone() };
        let redefined =
            state.redefine(&Feed::new(input).expect("a feed")).expect("both may change");
        redefined.density.pages(2 * HOUR)
    };
    assert_eq!(pages(Some(100)), Some(8));
    assert_eq!(pages(Some(200)), None, "no estimate yet");
}

#[test]
fn only_audits_unsettle_settled_ranges() {
    let mut state = state(|_| {});
    state.coverage.cover(day(0), SINCE + 9 * DAY);
    state.coverage.cover(day(1), SINCE + 2 * DAY);
    let audits =
        |why, from: i64| state.audits_settled(&UnfinishedChain::new(hours(from, from + 2), why, 0));
    assert!(audits(Why::Audit, 22) && audits(Why::Audit, 23));
    assert!(!audits(Why::Audit, 24), "it may still change");
    assert!(!audits(Why::Reread, 22));
}

#[test]
fn read_through_starts_at_the_feeds_beginning() {
    let through = |ranges: &[(i64, i64)]| {
        let mut state = state(|_| {});
        for (start, end) in ranges {
            state.coverage.cover(Range::new(SINCE + start, SINCE + end), SINCE + DAY);
        }
        state.read_through().map(|at| at.as_second() - SINCE)
    };
    assert_eq!(through(&[(0, 10), (10, 30), (40, 50)]), Some(30));
    assert_eq!(through(&[(-10, 5), (40, 50)]), Some(5));
    assert_eq!(through(&[(1, 10)]), None);
    assert_eq!(through(&[(-10, 0), (1, 10)]), None, "earlier reads do not count");
}

#[test]
fn windows_have_no_gaps() {
    let mut state = state(|input| input.settle_lag = Duration::ZERO);
    for (from, to, read_at) in [(0, 24, 48), (24, 40, 41), (40, 44, 45), (60, 72, 73)] {
        state.coverage.cover(hours(from, to), SINCE + read_at * HOUR);
    }
    let hour = |time: Timestamp| (time.as_second() - SINCE) / HOUR;
    let seen: Vec<_> = state
        .windows(instant(SINCE + 74 * HOUR))
        .iter()
        .map(|one| (hour(one.start), hour(one.end), one.state, one.read_at.map(hour)))
        .collect();
    let expected = [
        (0, 24, WindowState::Settled, Some(48)),
        (24, 44, WindowState::Due, Some(45)),
        (44, 48, WindowState::Unread, None),
        (48, 60, WindowState::Unread, None),
        (60, 72, WindowState::Provisional, Some(73)),
        (72, 74, WindowState::Unread, None),
    ];
    assert_eq!(seen, expected);
    assert_eq!(state.settled_through().map(hour), Some(24));
    assert_eq!(state.read_through().map(hour), Some(44), "up to the gap");
    assert_eq!(state.newest().map(hour), Some(72));
}
