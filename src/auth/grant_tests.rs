#![expect(clippy::disallowed_methods, reason = "each test runs on a runtime of its own")]

use super::*;
use crate::auth::test_harness::{DATA_SCOPE, Harness};
use crate::http::test_server::{Act, token_body};

async fn error_of(act: Act) -> Error {
    Harness::new(vec![act]).await.token().await.expect_err("refused")
}

/// A reply with status 200 and this body.
fn reply(body: &str) -> Reply {
    Reply {
        status: 200,
        headers: reqwest::header::HeaderMap::new(),
        body: body.to_owned().into(),
        received: 0,
        points: crate::http::PointCount::default(),
        broken_body: None,
        reading: None,
        presented: false,
    }
}

fn grant(body: &str) -> Result<Grant> {
    read(&reply(body), &ScopeSet::granted(DATA_SCOPE), "/token", Timestamp::UNIX_EPOCH)
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
    let body = r#"{"access_token":"tok","token_type":"Bearer","expires_in":600}"#;
    let harness = Harness::new(vec![Act::json(200, body)]).await;
    harness.token().await.expect("a token");
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
    assert!(!format!("{token:?}{:?}", harness.source).contains("never-kept"));
    harness.clock.advance(std::time::Duration::from_secs(700));
    harness.token().await.expect("a new token");
    let raw: String = harness.server.requests().into_iter().map(|request| request.raw).collect();
    assert!(!raw.contains("never-kept") && !raw.contains("refresh_token"));
}

#[tokio::test]
async fn t18_the_description_is_truncated_escaped_and_stripped_of_the_assertion() {
    let server = crate::http::test_server::TestServer::start(|request| {
        let echo = request.field("client_assertion");
        let body = serde_json::json!({
            "error": "invalid_request",
            "error_description": format!("\u{1b}[31m {echo} {}", "x".repeat(1_000_000)),
        });
        Act::json(400, &body.to_string())
    })
    .await;
    let mut harness = Harness::new(vec![]).await;
    let settings = crate::http::TransportSettings::default();
    harness.transport = crate::http::Transport::new(server.base_url(), settings).expect("settings");
    let error = harness.token().await.expect_err("refused");
    let text = format!("{error:?} {:?}", error.context());
    let assertion = server.requests()[0].field("client_assertion");
    assert!(error.context().detail.as_ref().is_some_and(|d| d.chars().count() <= 501));
    assert!(!text.contains('\u{1b}') && text.contains("[token removed]"));
    for part in assertion.split('.') {
        assert!(!text.contains(part), "a part of the assertion is shown");
    }
}

#[tokio::test]
async fn t18_an_error_that_echoes_a_token_does_not_show_it() {
    for name in ["access_token", "refresh_token", "id_token"] {
        let secret = "opaque secret of eighty-one";
        let body = format!(
            r#"{{"error":"invalid_request","error_description":"not for {secret}","{name}":"{secret}"}}"#
        );
        let error = error_of(Act::json(400, &body)).await;
        let text = format!("{error} {error:?} {:?}", error.context());
        assert!(!text.contains(secret) && text.contains("not for"), "{name}: {text}");
    }
}
