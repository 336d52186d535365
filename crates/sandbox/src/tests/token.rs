//! §2.1 and §4.1: the token endpoint accepts what the document requires and nothing else.

use serde_json::json;

use super::client::{BOTH, Caller, DISCOVERY, TOKEN, encode, form, sign, with};
use crate::{ErrorBody, Options};
use std::time::Duration;

#[test]
fn a_valid_assertion_gets_a_token_for_ten_minutes() {
    let caller = Caller::new(Options::default());
    let reply = caller.exchange(&caller.header(), &caller.claims());
    assert_eq!(reply.status, 200);
    let body = reply.json();
    assert_eq!(body["token_type"], "Bearer");
    assert_eq!(body["expires_in"], 600);
    assert_eq!(body["scope"], BOTH);
    assert_eq!(body.as_object().expect("an object").len(), 4);
    assert_eq!(reply.headers["date"], "Sun, 08 Nov 2026 00:00:00 GMT");
    let token = body["access_token"].as_str().expect("a token").to_owned();
    caller.sandbox.clock().advance(Duration::from_secs(599));
    assert_eq!(caller.get(DISCOVERY, &token).status, 200);
    caller.sandbox.clock().advance(Duration::from_secs(1));
    let late = caller.get(DISCOVERY, &token);
    assert_eq!(late.status, 401);
    assert!(late.headers["www-authenticate"].contains("invalid_token"));
}

#[test]
fn claims_at_their_limits_are_accepted() {
    let caller = Caller::new(Options::default());
    let now = caller.sandbox.clock().wall().as_second();
    for (name, value) in [
        ("exp", json!(now + 300)),
        ("exp", json!(now + 1)),
        ("nbf", json!(now - 60)),
        ("nbf", json!(now + 30)),
        ("jti", json!("ä".repeat(128))),
    ] {
        let claims = with(caller.claims(), &[(name, value.clone())]);
        assert_eq!(caller.exchange(&caller.header(), &claims).status, 200, "{name} = {value}");
    }
}

#[test]
fn a_jti_is_spent_also_by_an_invalid_request() {
    let caller = Caller::new(Options::default());
    let form_type = ("Content-Type", "application/x-www-form-urlencoded");
    let bearer = ("Authorization", "Bearer something");
    let json_type = ("Content-Type", "application/json");
    for (headers, target, extra) in [
        (vec![form_type, bearer], TOKEN.to_owned(), ""),
        (vec![json_type], TOKEN.to_owned(), ""),
        (vec![form_type], format!("{TOKEN}?x=1"), ""),
        (vec![form_type], TOKEN.to_owned(), "&client_id=x"),
    ] {
        let claims = caller.claims();
        let assertion = sign(&caller.header().to_string(), &claims.to_string(), 0);
        let body = format!("{}{extra}", form(&assertion, BOTH));
        let reply = caller.send("POST", &target, &headers, body.as_bytes()).expect("a reply");
        assert_eq!(reply.status, 400);
        assert_eq!(caller.exchange(&caller.header(), &claims).status, 401, "{headers:?} {extra}");
    }
    assert!(caller.sandbox.stats().refusals[0].contains("Authorization"));
    let claims = caller.claims();
    let assertion = sign(&caller.header().to_string(), &claims.to_string(), 0);
    let reply = caller.exchange_form(&form(&assertion, "customer.other"));
    assert_eq!((reply.status, reply.json()), (400, json!({"error": "invalid_scope"})));
    assert_eq!(caller.exchange(&caller.header(), &claims).status, 401);
}

#[test]
fn the_form_has_exactly_the_four_fields() {
    let caller = Caller::new(Options::default());
    let good = || form(&caller.assertion(), BOTH);
    for body in [
        format!("{}&client_id={}", good(), encode(&caller.subject)),
        format!("{}&scope=x", good()),
        good().replace("&scope=customer.discovery.read%20customer.data.read", ""),
        good().replace("grant_type=", "grant="),
        good().replace("%3A", "%3"),
    ] {
        let reply = caller.exchange_form(&body);
        assert_eq!((reply.status, reply.json()), (400, json!({"error": "invalid_request"})));
    }
    let reply = caller.exchange_form(&good().replace("client_credentials", "password"));
    assert_eq!(reply.json(), json!({"error": "unsupported_grant_type"}));
    let reply = caller.exchange_form(&good().replace("jwt-bearer", "saml2-bearer"));
    assert_eq!(reply.json(), json!({"error": "invalid_request"}));
}

#[test]
fn error_statuses_and_bodies_follow_the_options() {
    let options = Options {
        invalid_client_status: 400,
        error_body: ErrorBody::Problem,
        ..Options::default()
    };
    let caller = Caller::new(options);
    assert_eq!(caller.exchange(&caller.header(), &json!({})).status, 400);
    let reply = caller.get(DISCOVERY, "unknown");
    assert_eq!(reply.headers["content-type"], "application/problem+json");
    assert_eq!((reply.status, reply.json()["status"].as_u64()), (401, Some(401)));
}

#[test]
fn r21_a_sandbox_refuses_what_another_with_the_same_key_accepts() {
    let (one, other) = (Caller::new(Options::default()), Caller::new(Options::default()));
    assert_eq!(one.thumbprint, other.thumbprint);
    assert_ne!(one.subject, other.subject);
    let token = one.token();
    assert_eq!(other.get(DISCOVERY, &token).status, 401);
    let named = with(one.claims(), &[("aud", other.claims()["aud"].clone())]);
    let theirs = json!(other.subject);
    let renamed = with(one.claims(), &[("iss", theirs.clone()), ("sub", theirs)]);
    for claims in [one.claims(), named, renamed] {
        assert_eq!(other.exchange(&other.header(), &claims).status, 401);
    }
    let refusals = other.sandbox.stats().refusals;
    for (refusal, reason) in refusals.iter().zip(["unknown", "no enrolled", "no enrolled", "aud"]) {
        assert!(refusal.contains(reason), "{refusal}");
    }
    assert_eq!((refusals.len(), other.sandbox.stats().tokens_issued), (4, 0));
}
