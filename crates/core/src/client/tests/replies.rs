//! H and E rows: statuses and bodies of data and discovery replies.

use super::*;
use crate::http::test_server::EMPTY_PAGE;

#[tokio::test]
async fn h17_an_undefined_status_is_a_protocol_error() {
    for status in [201, 202, 204, 206, 304, 999, 101] {
        let reply = format!("HTTP/1.1 {status} Odd\r\n\r\n").into_bytes();
        let bench = Bench::new(vec![Act::ReplyAndClose(reply)]).await;
        let error = bench.error().await;
        assert_eq!(error.kind(), Kind::ProtocolError, "{status}: {error}");
        assert_eq!(bench.sent(), 1, "{status}");
    }
    // A page with another status is rejected. The body of a 206 is only a part.
    for status in [201, 202, 203, 206, 299] {
        let bench = Bench::new(vec![Act::json(status, EMPTY_PAGE)]).await;
        let error = bench.error().await;
        assert_eq!(error.kind(), Kind::ProtocolError, "{status}: {error}");
        assert_eq!(bench.sent(), 1, "{status}");
    }
}

#[tokio::test]
async fn h18_service_failures_are_retried_then_raised() {
    for status in [500, 502, 503, 504, 408, 425] {
        let page = format!("<h1>sorry</h1>{}", "x".repeat(5_000));
        let act =
            Act::with_headers(status, &["Content-Type: text/html", "X-Request-Id: r-17"], &page);
        let bench = Bench::new(vec![act.clone()]).await;
        bench.get().await.expect("a page at the second try");
        let bench = Bench::new(vec![act; 8]).await;
        let error = bench.error().await;
        assert_eq!(error.kind(), Kind::ServiceUnavailable, "{status}");
        let context = error.context();
        assert_eq!((context.status, context.attempts.len()), (Some(status), 4));
        assert_eq!(context.detail, None, "a page is described, not quoted");
        assert!(context.message.contains("(text/html, 5014 bytes)"), "{error}");
        assert_eq!(context.request_id.as_deref(), Some("r-17"));
        assert_eq!(bench.sent(), 4);
    }
}

#[tokio::test]
async fn h19_rejections_are_raised_with_their_text() {
    for status in [400, 404, 405, 409, 410, 413, 414, 422] {
        let body = r#"{"type":"about:blank","title":"Bad range","detail":"at most 31 days"}"#;
        let act = Act::with_headers(status, &["Content-Type: application/problem+json"], body);
        let bench = Bench::new(vec![act]).await;
        let error = bench.error().await;
        assert_eq!(error.kind(), Kind::RequestRejected, "{status}");
        assert!(error.to_string().contains("Bad range: at most 31 days"), "{error}");
        assert!(error.to_string().contains(DATA_PATH), "{error}");
        assert_eq!((error.context().status, bench.sent()), (Some(status), 1));
    }
}

#[tokio::test]
async fn e4_json_is_accepted_with_any_content_type() {
    for headers in [&["Content-Type: text/html"][..], &[]] {
        let bench = Bench::new(vec![Act::with_headers(200, headers, "{\"a\":1}")]).await;
        assert_eq!(bench.get().await.expect("a page"), "{\"a\":1}");
        let bench = Bench::new(vec![Act::with_headers(200, headers, "<html></html>")]).await;
        let error = bench.error().await;
        assert_eq!((error.kind(), bench.sent()), (Kind::ProtocolError, 1));
    }
}

#[tokio::test]
async fn e5_discovery_must_be_a_json_object() {
    for body in ["", "null", "[]", "[[],null]", "{} {}", "{}}", "\u{feff}[]"] {
        let bench = Bench::new(vec![Act::json(200, body)]).await;
        let error = bench.client.discover(None).await.expect_err(body);
        assert_eq!(error.kind(), Kind::ProtocolError, "{body}");
    }
}

#[tokio::test]
async fn e3_discovery_is_returned_without_byte_order_mark() {
    let body = r#"{"sites":[{"id":"S1","name":"Werk Süd"}],"more":null}"#;
    for sent in [body.to_owned(), format!("\u{feff}{body}")] {
        let bench = Bench::new(vec![Act::json(200, &sent)]).await;
        assert_eq!(bench.client.discover(None).await.expect("discovery"), body);
        let request = bench.server.other_requests().remove(0);
        assert!(request.raw.starts_with("GET /api/customer/v1/discovery HTTP/1.1\r\n"));
        assert_eq!(request.header("accept"), Some("application/json"));
    }
}

#[tokio::test]
async fn r13_e5_echoed_secrets_are_in_no_text() {
    const CURSOR: &str = "Zq9+/SecretCursor==0123456789";
    let query = format!("{QUERY}&cursor=Zq9%2B%2FSecretCursor%3D%3D0123456789");
    let echo = format!("cursor {CURSOR} for Bearer good-token-0");
    let escaped = echo.replace('/', "\\/").replace('+', "\\u002b");
    for body in [
        format!(r#"{{"errors":[{{"message":"{echo}"}}],"series":[],"nextCursor":null}}"#),
        format!(r#"{{"errors":["{escaped}"],"series":[],"nextCursor":null}}"#),
        format!(r#"{{"error":"{escaped}","series":[],"nextCursor":null}}"#),
        format!(r#"{{"error":{{"{echo}":"{escaped}"}},"series":[],"nextCursor":null}}"#),
        format!(r#"{{"{CURSOR}":[{{"points":[]}}],"good-token-0":[{{"points":[]}}]}}"#),
        format!(r#"{{"series":[{{"points":[{{"timestamp":"{CURSOR}"}}]}}],"nextCursor":null}}"#),
        format!(r#"{{"series":[{{"points":[{{"{CURSOR}":{{"x":1}}}}]}}],"nextCursor":null}}"#),
    ] {
        let bench = Bench::new(vec![Act::json(200, &body)]).await;
        let read = |reply: &Reply| {
            let settings = crate::data::DecodeSettings::default();
            ready(crate::data::decode(&reply.body, &settings).map(|_| ()))
        };
        let spending = Spending::default();
        let got = bench.client.get(DATA_PATH, &query, Deadline::NEVER, &spending, read).await;
        let error = got.expect_err("an error");
        let text = format!("{error:?} {:?}", error.context());
        for secret in ["SecretCursor", "0123456789", "good-token"] {
            assert!(!text.contains(secret), "{body}: {text}");
        }
    }
}
