//! The count of a ledger in memory.

use super::*;
use crate::http::allowance::test_moments::{SILENT, at, moment, now, reading};

fn ledger(limit: Option<u64>) -> LocalLedger {
    LocalLedger::in_memory(Terms { limit, resets: None })
}

fn spend(ledger: &LocalLedger, then: Moment, requests: u64) {
    for _ in 0..requests {
        let request = ledger.reserve(then, 0).expect("something is left");
        ledger.settle(request, SILENT, then);
    }
}

fn state(ledger: &LocalLedger, when: &str) -> AllowanceState {
    ledger.state(now(when)).expect("memory")
}

#[test]
fn b5_the_request_that_would_exceed_the_allowance_is_refused_with_its_reset() {
    let ledger = ledger(Some(3));
    let then = now("2026-11-01T22:00:00Z");
    spend(&ledger, then, 3);
    let error = ledger.reserve(then, 0).expect_err("nothing is left");
    assert_eq!(error.kind(), Kind::AllowanceExhausted);
    assert_eq!(error.context().retry_at, Some(at("2026-11-02T00:00:00Z")));
    assert!(error.context().unsent);
    assert_eq!(ledger.state(then).expect("memory").left, Some(0));
}

#[test]
fn b8_midnight_of_the_service_starts_a_new_count() {
    let ledger = ledger(Some(3));
    spend(&ledger, now("2026-11-01T23:59:50Z"), 3);
    spend(&ledger, now("2026-11-02T00:00:00Z"), 1);
    let state = state(&ledger, "2026-11-02T00:00:00Z");
    assert_eq!((state.used, state.left), (1, Some(2)));
    assert_eq!(state.resets_at, at("2026-11-03T00:00:00Z"));
}

#[test]
fn b8_a_clock_set_back_over_midnight_does_not_open_a_day_twice() {
    let ledger = ledger(Some(3));
    let noon = now("2026-11-02T00:00:01Z");
    spend(&ledger, noon, 2);
    ledger.observe(reading("2026-11-02T00:00:01Z", noon), noon);
    for _ in 0..2 {
        ledger.observe(reading("2026-11-01T23:59:50Z", noon), noon);
    }
    spend(&ledger, noon, 1);
    assert!(ledger.reserve(now("2026-11-02T00:00:21Z"), 0).is_err());
}

#[test]
fn a_clock_that_was_years_ahead_does_not_prevent_new_days() {
    let ledger = ledger(Some(1));
    let noon = moment(1, "2026-11-01T12:00:00Z", "2036-11-01T00:00:00Z");
    spend(&ledger, noon, 1);
    for _ in 0..2 {
        ledger.observe(reading("2026-11-01T12:00:00Z", noon), noon);
    }
    assert!(ledger.reserve(noon, 0).is_err());
    spend(&ledger, moment(1, "2026-11-02T00:00:00Z", "2036-11-01T12:00:00Z"), 1);
}

#[test]
fn b11_a_long_retry_after_empties_the_ledger_until_its_end() {
    let ledger = ledger(Some(1_000));
    let then = now("2026-11-01T20:00:00Z");
    spend(&ledger, then, 500);
    ledger.pin(Duration::from_secs(9 * 3_600), then).expect("memory");
    let error = ledger.reserve(now("2026-11-02T04:59:59Z"), 0).expect_err("pinned");
    assert_eq!(error.context().retry_at, Some(at("2026-11-02T05:00:00Z")));
    let state = state(&ledger, "2026-11-02T05:00:00Z");
    assert_eq!((state.used, state.left), (0, Some(1_000)));
    // The end of the pin shows when the service's days begin.
    assert_eq!(state.resets_at, at("2026-11-03T05:00:00Z"));
}

#[test]
fn a_pin_never_lasts_longer_than_a_day() {
    let ledger = ledger(None);
    let then = now("2026-11-01T20:00:00Z");
    ledger.pin(Duration::MAX, then).expect("memory");
    assert_eq!(ledger.state(then).expect("memory").resets_at, at("2026-11-02T20:00:00Z"));
    assert_eq!(state(&ledger, "2026-11-02T20:00:00Z").left, None);
}

#[test]
fn t31_a_process_that_counts_for_itself_begins_alone() {
    let ledger = ledger(None);
    let then = now("2026-11-01T20:00:00Z");
    for _ in 0..2 {
        assert_eq!(ledger.begin_token_request(then).expect("memory"), 0);
    }
}

#[test]
fn a_request_that_was_not_sent_is_given_back() {
    let ledger = ledger(None);
    let then = now("2026-11-01T20:00:00Z");
    let reservation = ledger.reserve(then, 0).expect("no limit");
    assert_eq!(ledger.state(then).expect("memory").used, 1);
    ledger.settle(reservation, Outcome::Unsent, then);
    assert_eq!(ledger.state(then).expect("memory").used, 0);
}

#[test]
fn the_error_distinguishes_requests_held_back_from_a_used_up_allowance() {
    let ledger = ledger(Some(3));
    let then = now("2026-11-01T20:00:00Z");
    let error = ledger.reserve(then, 3).expect_err("all are kept");
    assert_eq!(error.kind(), Kind::AllowanceExhausted);
    assert!(
        error.context().message.contains("last 3 requests of the daily allowance are reserved"),
        "{error}"
    );
    drop(ledger.reserve(then, 2).expect("one is not kept"));
    spend(&ledger, then, 2);
    let error = ledger.reserve(then, 2).expect_err("nothing is left");
    assert!(error.context().message.contains("used up: 3 of 3"), "{error}");
}
