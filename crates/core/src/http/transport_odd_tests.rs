//! Unusual headers, proxies without TLS, and forks.

use super::*;
use crate::fork::pretend;
use crate::http::test_server::{Recorded, alerting, reply};

#[tokio::test]
async fn t27_the_date_of_a_plain_http_reply_from_another_host_is_ignored() {
    let act = Act::with_headers(200, &["Date: Sun, 01 Nov 2026 12:02:00 GMT"], "{}");
    let proxy = TestServer::start(move |_| act.clone()).await;
    let base = BaseUrl::parse("http://customer.example.com", true).expect("a base URL");
    let transport = Transport::new(base.clone(), through(&proxy)).expect("settings");
    let time = frozen();
    transport.send(get(&base), &time).await.expect("a reply through the proxy");
    assert_eq!((time.skew(), proxy.requests().len()), (None, 1));
}

#[tokio::test]
async fn a_forked_process_opens_new_connections() {
    let server = TestServer::start(|_| Act::json(200, "{}")).await;
    let transport = transport(&server);
    for process in [0, 0, 1] {
        let _child = pretend(process);
        again(&transport).await.expect("a reply");
    }
    let connections: Vec<_> = server.requests().iter().map(|r| r.connection).collect();
    assert_eq!(connections, [0, 0, 1]);
}

#[tokio::test]
async fn headers_that_are_not_text_are_ignored() {
    let odd = [
        b"HTTP/1.1 200 OK\r\nX-Request-Id: \xff\xfe\r\nDate: \xff\r\nContent-Type: \xff\r\n"
            .to_vec(),
        b"Content-Length: 2\r\nRetry-After: \xff\r\n\r\n{}".to_vec(),
    ];
    let reply = attempt(Act::Reply(odd.concat())).await.expect("a reply");
    assert_eq!((reply.request_id(), &reply.body[..]), (None, &b"{}"[..]));
    let redirect = b"HTTP/1.1 302 Go\r\nLocation: \xff\r\nContent-Length: 0\r\n\r\n".to_vec();
    assert_eq!(failure(Act::Reply(redirect)).await.kind(), Kind::RedirectRefused);
    let encoded = b"HTTP/1.1 200 OK\r\nContent-Encoding: \xff\r\nContent-Length: 2\r\n\r\n{}";
    assert_eq!(failure(Act::Reply(encoded.to_vec())).await.kind(), Kind::ProtocolError);
}

#[test]
fn an_application_name_that_is_not_valid_in_a_header_is_refused() {
    let base = BaseUrl::parse("https://customer.example.com", false).expect("a base URL");
    for name in ["a\nb", "Werk S\u{fc}d"] {
        let settings = TransportSettings { application: Some(name.to_owned()), ..patient() };
        let error = Transport::new(base.clone(), settings).err().expect("refused");
        assert!(error.to_string().contains("ASCII"), "{error}");
    }
}

#[tokio::test]
async fn k9_a_name_that_is_taken_for_loopback_leads_there_without_a_resolver() {
    let server = TestServer::start(|_| Act::json(200, "{}")).await;
    // No resolver that follows its configuration finds the second one.
    for name in ["localhost", "plant.a.LOCALHOST", "localhost."] {
        let base = BaseUrl::parse(&format!("http://{name}:{}", server.port()), false).expect(name);
        let transport = Transport::new(base, patient()).expect("settings");
        assert_eq!(again(&transport).await.expect(name).status, 200);
    }
    assert_eq!(server.requests().len(), 3);
}

const ALERT: &[u8] = b"\x15\x03\x03\0\x02\x02\x46";

fn alert() -> Act {
    Act::ReplyAndReset(ALERT.to_vec())
}

/// Windows discards data that it received before a reset, so TLS cannot be detected.
#[cfg(unix)]
#[tokio::test]
async fn h21_plain_http_to_a_tls_port_that_resets_or_sends_an_alert_is_a_tls_error() {
    for answer in [b"", ALERT] {
        let answer = Act::ReplyAndReset(answer.to_vec());
        let server = TestServer::with_tls(alert(), move |_| answer.clone()).await;
        let error = again(&transport(&server)).await.expect_err("it speaks TLS");
        assert_eq!(
            (error.kind(), error.transience()),
            (Kind::TlsError, Transience::Never),
            "{error}"
        );
        let text = error.to_string();
        assert!(text.contains("speaks TLS") && text.contains("https://"), "{text}");
        assert_eq!((server.requests().len(), server.hellos()), (1, 1));
    }
}

/// Windows: see above.
#[cfg(unix)]
#[tokio::test]
async fn h21_a_service_that_replied_is_not_asked_whether_it_speaks_tls() {
    let reply = Act::ReplyAndReset(http(200, &[], b""));
    let first =
        move |sent: &Recorded| if sent.connection == 0 { reply.clone() } else { Act::reset() };
    let server = TestServer::with_tls(alert(), first).await;
    let transport = transport(&server);
    // The body is complete. The reset affects only the next request.
    again(&transport).await.expect("a reply");
    transport.forget_connections();
    let error = again(&transport).await.expect_err("a reset");
    assert_eq!(error.kind(), Kind::TransportError);
    assert_eq!((server.requests().len(), server.hellos()), (2, 0));
}

#[tokio::test]
async fn h21_a_port_that_speaks_neither_is_asked_once() {
    let server = TestServer::start(|_| Act::reset()).await;
    let transport = transport(&server);
    for _ in 0..3 {
        let error = again(&transport).await.expect_err("a reset");
        assert_eq!(error.kind(), Kind::TransportError);
        assert!(transport.without_tls.load(Ordering::Relaxed));
    }
}

#[tokio::test]
async fn h21_a_port_that_refuses_the_connection_is_not_known_to_speak_no_tls() {
    let (base, _socket) = nobody();
    let base = BaseUrl::parse(&base, false).expect("a base URL");
    let transport = Transport::new(base, patient()).expect("settings");
    let error = again(&transport).await.expect_err("refused");
    assert!(error.context().unsent);
    assert!(!transport.without_tls.load(Ordering::Relaxed), "a restart may bring another server");
}

#[tokio::test]
async fn h24_behind_a_proxy_nobody_is_asked_directly_whether_it_speaks_tls() {
    let proxy = TestServer::start(|_| Act::reset()).await;
    let base = BaseUrl::parse("http://192.0.2.1:81", true).expect("a base URL");
    let transport = Transport::new(base, through(&proxy)).expect("settings");
    let error = again(&transport).await.expect_err("a reset");
    assert_eq!((error.kind(), error.context().unsent), (Kind::TransportError, false), "{error}");
    assert!(!transport.without_tls.load(Ordering::Relaxed));
    assert!(!error.to_string().contains("certificate"), "none was asked for: {error}");
}

#[tokio::test]
async fn h24_a_proxy_that_does_not_answer_is_a_timeout_of_connecting_that_names_it() {
    let nobody = Unanswering::on("127.0.0.1:0").await;
    let settings = TransportSettings {
        proxy: Some(format!("http://{}", nobody.address)),
        connect_timeout: Duration::from_millis(50),
        ..patient()
    };
    let error = refused("http://customer.example.com", settings).await;
    assert_eq!(
        (error.kind(), error.context().phase),
        (Kind::TransportTimeout, Some(Phase::Connect))
    );
    let through = format!("through the proxy http://{}", nobody.address);
    assert!(error.to_string().contains(&through), "{error}");
}

#[tokio::test]
async fn h24_a_tunnel_that_ends_in_the_handshake_is_no_refusal_of_the_proxy() {
    let proxy =
        TestServer::start(|_| Act::ReplyAndClose(b"HTTP/1.1 200 OK\r\n\r\n".to_vec())).await;
    let error = refused("https://customer.example.com", through(&proxy)).await;
    assert_eq!((error.kind(), error.context().unsent), (Kind::TransportError, true), "{error}");
    assert!(error.to_string().contains("no connection to customer.example.com:443"), "{error}");
}

#[tokio::test]
async fn m1_h27_an_alert_is_about_the_client_certificate_or_about_the_handshake() {
    for (alert, kind, said) in [
        (116, Kind::AuthenticationError, "requires a client certificate, and there is none"),
        // The service has not asked for a certificate.
        (40, Kind::TlsError, "shares no cipher"),
        (49, Kind::TlsError, "it refused the handshake"),
        (80, Kind::TlsError, "it refused the handshake"),
    ] {
        let base = alerting(alert).await;
        let settings = TransportSettings { trust: certificate(), ..patient() };
        let error = refused(base.as_str(), settings).await;
        assert_eq!((error.kind(), error.context().unsent), (kind, true), "{error}");
        assert!(error.to_string().contains(said), "{error}");
    }
}

fn cut(status: u16) -> Reply {
    let broken_body = Some(Error::new(Kind::TruncatedBody, "cut"));
    Reply { broken_body, ..reply(status, "s3cret") }
}

#[test]
fn h18_a_cut_reply_suffices_from_400_on_and_is_never_shown_with_its_body() {
    for (status, suffices) in [(200, false), (399, false), (400, true), (503, true)] {
        assert_eq!(cut(status).readable().is_ok(), suffices, "{status}");
    }
    assert!(!format!("{:?}", cut(200)).contains("s3cret"));
}
