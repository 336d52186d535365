//! The client against a scripted server, over real sockets, with a frozen clock.

#![expect(clippy::disallowed_methods, reason = "each test has its own runtime")]

mod chains;
#[cfg(unix)]
mod growth;
mod limits;
mod notes;
mod once;
mod page_sizes;
mod prefetch;
mod reads;
mod recovery;
mod replies;
mod warnings;

use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;

use super::reply;
use super::{Client, ClientSettings, DATA_PATH, Spending};
use crate::auth::test_harness::{credential, noon};
use crate::error::{Error, Kind, Result};
use crate::http::test_server::{Act, TestServer};
use crate::http::{Deadline, Reply};

const QUERY: &str = "siteId=S1&from=2026-11-01T00%3A00%3A00Z";

impl Client {
    /// Requests a JSON object, and reads it within the attempt like a page.
    async fn get_object(&self, deadline: Option<Duration>) -> Result<Bytes> {
        let read = |reply: &Reply| ready(reply::json_object(reply));
        let deadline = Deadline::after(self.time().clock(), deadline);
        self.get(DATA_PATH, QUERY, deadline, &Spending::default(), read).await
    }
}

struct Bench {
    server: TestServer,
    client: Client,
}

impl Bench {
    /// A server that answers data requests with these replies, then with empty pages.
    async fn new(data: Vec<Act>) -> Self {
        Self::with(vec![], data, |_| {}).await
    }

    async fn with(
        tokens: Vec<Act>,
        data: Vec<Act>,
        change: impl FnOnce(&mut ClientSettings),
    ) -> Self {
        Self::of(TestServer::scripted(tokens, data).await, change)
    }

    fn of(server: TestServer, change: impl FnOnce(&mut ClientSettings)) -> Self {
        let mut settings = ClientSettings::new(server.base_url(), credential());
        settings.clock = noon();
        change(&mut settings);
        let client = Client::new(settings).expect("settings");
        Self { server, client }
    }

    async fn get(&self) -> Result<Bytes> {
        self.client.get_object(None).await
    }

    /// Runs `count` callers at once and returns the outcome of each.
    async fn at_once(&self, count: usize) -> Vec<Result<Bytes>> {
        let call = |client: Client| async move { client.get_object(None).await };
        let calls = (0..count).map(|_| tokio::spawn(call(self.client.clone())));
        let outcomes = join_all(calls).await.into_iter();
        outcomes.map(|outcome| outcome.expect("no panic")).collect()
    }

    async fn error(&self) -> Error {
        let error = self.get().await.expect_err("it fails");
        let text = format!("{error:?} {:?}", error.context());
        assert!(!text.contains("good-token") && !text.contains("from=2026"), "{text}");
        error
    }

    async fn query(&self, query: &str) -> Result<Bytes> {
        let read = |reply: &Reply| ready(reply::json_object(reply));
        self.client.get(DATA_PATH, query, Deadline::NEVER, &Spending::default(), read).await
    }

    /// Excludes token requests.
    fn sent(&self) -> usize {
        self.server.other_requests().len()
    }

    fn used(&self) -> u64 {
        self.client.allowance().expect("memory").used
    }

    fn clock(&self) -> &crate::clock::Clock {
        self.client.time().clock()
    }

    /// Ages the token so that a refusal is final.
    async fn with_settled_token(self) -> Self {
        self.client.discover(None).await.ok();
        self.clock().advance(Duration::from_secs(6));
        self
    }

    /// The numbers of token requests and of others after that discovery.
    fn counts(&self) -> (usize, usize) {
        (self.server.token_requests().len() - 1, self.server.other_requests().len() - 1)
    }

    /// Adds a reply for the discovery that requests the token.
    async fn settled(mut data: Vec<Act>) -> Self {
        data.insert(0, Act::json(200, "{}"));
        Self::new(data).await.with_settled_token().await
    }
}

async fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        tokio::task::yield_now().await;
    }
}

/// Waits longer than it takes to send a request.
async fn a_while() {
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
}

fn refused() -> Act {
    Act::with_headers(401, &["WWW-Authenticate: Bearer error=\"invalid_token\""], "")
}

#[tokio::test]
async fn p7_a_retry_has_the_same_bytes() {
    let bench = Bench::new(vec![Act::close(), Act::with_headers(503, &[], "")]).await;
    bench.get().await.expect("a page");
    let sent = bench.server.other_requests();
    assert_eq!(sent.len(), 3);
    assert!(sent.iter().all(|request| request.raw == sent[0].raw));
    assert!(sent[0].raw.starts_with(&format!("GET {DATA_PATH}?{QUERY} HTTP/1.1\r\n")));
}

#[tokio::test]
async fn r14_calls_of_a_closed_client_get_closed_error() {
    let bench = Bench::new(vec![Act::hang()]).await;
    let client = bench.client.clone();
    let waiting = tokio::spawn(async move { client.get_object(None).await });
    until(|| bench.sent() > 0).await;
    bench.client.close();
    bench.client.close();
    let error = waiting.await.expect("no panic").expect_err("closed");
    assert_eq!(error.kind(), Kind::ClosedError);
    assert_eq!(bench.error().await.kind(), Kind::ClosedError);
    assert_eq!(bench.client.discover(None).await.expect_err("closed").kind(), Kind::ClosedError);
    assert_eq!(bench.sent(), 1);
    assert!(bench.client.is_closed());
}

#[tokio::test]
async fn r13_debug_of_a_client_contains_no_secret() {
    let bench = Bench::with(vec![], vec![], |settings| {
        settings.transport.proxy = Some("http://user:hunter2@127.0.0.1:1".to_owned());
    })
    .await;
    bench.get().await.expect("a page: loopback needs no proxy");
    let text = format!("{:?}", bench.client);
    assert!(!text.contains("hunter2") && !text.contains("good-token"), "{text}");
}
