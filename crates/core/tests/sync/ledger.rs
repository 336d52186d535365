//! Compares the ledger file of a client with the sandbox's count.

use std::future::ready;
use std::path::PathBuf;
use std::sync::Arc;

use jiff::civil::date;
use jiff::{SignedDuration, Timestamp};
use siteline_base::clock::Clock;
use siteline_core::auth::Credential;
use siteline_core::client::{Client, DATA_PATH, ScanInput, Spending};
use siteline_core::data::AskedRange;
use siteline_core::http::{Deadline, Integration, LocalLedger, Terms};
use siteline_core::{Kind, Result};
use siteline_sandbox::{Effect, Endpoint, Fault, Options, Sandbox, When};

use crate::harness::{HOUR, at, client_with, enrolled, on_data, seconds};

const QUERY: &str = "siteId=S1&from=2026-11-01T00%3A00%3A00Z&to=2026-11-02T00%3A00%3A00Z\
                     &aggregationIntervalSeconds=3600&pageSize=100";

struct SharedLedger {
    sandbox: Sandbox,
    path: PathBuf,
    credential: Credential,
}

impl SharedLedger {
    fn new(name: &str, now: &str) -> Self {
        let sandbox = Sandbox::start(Options::default(), Clock::frozen_at(at(now)));
        let sandbox = sandbox.expect("a sandbox");
        let credential = enrolled(&sandbox);
        let name = format!("siteline-{name}-{}.txt", std::process::id());
        Self { sandbox, path: std::env::temp_dir().join(name), credential }
    }

    /// The clock of a restarted machine with this wall time.
    fn machine(&self, wall: &str) -> Clock {
        self.sandbox.clock().of_machine(at(wall))
    }

    /// A client of another process: it has its own ledger object for the same file.
    fn limited(&self, clock: Clock, limit: Option<u64>) -> Client {
        client_with(&self.sandbox, self.credential.clone(), clock, |settings| {
            let (base, subject) = (settings.base_url.as_str(), self.credential.subject());
            let (integration, terms) =
                (Integration::new(base, subject), Terms { limit, resets: None });
            let ledger =
                LocalLedger::in_file(&self.path, integration, terms).opened().expect("a ledger");
            settings.ledger = Some(Arc::new(ledger));
        })
    }

    fn fault(&self, every: u64, effect: Effect) {
        self.sandbox.fault(on_data(When::Every(every), effect));
    }

    /// The next `count` replies of the endpoint have this `Date`, or none.
    fn date(&self, on: Endpoint, count: u64, date: Option<&str>) {
        let effect = Effect::Headers(vec![("Date".to_owned(), date.map(ToOwned::to_owned))]);
        self.sandbox.fault(Fault { on, when: When::Times { count, skip: 0 }, effect });
    }

    fn advance(&self, hours: u64) {
        self.sandbox.clock().advance(seconds(hours * HOUR));
    }

    fn served(&self) -> u64 {
        self.sandbox.stats().data_requests
    }
}

impl Drop for SharedLedger {
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
    let harness = SharedLedger::new("b6", "2026-11-20T00:00:00Z");
    harness.fault(20, Effect::Unavailable { retry_after: None });
    harness.fault(29, Effect::Cut { after: 9 });
    harness.fault(37, Effect::Reset);
    harness.fault(71, Effect::ForgetTokens);
    let client = harness.limited(harness.sandbox.clock().clone(), None);
    for _ in 0..100 {
        page(&client).await.expect("a page");
        harness.sandbox.clock().advance(seconds(60));
    }
    let seen = harness.sandbox.stats();
    assert!(seen.data_requests >= 110, "{}", seen.data_requests);
    assert_eq!(used(&client), seen.data_requests);
    let state =
        harness.limited(harness.sandbox.clock().clone(), None).allowance().expect("a ledger");
    assert_eq!((state.used, state.token_requests), (seen.data_requests, seen.token_requests));
}

#[tokio::test]
async fn b8_the_day_of_a_request_is_the_services_day() {
    let harness = SharedLedger::new("b8", "2026-11-19T23:59:50Z");
    // This machine's clock is two minutes slow: by it the day does not end in this test.
    let slow = Clock::frozen_at(at("2026-11-19T23:57:50Z"));
    let client = harness.limited(slow.clone(), None);
    for _ in 0..6 {
        page(&client).await.expect("a page");
        for clock in [&slow, harness.sandbox.clock()] {
            clock.advance(seconds(4));
        }
    }
    let by_day = harness.sandbox.stats().data_requests_by_day;
    assert_eq!((by_day[&date(2026, 11, 19)], by_day[&date(2026, 11, 20)]), (3, 3));
    let state = client.allowance().expect("a ledger");
    assert_eq!(state.used, 3);
    assert_eq!(state.resets_at, at("2026-11-21T00:00:00Z"));
}

const LIMIT: Option<u64> = Some(25);

/// Reads pages until the allowance is used up, and returns that error.
async fn spend(client: &Client) -> siteline_core::Error {
    loop {
        if let Err(error) = page(client).await {
            assert_eq!(error.kind(), Kind::AllowanceExhausted, "{error:?}");
            return error;
        }
    }
}

async fn pages(client: &Client, count: u64) {
    for _ in 0..count {
        page(client).await.expect("a page");
    }
}

#[tokio::test]
async fn b14_a_clock_that_is_stepped_gets_no_second_allowance() {
    for (name, service, steps) in [
        ("b14-day", "2026-11-20T12:00:00Z", &[24, 24, -60][..]),
        ("b14-hour", "2026-11-20T23:30:00Z", &[1, 1, -3]),
    ] {
        let harness = SharedLedger::new(name, service);
        let machine = harness.machine(service);
        let client = harness.limited(machine.clone(), LIMIT);
        pages(&client, 20).await;
        for step in steps {
            machine.step(SignedDuration::from_hours(*step));
            for client in [&client, &harness.limited(machine.clone(), LIMIT)] {
                let error = spend(client).await;
                let midnight = at("2026-11-21T00:00:00Z");
                assert_eq!(error.context().retry_at, Some(midnight), "{name}: {step} h");
            }
        }
        assert_eq!(harness.served(), 25, "{name}");
        // The wall clock is behind: the day ends all the same.
        harness.advance(12);
        spend(&client).await;
        assert_eq!(harness.served(), 50, "{name}");
    }
}

fn end_of_a_read(client: &Client) -> Timestamp {
    let scan = ScanInput::default().scan_from_now(client, AskedRange::default(), None, None);
    scan.expect("a scan").value.query().end().expect("an end")
}

#[tokio::test]
async fn b23_a_range_never_ends_in_the_services_future() {
    let harness = SharedLedger::new("b23", "2026-11-20T12:00:00Z");
    let client = harness.limited(harness.machine("2026-11-20T12:00:00Z"), None);
    page(&client).await.expect("a page");
    harness.date(Endpoint::Data, 1, Some("Sat, 21 Nov 2026 01:00:00 GMT"));
    page(&client).await.expect("a page that lies");
    assert_eq!(end_of_a_read(&client), at("2026-11-20T11:55:00Z"));
    // A machine 13 hours ahead, and one reply: the earlier of the two is taken.
    let ahead = harness.limited(harness.machine("2026-11-21T01:00:00Z"), None);
    page(&ahead).await.expect("a page");
    assert_eq!(end_of_a_read(&ahead), at("2026-11-20T11:55:00Z"));
}

#[tokio::test]
async fn b17_after_a_start_a_token_request_shows_the_new_day() {
    let harness = SharedLedger::new("b17", "2026-11-20T12:00:00Z");
    spend(&harness.limited(harness.machine("2026-11-20T12:00:00Z"), LIMIT)).await;
    // The same day, with a clock that says otherwise: no data request asks.
    let early = harness.limited(harness.machine("2026-11-21T09:00:00Z"), LIMIT);
    spend(&early).await;
    assert_eq!(harness.served(), 25);
    harness.advance(21);
    let tokens = harness.sandbox.stats().token_requests;
    let right = harness.limited(harness.machine("2026-11-21T09:00:00Z"), LIMIT);
    pages(&right, 20).await;
    assert_eq!((harness.served(), harness.sandbox.stats().token_requests - tokens), (45, 1));
    spend(&right).await;
    harness.advance(24);
    // Three hours slow: another token request confirms the first.
    let tokens = harness.sandbox.stats().token_requests;
    let slow = harness.limited(harness.machine("2026-11-22T06:00:00Z"), LIMIT);
    spend(&slow).await;
    assert_eq!(harness.served(), 75);
    let asked = harness.sandbox.stats().token_requests - tokens;
    assert!((2..=3).contains(&asked), "one is refused for its time: {asked}");
}

#[tokio::test]
async fn b18_where_no_reply_has_a_date_one_request_asks() {
    let harness = SharedLedger::new("b18", "2026-11-20T12:00:00Z");
    spend(&harness.limited(harness.machine("2026-11-20T12:00:00Z"), LIMIT)).await;
    harness.advance(21);
    for on in [Endpoint::Token, Endpoint::Data] {
        harness.date(on, 1_000, None);
    }
    let tokens = harness.sandbox.stats().token_requests;
    let client = harness.limited(harness.machine("2026-11-21T09:00:00Z"), LIMIT);
    // Two dates are none.
    let headers = vec![("Date".to_owned(), "-".to_owned())];
    let refusal = Effect::Reply { status: 400, headers, body: bytes::Bytes::new() };
    harness.sandbox.fault(on_data(When::Nth(1), refusal));
    assert_eq!(page(&client).await.expect_err("refused").kind(), Kind::RequestRejected);
    // A second new token would have no date either.
    assert_eq!(harness.sandbox.stats().token_requests - tokens, 2);
    let error = spend(&client).await;
    assert_eq!(error.context().retry_at, None);
    assert!(error.to_string().contains("no two clock readings agree"), "{error}");
    assert_eq!(harness.served(), 26);
    harness.advance(1);
    spend(&client).await;
    // The one that was refused may be of the new day too.
    assert_eq!(harness.served(), 26 + 24);
}
