//! Many callers of one token, concurrent or in sequence: pauses, warnings, slow signers.

#![expect(clippy::disallowed_methods, reason = "each test runs on a runtime of its own")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use super::*;
use crate::auth::test_harness::{DATA_SCOPE, Harness};
use crate::auth::tests::KEY;
use crate::auth::{AsyncSigner, Credential, SignFuture, Signer, Signing};
use crate::http::test_server::Act;
use crate::http::{Deadline, LocalLedger, Terms};

const SECOND: Duration = Duration::from_secs(1);

fn throttled(seconds: u64) -> Act {
    Act::with_headers(429, &[&format!("Retry-After: {seconds}")], "")
}

#[tokio::test]
async fn t9_a_pause_applies_to_later_callers_when_the_first_gives_up() {
    let mut harness = Harness::new(vec![throttled(30)]).await;
    let mut exchange = harness.exchange();
    for seconds in [10, 20] {
        exchange.deadline = Deadline::after(&harness.clock, Some(seconds * SECOND));
        let error = harness.source.token(&exchange).await.expect_err("too long a pause");
        assert_eq!(error.kind(), Kind::DeadlineExceeded);
    }
    assert_eq!((harness.server.requests().len(), harness.clock.monotonic()), (1, Duration::ZERO));
    // Also if the ledger failed to record the pause.
    harness.ledger = Arc::new(LocalLedger::in_memory(Terms::default()));
    harness.token().await.expect("a token");
    assert_eq!(harness.server.requests().len(), 2);
    let waited = harness.clock.monotonic();
    assert!(waited >= 30 * SECOND && waited <= 33 * SECOND, "{waited:?}");
}

#[tokio::test]
async fn t9_all_that_share_the_ledger_observe_a_pause() {
    let harness = Harness::new(vec![throttled(200)]).await;
    harness.token().await.expect_err("too long a pause");
    // A source with its own gate, as in another process.
    let other = harness.source_for(DATA_SCOPE);
    let error = other.token(&harness.exchange()).await.expect_err("a pause");
    assert_eq!(error.kind(), Kind::RateLimited);
    assert_eq!(error.context().retry_after, Some(200 * SECOND));
    assert_eq!(harness.server.requests().len(), 1, "a request within the pause");
    harness.clock.advance(160 * SECOND);
    other.token(&harness.exchange()).await.expect("a token, after the rest of the pause");
    let now = harness.clock.monotonic();
    assert!(now >= 200 * SECOND && now <= 205 * SECOND, "{now:?}");
    let counted = harness.ledger.state(harness.clock.moment()).expect("memory").token_requests;
    assert_eq!((counted, harness.server.requests().len()), (2, 2));
}

/// A vault that answers when the test sends a message.
struct SlowVault(Mutex<mpsc::Receiver<()>>);

impl Signer for SlowVault {
    fn sign(&self, signing_input: &[u8]) -> Result<Vec<u8>> {
        // A failed test sends nothing.
        self.0.lock().recv_timeout(60 * SECOND).ok();
        KEY.sign(signing_input)
    }
}

#[tokio::test]
async fn a_signer_that_blocks_delays_neither_the_deadline_nor_the_thread() {
    let mut harness = Harness::new(vec![]).await;
    let (answer, answers) = mpsc::channel();
    let vault = Arc::new(SlowVault(Mutex::new(answers)));
    let credential =
        Credential::with_signer("slow", Signing::Blocking(vault), KEY.public_jwk(), None);
    harness.credential = credential.expect("a credential").value;
    let mut exchange = harness.exchange();
    exchange.deadline = Deadline::after(&harness.clock, Some(Duration::from_millis(20)));
    let error = harness.source.token(&exchange).await.expect_err("the vault does not answer");
    assert_eq!(error.kind(), Kind::DeadlineExceeded);
    assert!(harness.server.requests().is_empty());
    // The first answer is for the signature of the call that gave up.
    answer.send(()).expect("the vault");
    answer.send(()).expect("the vault");
    harness.token().await.expect("a token");
    assert_eq!(harness.server.requests().len(), 1);
}

/// An asynchronous vault with scripted answers, which some callers cannot reach.
struct AwaitedVault {
    answers: Mutex<Vec<Answer>>,
    is_reachable: AtomicBool,
}

enum Answer {
    Never,
    Error(Kind),
}

impl AsyncSigner for AwaitedVault {
    fn check(&self) -> Result<()> {
        if self.is_reachable.load(Ordering::SeqCst) {
            return Ok(());
        }
        Err(Error::new(Kind::ConfigError, "it is not reachable"))
    }

    fn sign(&self, signing_input: Vec<u8>) -> SignFuture {
        let answer = self.answers.lock().pop();
        let signature = KEY.sign(&signing_input);
        Box::pin(async move {
            match answer {
                None => signature,
                Some(Answer::Never) => std::future::pending().await,
                Some(Answer::Error(kind)) => {
                    tokio::task::yield_now().await;
                    Err(Error::new(kind, "the vault's loop was closed"))
                }
            }
        })
    }
}

async fn awaited(answers: Vec<Answer>) -> (Harness, Arc<AwaitedVault>) {
    let mut harness = Harness::new(vec![]).await;
    let (answers, is_reachable) = (Mutex::new(answers), AtomicBool::new(true));
    let vault = Arc::new(AwaitedVault { answers, is_reachable });
    let signer = Arc::clone(&vault) as Arc<dyn AsyncSigner>;
    let subject = harness.credential.subject().to_owned();
    let credential =
        Credential::with_signer(&subject, Signing::Awaited(signer), KEY.public_jwk(), None);
    harness.credential = credential.expect("a credential").value;
    (harness, vault)
}

#[tokio::test]
async fn t20_if_the_caller_that_awaits_a_signature_is_cancelled_another_signs() {
    let (harness, vault) = awaited(vec![Answer::Never]).await;
    let first = harness.spawn();
    while !vault.answers.lock().is_empty() {
        tokio::task::yield_now().await;
    }
    let waiting: Vec<_> = (0..20).map(|_| harness.spawn()).collect();
    tokio::task::yield_now().await;
    assert!(harness.server.requests().is_empty());
    first.abort();
    for task in waiting {
        task.await.expect("not cancelled").expect("a token");
    }
    assert_eq!(harness.server.requests().len(), 1);
}

#[tokio::test]
async fn t20_if_the_event_loop_of_the_signer_ends_only_its_caller_gets_the_error() {
    let (harness, _) = awaited(vec![Answer::Error(Kind::ClosedError)]).await;
    let outcomes = harness.at_once(20).await;
    let errors: Vec<_> = outcomes.iter().filter_map(|one| one.as_ref().err()).collect();
    assert_eq!(errors.iter().map(|error| error.kind()).collect::<Vec<_>>(), [Kind::ClosedError]);
    assert_eq!(harness.server.requests().len(), 1);
    // All callers get an error of the vault itself.
    let (harness, _) = awaited(vec![Answer::Error(Kind::CredentialError)]).await;
    let outcomes = harness.at_once(20).await;
    assert!(
        outcomes
            .iter()
            .all(|one| { one.as_ref().is_err_and(|error| error.kind() == Kind::CredentialError) })
    );
    assert!(harness.server.requests().is_empty());
}

#[tokio::test]
async fn a_caller_that_cannot_await_the_signer_uses_a_valid_token_and_requests_none() {
    let (harness, vault) = awaited(vec![]).await;
    let reachable = |is_reachable| vault.is_reachable.store(is_reachable, Ordering::SeqCst);
    reachable(false);
    assert_eq!(harness.token().await.expect_err("none").kind(), Kind::ConfigError);
    assert!(harness.server.requests().is_empty());
    reachable(true);
    let first = harness.token().await.expect("a token");
    // When it is due for renewal, and shortly before it expires.
    for seconds in [545, 45] {
        reachable(false);
        harness.clock.advance(Duration::from_secs(seconds));
        let same = harness.token().await.expect("kept");
        assert_eq!(same.generation(), first.generation(), "after {seconds} s");
    }
    assert_eq!(harness.server.requests().len(), 1);
    harness.clock.advance(Duration::from_secs(20));
    assert_eq!(harness.token().await.expect_err("expired").kind(), Kind::ConfigError);
    reachable(true);
    harness.token().await.expect("at once: no failure is remembered");
    assert_eq!(harness.server.requests().len(), 2);
}
