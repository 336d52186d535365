//! Clients for a diagnosis, which send each request once.

use jiff::SignedDuration;

use super::*;
use crate::http::test_server::TestFolder;

const REFUSED: &str = r#"{"error":"invalid_client"}"#;

fn once(bench: &Bench) -> Client {
    bench.client.sending_once().expect("the settings are valid")
}

fn all(bench: &Bench) -> (usize, usize) {
    (bench.server.token_requests().len(), bench.sent())
}

#[tokio::test]
async fn one_token_serves_both_clients() {
    let bench = Bench::new(vec![]).await;
    let client = once(&bench);
    let facts = || async { client.token_facts().await.expect("no certificate").expect("needed") };
    assert!(!facts().await.is_cached);
    client.get_object(None).await.expect("a page");
    let facts = facts().await;
    assert_eq!((facts.is_cached, facts.lifetime), (true, 600));
    assert_eq!(facts.scopes.map(|scopes| scopes.len()), Some(2));
    client.get_object(None).await.expect("a page");
    // The clients share the token and the ledger.
    bench.get().await.expect("a page");
    assert_eq!(all(&bench), (1, 3));
    assert_eq!(bench.client.allowance().expect("a count").used, 3);
}

#[tokio::test]
async fn requests_are_not_repeated() {
    for act in [refused(), Act::json(503, "{}"), Act::close()] {
        let bench = Bench::new(vec![act.clone(), act]).await;
        let client = once(&bench);
        client.get_object(None).await.expect_err("it fails");
        client.discover(None).await.expect_err("it fails");
        assert_eq!(all(&bench), (1, 2));
    }
}

#[tokio::test]
async fn a_token_request_is_not_repeated_with_a_corrected_clock() {
    // Ten minutes ahead of the client's clock.
    let date = "Date: Sun, 01 Nov 2026 12:10:00 GMT";
    let refusal = || Act::with_headers(401, &[date], REFUSED);
    let bench = Bench::with(vec![refusal(), refusal()], vec![], |_| {}).await;
    let client = once(&bench);
    let error = client.get_object(None).await.expect_err("refused");
    assert_eq!((error.kind(), all(&bench)), (Kind::AuthenticationError, (1, 0)));
    assert_eq!(client.time().skew(), Some(SignedDuration::from_millis(600_500)));
    // The usual client repeats the request with a corrected clock.
    bench.get().await.expect("a page");
    assert_eq!(all(&bench), (3, 1));
}

#[tokio::test]
async fn pauses_are_not_waited_for() {
    let slow = Act::with_headers(429, &["Retry-After: 40"], "{}");
    let bench = Bench::with(vec![slow], vec![], |_| {}).await;
    let (client, before) = (once(&bench), bench.clock().monotonic());
    for _ in 0..2 {
        let error = client.get_object(None).await.expect_err("a pause");
        assert_eq!(error.kind(), Kind::RateLimited);
    }
    assert_eq!((all(&bench), bench.clock().monotonic()), ((1, 0), before));
}

#[tokio::test]
async fn the_first_count_creates_the_ledger() {
    let folder = TestFolder::new();
    let file = folder.join("ledger.txt");
    let bench = Bench::with(vec![], vec![], |settings| {
        settings.send_once();
        settings.choose_ledger(Some(&file), |_| unreachable!()).expect("named");
    })
    .await;
    assert_eq!(bench.client.look_at_ledger().expect("looked"), Some(false));
    assert_eq!(bench.client.allowance().expect("a count").used, 0);
    assert!(!file.exists());
    bench.client.get_object(None).await.expect("a page");
    assert_eq!(bench.client.look_at_ledger().expect("looked"), Some(true));
    std::fs::write(&file, "damaged").expect("written");
    let error = bench.client.look_at_ledger().expect_err("damaged");
    assert_eq!(error.kind(), Kind::StoreCorrupt);
    let memory = Bench::new(vec![]).await;
    assert_eq!(memory.client.look_at_ledger().expect("memory"), None);
}
