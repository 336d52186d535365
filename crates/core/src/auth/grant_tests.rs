#![expect(clippy::disallowed_methods, reason = "each test runs on a runtime of its own")]

use super::*;
use crate::auth::test_harness::{DATA_SCOPE, Harness, noon, warnings};
use crate::http::test_server::{Act, TestServer, reply, token_body};

/// The error if every attempt gets this reply.
async fn error_of(act: Act) -> Error {
    Harness::new(vec![act; 8]).await.token().await.expect_err("refused")
}

fn grant(body: &str) -> Result<Grant> {
    read(&reply(200, body), &ScopeSet::granted(DATA_SCOPE), "/token", Timestamp::UNIX_EPOCH)
}

#[tokio::test]
async fn t4_a_narrower_scope_is_a_scope_error_that_lists_the_missing_scopes() {
    let body = token_body("tok").replace(" customer.data.read", "");
    let harness = Harness::new(vec![Act::json(200, &body)]).await;
    let error = harness.token().await.expect_err("fewer scopes");
    assert_eq!(error.kind(), Kind::ScopeError);
    assert_eq!(error.context().missing, [DATA_SCOPE]);
    assert_eq!(harness.server.requests().len(), 1, "and no other request");
}

#[tokio::test]
async fn t5_a_reply_without_a_scope_works() {
    let body = r#"{"access_token":"tok","token_type":"Bearer"}"#;
    let harness = Harness::new(vec![Act::json(200, body)]).await;
    warnings();
    harness.token().await.expect("a token");
    let logged = warnings();
    assert!(logged.len() == 1 && logged[0].contains("60 s"), "T15: {logged:?}");
}

#[tokio::test]
async fn t13_a_200_without_a_token_is_a_protocol_error_or_the_error_that_it_names() {
    let html = Act::with_headers(200, &["Content-Type: text/html"], "<html>Log in</html>");
    for act in [html, Act::json(200, "[]"), Act::json(200, ""), Act::json(200, "null")] {
        let error = error_of(act.clone()).await;
        assert_eq!(error.kind(), Kind::ProtocolError, "{act:?}");
        assert_eq!(error.context().attempts.len(), 1, "{act:?}");
    }
    let error = error_of(Act::json(200, r#"{"error":"invalid_client"}"#)).await;
    assert_eq!(error.kind(), Kind::AuthenticationError);
    let error = error_of(Act::json(200, r#"{"error":"strange"}"#)).await;
    assert_eq!(error.kind(), Kind::RequestRejected);
}

#[test]
fn t14_the_type_must_be_bearer_in_any_case() {
    let with = |kind: &str| grant(&format!(r#"{{"access_token":"tok"{kind},"expires_in":600}}"#));
    assert!(with(r#","token_type":"bearer""#).is_ok());
    assert!(with(r#","token_type":"BEARER""#).is_ok());
    for bad in [r#","token_type":"MAC""#, r#","token_type":null"#, ""] {
        assert_eq!(with(bad).err().map(|error| error.kind()), Some(Kind::ProtocolError), "{bad}");
    }
}

#[test]
fn t15_the_lifetime_is_read_in_every_form_and_limited() {
    let with = |lifetime: &str| {
        grant(&format!(r#"{{"access_token":"tok","token_type":"Bearer"{lifetime}}}"#))
            .map(|grant| grant.lifetime.as_secs())
    };
    for (given, seconds) in [
        ("", 60),
        (r#","expires_in":null"#, 60),
        (r#","expires_in":600"#, 600),
        (r#","expires_in":"600""#, 600),
        (r#","expires_in":600.0"#, 600),
        (r#","expires_in":1e12"#, 3_600),
    ] {
        assert_eq!(with(given).expect(given), seconds, "{given}");
    }
    for bad in ["0", "-1", r#""soon""#, "true", r#""NaN""#, "[]"] {
        let error = with(&format!(r#","expires_in":{bad}"#)).expect_err(bad);
        assert_eq!(error.kind(), Kind::ProtocolError, "{bad}");
        assert_eq!(error.context().path.as_deref(), Some("$.expires_in"));
    }
}

#[test]
fn t16_a_token_that_is_not_valid_in_a_header_is_refused_without_being_shown() {
    let with = |token: &str| {
        let token = serde_json::to_string(token).expect("JSON");
        grant(&format!(r#"{{"access_token":{token},"token_type":"Bearer","expires_in":600}}"#))
    };
    for bad in ["", "s3cret\r\nX: y", "s3crét", "s3 cret", "s3cret\u{0}"] {
        let error = with(bad).err().expect(bad);
        assert_eq!(error.kind(), Kind::ProtocolError);
        assert!(!error.to_string().contains("s3"), "{error}");
    }
    assert!(with(&"t".repeat(64 * 1024)).is_ok());
    let missing = grant(r#"{"token_type":"Bearer","expires_in":600}"#);
    assert_eq!(missing.err().map(|error| error.kind()), Some(Kind::ProtocolError));
}

#[tokio::test]
async fn t17_a_refresh_token_is_ignored_and_not_stored() {
    let body = token_body("tok").replace('{', r#"{"refresh_token":"never-kept","#);
    let harness = Harness::new(vec![Act::json(200, &body)]).await;
    let token = harness.token().await.expect("a token");
    assert!(!format!("{token:?}").contains("never-kept"));
    harness.clock.advance(std::time::Duration::from_secs(700));
    harness.token().await.expect("a new token");
    let raw: String = harness.server.requests().into_iter().map(|request| request.raw).collect();
    assert!(!raw.contains("never-kept") && !raw.contains("refresh_token"));
}

#[tokio::test]
async fn t18_the_description_is_truncated_escaped_and_stripped_of_the_assertion() {
    let server = TestServer::start(|request| {
        let echo = request.field("client_assertion");
        let body = serde_json::json!({
            "error": "invalid_request",
            "error_description": format!("\u{1b}[31m {echo} {}", "x".repeat(60_000)),
        });
        Act::json(400, &body.to_string())
    })
    .await;
    let harness = Harness::of(server, noon());
    let error = harness.token().await.expect_err("refused");
    let text = format!("{error:?} {:?}", error.context());
    let assertion = harness.server.requests()[0].field("client_assertion");
    assert!(error.context().detail.as_ref().is_some_and(|d| d.chars().count() <= 501));
    assert!(!text.contains('\u{1b}') && text.contains("[token removed]"));
    for part in assertion.split('.') {
        assert!(!text.contains(part), "a part of the assertion is shown");
    }
}

/// An opaque token. No message may contain eight consecutive characters of it.
const SECRET: &str = "q7Zk-Xv93_bTw2Lm8RdY5cHs";

/// Token replies with the token in an unexpected place.
fn unexpected_forms() -> Vec<String> {
    let grant = format!(r#"{{"access_token":"{SECRET}","token_type":"Bearer","expires_in":600}}"#);
    let jwt = format!("eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.{SECRET}");
    vec![
        format!("[{grant}]"),
        format!("[[{grant}]]"),
        format!("access_token={SECRET}&token_type=Bearer&expires_in=600"),
        format!("<token><access_token>{SECRET}</access_token></token>"),
        format!("<html><body>{SECRET}</body></html>"),
        format!("\"{SECRET}\""),
        SECRET.to_owned(),
        jwt.clone(),
        format!("\"{jwt}\""),
        format!("{{}}{grant}"),
        format!("{grant}{grant}"),
        format!("callback({grant})"),
        format!(")]}}',\n{grant}"),
        grant[..grant.len() - 20].to_owned(),
        grant[..40].to_owned(),
        format!("{{\"data\":{grant}}}"),
        format!("{{\"result\":[{grant}]}}"),
        grant.replace("access_token", "accessToken"),
        grant.replace("access_token", "token"),
        grant.replace("Bearer", SECRET),
        grant.replace("600", &format!("\"{SECRET}\"")),
        grant.replace("token_type", "type"),
        format!(r#"{{"access_token":{{"value":"{SECRET}"}},"token_type":"Bearer"}}"#),
        format!(r#"{{"access_token":["{SECRET}"],"token_type":"Bearer"}}"#),
        format!(r#"{{"access_token":"{SECRET} x","token_type":"Bearer"}}"#),
        format!(r#"{{"{SECRET}":1}}"#),
        format!(r#"{{"error":"{SECRET}"}}"#),
        format!(r#"{{"error":{{"code":"{SECRET}","message":"{SECRET}"}}}}"#),
        format!(r#"{{"error":["{SECRET}"]}}"#),
        format!(r#"{{"error":"invalid_client","error_description":"token {SECRET} is old"}}"#),
        format!(r#"{{"error":"invalid_scope","error_description":"for {SECRET}/{SECRET}"}}"#),
        format!(r#"{{"error":"x","error_description":"not {SECRET}","access_token":"{SECRET}"}}"#),
        format!(r#"{{"error":"x","error_description":"{}","a":["{SECRET}"]}}"#, &SECRET[3..14]),
        format!(r#"{{"error":"x","error_uri":"https://a.example/{SECRET}"}}"#),
        format!(r#"{{"error":"x","message":"{SECRET}","title":"{SECRET}"}}"#),
        format!(r#"{{"error":"invalid_request","error_description":{{"a":"{SECRET}"}}}}"#),
        grant.chars().flat_map(|c| [c, '\0']).collect(),
        format!("\u{feff}[{grant}]"),
        format!("{}{SECRET}", " ".repeat(70_000)),
    ]
}

#[tokio::test]
async fn a_token_in_an_unexpected_form_is_in_no_text() {
    for body in unexpected_forms() {
        for status in [200, 201, 302, 400, 401, 403, 407, 429, 500, 503] {
            let headers = ["X-Request-Id: r-1", "Retry-After: 0"];
            let error = error_of(Act::with_headers(status, &headers, &body)).await;
            let text = format!("{error} {error:?} {:?}", error.context());
            for piece in SECRET.as_bytes().windows(8) {
                let piece = std::str::from_utf8(piece).expect("ASCII");
                assert!(!text.contains(piece), "{piece} of {status} {body:.200}: {text}");
            }
        }
    }
}

#[tokio::test]
async fn a_token_in_a_header_is_in_no_text() {
    let body = format!(r#"{{"access_token":"{SECRET}","token_type":"MAC"}}"#);
    for header in [
        "X-Request-Id",
        "Content-Type",
        "Content-Encoding",
        "WWW-Authenticate",
        "Retry-After",
        "Date",
    ] {
        let header = format!("{header}: {SECRET}");
        for status in [200, 400, 500] {
            let error = error_of(Act::with_headers(status, &[&header], &body)).await;
            let text = format!("{error} {error:?} {:?}", error.context());
            assert!(!text.contains(&SECRET[..8]), "{header}: {text}");
        }
    }
}

#[tokio::test]
async fn the_error_that_oauth_defines_is_still_shown() {
    let body = r#"{"error":"invalid_request","error_description":"aud is not https://plant7.customer.example.com/v1/token"}"#;
    let text = error_of(Act::json(400, body)).await.to_string();
    assert!(text.contains("invalid_request"), "{text}");
    assert!(text.contains("aud is not https://plant7.customer.example.com/v1/token"), "{text}");
    let act = Act::with_headers(502, &["Content-Type: text/html"], "<html>bad gateway</html>");
    let text = error_of(act).await.to_string();
    assert!(text.contains("(text/html, 24 bytes) is not shown"), "{text}");
}
