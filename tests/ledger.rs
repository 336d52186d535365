//! Compares the ledger file of a client with the sandbox's count.

#![expect(clippy::disallowed_methods, reason = "each test has its own runtime")]

use std::future::ready;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::civil::date;
use siteline::auth::{Credential, PrivateKey};
use siteline::client::{Client, ClientSettings, DATA_PATH, Spending};
use siteline::clock::Clock;
use siteline::http::{BaseUrl, Deadline, FileLedger, Integration, Ledger, Terms};
use siteline::sandbox::{DEFAULT_SCOPES, Effect, Endpoint, Fault, Options, Sandbox, When};
use siteline::{Kind, Result};

const QUERY: &str = "siteId=S1&from=2026-11-01T00%3A00%3A00Z&to=2026-11-02T00%3A00%3A00Z\
                     &aggregationIntervalSeconds=3600&pageSize=100";

struct Harness {
    sandbox: Sandbox,
    path: PathBuf,
    credential: Credential,
}

impl Harness {
    fn new(name: &str, now: &str) -> Self {
        let clock = Clock::frozen_at(now.parse().expect("a timestamp"));
        let sandbox = Sandbox::start(Options::default(), clock).expect("a sandbox");
        let key = PrivateKey::parse(include_bytes!("keys/pkcs8.pem"), None).expect("a key");
        let jwk = key.public_jwk().to_json();
        let subject = sandbox.enroll(&jwk, &DEFAULT_SCOPES).expect("a subject");
        let credential = Credential::with_key(&subject, key, None).expect("a credential").value;
        let name = format!("siteline-{name}-{}.txt", std::process::id());
        let path = std::env::temp_dir().join(name);
        Self { sandbox, path, credential }
    }

    /// A client with this clock, and with its own ledger object for the same file.
    fn client(&self, clock: Clock) -> Client {
        let base = BaseUrl::parse(self.sandbox.base_url(), false).expect("an address");
        let integration = Integration::new(base.as_str(), self.credential.subject());
        let ledger = FileLedger::open(&self.path, integration, Terms::default()).expect("a ledger");
        let mut settings = ClientSettings::new(base, self.credential.clone());
        settings.ledger = Some(Arc::new(ledger) as Arc<dyn Ledger>);
        settings.clock = clock;
        Client::new(settings).expect("settings")
    }

    fn fault(&self, every: u64, effect: Effect) {
        self.sandbox.fault(Fault { on: Endpoint::Data, when: When::Every(every), effect });
    }
}

impl Drop for Harness {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

async fn page(client: &Client) -> Result<()> {
    client.get(DATA_PATH, QUERY, Deadline::NEVER, &Spending::default(), |_| ready(Ok(()))).await
}

fn used(client: &Client) -> u64 {
    client.allowance().expect("a ledger").used
}

#[tokio::test]
async fn b6_after_a_hundred_pages_with_faults_the_file_has_the_services_count() {
    let harness = Harness::new("b6", "2026-11-20T00:00:00Z");
    harness.fault(20, Effect::Unavailable { retry_after: None });
    harness.fault(29, Effect::Cut { after: 9 });
    harness.fault(37, Effect::Reset);
    harness.fault(71, Effect::ForgetTokens);
    let client = harness.client(harness.sandbox.clock().clone());
    for _ in 0..100 {
        page(&client).await.expect("a page");
        harness.sandbox.clock().advance(Duration::from_secs(60));
    }
    let seen = harness.sandbox.stats();
    assert!(seen.data_requests >= 110, "{}", seen.data_requests);
    assert_eq!(used(&client), seen.data_requests);
    let state = harness.client(harness.sandbox.clock().clone()).allowance().expect("a ledger");
    assert_eq!((state.used, state.token_requests), (seen.data_requests, seen.token_requests));
}

#[tokio::test]
async fn b8_the_day_of_a_request_is_the_services_day() {
    let harness = Harness::new("b8", "2026-11-19T23:59:50Z");
    // This machine's clock is two minutes slow: by it the day does not end in this test.
    let slow = Clock::frozen_at("2026-11-19T23:57:50Z".parse().expect("a timestamp"));
    let client = harness.client(slow.clone());
    for _ in 0..6 {
        page(&client).await.expect("a page");
        for clock in [&slow, harness.sandbox.clock()] {
            clock.advance(Duration::from_secs(4));
        }
    }
    let by_day = harness.sandbox.stats().data_requests_by_day;
    assert_eq!((by_day[&date(2026, 11, 19)], by_day[&date(2026, 11, 20)]), (3, 3));
    let state = client.allowance().expect("a ledger");
    assert_eq!(state.used, 3);
    assert_eq!(state.resets_at, "2026-11-21T00:00:00Z".parse().expect("a timestamp"));
}

#[tokio::test]
async fn b11_a_pause_that_one_client_was_sent_holds_for_another() {
    let harness = Harness::new("b11", "2026-11-20T12:00:00Z");
    let clock = || harness.sandbox.clock().clone();
    let headers = vec![("Retry-After".to_owned(), "7200".to_owned())];
    let effect = Effect::Reply { status: 429, headers, body: bytes::Bytes::new() };
    harness.sandbox.fault(Fault { on: Endpoint::Data, when: When::Nth(1), effect });
    let error = page(&harness.client(clock())).await.expect_err("refused");
    assert_eq!(error.kind(), Kind::AllowanceExhausted);
    let other = harness.client(clock());
    harness.sandbox.clock().advance(Duration::from_secs(7_199));
    assert_eq!(page(&other).await.expect_err("not yet").kind(), Kind::AllowanceExhausted);
    assert_eq!(harness.sandbox.stats().data_requests, 1);
    harness.sandbox.clock().advance(Duration::from_secs(1));
    page(&other).await.expect("a page");
    assert_eq!(used(&harness.client(clock())), 1, "in the day that began then");
}
