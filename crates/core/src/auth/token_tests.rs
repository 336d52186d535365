#![expect(clippy::disallowed_methods, reason = "each test runs on a runtime of its own")]

use std::collections::HashSet;

use super::*;
use crate::auth::test_harness::{BOTH_SCOPES, DATA_SCOPE, Harness, good, warnings};
use crate::auth::{Credential, PrivateKey, Signer, Signing};
use crate::error::Kind;
use crate::fork::pretend;
use crate::http::test_server::{Act, http, token_body};

const MINUTE: Duration = Duration::from_secs(60);

fn dated(date: &str, body: &str) -> Act {
    Act::with_headers(401, &[&format!("Date: {date}")], body)
}

const REFUSED: &str = r#"{"error":"invalid_client"}"#;

/// No assertion was repeated.
fn assert_all_new(harness: &Harness) {
    let sent = harness.server.token_requests();
    let texts: HashSet<_> = sent.iter().map(|r| r.field("client_assertion")).collect();
    let names: HashSet<_> = sent.iter().map(|r| r.assertion_part(1)["jti"].to_string()).collect();
    assert_eq!((texts.len(), names.len()), (sent.len(), sent.len()), "an assertion was repeated");
}

#[tokio::test]
async fn t1_invalid_client_is_not_retried_at_any_status_and_the_hint_lists_the_causes() {
    for status in [400, 401, 500] {
        let harness = Harness::new(vec![Act::json(status, REFUSED)]).await;
        let error = harness.token().await.expect_err("refused");
        assert_eq!(error.kind(), Kind::AuthenticationError);
        assert_eq!(harness.server.requests().len(), 1);
        let text = error.to_string();
        for word in [harness.credential.kid(), "oauth/token", "clock is unknown", "approved"] {
            assert!(text.contains(word), "{word}: {text}");
        }
        assert_eq!(error.context().code.as_deref(), Some("invalid_client"));
        assert_eq!((error.context().status, error.context().attempts.len()), (Some(status), 1));
    }
}

#[tokio::test]
async fn t2_a_correction_that_is_no_longer_right_is_removed() {
    let harness = Harness::new(vec![dated("Sun, 01 Nov 2026 12:00:00 GMT", REFUSED)]).await;
    let now = harness.time.clock().wall();
    // The estimate from before the local clock was corrected.
    harness.time.learn("2026-11-01T12:02:00Z".parse().expect("a timestamp"), now, now);
    harness.token().await.expect("accepted with local time");
    let sent = harness.server.token_requests();
    assert_eq!(sent.len(), 2);
    assert_eq!(sent[0].assertion_part(1)["iat"], 1_793_534_520);
    assert_eq!(sent[1].assertion_part(1)["iat"], 1_793_534_400);
}

#[tokio::test]
async fn t28_a_skew_of_years_is_not_corrected_and_the_error_shows_both_clocks() {
    for (date, year) in
        [("Thu, 01 Jan 1970 00:00:00 GMT", "1970"), ("Thu, 01 Jan 2099 00:00:00 GMT", "2099")]
    {
        let harness = Harness::new(vec![dated(date, REFUSED)]).await;
        let error = harness.token().await.expect_err("refused");
        assert_eq!((error.kind(), harness.server.requests().len()), (Kind::ClockSkewError, 1));
        let text = error.to_string();
        assert!(text.contains(year) && text.contains("2026-11-01T12:00:00"), "{text}");
    }
}

#[tokio::test]
async fn t3_invalid_scope_is_a_scope_error_that_names_it() {
    let body =
        r#"{"error":"invalid_scope","error_description":"customer.data.read is not allowed"}"#;
    let harness = Harness::new(vec![Act::json(400, body)]).await;
    let error = harness.token().await.expect_err("refused");
    assert_eq!(error.kind(), Kind::ScopeError);
    assert_eq!(error.context().missing, [DATA_SCOPE]);
    assert_eq!(harness.server.requests().len(), 1);
}

#[tokio::test]
async fn t6_a_refused_request_is_not_repeated() {
    let codes =
        ["invalid_request", "unsupported_grant_type", "unauthorized_client", "invalid_grant"];
    for (code, status) in codes.into_iter().flat_map(|code| [(code, 400), (code, 401), (code, 503)])
    {
        let refusal = Act::json(status, &format!(r#"{{"error":"{code}"}}"#));
        let harness = Harness::new(vec![refusal]).await;
        let error = harness.token().await.expect_err("refused");
        assert_eq!(error.kind(), Kind::RequestRejected, "{code} {status}");
        assert_eq!(error.context().code.as_deref(), Some(code));
        assert_eq!(harness.server.requests().len(), 1);
    }
}

#[tokio::test]
async fn t7_temporarily_unavailable_is_retried_with_a_new_assertion_at_any_status() {
    for status in [503, 400, 500, 200] {
        let busy = Act::json(status, r#"{"error":"temporarily_unavailable"}"#);
        let harness = Harness::new(vec![busy.clone(), busy.clone(), busy]).await;
        harness.token().await.expect("a token at the fourth try");
        assert_eq!(harness.server.requests().len(), 4);
        assert_all_new(&harness);
    }
    let busy = Act::json(503, r#"{"error":"temporarily_unavailable"}"#);
    let harness = Harness::new(vec![busy; 8]).await;
    let error = harness.token().await.expect_err("busy");
    assert_eq!((error.kind(), harness.server.requests().len()), (Kind::ServiceUnavailable, 4));
    assert!(error.context().attempts.len() == 4 && harness.clock.monotonic() < MINUTE);
}

#[tokio::test]
async fn t8_error_pages_of_gateways_are_retried_and_a_missing_endpoint_is_not() {
    for status in [500, 502, 504] {
        let page = Act::with_headers(status, &["Content-Type: text/html"], "<h1>Bad gateway</h1>");
        let harness = Harness::new(vec![page]).await;
        harness.token().await.expect("a token at the second try");
        assert_eq!(harness.server.requests().len(), 2);
    }
    let harness = Harness::new(vec![Act::with_headers(404, &[], "not here")]).await;
    let error = harness.token().await.expect_err("no endpoint");
    assert_eq!((error.kind(), harness.server.requests().len()), (Kind::RequestRejected, 1));
    assert!(error.to_string().contains("/api/customer/oauth/token"), "{error}");
    assert!(error.to_string().contains("check base_url= and its prefix"), "{error}");
    let harness = Harness::new(vec![Act::with_headers(401, &[], "who are you?")]).await;
    let error = harness.token().await.expect_err("refused without a code");
    assert_eq!((error.kind(), harness.server.requests().len()), (Kind::AuthenticationError, 1));
}

#[tokio::test]
async fn t9_all_callers_wait_when_a_token_request_is_throttled() {
    let throttled = Act::with_headers(429, &["Retry-After: 20"], "");
    let slow = Act::json(400, r#"{"error":"slow_down"}"#);
    for act in [throttled, slow, Act::with_headers(429, &[], "")] {
        let harness = Harness::new(vec![act]).await;
        let tokens = harness.at_once(50).await;
        assert!(tokens.iter().all(Result::is_ok));
        assert_eq!(harness.server.requests().len(), 2, "one gate for all");
    }
}

#[tokio::test]
async fn t10_a_token_request_without_a_reply_is_retried_with_a_new_jti() {
    // A busy machine may need longer than a short limit to sign and to send.
    for milliseconds in [50, 500, 5_000, 50_000] {
        let mut harness = Harness::new(vec![Act::hang()]).await;
        harness.policy.attempt_limit = Some(Duration::from_millis(milliseconds));
        harness.token().await.ok();
        assert_all_new(&harness);
        if harness.server.requests().len() >= 2 {
            return;
        }
    }
    panic!("no attempt followed");
}

/// A signer that takes two hours.
struct Slow(PrivateKey, Clock);

impl Signer for Slow {
    fn sign(&self, signing_input: &[u8]) -> Result<Vec<u8>> {
        self.1.advance(120 * MINUTE);
        self.0.sign(signing_input)
    }
}

#[tokio::test]
async fn t15_the_time_to_sign_is_not_limited_and_does_not_age_the_token() {
    let mut harness = Harness::new(vec![]).await;
    let key = include_bytes!("../../../../tests/keys/pkcs8.pem");
    let key = PrivateKey::parse(key, None).expect("a key");
    let public = key.public_jwk();
    let slow = Signing::Blocking(Arc::new(Slow(key, harness.clock.clone())));
    harness.credential = Credential::with_signer("s", slow, public, None).expect("one").value;
    for _ in 0..2 {
        assert!(harness.token().await.expect("a token").expires_in() > MINUTE);
    }
    assert_eq!(harness.server.token_requests().len(), 1);
}

#[tokio::test]
async fn t11_a_truncated_token_reply_is_retried() {
    let body = token_body("tok");
    let cut_json = format!("HTTP/1.1 200 OK\r\n\r\n{}", &body[..body.len() / 2]);
    let cut_gzip = http(200, &["Content-Encoding: gzip"], &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3]);
    let cut_refusal = b"HTTP/1.1 400 No\r\nContent-Length: 100\r\n\r\n{\"err".to_vec();
    for act in [
        Act::ReplyAndClose(cut_json.into_bytes()),
        Act::Reply(cut_gzip),
        Act::ReplyAndClose(cut_refusal),
    ] {
        let harness = Harness::new(vec![act]).await;
        harness.token().await.expect("a token at the second try");
        assert_eq!(harness.server.requests().len(), 2);
        assert_all_new(&harness);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t19_five_hundred_concurrent_callers_cost_one_token_request() {
    let harness = Harness::new(vec![]).await;
    let tokens = harness.at_once(500).await;
    let generations: HashSet<_> =
        tokens.into_iter().map(|token| token.expect("a token").generation()).collect();
    assert_eq!((generations.len(), harness.server.requests().len()), (1, 1));
}

#[tokio::test]
async fn t20_if_the_caller_that_requests_the_token_is_cancelled_another_takes_over() {
    let harness = Harness::new(vec![Act::hang()]).await;
    let first = harness.spawn();
    while harness.server.requests().is_empty() {
        tokio::task::yield_now().await;
    }
    let waiting: Vec<_> = (0..20).map(|_| harness.spawn()).collect();
    tokio::task::yield_now().await;
    first.abort();
    for task in waiting {
        task.await.expect("not cancelled").expect("a token");
    }
    assert_eq!(harness.server.requests().len(), 2);
    assert_all_new(&harness);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t21_when_the_exchange_fails_all_waiting_callers_get_its_error() {
    let refusal = Act::json(400, r#"{"error":"invalid_request"}"#);
    let harness = Harness::new(vec![refusal; 100]).await;
    let errors = harness.at_once(100).await;
    assert!(errors.iter().all(|e| e.as_ref().is_err_and(|e| e.kind() == Kind::RequestRejected)));
    assert_eq!(harness.server.requests().len(), 1);
    // So do callers within the next half minute.
    harness.clock.advance(Duration::from_secs(29));
    harness.token().await.expect_err("remembered");
    assert_eq!(harness.server.requests().len(), 1);
}

#[tokio::test]
async fn t22_the_first_caller_that_needs_a_token_renews_it_before_it_expires() {
    let harness = Harness::new(vec![]).await;
    let first = harness.token().await.expect("a token");
    harness.clock.advance(Duration::from_secs(475));
    assert_eq!(harness.token().await.expect("kept").generation(), first.generation());
    harness.clock.advance(Duration::from_secs(70));
    let second = harness.token().await.expect("renewed");
    assert_ne!(second.generation(), first.generation());
    assert_eq!(harness.server.requests().len(), 2);
}

#[tokio::test]
async fn t23_when_renewing_fails_the_valid_token_is_used_until_its_last_seconds() {
    let down = Act::with_headers(503, &[], "");
    let harness =
        Harness::new(vec![good("old"), down.clone(), down.clone(), down.clone(), down]).await;
    let old = harness.token().await.expect("a token");
    warnings();
    harness.clock.advance(Duration::from_secs(500));
    let mut asked = Vec::new();
    for _ in 0..94 {
        harness.clock.advance(Duration::from_secs(1));
        assert_eq!(harness.token().await.expect("valid").generation(), old.generation());
        asked.push(harness.server.requests().len());
    }
    assert!(asked[93] <= 5, "never twice within 30 s: {asked:?}");
    assert!(asked[93] >= 3);
    let logged = warnings();
    assert!(logged.len() == 1 && logged[0].contains("could not be renewed"), "{logged:?}");
    // It is not used in its last five seconds. Failed renewals do not prevent a new exchange.
    harness.clock.advance(Duration::from_secs(1));
    assert_ne!(harness.token().await.expect("a new one").generation(), old.generation());
}

#[tokio::test]
async fn t29_narrower_scopes_get_a_token_of_their_own_whatever_was_asked_before() {
    let harness = Harness::new(vec![]).await;
    let wide = harness.token().await.expect("a token");
    let narrow = harness.source_for(DATA_SCOPE);
    let token = narrow.token(&harness.exchange()).await.expect("its own");
    assert_ne!(token.generation(), wide.generation());
    let asked: Vec<_> = harness.server.requests().iter().map(|sent| sent.field("scope")).collect();
    assert_eq!(asked, [BOTH_SCOPES, DATA_SCOPE]);
    // A refusal drops only the refused token.
    narrow.invalidate(&token);
    assert_eq!(harness.token().await.expect("a token").generation(), wide.generation());
    narrow.invalidate(&wide);
    assert_eq!(harness.token().await.expect("a token").generation(), wide.generation());
    assert_eq!(harness.server.requests().len(), 2);
}

#[tokio::test]
async fn a_forked_process_has_a_new_flight_lock() {
    let harness = Harness::new(vec![]).await;
    let flight = harness.source.flight();
    let _guard = flight.lock().await;
    // After a fork, the inherited lock is never released.
    let _child = pretend(1);
    harness.token().await.expect("a token");
}
