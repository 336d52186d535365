//! Faults as a client observes them.

use serde_json::json;

use super::client::{Caller, DISCOVERY, target};
use crate::{Effect, Endpoint, Fault, Options, When};

const QUERY: &str = "siteId=S1&from=2026-11-01T00:00:00Z&to=2026-11-01T01:00:00Z&pageSize=20";

fn with_fault(on: Endpoint, effect: Effect) -> Caller {
    let caller = Caller::new(Options::default());
    caller.sandbox.fault(Fault { on, when: When::Nth(1), effect });
    caller
}

#[test]
fn temporarily_unavailable_has_the_status_of_the_options() {
    for status in [503, 400, 500] {
        let options = Options { unavailable_status: status, ..Options::default() };
        let caller = Caller::new(options);
        let effect = Effect::Unavailable { retry_after: Some(2) };
        caller.sandbox.fault(Fault { on: Endpoint::Token, when: When::Nth(1), effect });
        let reply = caller.exchange(&caller.header(), &caller.claims());
        assert_eq!(reply.status, status);
        assert_eq!(reply.json(), json!({"error": "temporarily_unavailable"}));
        assert_eq!(reply.headers["retry-after"], "2");
        caller.token();
    }
}

#[test]
fn a_hanging_connection_ends_when_the_sandbox_closes() {
    let caller = with_fault(Endpoint::Data, Effect::Hang);
    let token = format!("Bearer {}", caller.token());
    let headers = [("Authorization", token.as_str())];
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| caller.send("GET", &target(QUERY, None), &headers, b""));
        while caller.sandbox.stats().replies(Endpoint::Data, 0) == 0 {
            std::thread::yield_now();
        }
        caller.sandbox.close();
        assert!(waiting.join().expect("no panic").is_none());
    });
    assert!(caller.sandbox.is_closed());
    caller.sandbox.close();
}

#[test]
fn tokens_become_invalid_and_scopes_are_reduced() {
    let caller = Caller::new(Options::default());
    let when = When::Every(2);
    caller.sandbox.fault(Fault { on: Endpoint::Data, when, effect: Effect::ForgetTokens });
    let token = caller.token();
    let statuses = [(); 3].map(|()| caller.get(&target(QUERY, None), &token).status);
    assert_eq!(statuses, [200, 401, 401]);
    let caller = with_fault(Endpoint::Token, Effect::Grant(vec!["customer.data.read".into()]));
    let body = caller.exchange(&caller.header(), &caller.claims()).json();
    assert_eq!(body["scope"], "customer.data.read");
    let reply = caller.get(DISCOVERY, body["access_token"].as_str().expect("text"));
    assert_eq!(reply.status, 403);
    assert!(reply.headers["www-authenticate"].contains("insufficient_scope"));
}
