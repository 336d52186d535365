#![expect(clippy::disallowed_methods, reason = "each test runs on a runtime of its own")]

use super::*;
use crate::auth::test_harness::noon;

const PAGE_TIMEOUT: (Kind, Option<Phase>) = (Kind::TransportTimeout, Some(Phase::Page));

fn unavailable() -> Error {
    Error::new(Kind::ServiceUnavailable, "down").with(|context| context.status = Some(503))
}

fn throttled(seconds: Option<u64>) -> Error {
    Error::new(Kind::RateLimited, "too many")
        .with(|context| context.retry_after = seconds.map(Duration::from_secs))
}

/// Every attempt fails in the same way: the error for the user.
async fn all_fail(clock: &Clock, policy: &Policy, deadline: Deadline, error: &Error) -> Error {
    let quota = RetryQuota::new();
    let mut call = Call::begin(clock, policy, &quota, deadline);
    loop {
        let outcome: Result<()> = call.attempt(async { Err(error.clone()) }).await;
        if let Err(last) = call.pause_after(outcome.expect_err("it fails")).await {
            return last;
        }
    }
}

/// The waits before attempts 2, 3, ... of many calls if every attempt fails with this error.
async fn waits(policy: &Policy, error: &Error) -> Vec<Vec<Duration>> {
    fastrand::seed(14);
    let mut all = vec![Vec::new(); policy.tries as usize - 1];
    for _ in 0..300 {
        let last = all_fail(&noon(), policy, Deadline::NEVER, error).await;
        let waited: Vec<_> = last.context().attempts.iter().filter_map(|a| a.wait).collect();
        assert_eq!(waited.len(), all.len());
        for (wait, before) in waited.into_iter().zip(&mut all) {
            before.push(wait);
        }
    }
    all
}

fn assert_spread(waits: &[Duration], least: Duration, most: Duration) {
    let (low, high) = (waits.iter().min().expect("waits"), waits.iter().max().expect("waits"));
    let edge = most.saturating_sub(least) / 10;
    assert!((least..=least + edge).contains(low), "{low:?}, not {least:?}");
    assert!((most.saturating_sub(edge)..=most).contains(high), "{high:?}, not {most:?}");
}

#[tokio::test]
async fn b4_without_retry_after_the_waits_are_random_up_to_a_bound_that_grows_to_the_cap() {
    let limitless = Duration::MAX;
    let policy = Policy { tries: 8, call_limit: limitless, ..Policy::data() };
    for (error, bounds) in [
        (throttled(None), [2_000, 4_000, 8_000, 16_000, 20_000, 20_000, 20_000]),
        // It does not mean that the client may hurry.
        (throttled(Some(0)), [2_000, 4_000, 8_000, 16_000, 20_000, 20_000, 20_000]),
        (unavailable(), [400, 800, 1_600, 3_200, 6_400, 12_800, 20_000]),
    ] {
        for (waits, most) in waits(&policy, &error).await.iter().zip(bounds) {
            assert_spread(waits, Duration::ZERO, Duration::from_millis(most));
        }
    }
    let token = Policy { call_limit: limitless, ..Policy::token() };
    for (waits, most) in waits(&token, &unavailable()).await.iter().zip([2, 4, 8]) {
        assert_spread(waits, Duration::ZERO, Duration::from_secs(most));
    }
}

#[tokio::test]
async fn b1_the_part_on_top_of_retry_after_is_random() {
    for waits in waits(&Policy::data(), &throttled(Some(60))).await {
        assert_spread(&waits, Duration::from_secs(60), Duration::from_secs(66));
    }
    fastrand::seed(14);
    let (policy, quota, mut gate) = (Policy::data(), RetryQuota::new(), Vec::new());
    for _ in 0..300 {
        let clock = noon();
        let mut call = Call::begin(&clock, &policy, &quota, Deadline::NEVER);
        call.wait_out(Duration::from_secs(30), throttled(None)).await.expect("a short pause");
        gate.push(clock.monotonic());
    }
    assert_spread(&gate, Duration::from_secs(30), Duration::from_secs(33));
}

#[tokio::test]
async fn b1_the_limit_of_a_call_counts_attempts_and_backoff_and_nothing_else() {
    let (clock, quota, policy) = (noon(), RetryQuota::new(), Policy::data());
    let mut call = Call::begin(&clock, &policy, &quota, Deadline::NEVER);
    call.pause_after(throttled(Some(60))).await.expect("a retry");
    call.wait_out(Duration::from_secs(60), throttled(None)).await.expect("a pause");
    let token = async {
        clock.advance(Duration::from_secs(80));
        Ok(())
    };
    call.untimed(token).await.expect("a token");
    assert_eq!(call.counted(), Duration::ZERO);
    let before = clock.monotonic();
    call.pause_after(unavailable()).await.expect("a retry");
    let slow: Result<()> = call
        .attempt(async {
            clock.advance(Duration::from_secs(70));
            Err(unavailable())
        })
        .await;
    slow.expect_err("it fails");
    assert_eq!(call.counted() + before, clock.monotonic());
}

#[tokio::test]
async fn h4_an_attempt_has_what_is_left_of_the_limit_of_its_call() {
    let (clock, quota, policy) = (noon(), RetryQuota::new(), Policy::data());
    let call = Call::begin(&clock, &policy, &quota, Deadline::NEVER);
    clock.advance(policy.call_limit);
    let attempt = call.attempt(std::future::pending::<Result<()>>());
    // Half the limit of a call that had all of it.
    let ended = tokio::time::timeout(policy.call_limit / 2, attempt).await;
    let error = ended.expect("nothing was left").expect_err("no time");
    assert_eq!((error.kind(), error.context().phase), PAGE_TIMEOUT);
}

#[tokio::test]
async fn b12_throttling_takes_five_from_the_quota_and_a_transient_failure_ten() {
    for (error, retries) in [(throttled(None), 20), (unavailable(), 10)] {
        let (clock, quota) = (noon(), RetryQuota::new());
        // Without waits the quota is not refilled meanwhile.
        let policy = Policy { tries: 50, cap: Duration::ZERO, ..Policy::data() };
        let mut call = Call::begin(&clock, &policy, &quota, Deadline::NEVER);
        let mut made = 0;
        let last = loop {
            match call.pause_after(error.clone()).await {
                Ok(()) => made += 1,
                Err(last) => break last.to_string(),
            }
        };
        assert_eq!(made, retries, "{error}");
        assert!(last.contains("not retried: the client's retry quota is exhausted"), "{last}");
        // A minute brings one back, and ten idle minutes all.
        clock.advance(Duration::from_secs(600));
        assert!((0..10).all(|_| quota.take(&clock, Transience::Transient).is_some()));
        assert_eq!(quota.take(&clock, Transience::Transient), None);
    }
}

#[tokio::test]
async fn b2_h9_h19_the_error_decides_how_often_it_is_retried() {
    let broken = Error::new(Kind::ProtocolError, "not HTTP").with(|c| c.broken_framing = true);
    for (error, attempts) in [
        (Error::new(Kind::RequestRejected, "no"), 1),
        (throttled(Some(61)), 1),
        (broken, 2),
        (throttled(Some(60)), 4),
    ] {
        let clock = noon();
        let last = all_fail(&clock, &Policy::data(), Deadline::NEVER, &error).await;
        assert_eq!(last.context().attempts.len(), attempts, "{error}");
        assert!(attempts > 1 || clock.monotonic() == Duration::ZERO, "{error}");
    }
}

#[tokio::test]
async fn h4_a_page_has_90_seconds_and_a_token_60_with_all_attempts() {
    // The first wait is shorter than the three seconds that are left, and longer than none.
    for (policy, limit) in [(Policy::data(), 90), (Policy::token(), 60)] {
        let (clock, quota) = (noon(), RetryQuota::new());
        let mut call = Call::begin(&clock, &policy, &quota, Deadline::NEVER);
        clock.advance(Duration::from_secs(limit - 3));
        call.pause_after(unavailable()).await.expect("a retry");
        let mut call = Call::begin(&clock, &policy, &quota, Deadline::NEVER);
        clock.advance(Duration::from_secs(limit));
        let before = clock.monotonic();
        let error = call.pause_after(unavailable()).await.expect_err("no time is left");
        assert_eq!((error.kind(), error.context().phase), PAGE_TIMEOUT, "{limit}");
        assert_eq!(error.context().status, Some(503));
        assert_eq!(error.transience(), Transience::Never);
        assert_eq!(clock.monotonic(), before, "no wait");
    }
}

#[tokio::test]
async fn an_attempt_that_never_ends_is_cancelled_at_its_limit() {
    let moment = Duration::from_millis(1);
    let (clock, quota) = (noon(), RetryQuota::new());
    let short = Policy { attempt_limit: Some(moment), ..Policy::data() };
    let as_long = Policy { call_limit: moment, ..short.clone() };
    for (policy, phase) in [(short, Phase::Response), (as_long, Phase::Page)] {
        let call = Call::begin(&clock, &policy, &quota, Deadline::NEVER);
        let error = call.attempt(std::future::pending::<Result<()>>()).await.expect_err("cut");
        assert_eq!((error.kind(), error.context().phase), (Kind::TransportTimeout, Some(phase)));
    }
    let (deadline, policy) = (Deadline::after(&clock, Some(Duration::ZERO)), Policy::data());
    let call = Call::begin(&clock, &policy, &quota, deadline);
    let error = call.attempt(std::future::pending::<Result<()>>()).await.expect_err("cut");
    assert_eq!(error.kind(), Kind::DeadlineExceeded);
}

#[tokio::test]
async fn b12_a_retry_that_succeeds_gives_back_what_it_took_and_a_first_attempt_one_more() {
    // Without waits the quota is not refilled meanwhile.
    let policy = Policy { cap: Duration::ZERO, ..Policy::data() };
    let (clock, quota) = (noon(), RetryQuota::new());
    let left =
        || (0..20).take_while(|_| quota.take(&clock, Transience::Transient).is_some()).count();
    assert_eq!(left(), 10);
    for _ in 0..50 {
        Call::begin(&clock, &policy, &quota, Deadline::NEVER).succeeded();
    }
    assert_eq!(left(), 5);
    for _ in 0..50 {
        Call::begin(&clock, &policy, &quota, Deadline::NEVER).succeeded();
    }
    let mut call = Call::begin(&clock, &policy, &quota, Deadline::NEVER);
    call.pause_after(unavailable()).await.expect("a retry");
    call.succeeded();
    assert_eq!(left(), 5);
}

#[tokio::test]
async fn the_attempts_of_an_error_say_how_each_of_them_ended() {
    let lost = Error::new(Kind::TransportError, "gone");
    let coded = unavailable().with(|context| context.code = Some("E17".to_owned()));
    let slow = Error::new(Kind::TransportTimeout, "slow").with(|c| c.phase = Some(Phase::Body));
    for (error, expected) in [
        (lost.clone(), "connection lost"),
        (lost.with(|context| context.unsent = true), "not connected"),
        (coded, "503 E17"),
        (slow, "timeout in body"),
        (Error::new(Kind::TruncatedBody, "cut").with(|c| c.status = Some(200)), "body truncated"),
    ] {
        let clock = noon();
        let error = all_fail(&clock, &Policy::data(), Deadline::NEVER, &error).await;
        let outcomes: Vec<_> =
            error.context().attempts.iter().map(|a| a.outcome.as_str()).collect();
        assert_eq!(outcomes, [expected; 4]);
        assert_eq!(error.context().elapsed, Some(clock.monotonic()));
        assert!(!error.to_string().contains("quota"), "{error}");
    }
}
