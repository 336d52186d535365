//! Tests with services that check assertions against their own clock, which differs from the
//! client's.

#![expect(clippy::disallowed_methods, reason = "each test runs on a runtime of its own")]

use jiff::SignedDuration;

use super::*;
use crate::auth::test_harness::{Harness, noon};
use crate::http::test_server::{Act, TestServer, token_body};

#[derive(Clone, Copy)]
struct Service {
    /// The client's clock minus the service's, in milliseconds.
    ahead: i64,
    /// How far `iat` and `nbf` may be in the service's future, in seconds.
    tolerance: i64,
    /// The maximum age of `iat`, in seconds.
    oldest: i64,
    /// Delay of the request, and delay of the reply.
    ways: (Duration, Duration),
    /// Error of the `Date` header, in seconds. `None` leaves the header out.
    lie: Option<i64>,
    /// Refuses every assertion for a reason other than its times.
    refuses_all: bool,
}

const HONEST: Service = Service {
    ahead: 0,
    tolerance: 0,
    oldest: 120,
    ways: (Duration::ZERO, Duration::ZERO),
    lie: Some(0),
    refuses_all: false,
};

impl Service {
    async fn harness(self) -> Harness {
        let clock = noon();
        let harness_clock = clock.clone();
        // A wall clock at a whole second would hide the effect of truncation.
        clock.advance(Duration::from_millis(700));
        let server = TestServer::start(move |request| {
            clock.advance(self.ways.0);
            let now = clock.wall() - SignedDuration::from_millis(self.ahead);
            let claims = request.assertion_part(1);
            let at = |name: &str| claims[name].as_i64().expect("an integer");
            let latest = now.as_second() + self.tolerance;
            let is_good = at("iat") <= latest
                && at("nbf") <= latest
                && at("iat") >= now.as_second() - self.oldest
                && at("exp") > now.as_second();
            let (status, body) = if is_good && !self.refuses_all {
                (200, token_body("tok"))
            } else {
                (401, r#"{"error":"invalid_client"}"#.to_owned())
            };
            let date = self.lie.map(|lie| {
                let shown = std::time::SystemTime::from(now + SignedDuration::from_secs(lie));
                format!("Date: {}", httpdate::fmt_http_date(shown))
            });
            clock.advance(self.ways.1);
            Act::with_headers(status, &date.iter().map(String::as_str).collect::<Vec<_>>(), &body)
        })
        .await;
        Harness::of(server, harness_clock)
    }
}

fn sent(harness: &Harness) -> usize {
    harness.server.token_requests().len()
}

/// Requests a token after the cached token and the remembered failures have expired.
async fn again(harness: &Harness) -> Result<AccessToken> {
    harness.clock.advance(Duration::from_secs(900));
    harness.token().await
}

#[tokio::test]
async fn each_skew_above_two_seconds_is_corrected_once() {
    for ahead in [3_000, 4_900, 6_000, 12_000, 20_000, 28_000, 32_000, 60_000, 3_600_000] {
        for tolerance in [0, 1, 5, 10, 29, 30] {
            let service = Service { ahead, tolerance, ..HONEST };
            let harness = service.harness().await;
            harness.token().await.expect("accepted with corrected times");
            let first = if ahead > tolerance * 1_000 + 999 { 2 } else { 1 };
            assert!(sent(&harness) <= first, "{ahead} ms ahead, tolerance {tolerance} s");
            let before = sent(&harness);
            again(&harness).await.expect("a second token");
            assert_eq!(sent(&harness), before + 1, "{ahead} ms ahead, tolerance {tolerance} s");
        }
    }
}

#[tokio::test]
async fn a_clock_behind_is_corrected_once_too() {
    for (behind, oldest) in [(4_000, 1), (12_000, 5), (28_000, 20), (150_000, 120), (7_200_000, 60)]
    {
        let harness = Service { ahead: -behind, oldest, ..HONEST }.harness().await;
        harness.token().await.expect("accepted with corrected times");
        again(&harness).await.expect("a second token");
        assert_eq!(sent(&harness), 3, "{behind} ms behind");
    }
}

#[tokio::test]
async fn a_refusal_for_another_reason_costs_one_exchange() {
    for ahead in [-1_400, -400, 0, 400, 1_400] {
        let harness = Service { ahead, refuses_all: true, ..HONEST }.harness().await;
        let error = harness.token().await.expect_err("refused");
        assert_eq!((error.kind(), sent(&harness)), (Kind::AuthenticationError, 1), "{ahead} ms");
    }
}

#[tokio::test]
async fn a_slow_round_trip_is_no_skew() {
    let slow = Duration::from_secs(7);
    for ways in [(slow, Duration::ZERO), (Duration::ZERO, slow)] {
        let service = Service { ways, refuses_all: true, ..HONEST };
        let harness = service.harness().await;
        let error = harness.token().await.expect_err("refused");
        assert_eq!((error.kind(), sent(&harness)), (Kind::AuthenticationError, 1), "{ways:?}");
    }
    // Even if only one direction is slow, the corrected times are not in the service's future.
    for ways in [(slow, Duration::ZERO), (Duration::ZERO, slow), (slow / 2, slow / 2)] {
        let harness = Service { ahead: 20_000, ways, ..HONEST }.harness().await;
        harness.token().await.expect("accepted with corrected times");
        assert_eq!(sent(&harness), 2, "{ways:?}");
    }
}

#[tokio::test]
async fn a_wrong_or_missing_date_costs_one_exchange_more_at_most() {
    for (lie, most) in
        [(None, 1), (Some(20), 2), (Some(-20), 2), (Some(3_600), 2), (Some(90_000), 1)]
    {
        for ahead in [0, 12_000] {
            let harness = Service { ahead, lie, refuses_all: true, ..HONEST }.harness().await;
            harness.token().await.expect_err("refused");
            assert!(sent(&harness) <= most, "{lie:?} {ahead}: {}", sent(&harness));
        }
    }
}

#[tokio::test]
async fn a_small_skew_is_corrected_later_only_after_it_was_accepted() {
    let harness = Service { ahead: 3_000, refuses_all: true, ..HONEST }.harness().await;
    harness.token().await.expect_err("refused");
    assert_eq!(sent(&harness), 2);
    assert!(harness.time.assertion_skew().is_none());
    let harness = Service { ahead: 3_000, ..HONEST }.harness().await;
    harness.token().await.expect("accepted with corrected times");
    assert!(harness.time.assertion_skew().is_some());
}

#[tokio::test]
async fn a_skew_and_another_reason_are_remembered_for_a_minute() {
    let harness = Service { ahead: 12_000, refuses_all: true, ..HONEST }.harness().await;
    let error = harness.token().await.expect_err("refused");
    assert_eq!((error.kind(), sent(&harness)), (Kind::ClockSkewError, 2));
    assert_eq!((error.context().attempts.len(), error.context().skew_seconds), (2, Some(-12.2)));
    harness.clock.advance(Duration::from_secs(59));
    harness.token().await.expect_err("remembered");
    assert_eq!(sent(&harness), 2);
    harness.clock.advance(Duration::from_secs(2));
    harness.token().await.expect_err("refused again");
    assert_eq!(sent(&harness), 3, "its times were corrected at once");
}
