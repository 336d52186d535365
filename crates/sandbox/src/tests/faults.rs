//! Faults as a client observes them.

use std::time::Duration;

use serde_json::json;

use super::client::{Caller, DISCOVERY, target};
use crate::{Effect, Endpoint, Fault, Options, When};

const QUERY: &str = "siteId=S1&from=2026-11-01T00:00:00Z&to=2026-11-01T01:00:00Z&pageSize=20";

fn with_fault(on: Endpoint, effect: Effect) -> Caller {
    let caller = Caller::new(Options::default());
    caller.sandbox.fault(Fault { on, when: When::Nth(1), effect });
    caller
}

fn raw(caller: &Caller, token: &str) -> Option<(String, Vec<u8>)> {
    let token = format!("Bearer {token}");
    caller.send_raw("GET", &target(QUERY, None), &[("Authorization", &token)], b"")
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
fn a_cut_body_is_shorter_than_its_content_length() {
    let caller = with_fault(Endpoint::Data, Effect::Cut { after: 100 });
    let (head, body) = raw(&caller, &caller.token()).expect("a head");
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
    assert!(length.and_then(|length| length.parse().ok()).is_some_and(|length: u32| length > 100));
    assert_eq!(body.len(), 100);
    assert_eq!(caller.sandbox.stats().replies(Endpoint::Data, 0), 1);
}

#[test]
fn a_reset_and_raw_bytes_are_not_an_http_reply() {
    let caller = with_fault(Endpoint::Data, Effect::Reset);
    assert!(raw(&caller, &caller.token()).is_none());
    let caller = with_fault(Endpoint::Data, Effect::Raw("HTTP/1.1 200 OK\r\n\r\nhalf".into()));
    let (head, body) = raw(&caller, &caller.token()).expect("bytes");
    assert_eq!((head.as_str(), body.as_slice()), ("HTTP/1.1 200 OK", b"half".as_slice()));
}

#[test]
fn a_hanging_connection_ends_when_the_sandbox_closes() {
    let caller = with_fault(Endpoint::Data, Effect::Hang);
    let token = caller.token();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| raw(&caller, &token));
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
fn pages_may_be_empty_or_lack_their_cursor() {
    let caller = with_fault(Endpoint::Data, Effect::EmptyPage);
    let token = caller.token();
    let page = caller.get(&target(QUERY, None), &token).json();
    assert_eq!(page["series"], json!([]));
    let cursor = page["nextCursor"].as_str().expect("a cursor");
    let next = caller.get(&target(QUERY, Some(cursor)), &token).json();
    assert_eq!(next["series"], caller.get(&target(QUERY, None), &token).json()["series"]);
    let changes = vec![("nextCursor".to_owned(), None), ("more".to_owned(), Some(json!(1)))];
    let caller = with_fault(Endpoint::Data, Effect::Members(changes));
    let page = caller.get(&target(QUERY, None), &caller.token()).json();
    assert!(page.get("nextCursor").is_none() && page["more"] == 1);
}

#[test]
fn delays_move_the_clock_and_headers_change() {
    let caller = with_fault(Endpoint::Discovery, Effect::Delay(Duration::from_secs(3_600)));
    let token = caller.token();
    let reply = caller.get(DISCOVERY, &token);
    assert_eq!(reply.status, 401, "the token expired while the request was delayed");
    assert_eq!(reply.headers["date"], "Sun, 08 Nov 2026 01:00:00 GMT");
    for value in [None, Some("Thu, 01 Jan 1970 00:00:00 GMT".to_owned())] {
        let changes = vec![("Date".to_owned(), value.clone())];
        let caller = with_fault(Endpoint::Discovery, Effect::Headers(changes));
        let reply = caller.get(DISCOVERY, &caller.token());
        assert_eq!(reply.headers.get("date"), value.as_ref());
    }
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
