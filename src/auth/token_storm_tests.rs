//! What many do to one token at once, or one after another: pauses, warnings, slow signers.

#![expect(clippy::disallowed_methods, reason = "each test runs on a runtime of its own")]

use std::collections::HashSet;
use std::sync::mpsc;

use super::*;
use crate::auth::test_bench::{Bench, DATA_SCOPE, good, warnings};
use crate::auth::{PublicJwk, Signer};
use crate::http::Deadline;
use crate::http::test_server::Act;

const SECOND: Duration = Duration::from_secs(1);

fn throttled(seconds: u64) -> Act {
    Act::with_headers(429, &[&format!("Retry-After: {seconds}")], "")
}

#[tokio::test]
async fn t9_a_pause_that_a_renewal_was_told_of_is_kept_to() {
    let bench = Bench::new(vec![good("old"), throttled(200)]).await;
    let old = bench.token().await.expect("a token");
    bench.clock.advance(545 * SECOND);
    for _ in 0..5 {
        let token = bench.token().await.expect("the valid one");
        assert_eq!(token.generation(), old.generation());
        assert_eq!(bench.server.requests().len(), 2, "asked within the pause");
        bench.clock.advance(10 * SECOND);
    }
    let error = bench.token().await.expect_err("no token, and none may be asked for yet");
    assert_eq!(error.kind(), Kind::RateLimited);
    assert_eq!(error.context().retry_after, Some(150 * SECOND));
    bench.clock.advance(151 * SECOND);
    bench.token().await.expect("a new one");
    assert_eq!(bench.server.requests().len(), 3);
}

#[tokio::test]
async fn t9_the_rest_of_a_short_pause_is_waited_for() {
    let bench = Bench::new(vec![good("old"), throttled(90)]).await;
    bench.token().await.expect("a token");
    bench.clock.advance(545 * SECOND);
    bench.token().await.expect("the valid one");
    bench.clock.advance(50 * SECOND);
    bench.token().await.expect("a new one, after the rest of the pause");
    assert_eq!(bench.server.requests().len(), 3);
    let now = bench.clock.monotonic();
    assert!(now >= 635 * SECOND && now <= 640 * SECOND, "{now:?}");
}

#[tokio::test]
async fn t9_a_pause_holds_for_the_next_when_the_one_who_was_told_gives_up() {
    let bench = Bench::new(vec![throttled(30)]).await;
    let mut exchange = bench.exchange();
    for seconds in [10, 20] {
        exchange.deadline = Deadline::after(&bench.clock, Some(seconds * SECOND));
        let error = bench.source.token(&exchange).await.expect_err("too long a pause");
        assert_eq!(error.kind(), Kind::DeadlineExceeded);
    }
    assert_eq!((bench.server.requests().len(), bench.clock.monotonic()), (1, Duration::ZERO));
    bench.token().await.expect("a token");
    assert_eq!(bench.server.requests().len(), 2);
    let waited = bench.clock.monotonic();
    assert!(waited >= 30 * SECOND && waited <= 33 * SECOND, "{waited:?}");
}

#[tokio::test]
async fn t9_a_pause_is_kept_to_by_all_who_share_the_ledger() {
    let bench = Bench::new(vec![throttled(200)]).await;
    bench.token().await.expect_err("too long a pause");
    // A source with a gate of its own, as another process has one.
    let other = bench.source_for(DATA_SCOPE);
    let error = other.token(&bench.exchange()).await.expect_err("nobody may ask");
    assert_eq!(error.kind(), Kind::RateLimited);
    assert_eq!(error.context().retry_after, Some(200 * SECOND));
    assert_eq!(bench.server.requests().len(), 1, "asked within the pause");
    bench.clock.advance(160 * SECOND);
    other.token(&bench.exchange()).await.expect("a token, after the rest of the pause");
    let now = bench.clock.monotonic();
    assert!(now >= 200 * SECOND && now <= 205 * SECOND, "{now:?}");
    let counted = bench.ledger.state(bench.clock.wall()).expect("memory").token_requests;
    assert_eq!((counted, bench.server.requests().len()), (2, 2));
}

#[tokio::test]
async fn t9_one_who_has_a_valid_token_does_not_wait_for_anybodys_pause() {
    let bench = Bench::new(vec![good("old")]).await;
    let old = bench.token().await.expect("a token");
    bench.clock.advance(545 * SECOND);
    let now = bench.clock.wall();
    bench.ledger.pause_tokens(now + 30 * SECOND, now).expect("memory");
    let token = bench.token().await.expect("the valid one");
    assert_eq!(token.generation(), old.generation());
    assert_eq!(bench.clock.monotonic(), 545 * SECOND);
    assert_eq!(bench.server.requests().len(), 1);
}

#[tokio::test]
async fn t23_a_renewal_that_fails_again_and_again_is_told_once() {
    let down = Act::with_headers(503, &[], "");
    let bench = Bench::new(vec![good("old"), down.clone(), down.clone(), down.clone(), down]).await;
    bench.token().await.expect("a token");
    warnings();
    bench.clock.advance(500 * SECOND);
    for _ in 0..94 {
        bench.clock.advance(SECOND);
        bench.token().await.expect("the valid one");
    }
    assert!(bench.server.requests().len() >= 3, "renewed in vain more than once");
    let told = warnings();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("could not be renewed"), "{told:?}");
}

#[tokio::test]
async fn t15_a_reply_without_a_lifetime_is_told() {
    let body = r#"{"access_token":"tok","token_type":"Bearer"}"#;
    let bench = Bench::new(vec![Act::json(200, body)]).await;
    warnings();
    bench.token().await.expect("a token");
    let told = warnings();
    assert!(told.len() == 1 && told[0].contains("60 s"), "{told:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t20_t21_a_storm_of_cancelled_and_failing_callers_never_repeats_an_assertion() {
    let mut acts = Vec::new();
    for number in 0..12 {
        acts.push(match number % 4 {
            0 => Act::reset(),
            1 => Act::with_headers(503, &[], ""),
            2 => throttled(2),
            _ => Act::ReplyAndClose(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{".to_vec()),
        });
    }
    let bench = Bench::new(acts).await;
    let tasks: Vec<_> = (0..500).map(|_| bench.spawn()).collect();
    for task in tasks.iter().step_by(3) {
        task.abort();
        tokio::task::yield_now().await;
    }
    for (number, task) in tasks.into_iter().enumerate() {
        match task.await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => {
                assert!(
                    matches!(
                        error.kind(),
                        Kind::Transport
                            | Kind::ServiceUnavailable
                            | Kind::RateLimited
                            | Kind::TruncatedBody
                            | Kind::TransportTimeout
                    ),
                    "{error:?}"
                );
            }
            Err(ended) => assert!(ended.is_cancelled() && number % 3 == 0),
        }
    }
    // The service may have some bad answers left.
    for _ in 0..12 {
        bench.clock.advance(Duration::from_secs(61));
        bench.token().await.ok();
    }
    bench.token().await.expect("a token after the storm");
    let sent = bench.server.token_requests();
    assert!(sent.len() <= 13 + 167, "{}", sent.len());
    let names: HashSet<_> = sent.iter().map(|r| r.assertion_part(1)["jti"].to_string()).collect();
    assert_eq!(names.len(), sent.len(), "an assertion came twice");
}

/// A vault that answers only when it is told to.
struct SlowVault {
    told: Mutex<mpsc::Receiver<()>>,
    key: crate::auth::PrivateKey,
}

impl Signer for SlowVault {
    fn sign(&self, signing_input: &[u8]) -> Result<Vec<u8>> {
        // Nobody tells it any more once the test has failed.
        self.told.lock().expect("no panic").recv_timeout(60 * SECOND).ok();
        self.key.sign(signing_input)
    }
}

fn slow(key: &crate::auth::PrivateKey) -> (mpsc::Sender<()>, crate::auth::Credential) {
    let (answer, told) = mpsc::channel();
    let vault = Arc::new(SlowVault { told: Mutex::new(told), key: key.clone() });
    let public: PublicJwk = key.public_jwk();
    let credential = crate::auth::Credential::with_signer("slow", vault, public, None);
    (answer, credential.expect("a credential").value)
}

#[tokio::test]
async fn a_signer_that_blocks_holds_up_neither_the_deadline_nor_the_thread() {
    let mut bench = Bench::new(vec![]).await;
    let key = include_bytes!("../../tests/keys/pkcs8.pem");
    let key = crate::auth::PrivateKey::parse(key, None).expect("a key");
    let (answer, credential) = slow(&key);
    bench.credential = credential;
    let mut exchange = bench.exchange();
    exchange.deadline = Deadline::after(&bench.clock, Some(Duration::from_millis(20)));
    let error = bench.source.token(&exchange).await.expect_err("the vault is silent");
    assert_eq!(error.kind(), Kind::DeadlineExceeded);
    assert!(bench.server.requests().is_empty());
    // The first answer is for the signature that nobody waits for any more.
    answer.send(()).expect("the vault");
    answer.send(()).expect("the vault");
    bench.token().await.expect("a token");
    assert_eq!(bench.server.requests().len(), 1);
}
