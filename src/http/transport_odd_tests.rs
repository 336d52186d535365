//! Unusual headers, proxies without TLS, and forks.

use std::sync::atomic::AtomicUsize;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;
use crate::fork::pretend;

#[tokio::test]
async fn t27_the_date_of_a_plain_http_reply_from_another_host_is_ignored() {
    let act = Act::with_headers(200, &["Date: Sun, 01 Nov 2026 12:02:00 GMT"], "{}");
    let proxy = TestServer::start(move |_| act.clone()).await;
    let base = BaseUrl::parse("http://customer.example.com", true).expect("a base URL");
    let settings = TransportSettings {
        proxy: Some(format!("http://127.0.0.1:{}", proxy.port())),
        ..patient()
    };
    let (transport, time) = (Transport::new(base.clone(), settings).expect("settings"), frozen());
    transport.send(get(&base), &time).await.expect("a reply through the proxy");
    assert_eq!((time.skew(), proxy.requests().len()), (None, 1));
}

#[tokio::test]
async fn h24_with_plain_http_too_a_proxy_that_refuses_or_is_down_is_a_proxy_error() {
    let act = Act::ReplyAndClose(http(407, &["Proxy-Authenticate: Basic"], b""));
    let mut proxy = TestServer::start(move |_| act.clone()).await;
    let base = BaseUrl::parse("http://customer.example.com", true).expect("a base URL");
    let settings = TransportSettings {
        proxy: Some(format!("http://user:hunter2@127.0.0.1:{}", proxy.port())),
        ..patient()
    };
    for (why, down) in [("(407)", false), ("connection refused", true)] {
        if down {
            proxy.stop_listening().await;
        }
        let transport = Transport::new(base.clone(), settings.clone()).expect("settings");
        let error = transport.send(get(&base), &frozen()).await.expect_err("no way through");
        assert_eq!((error.kind(), error.context().unsent), (Kind::ProxyError, true), "{error}");
        assert!(error.to_string().contains(why), "{error}");
    }
}

#[tokio::test]
async fn a_forked_process_opens_new_connections() {
    let server = TestServer::start(|_| Act::json(200, "{}")).await;
    let transport = Transport::new(server.base_url(), patient()).expect("settings");
    for process in [0, 0, 1] {
        let _child = pretend(process);
        transport.send(get(&server.base_url()), &frozen()).await.expect("a reply");
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
        let error = Transport::new(base.clone(), settings).expect_err("refused");
        assert!(error.to_string().contains("ASCII"), "{error}");
    }
}

#[tokio::test]
async fn k9_a_name_that_is_taken_for_loopback_leads_there_without_a_resolver() {
    let server = TestServer::start(|_| Act::json(200, "{}")).await;
    // No resolver that follows its configuration finds the second one.
    for name in ["localhost", "plant.a.LOCALHOST", "localhost."] {
        let base = BaseUrl::parse(&format!("http://{name}:{}", server.port()), false).expect(name);
        let transport = Transport::new(base.clone(), patient()).expect("settings");
        let reply = transport.send(get(&base), &frozen()).await.expect(name);
        assert_eq!(reply.status, 200);
    }
    assert_eq!(server.requests().len(), 3);
}

/// A port that gives these answers, one for each connection, and then resets it. A connection that begins
/// a TLS handshake gets an alert instead. Its number of connections.
async fn port(answers: Vec<&'static [u8]>) -> (BaseUrl, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let base = format!("http://{}", listener.local_addr().expect("an address"));
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&connections);
    tokio::spawn(async move {
        let mut answers = answers.into_iter();
        while let Ok((mut stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::Relaxed);
            let mut first = [0; 512];
            let length = stream.read(&mut first).await.unwrap_or_default();
            // A whole ClientHello: its record has the length that it says.
            let is_hello = first.starts_with(&[0x16, 3]) && length == usize::from(first[4]) + 5;
            let answer = if is_hello { ALERT } else { answers.next().unwrap_or_default() };
            let _ = stream.write_all(answer).await;
            stream.set_zero_linger().expect("a reset");
        }
    });
    (BaseUrl::parse(&base, false).expect("a base URL"), connections)
}

const ALERT: &[u8] = b"\x15\x03\x03\0\x02\x02\x46";

#[tokio::test]
async fn h21_plain_http_to_a_tls_port_that_resets_or_sends_an_alert_is_a_tls_error() {
    for answer in [b"", ALERT] {
        let (base, connections) = port(vec![answer]).await;
        let transport = Transport::new(base.clone(), patient()).expect("settings");
        let error = transport.send(get(&base), &frozen()).await.expect_err("no HTTP there");
        assert_eq!(
            (error.kind(), error.transience()),
            (Kind::TlsError, Transience::Never),
            "{error}"
        );
        let text = error.to_string();
        assert!(text.contains("speaks TLS") && text.contains("https://"), "{text}");
        assert_eq!(connections.load(Ordering::Relaxed), 2, "the request, and one that asks");
    }
}

#[tokio::test]
async fn h21_a_service_that_replied_is_not_asked_whether_it_speaks_tls() {
    let (base, connections) = port(vec![b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"]).await;
    let transport = Transport::new(base.clone(), patient()).expect("settings");
    // Its body is whole; what the reset does to the connection concerns the next request.
    transport.send(get(&base), &frozen()).await.expect("a reply");
    transport.forget_connections();
    let error = transport.send(get(&base), &frozen()).await.expect_err("a reset");
    assert_eq!(error.kind(), Kind::TransportError);
    assert_eq!(connections.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn h21_a_port_that_speaks_neither_is_asked_once() {
    let server = TestServer::start(|_| Act::reset()).await;
    let transport = Transport::new(server.base_url(), patient()).expect("settings");
    for _ in 0..3 {
        let error = transport.send(get(&server.base_url()), &frozen()).await.expect_err("a reset");
        assert_eq!(error.kind(), Kind::TransportError);
        assert!(transport.without_tls.load(Ordering::Relaxed));
    }
}
