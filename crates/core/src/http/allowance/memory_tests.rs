//! The count of a ledger in memory.

use super::*;
use crate::http::allowance::test_moments::{SILENT, moment, now, reading, timestamp};

fn ledger(limit: Option<u64>) -> LocalLedger {
    LocalLedger::in_memory(Terms { limit, resets: None })
}

fn spend(ledger: &LocalLedger, then: Moment, requests: u64) {
    for _ in 0..requests {
        let request = ledger.reserve(then, 0).expect("something is left");
        ledger.settle(request, SILENT, then);
    }
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
fn t31_a_process_that_counts_for_itself_begins_alone() {
    let ledger = ledger(None);
    let then = now("2026-11-01T20:00:00Z");
    for _ in 0..2 {
        assert_eq!(ledger.begin_token_request(then).expect("memory"), 0);
    }
}

#[test]
fn b5_the_error_distinguishes_reserved_from_used_requests() {
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
    assert_eq!(error.context().retry_at, Some(timestamp("2026-11-02T00:00:00Z")));
    assert!(error.context().unsent);
    assert_eq!(ledger.state(then).expect("memory").left, Some(0));
}
