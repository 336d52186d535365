#![expect(clippy::disallowed_methods, reason = "each test runs on a runtime of its own")]

use super::super::trust::Trust;
use super::*;
use crate::auth::test_harness::noon;
use crate::error::Transience;
use crate::http::test_server::{Act, TestFolder, TestServer, Unanswering, gzip, http};

fn frozen() -> ServiceTime {
    ServiceTime::new(noon())
}

/// Limits that a loaded machine does not exceed.
fn patient() -> TransportSettings {
    TransportSettings::default()
}

fn get(base: &BaseUrl) -> Request {
    let url = base.join("/data", Some("cursor=s3cret"));
    Request { url, authorization: None, form: None, certificate: None, trace: None }
}

async fn attempt_with(settings: TransportSettings, act: Act) -> (Result<Reply>, TestServer) {
    let server = TestServer::start(move |_| act.clone()).await;
    let transport = Transport::new(server.base_url(), settings).expect("settings");
    let outcome = again(&transport).await;
    (outcome.and_then(Reply::readable), server)
}

async fn attempt(act: Act) -> Result<Reply> {
    attempt_with(TransportSettings::default(), act).await.0
}

fn transport(server: &TestServer) -> Transport {
    Transport::new(server.base_url(), patient()).expect("settings")
}

async fn again(transport: &Transport) -> Result<Reply> {
    transport.send(get(transport.base_url()), &frozen()).await
}

async fn refused(base: &str, settings: TransportSettings) -> Error {
    let base = BaseUrl::parse(base, true).expect("a base URL");
    again(&Transport::new(base, settings).expect("settings")).await.expect_err("refused")
}

fn through(proxy: &TestServer) -> TransportSettings {
    let proxy = Some(format!("http://127.0.0.1:{}", proxy.port()));
    TransportSettings { proxy, trust: certificate(), ..patient() }
}

/// An address with a port that no program listens on, and that none gets before the drop.
fn nobody() -> (String, tokio::net::TcpSocket) {
    let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
    socket.bind("127.0.0.1:0".parse().expect("an address")).expect("a port");
    (format!("http://{}", socket.local_addr().expect("an address")), socket)
}

async fn failure(act: Act) -> Error {
    let error = attempt(act).await.expect_err("it fails");
    assert!(!error.to_string().contains("s3cret"), "{error}");
    error
}

#[tokio::test]
async fn the_buffer_of_a_large_reply_is_pooled_except_for_token_replies() {
    let length = |is_for_a_token| if is_for_a_token { 60_000 } else { 200_000 };
    let body = move |is_for_a_token| " ".repeat(length(is_for_a_token));
    let server =
        TestServer::start(move |sent| Act::json(200, &body(sent.is_token_request()))).await;
    let transport = transport(&server);
    for form in [Some(Zeroizing::new("a=b".to_owned())), None] {
        let is_for_a_token = form.is_some();
        let request = Request { form, ..get(&server.base_url()) };
        let reply = transport.send(request, &frozen()).await.expect("a reply");
        assert_eq!(reply.body.len(), length(is_for_a_token));
        drop(reply);
        assert_eq!(transport.buffers.is_empty(), is_for_a_token);
    }
}

#[tokio::test]
async fn a_request_has_user_agent_accept_and_accept_encoding_and_no_other_header() {
    let settings = TransportSettings { application: Some("plant-a/2".to_owned()), ..patient() };
    let (reply, server) = attempt_with(settings, Act::json(200, "{}")).await;
    assert_eq!(reply.expect("a reply").body, "{}");
    let request = server.requests().remove(0);
    let agent = format!("siteline/{} plant-a/2", crate::VERSION);
    assert_eq!(request.header("user-agent"), Some(agent.as_str()));
    assert_eq!(request.header("accept"), Some("application/json"));
    assert_eq!(request.header("accept-encoding"), Some("gzip"));
    assert_eq!(request.header("referer"), None);
    assert!(request.raw.starts_with("GET /data?cursor=s3cret HTTP/1.1\r\n"));
}

#[tokio::test]
async fn h1_a_refused_connection_is_a_transport_error_and_nothing_was_sent() {
    let (base, _socket) = nobody();
    let error = refused(&base, patient()).await;
    assert_eq!((error.kind(), error.context().unsent), (Kind::TransportError, true));
    assert_eq!(error.transience(), Transience::Transient);
    assert!(error.to_string().contains("refused\ncheck the host and port in base_url="), "{error}");
}

#[tokio::test]
async fn h2_a_connection_that_is_not_accepted_is_a_timeout_of_connecting() {
    let listener = Unanswering::on("127.0.0.1:0").await;
    let settings = TransportSettings { connect_timeout: Duration::from_millis(50), ..patient() };
    let error = refused(&format!("http://{}", listener.address), settings).await;
    assert_eq!(error.kind(), Kind::TransportTimeout);
    assert_eq!((error.context().phase, error.context().unsent), (Some(Phase::Connect), true));
}

#[tokio::test]
async fn h3_h4_silence_is_a_timeout_of_its_phase() {
    let silent = Duration::from_millis(50);
    let response = TransportSettings { response_timeout: silent, ..patient() };
    let idle = TransportSettings { idle_timeout: silent, ..patient() };
    let slow = TransportSettings { throughput_bytes: 50, throughput_window: silent, ..patient() };
    let body = &b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"[..];
    for (settings, begun, phase, said) in [
        (&response, &b""[..], Phase::Response, ""),
        (&response, b"HTTP/1.1 200 OK\r\nX-A", Phase::Response, ""),
        (&idle, body, Phase::Body, ""),
        (&slow, body, Phase::Body, "less than 50 bytes"),
    ] {
        let act = Act::ReplyAndHang(begun.to_vec());
        let error = attempt_with(settings.clone(), act).await.0.expect_err("silence");
        assert_eq!((error.kind(), error.context().phase), (Kind::TransportTimeout, Some(phase)));
        assert!(error.to_string().contains(said) && !error.context().unsent, "{error}");
    }
}

#[tokio::test]
async fn h5_h6_h7_h9_h12_a_broken_reply_has_its_kind_and_its_retries() {
    let lost = (Kind::TransportError, Transience::Transient);
    let cut = (Kind::TruncatedBody, Transience::Transient);
    let invalid = (Kind::ProtocolError, Transience::Once);
    let too_large = (Kind::ProtocolError, Transience::Never);
    // Windows gives up what it received before a reset.
    let reset = if cfg!(windows) { lost } else { cut };
    let reply = |rest: &str| format!("HTTP/1.1 200 OK\r\n{rest}").into_bytes();
    let closed = |rest: &str| Act::ReplyAndClose(reply(rest));
    let chunked = |rest: &str| closed(&format!("Transfer-Encoding: chunked\r\n\r\n{rest}"));
    let begun = "X-Request-Id: r1\r\nContent-Length: 100\r\n\r\n{\"a\":";
    for (act, expected) in [
        (Act::close(), lost),
        (Act::reset(), lost),
        (Act::ReplyAndClose(b"HTTP/1.1 20".to_vec()), lost),
        (Act::ReplyAndReset(reply("Content-")), lost),
        (closed(begun), cut),
        (Act::ReplyAndReset(reply(begun)), reset),
        (chunked("5\r\n{\"a\":"), cut),
        (chunked("5\r\n{\"a\":\r\n"), cut),
        (chunked("5\r\n{\"a\":\r\n2\r\n1}\r\n"), cut),
        (chunked("zz\r\n{}"), cut),
        (closed("Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}"), invalid),
        (closed("Content-Length: -2\r\n\r\n{}"), invalid),
        (Act::ReplyAndClose(b"\x16\x03\x01 garbage\r\n\r\n".to_vec()), invalid),
        (Act::ReplyAndClose(b"<html>HTTP/0.9</html>\r\n\r\n".to_vec()), invalid),
        (closed(&format!("X-A: {}\r\n\r\n", "a".repeat(1_000_000))), too_large),
        (closed(&format!("{}\r\n", "X-A: a\r\n".repeat(2_000))), too_large),
    ] {
        let error = failure(act).await;
        assert_eq!((error.kind(), error.transience()), expected, "{error}");
        assert!(!error.context().unsent, "{error}");
    }
}

#[tokio::test]
async fn h10_with_a_length_and_chunks_the_chunks_count_and_the_connection_is_not_reused() {
    let reply = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\nTransfer-Encoding: chunked\r\n\r\n\
                 2\r\n{}\r\n0\r\n\r\n";
    let server = TestServer::start(move |_| Act::Reply(reply.as_bytes().to_vec())).await;
    let transport = transport(&server);
    for _ in 0..2 {
        let reply = again(&transport).await.expect("a reply");
        assert_eq!(reply.body, "{}");
    }
    let connections: Vec<_> = server.requests().iter().map(|r| r.connection).collect();
    assert_eq!(connections, [0, 1]);
}

#[tokio::test]
async fn h11_bytes_after_a_body_are_not_read_as_the_next_reply() {
    let stray = "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n\"stray\"";
    let reply = [http(200, &[], b"{}"), stray.as_bytes().to_vec()].concat();
    let server = TestServer::start(move |_| Act::Reply(reply.clone())).await;
    let transport = transport(&server);
    for _ in 0..3 {
        match again(&transport).await {
            Ok(reply) => assert_eq!(reply.body, "{}"),
            Err(error) => assert_ne!(error.transience(), Transience::Never),
        }
    }
}

#[tokio::test]
async fn h13_informational_replies_are_skipped() {
    let reply =
        ["HTTP/1.1 103 Early Hints\r\n\r\n".repeat(5_000).into_bytes(), http(200, &[], b"{}")];
    assert_eq!(attempt(Act::Reply(reply.concat())).await.expect("a reply").body, "{}");
}

#[tokio::test]
async fn h14_an_endless_body_and_a_decompression_bomb_fail_at_the_cap() {
    let settings = || TransportSettings { body_cap: 100_000, ..TransportSettings::default() };
    let endless = [b"HTTP/1.1 200 OK\r\n\r\n".to_vec(), vec![b' '; 200_000]].concat();
    let bomb = http(200, &["Content-Encoding: gzip"], &gzip(&vec![b' '; 20_000_000]));
    for reply in [endless, bomb] {
        let error = attempt_with(settings(), Act::ReplyAndHang(reply)).await.0.expect_err("a cap");
        assert_eq!((error.kind(), error.transience()), (Kind::BodyTooLarge, Transience::Never));
    }
}

#[tokio::test]
async fn h15_a_connection_that_was_closed_while_idle_is_replaced_without_a_second_request() {
    let server = TestServer::start(|_| Act::ReplyAndClose(http(200, &[], b"{}"))).await;
    let transport = transport(&server);
    for _ in 0..5 {
        again(&transport).await.expect("a reply");
        // Lets the client notice that the connection was closed.
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(server.requests().len(), 5);
}

#[tokio::test]
async fn e2_a_wrong_content_encoding_is_named_and_not_retried() {
    let body = gzip(b"{}");
    for (headers, body) in [
        (&["Content-Encoding: gzip"][..], b"{\"a\":1}".to_vec()),
        (&[], body.clone()),
        (&["Content-Encoding: gzip", "Content-Encoding: gzip"], gzip(&body)),
        (&["Content-Encoding: gzip"], gzip(&body)),
        (&["Content-Encoding: br"], body.clone()),
        (&["Content-Encoding: gzip, br"], body.clone()),
    ] {
        let error = failure(Act::Reply(http(200, headers, &body))).await;
        assert_eq!((error.kind(), error.transience()), (Kind::ProtocolError, Transience::Never));
        assert!(error.to_string().contains("Content-Encoding"), "{error}");
    }
}

#[tokio::test]
async fn b16_a_reply_that_is_cut_after_its_headers_shows_the_services_time() {
    let cut = Act::ReplyAndClose(
        b"HTTP/1.1 200 OK\r\nDate: Sun, 01 Nov 2026 12:00:00 GMT\r\nContent-Length: 9\r\n\r\n{"
            .to_vec(),
    );
    let server = TestServer::start(move |_| cut.clone()).await;
    let transport = transport(&server);
    let reply = again(&transport).await.expect("headers");
    let shown = reply.reading.map(|reading| reading.service.to_string());
    assert_eq!((reply.status, shown.as_deref()), (200, Some("2026-11-01T12:00:00Z")));
    let error = reply.readable().expect_err("no body");
    assert_eq!((error.kind(), error.context().status), (Kind::TruncatedBody, Some(200)));
}

#[tokio::test]
async fn t12_d8_no_redirect_is_followed_to_any_host() {
    let other_server = TestServer::start(|_| Act::json(200, "{}")).await;
    let port = other_server.port();
    for status in [301, 302, 303, 307, 308] {
        for (target, host) in [
            (format!("http://127.0.0.1:{port}/stolen?token=hunter2"), "127.0.0.1"),
            ("/other?token=hunter2".to_owned(), "127.0.0.1"),
            (format!("//localhost:{port}/"), "localhost"),
        ] {
            let location = format!("Location: {target}");
            let error = failure(Act::with_headers(status, &[&location], "")).await;
            assert_eq!(error.kind(), Kind::RedirectRefused);
            assert_eq!(
                (error.transience(), error.context().status),
                (Transience::Never, Some(status))
            );
            let text = error.to_string();
            assert!(text.contains(&format!("a redirect to http://{host};")), "{text}");
            assert!(!text.contains("hunter2"), "{text}");
        }
    }
    assert!(other_server.requests().is_empty(), "no request was sent there");
}

#[tokio::test]
async fn t26_t27_the_skew_is_estimated_only_from_a_single_date_without_age() {
    let cases: [(&[&str], Option<i64>); 5] = [
        (&["Date: Sun, 01 Nov 2026 12:02:00 GMT"], Some(120)),
        (&[], None),
        (&["Date: Sun, 01 Nov 2026 12:02:00 GMT", "Age: 30"], None),
        (&["Date: tomorrow"], None),
        (&["Date: Sun, 01 Nov 2026 12:02:00 GMT", "Date: Sun, 01 Nov 2026 13:02:00 GMT"], None),
    ];
    for (headers, expected) in cases {
        let act = Act::with_headers(200, headers, "{}");
        let server = TestServer::start(move |_| act.clone()).await;
        let time = frozen();
        let transport = transport(&server);
        transport.send(get(&server.base_url()), &time).await.expect("a reply");
        assert_eq!(time.skew().map(|skew| skew.as_secs()), expected, "{headers:?}");
    }
}

#[tokio::test]
async fn h21_https_to_a_plain_http_port_is_a_tls_error_that_says_so() {
    let act = Act::ReplyAndClose(http(400, &[], b"bad request"));
    let server = TestServer::start(move |_| act.clone()).await;
    let settings = TransportSettings { trust: certificate(), ..patient() };
    let error = refused(&format!("https://127.0.0.1:{}", server.port()), settings).await;
    assert_eq!((error.kind(), error.transience()), (Kind::TlsError, Transience::Never));
    assert!(error.context().unsent, "the handshake precedes the request");
    let text = error.to_string();
    assert!(text.contains("plain HTTP") && text.contains("check the port"), "{text}");
    assert!(!text.contains("ca_bundle"), "it would not help: {text}");
}

fn certificate() -> Trust {
    let bundle = include_bytes!("../../../../tests/keys/certificate.pem");
    Trust { ca_bundle: Some(bundle.to_vec()), ..Trust::default() }
}

#[tokio::test]
async fn h23_without_certificates_the_first_https_request_fails_with_a_hint() {
    let folder = TestFolder::new();
    for trust in [
        Trust { file: Some(folder.join("absent.pem")), ..Trust::default() },
        Trust { folders: vec![folder.to_path_buf()], ..Trust::default() },
    ] {
        let settings = TransportSettings { trust, ..patient() };
        let error = refused("https://127.0.0.1:1", settings).await;
        assert_eq!((error.kind(), error.context().unsent), (Kind::TlsError, true));
        let text = error.to_string();
        assert!(text.contains("ca_bundle=") && text.contains("SSL_CERT_FILE"), "{text}");
    }
}

#[tokio::test]
async fn a_proxy_gets_the_bytes_of_a_password_that_is_not_utf_8() {
    let proxy = TestServer::start(|_| Act::ReplyAndClose(http(407, &[], b""))).await;
    let address = format!("http://user:%FC@127.0.0.1:{}", proxy.port());
    let settings = TransportSettings { proxy: Some(address), ..through(&proxy) };
    refused("https://customer.example.com", settings).await;
    let head = proxy.requests()[0].raw.to_ascii_lowercase();
    assert!(head.contains("proxy-authorization: basic dxnlcjr8\r\n"), "{head}");
}

#[tokio::test]
async fn h24_a_proxy_that_refuses_or_is_down_is_a_proxy_error() {
    let named = |proxy: &TestServer| TransportSettings {
        proxy: Some(format!("http://user:hunter2@127.0.0.1:{}", proxy.port())),
        ..through(proxy)
    };
    for base in ["https://customer.example.com", "http://customer.example.com"] {
        for status in [400, 403, 407, 502, 504] {
            let act = Act::ReplyAndClose(http(status, &["X-Reason: hunter2"], b"hunter2"));
            let mut proxy = TestServer::start(move |_| act.clone()).await;
            // A plain reply with another status may be the service's.
            if status == 407 || base.starts_with("https") {
                let error = refused(base, named(&proxy)).await;
                assert_proxy_error(&error, &proxy, &status.to_string());
            }
            if base.starts_with("https") {
                let head = "CONNECT customer.example.com:443 ";
                assert!(proxy.requests()[0].raw.starts_with(head));
                assert_eq!(refused(base, through(&proxy)).await.context().status, Some(status));
            }
            proxy.stop_listening().await;
            let error = refused(base, named(&proxy)).await;
            assert_proxy_error(&error, &proxy, "connection refused");
        }
    }
}

fn assert_proxy_error(error: &Error, proxy: &TestServer, why: &str) {
    assert_eq!((error.kind(), error.context().unsent), (Kind::ProxyError, true), "{error}");
    assert!(!format!("{error:?} {:?}", error.context()).contains("hunter2"));
    let (text, proxy) = (error.to_string(), format!("http://127.0.0.1:{}", proxy.port()));
    assert!(text.contains(&proxy) && text.replace(&proxy, "").contains(why), "{text}");
}

#[tokio::test]
async fn a_reply_is_read_up_to_the_limit_of_its_kind() {
    for (is_token, status, length, is_read) in [
        (true, 200, 64 * 1024, true),
        (true, 200, 64 * 1024 + 1, false),
        (true, 400, 100_000, false),
        (false, 500, 64 * 1024, true),
        (false, 500, 64 * 1024 + 1, false),
        (false, 200, 1_000_000, true),
    ] {
        for is_gzip in [false, true] {
            let body = " ".repeat(length);
            let (head, body) = if is_gzip {
                (&["Content-Encoding: GZIP"][..], gzip(body.as_bytes()))
            } else {
                (&["Content-Encoding: identity"][..], body.into_bytes())
            };
            let act = Act::ReplyAndClose(http(status, head, &body));
            let server = TestServer::start(move |_| act.clone()).await;
            let transport = transport(&server);
            let form = is_token.then(|| Zeroizing::new("a=b".to_owned()));
            let request = Request { form, ..get(&server.base_url()) };
            let reply = transport.send(request, &frozen()).await.expect("a reply");
            let failure = reply.broken_body.as_ref().map(Error::kind);
            let expected = (!is_read).then_some(Kind::BodyTooLarge);
            assert_eq!(failure, expected, "{is_token} {status} {length} {is_gzip}");
            assert_eq!(reply.body.len(), if is_read { length } else { 0 });
        }
    }
}

#[path = "transport_odd_tests.rs"]
mod odd;
