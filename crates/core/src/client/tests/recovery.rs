//! D rows: refused tokens, missing scopes.

use super::*;
use crate::http::test_server::{EMPTY_PAGE, token_body};
use crate::lock::Mutex;

#[tokio::test]
async fn d1_a_refused_token_costs_one_retry() {
    let bench = Bench::settled(vec![refused()]).await;
    let before = bench.clock().monotonic();
    bench.get().await.expect("a page");
    assert_eq!(bench.counts(), (1, 2));
    assert_eq!(bench.clock().monotonic(), before, "a new token is used at once");
    let sent = bench.server.other_requests();
    let without_token = |raw: &str| raw.replace("good-token-0", "").replace("good-token-1", "");
    assert_ne!(sent[1].raw, sent[2].raw);
    assert_eq!(without_token(&sent[1].raw), without_token(&sent[2].raw));
}

#[tokio::test]
async fn d2_a_second_refusal_is_an_error_with_the_challenge() {
    let bench = Bench::settled(vec![refused(), refused(), refused()]).await;
    let error = bench.error().await;
    assert_eq!((error.kind(), bench.counts()), (Kind::AuthenticationError, (1, 2)));
    assert!(error.to_string().contains("invalid_token"), "{error}");
    assert_eq!(error.context().code.as_deref(), Some("invalid_token"));
    assert_eq!((error.context().status, error.context().attempts.len()), (Some(401), 2));
}

#[tokio::test]
async fn d3_a_missing_scope_costs_no_token_request() {
    let challenge =
        "WWW-Authenticate: Bearer error=\"insufficient_scope\", scope=\"a.read b.read\"";
    let bench = Bench::settled(vec![Act::with_headers(403, &[challenge], "")]).await;
    let error = bench.error().await;
    assert_eq!((error.kind(), bench.counts()), (Kind::ScopeError, (0, 1)));
    assert_eq!(error.context().missing, ["a.read", "b.read"]);
    assert_eq!(error.context().code.as_deref(), Some("insufficient_scope"));
}

#[tokio::test]
async fn t5_an_unconfirmed_scope_is_a_scope_error_of_the_data_request() {
    let body = r#"{"access_token":"good-token","token_type":"Bearer","expires_in":600}"#;
    let refusal = Act::json(403, r#"{"error":"insufficient_scope"}"#);
    let bench = Bench::with(vec![Act::json(200, body)], vec![refusal], |_| {}).await;
    assert_eq!(bench.error().await.kind(), Kind::ScopeError);
}

/// A service whose tokens each serve a number of requests, depending on the number of the token.
async fn forgetting(uses: fn(u32) -> u32) -> TestServer {
    let issued = Mutex::new((0, 0));
    TestServer::start(move |request| {
        let (number, left) = &mut *issued.lock();
        if request.is_token_request() {
            (*number, *left) = (*number + 1, uses(*number + 1));
            return Act::json(200, &token_body(&format!("good-token-{number}")));
        }
        let is_current =
            request.header("authorization") == Some(&format!("Bearer good-token-{number}"));
        if !is_current || *left == 0 {
            return refused();
        }
        *left -= 1;
        Act::json(200, EMPTY_PAGE)
    })
    .await
}

#[tokio::test]
async fn d4_fifty_concurrent_refusals_cost_one_token_request() {
    let server = forgetting(|number| if number == 1 { 1 } else { 50 }).await;
    let bench = Bench::of(server, |_| {}).with_settled_token().await;
    assert!(bench.at_once(50).await.iter().all(Result::is_ok));
    let (tokens, others) = bench.counts();
    assert_eq!(tokens, 1);
    assert!(others <= 100, "{others}");
}

#[tokio::test]
async fn d5_the_form_of_the_challenge_has_no_effect() {
    for headers in [
        &[][..],
        &["WWW-Authenticate: ????"],
        &["WWW-Authenticate: Basic realm=\"x\""],
        &["WWW-Authenticate: Basic realm=\"x\"", "WWW-Authenticate: Bearer error=invalid_token"],
        &["WWW-Authenticate: Bearer error=\"unclosed"],
    ] {
        let bench = Bench::settled(vec![Act::with_headers(401, headers, "")]).await;
        bench.get().await.expect("a page");
        assert_eq!(bench.counts(), (1, 2), "{headers:?}");
    }
}

#[tokio::test]
async fn d6_revoked_tokens_lose_no_page() {
    let bench = Bench::of(forgetting(|_| 3).await, |_| {});
    for _ in 0..12 {
        bench.get().await.expect("a page");
        bench.clock().advance(Duration::from_secs(6));
    }
    assert_eq!(bench.server.token_requests().len(), 4);
    assert_eq!(bench.sent(), 12 + 3);
}

#[tokio::test]
async fn d7_a_second_refusal_is_final_for_a_young_token_too() {
    let bench = Bench::new(vec![refused(); 8]).await;
    let error = bench.error().await;
    assert_eq!(error.kind(), Kind::AuthenticationError);
    assert_eq!(bench.server.token_requests().len(), 2);
    assert_eq!(bench.sent(), 2);
    assert_eq!(bench.used(), 2);
    let waits: Vec<_> = error.context().attempts.iter().map(|one| one.wait).collect();
    assert_eq!(waits, [Some(Duration::from_secs(1)), None]);
}

#[tokio::test]
async fn t21_the_data_request_does_not_retry_a_failed_token_exchange() {
    let refusal = Act::json(400, r#"{"error":"invalid_request"}"#);
    let bench = Bench::with(vec![refusal; 8], vec![], |_| {}).await;
    assert_eq!(bench.error().await.kind(), Kind::RequestRejected);
    let counted = bench.client.allowance().expect("memory");
    assert_eq!((counted.token_requests, bench.client.data_requests()), (1, 0));
    assert_eq!((counted.used, bench.server.token_requests().len()), (0, 1));
}
