//! Days, pins and pauses, in service time.

use super::*;
use crate::error::Kind;
use crate::http::allowance::test_moments::{SILENT, moment, now, reading, reply, timestamp};

fn resetting(text: &str) -> Terms {
    Terms { limit: Some(100), resets: Some(TimeOfDay::parse(text).expect("a time of day")) }
}

fn spend(count: &mut Count, terms: Terms, when: &str, requests: u64) {
    for _ in 0..requests {
        drop(count.reserve(terms, now(when), 0).expect("something is left"));
    }
}

fn used(count: &Count, terms: Terms, when: &str) -> u64 {
    count.state(terms, now(when)).used
}

#[test]
fn b8_days_begin_only_at_the_configured_time_of_day() {
    let (mut count, terms) = (Count::default(), resetting("06:00Z"));
    spend(&mut count, terms, "2026-11-01T23:00:00Z", 5);
    assert_eq!(used(&count, terms, "2026-11-02T05:59:59Z"), 5);
    assert_eq!(
        count.state(terms, now("2026-11-02T00:00:00Z")).resets_at,
        timestamp("2026-11-02T06:00:00Z")
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
    count.pin(terms, Duration::from_millis(25_200_400), now("2026-11-01T20:00:00Z"));
    let state = count.state(terms, now("2026-11-02T03:00:00Z"));
    assert_eq!((state.left, state.resets_at), (Some(0), timestamp("2026-11-02T03:00:00.4Z")));
    let state = count.state(terms, now("2026-11-02T03:00:01Z"));
    assert_eq!((state.left, state.resets_at), (Some(100), timestamp("2026-11-03T03:00:00Z")));
    assert_eq!(count.origin, Origin::Learnt);
}

#[test]
fn b3_a_pin_far_in_the_future_does_not_change_the_start_of_days() {
    let (mut count, terms) = (Count::default(), Terms::default());
    count.pin(terms, Duration::MAX, now("2026-11-01T20:00:00Z"));
    assert_eq!(count.state(terms, now("2026-11-02T19:59:59Z")).left, Some(0));
    let state = count.state(terms, now("2026-11-02T20:00:00Z"));
    assert_eq!((state.left, state.resets_at), (None, timestamp("2026-11-03T00:00:00Z")));
}

#[test]
fn t9_token_requests_and_their_pause_are_separate_from_data_requests() {
    let (mut count, terms) = (Count::default(), Terms::default());
    let noon = now("2026-11-01T12:00:00Z");
    count.count_token_request(terms, noon);
    spend(&mut count, terms, "2026-11-01T12:00:00Z", 3);
    let state = count.state(terms, noon);
    assert_eq!((state.used, state.token_requests), (3, 1));
    assert_eq!(count.state(terms, now("2026-11-02T00:00:00Z")).token_requests, 0);
    count.pause_tokens(Duration::from_secs(60), noon);
    count.pause_tokens(Duration::from_secs(30), noon);
    let end = timestamp("2026-11-01T12:01:00Z");
    let pause = count.token_pause(now("2026-11-01T12:00:59Z"));
    assert_eq!(pause, Some((Duration::from_secs(1), end)));
    assert_eq!(count.token_pause(now("2026-11-01T12:01:00Z")), None);
    assert_eq!(count.state(terms, noon).left, None, "data requests are not paused");
}

#[test]
fn t24_a_clock_that_was_set_back_keeps_no_pause_longer() {
    let (mut count, terms) = (Count::default(), Terms::default());
    let noon = "2026-11-01T12:00:00Z";
    count.pause_tokens(Duration::from_secs(30), now(noon));
    drop(count.reserve(terms, now(noon), 0).expect("no limit"));
    count.pin(terms, Duration::from_secs(2 * 3_600), now(noon));
    // The service's time passes as before.
    let set_back = |right: &str| moment(1, right, "2016-11-01T12:00:00Z");
    assert!(count.token_pause(set_back("2026-11-01T12:00:29Z")).is_some());
    assert_eq!(count.token_pause(set_back("2026-11-01T12:00:30Z")), None);
    assert_eq!(count.state(terms, set_back("2026-11-01T13:59:59Z")).left, Some(0));
    assert_eq!(count.state(terms, set_back("2026-11-01T14:00:00Z")).left, None);
    // After a boot with a wrong clock, a pause in its future does not count.
    let started = moment(2, "1970-01-01T00:00:05Z", "2016-11-01T12:00:00Z");
    assert_eq!(count.token_pause(started), None);
    count.pause_tokens(Duration::from_secs(30), started);
    assert_eq!(
        count.token_pause(started),
        Some((Duration::from_secs(30), timestamp("2016-11-01T12:00:30Z")))
    );
}

#[test]
fn b8_a_token_request_with_a_wrong_clock_opens_no_new_day_for_data_requests() {
    let (mut count, terms) = (Count::default(), Terms::default());
    spend(&mut count, terms, "2026-11-01T12:00:00Z", 3);
    count.count_token_request(terms, moment(1, "2026-11-01T12:00:05Z", "2026-11-02T08:00:00Z"));
    count.count_token_request(terms, moment(2, "1970-01-01T00:00:05Z", "2026-11-02T08:00:00Z"));
    assert_eq!(used(&count, terms, "2026-11-01T12:00:05Z"), 3, "the time of the service");
}

const LIMIT: Terms = Terms { limit: Some(25), resets: None };

/// A count with this many answered requests at noon on November 1.
fn replied(requests: u64) -> Count {
    let (mut count, noon) = (Count::default(), "2026-11-01T12:00:00Z");
    exchange(&mut count, now(noon), noon, requests);
    count
}

fn send(count: &mut Count, at: Moment) -> Reservation {
    count.reserve(LIMIT, at, 0).expect("something is left")
}

/// Sends requests one after the other. Their replies show this time.
fn exchange(count: &mut Count, at: Moment, service: &str, requests: u64) {
    for _ in 0..requests {
        let request = send(count, at);
        count.settle(LIMIT, &request, reply(service, at), at);
    }
}

/// Sends requests until one is refused, each with a reply at the service's time; returns how many
/// were sent.
fn send_all(count: &mut Count, at: Moment, service: &str) -> u64 {
    for sent in 0..100 {
        let Ok(reservation) = count.reserve(LIMIT, at, 0) else { return sent };
        count.settle(LIMIT, &reservation, reply(service, at), at);
    }
    100
}

#[test]
fn b15_one_reply_with_a_wrong_date_opens_no_day_and_delays_none() {
    for date in ["2026-11-02T01:00:00Z", "2026-11-01T01:00:00Z", "2099-01-01T00:00:00Z"] {
        let mut count = replied(20);
        let later = now("2026-11-01T12:01:00Z");
        exchange(&mut count, later, date, 1);
        assert_eq!(send_all(&mut count, later, "2026-11-01T12:01:00Z"), 4, "{date}");
        let Permit::Exhausted(state) = count.permit(LIMIT, later, 0) else { panic!("{date}") };
        assert_eq!(state.resets_at, timestamp("2026-11-02T00:00:00Z"), "{date}");
    }
}

#[test]
fn b16_two_replies_that_agree_open_a_day_in_which_they_are_counted() {
    let mut count = replied(20);
    let noon = now("2026-11-01T12:01:00Z");
    let service = "2026-11-02T09:00:00Z";
    let lost = count.reserve(LIMIT, noon, 0).expect("the 21st");
    count.settle(LIMIT, &lost, Outcome::Lost, noon);
    exchange(&mut count, noon, service, 2);
    // The lost one may have been of the new day.
    assert_eq!(count.state(LIMIT, noon).used, 3);
    assert_eq!(send_all(&mut count, noon, service), 22);
}

#[test]
fn b17_after_a_start_a_spent_count_needs_evidence() {
    let mut count = replied(25);
    let morning = "2026-11-02T09:00:00Z";
    // The wall clock is no evidence, so nothing is sent.
    let right = moment(2, "1970-01-01T00:01:00Z", morning);
    assert_eq!(count.permit(LIMIT, right, 0), Permit::Unknown { one: false });
    // The reply of a token request that shows the same time is evidence.
    let mut known = count.clone();
    known.observe(LIMIT, reading(morning, right), right);
    assert_eq!(send_all(&mut known, right, morning), 25);
    // One contradicting reply is no evidence, and no probe is sent then; two are evidence.
    let wrong = moment(2, "1970-01-01T00:01:00Z", "2000-01-01T00:00:00Z");
    count.observe(LIMIT, reading(morning, wrong), wrong);
    assert_eq!(count.permit(LIMIT, wrong, 0), Permit::Unknown { one: true });
    let error = count.reserve(LIMIT, wrong, 0).expect_err("no evidence");
    assert_eq!((error.kind(), error.context().retry_at), (Kind::AllowanceExhausted, None));
    assert!(
        error.context().unsent && error.to_string().contains("no two clock readings"),
        "{error}"
    );
    count.observe(LIMIT, reading(morning, wrong), wrong);
    assert_eq!(send_all(&mut count, wrong, morning), 25);
}

#[test]
fn b18_failing_all_evidence_one_request_asks() {
    let mut count = replied(25);
    let silent = |granted| Outcome::Replied { reading: None, granted };
    let seconds = |seconds: i64| {
        let time = Timestamp::from_second(seconds).expect("a time").to_string();
        moment(2, &time, "2026-11-02T09:00:00Z")
    };
    // The same day by the wall clock: nothing asks.
    let same = moment(2, "1970-01-01T00:01:00Z", "2026-11-01T13:00:00Z");
    assert!(count.reserve(LIMIT, same, 0).is_err());
    // A request that was not sent has not asked.
    let unsent = count.reserve(LIMIT, seconds(60), 0).expect("it asks");
    count.settle(LIMIT, &unsent, Outcome::Unsent, seconds(60));
    // Refused: no other asks within the hour.
    let refused = count.reserve(LIMIT, seconds(61), 0).expect("it asks");
    count.settle(LIMIT, &refused, silent(false), seconds(61));
    assert!(count.reserve(LIMIT, seconds(61 + 3_599), 0).is_err());
    assert_eq!(count.requests.count, 26);
    let granted = count.reserve(LIMIT, seconds(61 + 3_600), 0).expect("it asks");
    assert!(count.reserve(LIMIT, seconds(61 + 3_600), 0).is_err(), "one at a time");
    count.settle(LIMIT, &granted, silent(true), seconds(61 + 3_600));
    // The refused one may be of the new day too.
    for _ in 0..23 {
        let next = count.reserve(LIMIT, seconds(61 + 3_601), 0).expect("the new day");
        count.settle(LIMIT, &next, silent(true), seconds(61 + 3_601));
    }
    assert!(count.reserve(LIMIT, seconds(61 + 3_602), 0).is_err());
    // Its end is known by the time that passes.
    let Permit::Exhausted(state) = count.permit(LIMIT, seconds(3_700), 0) else { panic!("known") };
    assert_eq!(state.resets_at, timestamp("2026-11-03T00:00:00Z"));
    assert!(count.reserve(LIMIT, seconds(61 + 3_600 + 15 * 3_600), 0).is_ok());
}

/// Reserves until a request is refused; returns how many were granted.
fn reserve_all(count: &mut Count, at: Moment) -> u64 {
    (0..100).take_while(|_| count.reserve(LIMIT, at, 0).is_ok()).count() as u64
}

#[test]
fn b19_requests_under_way_at_midnight_may_be_of_the_new_day_until_their_replies_show_it() {
    let [before, after] = ["2026-11-01T23:59:59Z", "2026-11-02T00:00:01Z"].map(now);
    let mut count = replied(20);
    let [one, other] = [(); 2].map(|()| count.reserve(LIMIT, before, 0).expect("something left"));
    // Both may arrive after midnight, and their callers may be killed.
    assert_eq!(reserve_all(&mut count, after), 23);
    count.settle(LIMIT, &one, reply("2026-11-01T23:59:59Z", after), after);
    count.settle(LIMIT, &other, reply("2026-11-02T00:00:00Z", after), after);
    assert_eq!((count.requests.count, reserve_all(&mut count, after)), (24, 1));
}

#[test]
fn b15_a_doubt_that_no_reply_settles_costs_at_most_a_day() {
    let mut count = replied(20);
    let noon = now("2026-11-01T12:01:00Z");
    exchange(&mut count, noon, "2026-11-01T17:00:00Z", 1);
    // From now on no reply has a date.
    for (time, sent) in [
        ("2026-11-01T12:02:00Z", 4),
        // By that one reply, five may belong to this day.
        ("2026-11-02T13:00:00Z", 20),
        ("2026-11-03T12:00:00Z", 25),
        ("2026-11-04T12:00:00Z", 25),
    ] {
        for nth in 0..100 {
            let Ok(request) = count.reserve(LIMIT, now(time), 0) else {
                assert_eq!(nth, sent, "{time}");
                break;
            };
            count.settle(LIMIT, &request, SILENT, now(time));
        }
    }
}

#[test]
fn b16_a_service_that_goes_back_a_day_counts_on() {
    let mut count = replied(20);
    let at = now("2026-11-01T12:01:00Z");
    for (service, sent) in [("2026-11-02T09:00:00Z", 10), ("2026-11-01T12:01:00Z", 2)] {
        let mut served = 0;
        for _ in 0..if sent == 10 { 10 } else { 100 } {
            let Ok(request) = count.reserve(LIMIT, at, 0) else { break };
            count.settle(LIMIT, &request, reply(service, at), at);
            served += 1;
        }
        // Requests with doubtful replies count in both days, and the first one in the third too.
        assert_eq!(served, sent, "{service}");
    }
    assert_eq!(count.requests.count, 25);
}

#[test]
fn b14_a_token_request_checks_a_pause_of_the_machine() {
    let mut count = replied(25);
    // The host of a virtual machine slept: two hours passed for the guest, a night by its clock.
    let morning = moment(1, "2026-11-01T14:00:00Z", "2026-11-02T08:00:00Z");
    assert_eq!(count.permit(LIMIT, morning, 0), Permit::Unknown { one: true });
    let error = count.reserve(LIMIT, morning, 0).expect_err("no data request asks");
    assert_eq!(error.context().retry_at, Some(timestamp("2026-11-02T00:00:00Z")));
    let mut paused = count.clone();
    paused.observe(LIMIT, reading("2026-11-02T08:00:00Z", morning), morning);
    assert_eq!(paused.permit(LIMIT, morning, 0), Permit::Unknown { one: true });
    paused.observe(LIMIT, reading("2026-11-02T08:00:01Z", morning), morning);
    assert_eq!(send_all(&mut paused, morning, "2026-11-02T08:00:01Z"), 25);
    // If the wall clock was set, one token request per hour shows that.
    count.observe(LIMIT, reading("2026-11-01T14:00:00Z", morning), morning);
    let later = moment(1, "2026-11-01T14:59:00Z", "2026-11-02T08:59:00Z");
    assert!(matches!(count.permit(LIMIT, later, 0), Permit::Exhausted(_)));
}

#[path = "count_edge_tests.rs"]
mod edges;
