//! The service's clock is stepped by a day while requests are under way or their processes are
//! killed. Each request counts in every day that it may belong to, and in no other.

use super::*;

const TODAY: &str = "2026-11-01T12:01:00Z";
const STEPPED: &str = "2026-11-02T09:00:00Z";

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

/// A later request was answered before the step. That shows nothing about this one.
#[test]
fn b16_a_request_that_a_later_one_overtook_may_be_of_the_day_that_a_step_opens() {
    let at = now(TODAY);
    let since = Some(timestamp("2026-11-02T00:00:00Z"));
    // The counts if it ends before the step is noticed, and after it.
    for (outcome, before, after) in [
        // Killed: nothing shows its day.
        (None, 3, 3),
        (Some(Outcome::Lost), 3, 3),
        (Some(SILENT), 3, 3),
        (Some(reply(STEPPED, at)), 3, 3),
        (Some(Outcome::Unsent), 2, 2),
        // A single contradicting reply shows nothing.
        (Some(reply(TODAY, at)), 2, 3),
    ] {
        let mut count = replied(20);
        let slow = send(&mut count, at);
        exchange(&mut count, at, TODAY, 1);
        let mut other = count.clone();
        if let Some(outcome) = outcome {
            count.settle(LIMIT, &slow, outcome, at);
        }
        exchange(&mut count, at, STEPPED, 2);
        assert_eq!(count.requests, Tally { since, count: before }, "{outcome:?}");
        exchange(&mut other, at, STEPPED, 2);
        assert_eq!(other.requests, Tally { since, count: 3 }, "{outcome:?}");
        if let Some(outcome) = outcome {
            other.settle(LIMIT, &slow, outcome, at);
        }
        assert_eq!(other.requests, Tally { since, count: after }, "{outcome:?}");
    }
}

#[test]
fn b16_a_late_reply_of_the_old_day_takes_none_from_the_one_that_a_step_opens() {
    let at = now(TODAY);
    for outcome in [reply(STEPPED, at), SILENT, Outcome::Lost] {
        let mut count = replied(20);
        let [first, second] = [(); 2].map(|()| send(&mut count, at));
        // The service's clock is stepped between them, and the second overtook the first.
        count.settle(LIMIT, &first, outcome, at);
        count.settle(LIMIT, &second, reply(TODAY, at), at);
        exchange(&mut count, at, STEPPED, 2);
        assert_eq!(count.state(LIMIT, at).used, 3, "{outcome:?}");
    }
    // The same if midnight passes before another reply.
    let evening = now("2026-11-01T23:40:00Z");
    let mut count = replied(20);
    let [first, second] = [(); 2].map(|()| send(&mut count, evening));
    count.settle(LIMIT, &first, reply("2026-11-02T00:10:00Z", evening), evening);
    count.settle(LIMIT, &second, reply("2026-11-01T23:40:00Z", evening), evening);
    assert_eq!(count.state(LIMIT, now("2026-11-02T00:00:00Z")).used, 1);
}

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

#[test]
fn b7_what_was_killed_long_before_midnight_is_of_its_day_although_the_clock_is_stepped_later() {
    let mut count = replied(20);
    for time in ["2026-11-01T23:49:00Z", "2026-11-01T23:55:00Z"] {
        drop(send(&mut count, now(time)));
    }
    let after = now("2026-11-02T00:00:01Z");
    assert_eq!(count.state(LIMIT, after).used, 1, "one may be of the new day");
    exchange(&mut count, after, "2026-11-02T00:00:01Z", 1);
    exchange(&mut count, after, "2026-11-03T09:00:00Z", 2);
    assert_eq!(count.state(LIMIT, after).used, 4, "both may be of the third");
}

#[test]
fn t27_requests_of_an_assumed_day_and_the_one_before_count_in_the_shown_day() {
    // The wall clock is eight days and some hours ahead, and passes its own midnight.
    let mut count = Count::default();
    for (when, requests) in [("2026-11-09T20:00:00Z", 3), ("2026-11-10T00:30:00Z", 2)] {
        for _ in 0..requests {
            let request = send(&mut count, now(when));
            count.settle(LIMIT, &request, SILENT, now(when));
        }
    }
    let then = now("2026-11-10T01:00:00Z");
    for _ in 0..2 {
        count.observe(LIMIT, reading("2026-11-01T09:00:00Z", then), then);
    }
    let since = Some(timestamp("2026-11-01T00:00:00Z"));
    assert_eq!(count.requests, Tally { since, count: 5 });
}
