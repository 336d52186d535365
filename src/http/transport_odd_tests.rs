//! Unusual headers, proxies without TLS, and forks.

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
