//! How long tokens are cached, and which callers wait for the next one.

#![expect(clippy::disallowed_methods, reason = "each test runs on a runtime of its own")]

use super::*;
use crate::auth::test_harness::Harness;
use crate::http::test_server::Act;

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test]
async fn t29_the_token_of_a_dropped_client_waits_for_the_next_one_while_it_is_valid() {
    let mut harness = Harness::new(vec![]).await;
    let key = harness.source.key.clone();
    let other = |name: &str| TokenKey { audience: name.to_owned(), ..key.clone() };
    // A client that has not asked for a token yet keeps its source.
    let idle = TokenSource::shared(other("idle"), &harness.clock);
    let token = harness.token().await.expect("a token");
    // From now on only the registry holds its source.
    harness.source = Arc::clone(&idle);
    drop(TokenSource::shared(other("first"), &harness.clock));
    assert!(Arc::ptr_eq(&idle, &TokenSource::shared(other("idle"), &harness.clock)));
    let again = TokenSource::shared(key.clone(), &harness.clock);
    let kept = again.token(&harness.exchange()).await.expect("the same");
    assert_eq!(kept.generation(), token.generation());
    drop(again);
    // With 15 s left it is not worth keeping.
    harness.clock.advance(585 * SECOND);
    drop(TokenSource::shared(other("second"), &harness.clock));
    let again = TokenSource::shared(key, &harness.clock);
    assert!(again.state.lock().token.is_none());
}

#[tokio::test]
async fn t22_with_fifteen_seconds_left_a_caller_waits_for_the_one_that_renews() {
    let harness = Harness::new(vec![]).await;
    let old = harness.token().await.expect("a token");
    let flight = harness.source.flight();
    let renewing = flight.lock().await;
    harness.clock.advance(584 * SECOND);
    assert_eq!(harness.token().await.expect("used").generation(), old.generation());
    harness.clock.advance(SECOND);
    let waiting = harness.spawn();
    // The cache, this test and the waiting caller hold the lock of the flight.
    while Arc::strong_count(&flight) < 3 && !waiting.is_finished() {
        tokio::task::yield_now().await;
    }
    assert!(!waiting.is_finished());
    drop(renewing);
    let new = waiting.await.expect("no panic").expect("a token");
    assert_ne!(new.generation(), old.generation());
    assert_eq!(harness.server.requests().len(), 2);
}

#[tokio::test]
async fn t21_a_failure_is_remembered_up_to_the_second_at_which_it_is_forgotten() {
    let refusal = Act::json(400, r#"{"error":"invalid_client"}"#);
    let harness = Harness::new(vec![refusal]).await;
    harness.token().await.expect_err("refused");
    harness.clock.advance(59 * SECOND);
    let error = harness.token().await.expect_err("remembered");
    assert!(error.to_string().contains("no token is requested in the next 1 s"), "{error}");
    assert_eq!(harness.server.requests().len(), 1);
    harness.clock.advance(SECOND);
    harness.token().await.expect("a token");
}
