//! A server for tests: it records the raw requests and replies with the bytes that the test gives,
//! which may be incomplete or invalid.

use std::collections::VecDeque;
use std::io::Write as _;
use std::net::SocketAddr;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use reqwest::header::HeaderMap;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use super::{BaseUrl, PointCount, Reply};
use crate::error::{Kind, Result};
use crate::lock::Mutex;

/// A request as it was received.
#[derive(Debug, Clone)]
pub(crate) struct Recorded {
    pub(crate) raw: String,
    /// The number of its connection, from 0.
    pub(crate) connection: usize,
}

impl Recorded {
    pub(crate) fn is_token_request(&self) -> bool {
        self.raw.starts_with("POST ")
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let head = self.raw.split("\r\n\r\n").next()?;
        head.lines().skip(1).find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    pub(crate) fn body(&self) -> &str {
        self.raw.split_once("\r\n\r\n").map_or("", |(_, body)| body)
    }

    /// The fields of the form, in order.
    pub(crate) fn form(&self) -> Vec<(String, String)> {
        url::form_urlencoded::parse(self.body().as_bytes()).into_owned().collect()
    }

    pub(crate) fn field(&self, name: &str) -> String {
        let found = self.form().into_iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value).unwrap_or_default()
    }

    /// A part of the assertion: 0 its header, 1 its claims.
    pub(crate) fn assertion_part(&self, part: usize) -> serde_json::Value {
        use base64::Engine as _;
        let assertion = self.field("client_assertion");
        let text = assertion.split('.').nth(part).expect("three parts");
        let json = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(text).expect("base64");
        serde_json::from_slice(&json).expect("JSON")
    }
}

/// The server's reaction to a request.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    /// Sends these bytes and keeps the connection open.
    Reply(Vec<u8>),
    /// Sends these bytes and closes the connection.
    ReplyAndClose(Vec<u8>),
    /// Sends these bytes and resets the connection.
    ReplyAndReset(Vec<u8>),
    /// Sends these bytes and then nothing, until the client disconnects.
    ReplyAndHang(Vec<u8>),
}

impl Act {
    /// A complete JSON reply.
    pub(crate) fn json(status: u16, body: &str) -> Self {
        Self::Reply(http(status, &["Content-Type: application/json"], body.as_bytes()))
    }

    pub(crate) fn with_headers(status: u16, headers: &[&str], body: &str) -> Self {
        Self::Reply(http(status, headers, body.as_bytes()))
    }

    pub(crate) fn close() -> Self {
        Self::ReplyAndClose(Vec::new())
    }

    pub(crate) fn reset() -> Self {
        Self::ReplyAndReset(Vec::new())
    }

    pub(crate) fn hang() -> Self {
        Self::ReplyAndHang(Vec::new())
    }
}

pub(crate) fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).expect("into memory");
    encoder.finish().expect("into memory")
}

/// The bytes of a reply with a `Content-Length`.
pub(crate) fn http(status: u16, headers: &[&str], body: &[u8]) -> Vec<u8> {
    let status = format!("HTTP/1.1 {status} Whatever");
    let length = format!("Content-Length: {}", body.len());
    let lines = [&[status.as_str()], headers, &[length.as_str()]].concat();
    let head = format!("{}\r\n\r\n", lines.join("\r\n"));
    [head.as_bytes(), body].concat()
}

type Handler = dyn Fn(&Recorded) -> Act + Send + Sync;

/// The server. It stops with the runtime of its test.
pub(crate) struct TestServer {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Recorded>>>,
    hellos: Arc<AtomicUsize>,
    listening: tokio::task::JoinHandle<()>,
}

impl TestServer {
    pub(crate) async fn start(handler: impl Fn(&Recorded) -> Act + Send + Sync + 'static) -> Self {
        Self::with_tls(Act::ReplyAndClose(http(400, &[], b"bad request")), handler).await
    }

    /// A TLS `ClientHello` is answered with this act, and not recorded.
    pub(crate) async fn with_tls(
        hello: Act,
        handler: impl Fn(&Recorded) -> Act + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let requests = Arc::new(Mutex::new(Vec::new()));
        let recorded = Arc::clone(&requests);
        let hellos = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&hellos);
        let handler: Arc<Handler> = Arc::new(move |request| {
            if request.raw.starts_with('\x16') {
                counted.fetch_add(1, Ordering::SeqCst);
                return hello.clone();
            }
            recorded.lock().push(request.clone());
            handler(request)
        });
        let listening = tokio::spawn(async move {
            for connection in 0.. {
                let Ok((stream, _)) = listener.accept().await else { return };
                tokio::spawn(serve(stream, connection, Arc::clone(&handler)));
            }
        });
        Self { address, requests, hellos, listening }
    }

    /// Answers token requests and other requests from two scripts, in order; after the end of a
    /// script, with a new valid token or an empty last page.
    pub(crate) async fn scripted(tokens: Vec<Act>, others: Vec<Act>) -> Self {
        let tokens = Mutex::new(VecDeque::from(tokens));
        let others = Mutex::new(VecDeque::from(others));
        let issued = AtomicUsize::new(0);
        Self::start(move |request| {
            let script = if request.is_token_request() { &tokens } else { &others };
            let next = script.lock().pop_front();
            match next {
                Some(act) => act,
                None if request.is_token_request() => {
                    let number = issued.fetch_add(1, Ordering::SeqCst);
                    Act::json(200, &token_body(&format!("good-token-{number}")))
                }
                None => Act::json(200, EMPTY_PAGE),
            }
        })
        .await
    }

    /// Refuses new connections.
    pub(crate) async fn stop_listening(&mut self) {
        self.listening.abort();
        // The socket is closed when the task has ended.
        let _ = (&mut self.listening).await;
    }

    pub(crate) fn base_url(&self) -> BaseUrl {
        BaseUrl::parse(&format!("http://{}", self.address), false).expect("a base URL")
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// The number of TLS handshakes.
    pub(crate) fn hellos(&self) -> usize {
        self.hellos.load(Ordering::SeqCst)
    }

    pub(crate) fn requests(&self) -> Vec<Recorded> {
        self.requests.lock().clone()
    }

    pub(crate) fn token_requests(&self) -> Vec<Recorded> {
        self.requests().into_iter().filter(Recorded::is_token_request).collect()
    }

    pub(crate) fn other_requests(&self) -> Vec<Recorded> {
        self.requests().into_iter().filter(|request| !request.is_token_request()).collect()
    }
}

/// An address at which nobody answers an attempt to connect: the queue of its listener is full.
pub(crate) struct Unanswering {
    pub(crate) address: SocketAddr,
    _listener: TcpListener,
    _queue: Vec<Pin<Box<dyn Future<Output = std::io::Result<TcpStream>> + Send>>>,
}

impl Unanswering {
    pub(crate) async fn on(address: &str) -> Self {
        let address: SocketAddr = address.parse().expect("an address");
        let socket = if address.is_ipv6() { TcpSocket::new_v6() } else { TcpSocket::new_v4() };
        let socket = socket.expect("a socket");
        socket.bind(address).expect("a port");
        let listener = socket.listen(0).expect("a queue of one");
        let address = listener.local_addr().expect("an address");
        let mut queue = Vec::new();
        for _ in 0..8 {
            // Begins to connect; the kernel of this machine takes the first ones into the queue.
            let mut connecting: Pin<Box<dyn Future<Output = _> + Send>> =
                Box::pin(TcpStream::connect(address));
            let _ = tokio::time::timeout(Duration::ZERO, &mut connecting).await;
            queue.push(connecting);
        }
        Self { address, _listener: listener, _queue: queue }
    }
}

/// A service that answers every TLS handshake with this alert.
pub(crate) async fn alerting(alert: u8) -> BaseUrl {
    let alert = Act::ReplyAndHang(vec![0x15, 3, 3, 0, 2, 2, alert]);
    let server = TestServer::with_tls(alert, |_| Act::close()).await;
    let base = format!("https://{}", server.address);
    BaseUrl::parse(&base, false).expect("a base URL")
}

/// A temporary folder, removed on drop.
pub(crate) struct TestFolder(PathBuf);

impl TestFolder {
    pub(crate) fn new() -> Self {
        let folder = std::env::temp_dir().join(format!("siteline-{}", uuid::Uuid::new_v4()));
        std::fs::create_dir(&folder).expect("a folder");
        Self(folder)
    }
}

impl Deref for TestFolder {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for TestFolder {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.0);
    }
}

#[track_caller]
pub(crate) fn assert_error<T>(outcome: Result<T>, kind: Kind, text: &str) {
    let error = outcome.err().expect(text);
    assert!(error.kind() == kind && error.to_string().contains(text), "{text}: {error:?}");
}

/// A reply without headers.
pub(crate) fn reply(status: u16, body: &str) -> Reply {
    Reply {
        status,
        headers: HeaderMap::new(),
        body: body.to_owned().into(),
        received: 0,
        broken_body: None,
        reading: None,
        presented: false,
        points: PointCount::default(),
    }
}

pub(crate) const EMPTY_PAGE: &str = r#"{"nextCursor":null,"series":[]}"#;

/// A page of one point in this minute.
pub(crate) fn page_body(minute: u32, cursor: Option<&str>) -> String {
    let cursor = serde_json::to_string(&cursor).expect("JSON");
    format!(
        r#"{{"series":[{{"siteId":"S","lineId":"L","machineId":"M","deviceId":"D","tagGuid":"T",
            "points":[{{"timestamp":"2026-11-01T00:{minute:02}:00Z","value":1}}]}}],
            "nextCursor":{cursor}}}"#
    )
}

/// A valid token reply with both scopes.
pub(crate) fn token_body(token: &str) -> String {
    format!(
        r#"{{"access_token":"{token}","token_type":"Bearer","expires_in":600,"scope":"customer.discovery.read customer.data.read"}}"#
    )
}

async fn serve(mut stream: TcpStream, connection: usize, handler: Arc<Handler>) {
    while let Some(raw) = read_request(&mut stream).await {
        let act = handler(&Recorded { raw, connection });
        let (Act::Reply(bytes)
        | Act::ReplyAndClose(bytes)
        | Act::ReplyAndReset(bytes)
        | Act::ReplyAndHang(bytes)) = &act;
        if stream.write_all(bytes).await.is_err() || stream.flush().await.is_err() {
            return;
        }
        match act {
            Act::Reply(_) => {}
            Act::ReplyAndClose(_) => return,
            Act::ReplyAndReset(_) => {
                let _ = stream.set_zero_linger();
                return;
            }
            Act::ReplyAndHang(_) => {
                let mut rest = [0; 64];
                while !matches!(stream.read(&mut rest).await, Ok(0) | Err(_)) {}
                return;
            }
        }
    }
}

/// One request with its body, or `None` at the end of the connection. A TLS `ClientHello` is
/// returned too.
async fn read_request(stream: &mut TcpStream) -> Option<String> {
    let mut raw = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&raw);
        if raw.first() == Some(&0x16) {
            return Some(text.into_owned());
        }
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| {
                    line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok()
                })
                .unwrap_or(0);
            if body.len() >= length {
                return Some(text.into_owned());
            }
        }
        let mut piece = [0; 4096];
        match stream.read(&mut piece).await {
            Ok(0) | Err(_) => return None,
            Ok(count) => raw.extend_from_slice(&piece[..count]),
        }
    }
}
