//! Requests near the start and the end of a day.

use super::*;

#[test]
fn b19_a_request_of_the_evening_is_counted_in_the_day_that_its_outcome_shows() {
    let after = now("2026-11-02T00:00:02Z");
    for (outcome, counted) in [
        (reply("2026-11-01T23:59:59Z", after), 1),
        (reply("2026-11-02T00:00:01Z", after), 2),
        (Outcome::Unsent, 1),
        // Nothing shows its day, so it may belong to either.
        (Outcome::Lost, 2),
        (SILENT, 2),
    ] {
        let mut count = Count::default();
        let evening = now("2026-11-01T23:30:00Z");
        let slow = send(&mut count, evening);
        // A request of the new day stays counted in any case.
        drop(send(&mut count, after));
        assert_eq!(count.requests.count, 1, "so long before midnight it is of the old day");
        count.settle(LIMIT, &slow, outcome, after);
        assert_eq!(count.requests.count, counted, "{outcome:?}");
    }
}

#[test]
fn b19_a_request_that_ends_just_before_midnight_may_be_of_the_next_day_without_dates() {
    for (at, used) in [("2026-11-01T23:55:00Z", 0), ("2026-11-01T23:59:59Z", 1)] {
        let mut count = Count::default();
        let request = send(&mut count, now(at));
        count.settle(LIMIT, &request, SILENT, now(at));
        assert_eq!(count.state(LIMIT, now("2026-11-02T00:00:01Z")).used, used, "{at}");
    }
}

#[test]
fn b16_a_request_under_way_is_counted_once_in_the_day_that_a_reply_opens() {
    let [evening, after] = ["2026-11-01T23:30:00Z", "2026-11-02T00:00:02Z"].map(now);
    let service = "2026-11-04T09:00:00Z";
    for (outcome, used) in [(reply(service, after), 2), (Outcome::Unsent, 1)] {
        let mut count = replied(20);
        let slow = send(&mut count, evening);
        count.observe(LIMIT, reading(service, after), after);
        let other = send(&mut count, after);
        // The reply to the first request confirms the reading, so it opens the day.
        count.settle(LIMIT, &slow, reply(service, after), after);
        count.settle(LIMIT, &other, outcome, after);
        assert_eq!(count.requests.count, used, "{outcome:?}");
    }
}

#[test]
fn b18_a_request_of_the_old_day_takes_none_from_the_day_that_was_asked_for() {
    let mut count = replied(24);
    let evening = moment(2, "1970-01-01T00:01:00Z", "2026-11-01T18:00:00Z");
    let slow = send(&mut count, evening);
    let morning = moment(3, "1970-01-01T00:01:00Z", "2026-11-02T09:00:00Z");
    let asks = send(&mut count, morning);
    count.settle(LIMIT, &asks, SILENT, morning);
    count.settle(LIMIT, &slow, Outcome::Unsent, morning);
    assert_eq!(count.requests.count, 1, "the one that asked");
}

#[test]
fn b19_a_request_that_is_lost_while_the_time_is_unknown_may_be_of_the_next_day() {
    let started = moment(2, "1970-01-01T00:05:00Z", "2026-11-01T12:05:00Z");
    for (lost_at, used) in [(now(TODAY), 0), (started, 1)] {
        let mut count = replied(20);
        let request = send(&mut count, now(TODAY));
        count.settle(LIMIT, &request, Outcome::Lost, lost_at);
        assert_eq!(count.state(LIMIT, now("2026-11-02T00:01:00Z")).used, used);
    }
}

#[test]
fn b18_an_unsent_request_of_the_old_day_takes_none_from_the_day_that_is_asked_for() {
    let mut count = replied(20);
    let evening = moment(2, "1970-01-01T00:01:00Z", "2026-11-01T18:00:00Z");
    for outcome in [SILENT, SILENT, Outcome::Unsent] {
        let request = send(&mut count, evening);
        count.settle(LIMIT, &request, outcome, evening);
    }
    let morning = moment(3, "1970-01-01T00:01:00Z", "2026-11-02T09:00:00Z");
    for _ in 0..3 {
        let request = send(&mut count, morning);
        count.settle(LIMIT, &request, SILENT, morning);
    }
    let asks = send(&mut count, morning);
    assert!(asks.asks);
    count.settle(LIMIT, &asks, SILENT, morning);
    assert_eq!((count.requests.count, reserve_all(&mut count, morning)), (4, 21));
}

#[test]
fn b18_after_another_start_a_request_asks_again_on_another_day_only() {
    let mut count = replied(25);
    for (start, wall, asks) in [
        (2, "2026-11-02T09:00:00Z", true),
        (3, "2026-11-02T10:00:00Z", false),
        (4, "2026-11-03T09:00:00Z", true),
    ] {
        let started = moment(start, "1970-01-01T00:01:00Z", wall);
        assert_eq!(count.reserve(LIMIT, started, 0).is_ok(), asks, "{wall}");
    }
}

#[test]
fn b18_a_request_that_asked_opens_no_day_where_replies_have_shown_another_meanwhile() {
    let morning = moment(2, "1970-01-01T00:01:00Z", "2026-11-02T09:00:00Z");
    // One reading is no evidence of the old day, but it shows that the wall clock is wrong.
    for readings in [1, 2] {
        let mut count = replied(25);
        let asks = send(&mut count, morning);
        for _ in 0..readings {
            count.observe(LIMIT, reading("2026-11-01T20:00:00Z", morning), morning);
        }
        count.settle(LIMIT, &asks, SILENT, morning);
        let since = Some(timestamp("2026-11-01T00:00:00Z"));
        assert_eq!(count.requests, Tally { since, count: 26 }, "{readings}");
        assert!(count.reserve(LIMIT, morning, 0).is_err(), "{readings}");
    }
}

#[test]
fn b16_where_the_wall_clock_had_opened_a_day_too_early_its_requests_are_of_the_day_before() {
    let mut assumed = Count::default();
    for (when, requests) in [("2026-11-01T23:00:00Z", 3), ("2026-11-02T00:30:00Z", 2)] {
        for _ in 0..requests {
            let request = send(&mut assumed, now(when));
            assumed.settle(LIMIT, &request, SILENT, now(when));
        }
    }
    let morning = moment(2, "1970-01-01T00:01:00Z", "2026-11-02T09:00:00Z");
    let mut asked = replied(25);
    let asks = send(&mut asked, morning);
    asked.settle(LIMIT, &asks, SILENT, morning);
    for (count, then, service, used) in [
        (&assumed, now("2026-11-02T00:31:00Z"), "2026-11-01T21:00:00Z", 5),
        // The one that asked is counted in both days.
        (&asked, morning, "2026-11-01T20:00:00Z", 27),
        // Neither day: the previous one is a different day.
        (&asked, morning, "2026-11-03T09:00:00Z", 1),
    ] {
        let mut count = count.clone();
        for _ in 0..2 {
            count.observe(LIMIT, reading(service, then), then);
        }
        assert_eq!(count.state(LIMIT, then).used, used, "{service}");
    }
}

#[test]
fn b17_a_day_whose_end_is_stated_after_a_start_may_last_as_long_as_it_could() {
    let wall = moment(2, "1970-01-01T00:01:00Z", "2026-11-05T09:00:00Z");
    for (stated, since) in [
        ("00:00Z", "2026-11-01T00:00:00Z"),
        ("00:00:01Z", "2026-11-01T00:00:01Z"),
        ("12:00Z", "2026-11-01T12:00:00Z"),
        ("23:59:59Z", "2026-11-01T23:59:59Z"),
    ] {
        let mut count = replied(25);
        let terms = Terms { limit: Some(25), ..resetting(stated) };
        count.count_token_request(terms, wall);
        assert_eq!(count.requests, Tally { since: Some(timestamp(since)), count: 25 }, "{stated}");
    }
}

#[test]
fn b17_a_pause_has_no_end_before_the_services_time_is_known() {
    let mut count = replied(3);
    count.pin(LIMIT, Duration::from_secs(2 * 3_600), now("2026-11-01T12:00:00Z"));
    let later = "2026-11-05T09:00:00Z";
    let started = moment(2, "1970-01-01T00:01:00Z", later);
    assert_eq!(count.permit(LIMIT, started, 0), Permit::Unknown { one: false });
    count.observe(LIMIT, reading(later, started), started);
    assert_eq!(count.permit(LIMIT, started, 0), Permit::Granted);
}

const TODAY: &str = "2026-11-01T12:01:00Z";
const STEPPED: &str = "2026-11-02T09:00:00Z";

#[test]
fn b7_a_request_whose_process_was_killed_is_under_way_for_ten_minutes() {
    // A known clock may be five seconds slow.
    for (later, used) in [("2026-11-01T12:11:04Z", 4), ("2026-11-01T12:11:06Z", 2)] {
        let mut count = replied(10);
        for _ in 0..2 {
            drop(send(&mut count, now(TODAY)));
        }
        exchange(&mut count, now(TODAY), TODAY, 1);
        let at = now(later);
        exchange(&mut count, at, later, 1);
        exchange(&mut count, at, STEPPED, 2);
        assert_eq!(count.state(LIMIT, at).used, used, "{later}");
    }
    // The ten minutes start again with a later request.
    let mut count = replied(20);
    drop(send(&mut count, now(TODAY)));
    exchange(&mut count, now("2026-11-01T12:10:00Z"), "2026-11-01T12:10:00Z", 1);
    let at = now("2026-11-01T12:11:00Z");
    exchange(&mut count, at, STEPPED, 2);
    assert_eq!(count.state(LIMIT, at).used, 3);
}

#[test]
fn b7_a_request_whose_process_was_killed_is_counted_in_the_day_after_and_in_no_later_one() {
    // A machine that runs for a minute a day: each day begins by the first reply.
    let (mut count, mut killed) = (Count::default(), 0);
    for day in 1..=9 {
        let time = format!("2026-11-0{day}T09:00:00Z");
        let at = moment(day, "1970-01-01T00:01:00Z", &time);
        exchange(&mut count, at, &time, 2);
        assert_eq!(count.state(LIMIT, at).used, 2 + killed, "{day}");
        killed = if day < 5 { 3 } else { 0 };
        for _ in 0..killed {
            drop(send(&mut count, at));
        }
    }
}
