//! B rows: the allowance, `Retry-After`, deadlines.

use std::sync::atomic::AtomicBool;

use super::*;
use crate::http::test_server::{http, token_body};

fn throttled(retry_after: &str) -> Act {
    Act::with_headers(429, &[&format!("Retry-After: {retry_after}")], "")
}

#[tokio::test]
async fn b1_b3_b4_a_call_waits_as_retry_after_says_and_otherwise_a_random_time() {
    let date = "Date: Sun, 01 Nov 2026 15:00:00 GMT";
    for (headers, least, most) in [
        (&["Retry-After: 2"][..], 2, 3),
        // A date is relative to the `Date` of the reply, not to the local clock.
        (&[date, "Retry-After: Sun, 01 Nov 2026 15:00:30 GMT"], 30, 33),
        (&["Retry-After: -5"], 0, 2),
        (&[], 0, 2),
    ] {
        let bench = Bench::new(vec![Act::with_headers(429, headers, "")]).await;
        bench.get().await.expect("a page at the second try");
        let waited = bench.clock().monotonic();
        let expected = Duration::from_secs(least)..=Duration::from_secs(most);
        assert!(expected.contains(&waited), "{headers:?}: {waited:?}");
        assert_eq!(bench.used(), 2);
    }
    let bench = Bench::new(vec![throttled("99999999999999999999999999")]).await;
    assert_eq!(bench.error().await.kind(), Kind::AllowanceExhausted);
}

#[tokio::test]
async fn b11_no_request_is_sent_until_the_end_of_the_pause() {
    let bench =
        Bench::with(vec![], vec![throttled("53578")], |s| s.daily_allowance = Some(500)).await;
    let until = "2026-11-02T02:52:58Z".parse().expect("a timestamp");
    let error = bench.error().await;
    assert_eq!(error.context().retry_at, Some(until));
    assert_eq!(error.context().hint.as_deref(), Some("Continue after 2026-11-02T02:52:58Z."));
    bench.clock().advance(Duration::from_secs(53_577));
    assert_eq!(bench.error().await.kind(), Kind::AllowanceExhausted);
    assert_eq!(bench.sent(), 1);
    bench.clock().advance(Duration::from_secs(1));
    bench.get().await.expect("a page");
    assert_eq!(bench.client.allowance().expect("memory").left, Some(499));
}

#[tokio::test]
async fn b2_minutes_of_retry_after_are_a_rate_limit() {
    let bench = Bench::new(vec![throttled("61")]).await;
    let error = bench.error().await;
    assert_eq!(error.kind(), Kind::RateLimited);
    assert_eq!(error.context().retry_at, Some("2026-11-01T12:01:01Z".parse().expect("a time")));
    assert_eq!(bench.sent(), 1);
    bench.get().await.expect("the next call does not wait");
}

#[tokio::test]
async fn b1_a_token_may_take_longer_than_a_page() {
    let down = Act::with_headers(503, &[], "");
    let clock = noon();
    let servers = clock.clone();
    let first = AtomicBool::new(true);
    let server = TestServer::start(move |request| {
        if request.is_token_request() {
            servers.advance(Duration::from_secs(100));
            return Act::json(200, &token_body("good-token"));
        }
        if first.swap(false, Ordering::Relaxed) { down.clone() } else { Act::json(200, "{}") }
    })
    .await;
    let bench = Bench::of(server, |settings| settings.clock = clock);
    bench.get().await.expect("a page at the second try");
    assert_eq!(bench.sent(), 2);
}

#[tokio::test]
async fn b1_reading_a_reply_has_no_time_limit() {
    let bench = Bench::new(vec![]).await;
    let (clock, first) = (bench.clock().clone(), AtomicBool::new(true));
    // `read` may wait for a slow caller.
    let read = |_: &Reply| {
        if !first.swap(false, Ordering::Relaxed) {
            return ready(Ok(()));
        }
        clock.advance(Duration::from_secs(100));
        ready(Err(Error::new(Kind::TruncatedBody, "cut")))
    };
    let spending = Spending::default();
    let got = bench.client.get(DATA_PATH, QUERY, Deadline::NEVER, &spending, read).await;
    got.expect("a page at the second try");
    assert_eq!(bench.sent(), 2);
}

#[tokio::test]
async fn b5_the_allowance_limits_retries_but_not_discovery() {
    let down = Act::with_headers(503, &[], "");
    let data = vec![Act::json(200, "{}"), down.clone(), down.clone(), down];
    let bench = Bench::with(vec![], data, |s| s.daily_allowance = Some(2)).await;
    bench.client.discover(None).await.expect("discovery");
    let error = bench.error().await;
    assert_eq!(error.kind(), Kind::AllowanceExhausted);
    assert_eq!(bench.sent(), 1 + 2);
    assert_eq!(error.context().attempts.len(), 2);
    bench.client.discover(None).await.expect("discovery still works");
}

#[tokio::test]
async fn p3_p4_a_too_long_cursor_is_not_sent() {
    let bench = Bench::new(vec![]).await;
    let get = async |cursor: &str| bench.query(&format!("{QUERY}&cursor={cursor}")).await;
    let start = format!("{QUERY}&cursor=");
    let length = bench.client.base_url().join(DATA_PATH, Some(&start)).as_str().len();
    let cursor = "~.-_aZ09".repeat(9_000)[..65_534 - length].to_owned();
    get(&cursor).await.expect("a page with the longest URL");
    let line = format!("GET {DATA_PATH}?{QUERY}&cursor={cursor} HTTP/1.1\r\n");
    assert!(bench.server.other_requests()[0].raw.starts_with(&line), "another cursor arrived");
    let error = get(&format!("{cursor}c")).await.expect_err("too long for a URL");
    assert_eq!((error.kind(), error.context().unsent), (Kind::RequestRejected, true));
    assert!(error.to_string().contains("URL"), "{error}");
    assert_eq!((bench.sent(), bench.client.data_requests()), (1, 1));
    assert_eq!(bench.used(), 1);
}

#[tokio::test]
async fn b12_callers_send_few_retries_in_an_outage() {
    let bench = Bench::new(vec![Act::with_headers(503, &[], ""); 1_000]).await;
    let mut rounds = 0;
    while bench.clock().monotonic() < Duration::from_secs(600) {
        for outcome in bench.at_once(32).await {
            assert_eq!(outcome.expect_err("it is down").kind(), Kind::ServiceUnavailable);
        }
        rounds += 1;
        if rounds == 1 {
            let sent = bench.sent();
            assert!(sent < 32 + 20, "{sent} requests by 32 callers");
        }
        bench.clock().advance(Duration::from_secs(60));
    }
    let retries = bench.sent() - 32 * rounds;
    assert!(rounds >= 9 && retries <= 10 + 11, "{retries} retries in {rounds} minutes");
    assert_eq!(bench.used(), bench.client.data_requests());
}

#[tokio::test]
async fn h1_an_unsent_request_is_retried_and_not_counted() {
    let last = |body: &str| Act::ReplyAndClose(http(200, &[], body.as_bytes()));
    let tokens = vec![last(&token_body("good-token"))];
    let mut bench = Bench::with(tokens, vec![last("{}")], |_| {}).await;
    bench.client.discover(None).await.expect("discovery, and a token");
    bench.server.stop_listening().await;
    let error = bench.error().await;
    assert_eq!((error.kind(), error.context().attempts.len()), (Kind::TransportError, 4));
    let counted = bench.client.allowance().expect("memory");
    assert_eq!((counted.used, bench.client.data_requests()), (0, 0));
    assert_eq!((counted.token_requests, bench.server.requests().len()), (1, 2));
}

#[tokio::test]
async fn a_deadline_limits_waits_requests_and_token() {
    let bench = Bench::new(vec![throttled("30")]).await;
    let limit = Some(Duration::from_secs(10));
    let error = bench.client.get_object(limit).await.expect_err("too long a wait");
    assert_eq!(error.kind(), Kind::DeadlineExceeded);
    assert_eq!(bench.clock().monotonic(), Duration::ZERO, "the call does not wait");
    let short = Some(Duration::from_millis(50));
    let bench = Bench::new(vec![Act::hang()]).await;
    let error = bench.client.get_object(short).await.expect_err("no answer");
    assert_eq!(error.kind(), Kind::DeadlineExceeded);
    let bench = Bench::with(vec![Act::hang()], vec![], |_| {}).await;
    let error = bench.client.get_object(short).await.expect_err("no token");
    assert_eq!((error.kind(), bench.client.data_requests()), (Kind::DeadlineExceeded, 0));
}

#[tokio::test]
async fn connections_limit_concurrent_requests() {
    let script = vec![Act::hang(), Act::hang()];
    let bench =
        Bench::with(vec![], script, |settings| settings.transport.max_connections = 2).await;
    let tasks: Vec<_> = (0..10)
        .map(|_| {
            let client = bench.client.clone();
            tokio::spawn(async move { client.get_object(None).await.map(drop) })
        })
        .collect();
    until(|| bench.sent() >= 2).await;
    a_while().await;
    assert_eq!(bench.sent(), 2);
    // A cancelled request leaves its connection to the longest waiting one.
    for task in &tasks[..2] {
        task.abort();
    }
    for (number, task) in tasks.into_iter().enumerate() {
        assert_eq!(task.await.is_err(), number < 2, "the aborted ones");
    }
    let requests = bench.server.other_requests();
    assert_eq!(requests.len(), 10);
    let connections: std::collections::BTreeSet<usize> =
        requests.iter().map(|request| request.connection).collect();
    assert!(connections.len() <= 4, "two hang, two are reused: {connections:?}");
}
