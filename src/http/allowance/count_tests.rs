//! Days, pins and pauses, in service time.

use super::*;

fn at(text: &str) -> Timestamp {
    text.parse().expect("a timestamp")
}

fn resetting(text: &str) -> Terms {
    Terms { limit: Some(100), resets: Some(TimeOfDay::parse(text).expect("a time of day")) }
}

fn spend(count: &mut Count, terms: Terms, now: &str, requests: u64) {
    for _ in 0..requests {
        drop(count.reserve(terms, at(now), 0).expect("something is left"));
    }
}

fn used(count: &Count, terms: Terms, now: &str) -> u64 {
    count.state(terms, at(now)).used
}

#[test]
fn b8_days_begin_only_at_the_configured_time_of_day() {
    let (mut count, terms) = (Count::default(), resetting("06:00Z"));
    spend(&mut count, terms, "2026-11-01T23:00:00Z", 5);
    assert_eq!(used(&count, terms, "2026-11-02T05:59:59Z"), 5);
    assert_eq!(
        count.state(terms, at("2026-11-02T00:00:00Z")).resets_at,
        at("2026-11-02T06:00:00Z")
    );
    assert_eq!(used(&count, terms, "2026-11-02T06:00:00Z"), 0);
}

#[test]
fn a_time_of_day_that_is_configured_later_keeps_the_count_of_the_day() {
    let mut count = Count::default();
    spend(&mut count, Terms::default(), "2026-11-02T07:00:00Z", 5);
    let terms = resetting("06:00Z");
    assert_eq!(used(&count, terms, "2026-11-02T07:00:00Z"), 5);
    assert_eq!(
        used(&count, terms, "2026-11-03T00:30:00Z"),
        0,
        "that count's day began at midnight"
    );
    spend(&mut count, terms, "2026-11-02T08:00:00Z", 1);
    assert_eq!(used(&count, terms, "2026-11-03T00:30:00Z"), 6);
    // A client without a setting uses the setting of another client.
    assert_eq!(used(&count, Terms::default(), "2026-11-03T05:59:59Z"), 6);
    assert_eq!(used(&count, Terms::default(), "2026-11-03T06:00:00Z"), 0);
}

#[test]
fn b11_the_services_start_of_the_day_overrides_the_configured_one() {
    let (mut count, terms) = (Count::default(), resetting("06:00Z"));
    spend(&mut count, terms, "2026-11-01T20:00:00Z", 5);
    count.pin_until(terms, at("2026-11-02T03:00:00.4Z"), at("2026-11-01T20:00:00Z"));
    let state = count.state(terms, at("2026-11-02T03:00:00Z"));
    assert_eq!((state.left, state.resets_at), (Some(0), at("2026-11-02T03:00:00.4Z")));
    let state = count.state(terms, at("2026-11-02T03:00:01Z"));
    assert_eq!((state.left, state.resets_at), (Some(100), at("2026-11-03T03:00:00Z")));
    assert_eq!(count.origin, Origin::Learnt);
}

#[test]
fn b3_a_pin_far_in_the_future_does_not_change_the_start_of_days() {
    let (mut count, terms) = (Count::default(), Terms::default());
    count.pin_until(terms, Timestamp::MAX, at("2026-11-01T20:00:00Z"));
    assert_eq!(count.state(terms, at("2026-11-02T19:59:59Z")).left, Some(0));
    let state = count.state(terms, at("2026-11-02T20:00:00Z"));
    assert_eq!((state.left, state.resets_at), (None, at("2026-11-03T00:00:00Z")));
}

#[test]
fn t9_token_requests_and_their_pause_are_separate_from_data_requests() {
    let (mut count, terms) = (Count::default(), Terms::default());
    let now = at("2026-11-01T12:00:00Z");
    count.count_token_request(terms, now);
    spend(&mut count, terms, "2026-11-01T12:00:00Z", 3);
    let state = count.state(terms, now);
    assert_eq!((state.used, state.token_requests), (3, 1));
    assert_eq!(count.state(terms, at("2026-11-02T00:00:00Z")).token_requests, 0);
    count.pause_tokens(at("2026-11-01T12:01:00Z"), now);
    count.pause_tokens(at("2026-11-01T12:00:30Z"), now);
    assert_eq!(count.token_pause(at("2026-11-01T12:00:59Z")), Some(at("2026-11-01T12:01:00Z")));
    assert_eq!(count.token_pause(at("2026-11-01T12:01:00Z")), None);
    assert_eq!(count.state(terms, now).left, None, "data requests are not paused");
}

#[test]
fn t24_a_clock_that_was_set_back_ends_a_pause() {
    let (mut count, terms) = (Count::default(), Terms::default());
    let now = at("2026-11-01T12:00:00Z");
    count.pause_tokens(at("2026-11-01T12:00:30Z"), now);
    count.pin_until(terms, at("2026-11-01T14:00:00Z"), now);
    for (earlier, active) in [("2026-11-01T11:55:00Z", true), ("2016-11-01T12:00:00Z", false)] {
        assert_eq!(count.token_pause(at(earlier)).is_some(), active, "{earlier}");
        assert_eq!(count.state(terms, at(earlier)).left.is_some(), active, "{earlier}");
    }
    // A new pause replaces one that began by a wrong clock.
    count.pause_tokens(at("2016-11-01T12:00:30Z"), at("2016-11-01T12:00:00Z"));
    assert_eq!(count.token_pause(at("2016-11-01T12:00:00Z")), Some(at("2016-11-01T12:00:30Z")));
}

#[test]
fn b8_a_token_request_with_a_wrong_clock_opens_no_new_day_for_data_requests() {
    let (mut count, terms) = (Count::default(), Terms::default());
    spend(&mut count, terms, "2026-11-01T12:00:00Z", 3);
    count.count_token_request(terms, at("2026-11-02T08:00:00Z"));
    assert_eq!(used(&count, terms, "2026-11-02T08:00:00Z"), 0);
    assert_eq!(used(&count, terms, "2026-11-01T12:00:05Z"), 3, "the time of the service");
}
