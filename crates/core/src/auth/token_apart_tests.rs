//! Tokens of different credentials, their expiry by either clock, and how long they are cached.

#![expect(clippy::disallowed_methods, reason = "each test runs on a runtime of its own")]

use jiff::SignedDuration;

use super::*;
use crate::auth::Exchange;
use crate::auth::test_harness::{Harness, good, noon, warnings};
use crate::clock::ServiceTime;
use crate::http::test_server::{Act, TestFolder, TestServer, assert_error};
use crate::http::{Deadline, Integration, LocalLedger, Terms};

const SECOND: Duration = Duration::from_secs(1);

/// The keys that differ from this one in one part.
fn others(key: &TokenKey) -> Vec<(&'static str, TokenKey)> {
    let other = |text: &str| format!("{text}-other");
    vec![
        ("subject", TokenKey { subject: other(&key.subject), ..key.clone() }),
        ("key", TokenKey { kid: other(&key.kid), ..key.clone() }),
        ("client_id", TokenKey { client_id: Some("7".to_owned()), ..key.clone() }),
        ("audience", TokenKey { audience: other(&key.audience), ..key.clone() }),
        ("endpoint", TokenKey { token_url: other(&key.token_url), ..key.clone() }),
        ("scopes", TokenKey { scopes: ScopeSet::granted("customer.data.read"), ..key.clone() }),
    ]
}

#[tokio::test]
async fn t29_t30_a_token_of_another_subject_key_audience_or_endpoint_is_not_used() {
    let harness = Harness::new(vec![]).await;
    let token = harness.token().await.expect("a token");
    for (part, key) in others(&harness.source.key) {
        let source = TokenSource::shared(key, &harness.clock);
        let before = harness.server.requests().len();
        let other = source.token(&harness.exchange()).await.expect("a token of its own");
        assert_ne!(other.generation(), token.generation(), "{part}");
        assert_eq!(harness.server.requests().len(), before + 1, "{part}");
        assert_ne!(other.secret(), token.secret(), "{part}");
    }
    let elsewhere = Clock::frozen_at(harness.clock.wall());
    let source = TokenSource::shared(harness.source.key.clone(), &elsewhere);
    assert!(!Arc::ptr_eq(&source, &harness.source), "another clock would judge its end");
    assert_eq!(harness.token().await.expect("kept").generation(), token.generation());
}

#[tokio::test]
async fn t30_only_a_token_of_the_same_subject_audience_and_scopes_is_taken_over() {
    let harness = Harness::new(vec![]).await;
    let token = harness.token().await.expect("a token");
    for (part, key) in others(&harness.source.key) {
        let source = TokenSource::new(key, harness.clock.clone());
        source.adopt(&harness.source);
        let adopted = source.state.lock().token.as_ref().map(|token| token.access.generation());
        let expected = (part == "key").then_some(token.generation());
        assert_eq!(adopted, expected, "{part}");
    }
    // Another clock would compute another end.
    let elsewhere = Clock::frozen_at(harness.clock.wall());
    let source = TokenSource::new(harness.source.key.clone(), elsewhere);
    source.adopt(&harness.source);
    assert!(source.state.lock().token.is_none());
}

#[tokio::test]
async fn t30_m4_a_token_that_is_bound_to_a_certificate_is_not_taken_over() {
    let harness = Harness::new(vec![]).await;
    let bound = TokenKey { client_id: Some("7".to_owned()), ..harness.source.key.clone() };
    let source = TokenSource::new(bound.clone(), harness.clock.clone());
    source.token(&harness.exchange()).await.expect("a token");
    let renewed = TokenKey { kid: "renewed".to_owned(), ..bound };
    for key in [harness.source.key.clone(), renewed] {
        let other = TokenSource::new(key, harness.clock.clone());
        other.adopt(&source);
        assert!(other.state.lock().token.is_none());
    }
}

#[tokio::test]
async fn t30_a_token_that_was_taken_over_ends_when_it_would_have_ended() {
    let harness = Harness::new(vec![]).await;
    let token = harness.token().await.expect("a token");
    harness.clock.advance(300 * SECOND);
    let key = TokenKey { kid: "new".to_owned(), ..harness.source.key.clone() };
    let source = TokenSource::new(key, harness.clock.clone());
    source.adopt(&harness.source);
    let used = source.token(&harness.exchange()).await.expect("the old one");
    assert_eq!(used.generation(), token.generation());
    harness.clock.advance(300 * SECOND);
    let next = source.token(&harness.exchange()).await.expect("a new one");
    assert_ne!(next.generation(), token.generation());
    // A source that has a token keeps it.
    source.adopt(&harness.source);
    let kept = source.token(&harness.exchange()).await.expect("its own");
    assert_eq!(kept.generation(), next.generation());
}

#[tokio::test]
async fn t24_t25_a_token_ends_after_its_lifetime_by_either_clock() {
    let hour = SignedDuration::from_hours(1);
    // How the wall clock is set, and by how much both advance. A suspend stops the other clock.
    for (step, advance) in [
        (-hour, 600 * SECOND),
        (-24 * 3_650 * hour, 600 * SECOND),
        (hour, Duration::ZERO),
        (SignedDuration::ZERO, 600 * SECOND),
    ] {
        let harness = Harness::new(vec![]).await;
        let first = harness.token().await.expect("a token");
        harness.clock.step(step);
        if step.is_negative() {
            let kept = harness.token().await.expect("valid");
            assert_eq!(kept.generation(), first.generation(), "it is not over yet");
        }
        harness.clock.advance(advance);
        let next = harness.token().await.expect("a new one");
        assert_ne!(next.generation(), first.generation(), "{step:?} {advance:?}");
        harness.token().await.expect("the new one");
        assert_eq!(harness.server.requests().len(), 2);
    }
}

#[tokio::test]
async fn t24_the_lifetime_of_a_token_begins_with_its_request() {
    let clock = noon();
    let servers = clock.clone();
    let slow = TestServer::start(move |_| {
        servers.advance(100 * SECOND);
        good("slow")
    });
    let harness = Harness::of(slow.await, clock);
    let token = harness.token().await.expect("a token");
    assert_eq!(token.age(), 100 * SECOND);
    let state = harness.source.state.lock();
    let left = state.token.as_ref().map(|token| token.access.expires_in());
    assert_eq!(left, Some(500 * SECOND));
}

/// Uses the token to its end and checks that this causes no request, wait or warning.
async fn uses_it_up(harness: &Harness, old: &AccessToken) {
    warnings();
    let sent = harness.server.requests().len();
    let mut now = harness.clock.monotonic();
    while now < 594 * SECOND {
        let token = harness.token().await.expect("the valid one");
        assert_eq!(token.generation(), old.generation(), "at {now:?}");
        assert_eq!(harness.clock.monotonic(), now, "a call waited");
        harness.clock.advance(SECOND);
        now = harness.clock.monotonic();
    }
    assert_eq!(harness.server.requests().len(), sent);
    assert_eq!(warnings(), Vec::<String>::new());
}

#[tokio::test]
async fn t9_nothing_is_renewed_in_a_pause_not_even_in_the_last_seconds() {
    for by_another in [false, true] {
        let pause = Act::with_headers(429, &["Retry-After: 50"], "");
        let next = if by_another { good("new") } else { pause };
        let harness = Harness::new(vec![good("old"), next]).await;
        let old = harness.token().await.expect("a token");
        // A pause of 50 s, and the token has 54.
        harness.clock.advance(546 * SECOND);
        if by_another {
            harness.ledger.pause_tokens(50 * SECOND, harness.clock.moment()).expect("memory");
        }
        harness.token().await.expect("the valid one");
        uses_it_up(&harness, &old).await;
        harness.clock.advance(3 * SECOND);
        let sent = harness.server.requests().len();
        assert_eq!(sent, if by_another { 1 } else { 2 }, "a renewal failed");
        harness.token().await.expect("a new one, when the pause is over");
        assert_eq!(harness.server.requests().len(), sent + 1);
    }
}

#[tokio::test]
async fn t9_nothing_is_renewed_while_a_refusal_is_remembered() {
    let refusal = Act::json(400, r#"{"error":"invalid_client"}"#);
    let harness = Harness::new(vec![good("old"), refusal]).await;
    let old = harness.token().await.expect("a token");
    harness.clock.advance(546 * SECOND);
    harness.token().await.expect("the valid one, and a renewal that is refused");
    assert_eq!(harness.server.requests().len(), 2);
    uses_it_up(&harness, &old).await;
    harness.clock.advance(SECOND);
    assert_error(
        harness.token().await,
        Kind::AuthenticationError,
        "no token is requested in the next 11 s",
    );
    assert_eq!(harness.server.requests().len(), 2);
    harness.clock.advance(60 * SECOND);
    harness.token().await.expect("a new one");
    assert_eq!(harness.server.requests().len(), 3);
}

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
async fn t31_the_starts_of_many_processes_are_spread_and_those_of_a_few_are_not() {
    fastrand::seed(31);
    let folder = TestFolder::new();
    let integration = Integration::new("https://customer.example.com", "plant");
    let ledger = LocalLedger::in_file(&folder.join("ledger.txt"), integration, Terms::default());
    let ledger = ledger.opened().expect("a ledger");
    let mut harness = Harness::new(vec![]).await;
    harness.ledger = Arc::new(ledger);
    // Each has its own clock with the same time, so they start together.
    let mut waits = Vec::new();
    for _ in 0..32 {
        let clock = noon();
        let source = TokenSource::new(harness.source.key.clone(), clock.clone());
        let time = ServiceTime::new(clock.clone());
        let exchange = Exchange { time: &time, ..harness.exchange() };
        source.token(&exchange).await.expect("a token");
        waits.push(clock.monotonic());
    }
    assert_eq!(waits[..3], [Duration::ZERO; 3], "a few never wait");
    let (last, longest) = (&waits[3..], waits.iter().max().expect("some"));
    assert!(*longest <= 5 * SECOND && *longest >= 3 * SECOND, "{longest:?}");
    for from in [Duration::ZERO, SECOND, 2 * SECOND] {
        let within = last.iter().filter(|wait| **wait >= from && **wait < from + SECOND).count();
        assert!((2..=20).contains(&within), "{within} of 29 from {from:?}");
    }
    assert!(!last.is_sorted(), "each waits a random part");
    // A caller with little time waits a part of it.
    let clock = noon();
    let source = TokenSource::new(harness.source.key.clone(), clock.clone());
    let time = ServiceTime::new(clock.clone());
    let deadline = Deadline::after(&clock, Some(SECOND));
    let exchange = Exchange { time: &time, deadline, ..harness.exchange() };
    source.token(&exchange).await.expect("a token");
    assert!(clock.monotonic() <= SECOND / 4);
    let state = harness.ledger.state(harness.clock.moment()).expect("a state");
    assert_eq!((state.token_requests, state.token_requests_this_hour), (33, 33));
}
