//! Tests each rule for clients in the document (§2 to §9) with a client that breaks it.

use std::time::Duration;

use serde_json::{Value, json};

use super::client::{
    BOTH, Caller, DATA, DISCOVERY, Response, TOKEN, encode, form, public_jwk, sign, target, with,
};
use crate::{DEFAULT_SCOPES, Options};

const JSON: (&str, &str) = ("Accept", "application/json");

fn caller() -> Caller {
    Caller::new(Options { token_requests_per_minute: 1_000, ..Options::default() })
}

/// §7: the reply to a refused assertion is generic; the reason is only in the statistics.
fn assert_invalid_client(caller: &Caller, reply: &Response, reason: &str) {
    assert_eq!((reply.status, reply.json()), (401, json!({"error": "invalid_client"})), "{reason}");
    let stats = caller.sandbox.stats();
    let refusal = stats.refusals.last().expect("a refusal");
    assert!(refusal.contains(reason), "{refusal} is not {reason}");
}

/// Exchanges an assertion with these members of its claims or its header.
fn assert_refused(caller: &Caller, members: &[(&str, Value)], reason: &str) {
    let (mut header, mut claims) = (caller.header(), caller.claims());
    for (name, value) in members {
        let part = if claims.get(name).is_some() { &mut claims } else { &mut header };
        part[*name] = value.clone();
    }
    assert_invalid_client(caller, &caller.exchange(&header, &claims), reason);
}

fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

#[test]
fn each_member_of_an_assertion_has_one_form() {
    let caller = caller();
    let base = caller.sandbox.base_url().to_owned();
    let token = format!("{base}{TOKEN}");
    let (jwk, thumbprint) = public_jwk(1);
    let other = caller.sandbox.enroll(&jwk, &DEFAULT_SCOPES).expect("a subject");
    let algorithms = json!([
        "none",
        "None",
        "",
        "HS256",
        "RS384",
        "RS512",
        "PS256",
        "ES256",
        "rs256",
        "RS256 ",
        256,
        null,
        ["RS256"],
    ]);
    let audiences = json!([
        base,
        TOKEN,
        format!("{token}?"),
        format!("{base}/{TOKEN}"),
        format!("{base}{DATA}"),
        format!("{base}{}", TOKEN.to_uppercase()),
        token.replace("http:", "https:"),
        token.replace("127.0.0.1", "localhost"),
        format!(" {token}"),
        [token],
    ]);
    for (name, values, reason) in [
        ("alg", algorithms, "alg is not"),
        ("typ", json!(["at+jwt"]), "typ"),
        ("kid", json!([thumbprint, format!("{}=", caller.thumbprint), "", null]), "kid is not"),
        ("aud", audiences, "aud is not"),
        ("sub", json!([other]), "sub is not iss"),
        ("jti", json!(["", "x".repeat(129), 7]), "jti is not"),
    ] {
        for value in values.as_array().expect("values") {
            assert_refused(&caller, &[(name, value.clone())], reason);
        }
    }
    for name in ["jku", "x5u", "x5c", "x5t", "x5t#S256", "jwk", "crit", "b64", "zip", "cty"] {
        assert_refused(&caller, &[(name, json!("x"))], &format!("header member {name:?}"));
    }
    let theirs = [("iss", json!(other)), ("sub", json!(other)), ("kid", json!(thumbprint))];
    assert_refused(&caller, &theirs[..2], "kid is not");
    assert_refused(&caller, &theirs, "signature does not verify");
    for name in ["alg", "kid", "iss", "sub", "aud", "iat", "nbf", "exp", "jti"] {
        let (mut header, mut claims) = (caller.header(), caller.claims());
        for part in [&mut header, &mut claims] {
            part.as_object_mut().expect("an object").remove(name);
        }
        assert_invalid_client(&caller, &caller.exchange(&header, &claims), " is ");
    }
}

#[test]
fn the_compact_form_is_three_parts_of_canonical_base64url() {
    let caller = caller();
    let good = || caller.assertion();
    let list = |claims: &str| sign(&caller.header().to_string(), claims, 0);
    let unsigned = with(caller.header(), &[("alg", json!("none"))]).to_string();
    let unsigned = sign(&unsigned, &caller.claims().to_string(), 0);
    for compact in [
        String::new(),
        good().rsplit_once('.').expect("three parts").0.to_owned(),
        format!("{}.", good()),
        format!("{}.", good().rsplit_once('.').expect("three parts").0),
        format!("{}==", good()),
        format!(" {}", good()),
        format!("{}\n", good()),
        good().replacen('.', "=.", 1),
        format!("{}.", unsigned.rsplit_once('.').expect("three parts").0),
        list("[]"),
        list("null"),
        list(&format!("{}x", caller.claims())),
        list("{\"iss\":\"\u{0}\"}"),
        list(&caller.claims().to_string().replacen('{', r#"{"iss":"x","#, 1)),
    ] {
        let reply = caller.exchange_form(&form(&encode(&compact), BOTH));
        assert_invalid_client(&caller, &reply, "");
    }
    assert_eq!(caller.sandbox.stats().tokens_issued, 0);
}

#[test]
fn the_times_are_integers_in_the_right_order() {
    let caller = caller();
    let now = caller.sandbox.clock().wall().as_second();
    for (iat, nbf, exp, reason) in [
        (json!(now), json!(now), json!(now + 301), "exp is not 1 to 300"),
        (json!(now - 200), json!(now), json!(now + 101), "exp is not 1 to 300"),
        (json!(now), json!(now), json!(now), "exp is not 1 to 300"),
        (json!(now), json!(now), json!(now - 1), "exp is not 1 to 300"),
        (json!(now - 300), json!(now - 300), json!(now), "exp has passed"),
        (json!(now + 31), json!(now), json!(now + 60), "iat is in the future"),
        (json!(now), json!(now + 31), json!(now + 60), "nbf is in the future"),
        (json!(now), json!(now - 61), json!(now + 60), "nbf is too far before"),
        (json!(now), json!(now + 20), json!(now + 20), "nbf is not before exp"),
        (json!(i64::MIN), json!(now), json!(i64::MAX), "exp is not 1 to 300"),
        (json!(now * 1_000), json!(now), json!(now * 1_000 + 1), "iat is in the future"),
        (json!(true), json!(now), json!(now + 60), "iat is not a JSON integer"),
        (json!(now), json!(null), json!(now + 60), "nbf is not a JSON integer"),
        (json!(now), json!(now), json!("60"), "exp is not a JSON integer"),
    ] {
        assert_refused(&caller, &[("iat", iat), ("nbf", nbf), ("exp", exp)], reason);
    }
    for (whole, written) in [(now, format!("{now}.0")), (now + 120, format!("{}e0", now + 120))] {
        let claims = caller.claims().to_string();
        let claims = claims.replace(&format!(":{whole}"), &format!(":{written}"));
        let compact = sign(&caller.header().to_string(), &claims, 0);
        let reply = caller.exchange_form(&form(&compact, BOTH));
        assert_invalid_client(&caller, &reply, "is not a JSON integer");
    }
}

#[test]
fn a_jti_is_never_accepted_again_however_old() {
    let caller = caller();
    let jti = [("jti", json!("once"))];
    assert_eq!(caller.exchange(&caller.header(), &with(caller.claims(), &jti)).status, 200);
    for wait in [0, 301, 7 * 86_400] {
        caller.sandbox.clock().advance(Duration::from_secs(wait));
        assert_refused(&caller, &jti, "jti was used before");
    }
}

#[test]
fn the_form_is_url_encoded_and_has_that_content_type() {
    let caller = caller();
    let send = |content_type: &[(&str, &str)]| {
        let body = form(&caller.assertion(), BOTH);
        caller.send("POST", TOKEN, content_type, body.as_bytes()).expect("a reply").status
    };
    for bad in ["application/json", "text/plain", "multipart/form-data; boundary=x", ""] {
        assert_eq!(send(&[("Content-Type", bad)]), 400, "{bad}");
    }
    assert_eq!(send(&[]), 400);
    assert_eq!(send(&[("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")]), 200);
    for body in ["", "grant_type", "{}", "client_assertion=%00"] {
        assert_eq!(caller.exchange_form(body).json(), json!({"error": "invalid_request"}));
    }
}

#[test]
fn the_requested_scopes_must_be_allowed_and_are_granted_as_requested() {
    let caller = caller();
    let (jwk, _) = public_jwk(0);
    let narrow = caller.sandbox.enroll(&jwk, &["customer.data.read"]).expect("a subject");
    let ask = |subject: &str, scope: &str| {
        let claims =
            with(caller.claims(), &[("iss", json!(subject)), ("sub", json!(subject))]).to_string();
        caller.exchange_form(&form(&sign(&caller.header().to_string(), &claims, 0), scope))
    };
    for (subject, scope) in [
        (&narrow, BOTH),
        (&narrow, "customer.discovery.read"),
        (&caller.subject, ""),
        (&caller.subject, " customer.data.read"),
        (&caller.subject, "customer.discovery.read  customer.data.read"),
        (&caller.subject, "customer.discovery.read,customer.data.read"),
        (&caller.subject, "customer.discovery.read\tcustomer.data.read"),
        (&caller.subject, "Customer.data.read"),
        (&caller.subject, "customer.data"),
    ] {
        let reply = ask(subject, scope);
        let body = json!({"error": "invalid_scope"});
        assert_eq!((reply.status, reply.json()), (400, body), "{scope:?}");
    }
    for scope in ["customer.data.read", "customer.data.read customer.discovery.read"] {
        assert_eq!(ask(&caller.subject, scope).json()["scope"], scope);
    }
}

#[test]
fn each_path_has_one_method() {
    let caller = caller();
    let token = bearer(&caller.token());
    for (path, right) in [(TOKEN, "POST"), (DISCOVERY, "GET"), (DATA, "GET")] {
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] {
            if method == right {
                continue;
            }
            let headers = [("Authorization", token.as_str()), JSON];
            let reply = caller.send(method, path, &headers, b"").expect("a reply");
            let allowed = reply.headers["allow"].as_str();
            assert_eq!((reply.status, allowed), (405, right), "{method} {path}");
        }
    }
    for path in [
        "/",
        "/api/customer/v1/data/",
        "/api/customer/v1//data",
        "/api/customer/v1/Data",
        "/api/customer/v1/dat%61",
        "/api/customer/v2/data",
        "/api/customer/data",
        "/api/customer/v1/oauth/token",
    ] {
        assert_eq!(caller.get(path, "unknown").status, 404, "{path}");
    }
}

#[test]
fn the_bearer_token_is_accepted_in_its_header_only() {
    let caller = caller();
    let token = caller.token();
    let good = bearer(&token);
    let refused = |target: &str, given: &[&str]| {
        let mut headers: Vec<_> = given.iter().map(|value| ("Authorization", *value)).collect();
        headers.push(JSON);
        let reply = caller.send("GET", target, &headers, b"").expect("a reply");
        assert_eq!(reply.status, 401, "{target}");
        assert!(reply.headers["www-authenticate"].starts_with("Bearer"));
    };
    for path in [DISCOVERY, DATA] {
        refused(path, &[]);
        refused(&format!("{path}?access_token={token}"), &[]);
        refused(path, &["Basic eDp5"]);
        refused(path, &[&format!("bearer {token}")]);
        refused(path, &[&token]);
        refused(path, &[&format!("Bearer  {token}")]);
        refused(path, &[&format!("{good}x")]);
        refused(path, &[&good, &good]);
        refused(path, &["Bearer"]);
        assert_eq!(caller.get(&format!("{path}?access_token={token}"), &token).status, 400);
        assert_eq!(caller.get(path, &token).status, 200);
    }
    assert_eq!(self::caller().get(DATA, &token).status, 401, "the token of another service");
    assert_eq!(caller.get(DATA, &caller.assertion()).status, 401);
    let refusals = caller.sandbox.stats().refusals;
    assert!(refusals.last().is_some_and(|refusal| refusal.contains("assertion")), "{refusals:?}");
}

#[test]
fn discovery_requires_accept_json_and_get_requests_have_no_body() {
    let caller = caller();
    let token = bearer(&caller.token());
    let status = |path: &str, accept: Option<&str>, body: &[u8]| {
        let mut headers = vec![("Authorization", token.as_str())];
        headers.extend(accept.map(|kinds| ("Accept", kinds)));
        caller.send("GET", path, &headers, body).expect("a reply").status
    };
    assert_eq!((status(DISCOVERY, None, b""), status(DATA, None, b"")), (406, 200));
    for path in [DISCOVERY, DATA] {
        for refused in ["text/html", "application/xml, text/*", ""] {
            assert_eq!(status(path, Some(refused), b""), 406, "{path} {refused}");
        }
        for accepted in ["*/*", "text/html, application/json;q=0.5"] {
            assert_eq!(status(path, Some(accepted), b""), 200, "{path} {accepted}");
        }
        assert_eq!(status(path, Some("application/json"), b"siteId=S1"), 400, "{path}");
    }
    assert_eq!(status(&format!("{DISCOVERY}?siteId=S1"), Some("application/json"), b""), 400);
}

#[test]
fn every_parameter_is_given_once_and_encoded() {
    let caller = caller();
    let token = caller.token();
    for (query, error) in [
        ("cursor=x&cursor=x", "invalid_request"),
        ("siteId=%S1", "invalid_request"),
        ("from=2026-11-01T00:00:00+00:00", "invalid_request"),
        ("aggregationIntervalSeconds=15", "invalid_request"),
        ("cursor=", "invalid_cursor"),
        ("cursor=null", "invalid_cursor"),
    ] {
        let reply = caller.get(&target(query, None), &token);
        assert_eq!((reply.status, reply.json()["error"].as_str()), (400, Some(error)), "{query}");
    }
    let query = "from=2026-11-01T00%3A00%3A00Z&to=2026-11-01T00%3A01%3A00%2B00%3A00";
    assert_eq!(caller.get(&target(query, None), &token).status, 200);
}

#[test]
fn allowance_and_rate_limit_are_per_integration() {
    let options =
        Options { daily_allowance: Some(2), token_requests_per_minute: 3, ..Options::default() };
    let caller = Caller::new(options);
    let (jwk, _) = public_jwk(0);
    let other = caller.sandbox.enroll(&jwk, &DEFAULT_SCOPES).expect("a subject");
    let theirs = || with(caller.claims(), &[("iss", json!(other)), ("sub", json!(other))]);
    let token = caller.token();
    // A refused exchange counts too.
    let bad = with(caller.claims(), &[("aud", json!("x"))]);
    assert_eq!(caller.exchange(&caller.header(), &bad).status, 401);
    caller.token();
    let reply = caller.exchange(&caller.header(), &caller.claims());
    assert_eq!((reply.status, reply.headers["retry-after"].as_str()), (429, "60"));
    let reply = caller.exchange(&caller.header(), &theirs()).json();
    let other_token = reply["access_token"].as_str().expect("a token");
    // An unknown token counts for no integration; an expired one counts for its subject.
    assert_eq!(caller.get(DATA, "unknown").status, 401);
    assert_eq!(caller.get(&target("bad=1", None), &token).status, 400, "it counts too");
    caller.sandbox.clock().advance(Duration::from_secs(600));
    assert_eq!(caller.get(DATA, &token).status, 401);
    let reply = caller.get(DATA, &token);
    assert_eq!((reply.status, reply.headers["retry-after"].as_str()), (429, "85800"));
    assert_eq!(caller.get(DATA, &caller.token()).status, 429, "another token, the same allowance");
    assert_eq!(caller.get(DISCOVERY, &caller.token()).status, 200, "discovery is not counted");
    assert_eq!(caller.get(DATA, other_token).status, 401, "another integration's own allowance");
    // Until midnight.
    caller.sandbox.clock().advance(Duration::from_secs(85_800));
    assert_eq!(caller.get(DATA, &caller.token()).status, 200);
}
