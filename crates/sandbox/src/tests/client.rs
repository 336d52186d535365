//! A client that sends any request, valid or invalid, without siteline's code.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::OnceLock;
use std::time::Duration;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{KeyPair, KeySize};
use aws_lc_rs::signature::{KeyPair as _, RSA_PKCS1_SHA256};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{DEFAULT_SCOPES, Options, Sandbox};
use siteline_base::clock::Clock;

pub(super) const NOW: &str = "2026-11-08T00:00:00Z";
pub(super) const TOKEN: &str = "/api/customer/oauth/token";
pub(super) const DISCOVERY: &str = "/api/customer/v1/discovery";
pub(super) const DATA: &str = "/api/customer/v1/data";
pub(super) const BOTH: &str = "customer.discovery.read customer.data.read";

pub(super) fn at(text: &str) -> i64 {
    text.parse::<Timestamp>().expect("a timestamp").as_microsecond()
}

/// Generating a key is slow: the tests share two.
fn key(which: usize) -> &'static KeyPair {
    static KEYS: [OnceLock<KeyPair>; 2] = [const { OnceLock::new() }; 2];
    KEYS[which].get_or_init(|| KeyPair::generate(KeySize::Rsa2048).expect("a key"))
}

/// The public JWK of one of the two keys, and its RFC 7638 thumbprint.
pub(super) fn public_jwk(which: usize) -> (String, String) {
    // RFC 8017's RSAPublicKey in DER; of a 2048-bit key all lengths are known.
    let der = key(which).public_key().as_ref();
    let [n, e] = [&der[9..265], &der[267..270]].map(|number| URL_SAFE_NO_PAD.encode(number));
    let canonical = format!(r#"{{"e":"{e}","kty":"RSA","n":"{n}"}}"#);
    let hash = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, canonical.as_bytes());
    (canonical, URL_SAFE_NO_PAD.encode(hash))
}

#[derive(Debug)]
pub(super) struct Response {
    pub(super) status: u16,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: Vec<u8>,
}

impl Response {
    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }
}

/// A service and an enrolled caller.
pub(super) struct Caller {
    pub(super) sandbox: Sandbox,
    pub(super) subject: String,
    pub(super) thumbprint: String,
}

impl Caller {
    pub(super) fn new(options: Options) -> Self {
        let clock = Clock::frozen_at(NOW.parse().expect("a time"));
        let sandbox = Sandbox::start(options, clock).expect("a sandbox");
        let (jwk, thumbprint) = public_jwk(0);
        let subject = sandbox.enroll(&jwk, &DEFAULT_SCOPES).expect("a subject");
        Self { sandbox, subject, thumbprint }
    }

    pub(super) fn header(&self) -> Value {
        json!({"alg": "RS256", "kid": self.thumbprint})
    }

    /// Valid claims with a new jti.
    pub(super) fn claims(&self) -> Value {
        let now = self.sandbox.clock().wall().as_second();
        json!({
            "iss": self.subject,
            "sub": self.subject,
            "aud": format!("{}{TOKEN}", self.sandbox.base_url()),
            "iat": now,
            "nbf": now,
            "exp": now + 120,
            "jti": uuid::Uuid::new_v4().to_string(),
        })
    }

    /// A valid assertion with a new jti.
    pub(super) fn assertion(&self) -> String {
        sign(&self.header().to_string(), &self.claims().to_string(), 0)
    }

    /// A token request whose assertion has this header and these claims.
    pub(super) fn exchange(&self, header: &Value, claims: &Value) -> Response {
        self.exchange_form(&form(&sign(&header.to_string(), &claims.to_string(), 0), BOTH))
    }

    pub(super) fn exchange_form(&self, body: &str) -> Response {
        let form = ("Content-Type", "application/x-www-form-urlencoded");
        self.send("POST", TOKEN, &[form], body.as_bytes()).expect("a reply")
    }

    /// A token from a valid request.
    pub(super) fn token(&self) -> String {
        let reply = self.exchange(&self.header(), &self.claims());
        assert_eq!(reply.status, 200, "{:?}", self.sandbox.stats().refusals);
        reply.json()["access_token"].as_str().expect("a token").to_owned()
    }

    pub(super) fn get(&self, target: &str, token: &str) -> Response {
        let headers =
            [("Authorization", &*format!("Bearer {token}")), ("Accept", "application/json")];
        self.send("GET", target, &headers, b"").expect("a reply")
    }

    /// One request on a new connection; `None` without a complete HTTP reply.
    pub(super) fn send(
        &self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Option<Response> {
        let address = self.sandbox.base_url().strip_prefix("http://").expect("http");
        let mut stream = TcpStream::connect(address).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
        let mut request = format!("{method} {target} HTTP/1.1\r\nHost: {address}\r\n");
        for (name, value) in headers {
            write!(request, "{name}: {value}\r\n").expect("text");
        }
        let length = body.len();
        write!(request, "Content-Length: {length}\r\nConnection: close\r\n\r\n").expect("text");
        stream.write_all(&[request.as_bytes(), body].concat()).expect("sent");
        let mut reply = Vec::new();
        if let Err(error) = stream.read_to_end(&mut reply) {
            assert_ne!(error.kind(), ErrorKind::WouldBlock, "the connection is still open");
            return None;
        }
        let head = reply.windows(4).position(|window| window == b"\r\n\r\n")?;
        let body = reply.split_off(head + 4);
        let head = String::from_utf8(reply).expect("a head of text");
        let mut lines = head.lines();
        let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
        let headers: BTreeMap<_, _> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let length = headers.get("content-length")?.parse::<usize>().ok()?;
        (body.len() == length).then_some(Response { status, headers, body })
    }

    /// All pages of a chain.
    pub(super) fn chain(&self, query: &str, token: &str) -> Vec<Value> {
        let mut pages = Vec::new();
        let mut cursor = None;
        loop {
            let reply = self.get(&target(query, cursor.as_deref()), token);
            assert_eq!(reply.status, 200, "{}", String::from_utf8_lossy(&reply.body));
            let page = reply.json();
            cursor = page["nextCursor"].as_str().map(str::to_owned);
            pages.push(page);
            if cursor.is_none() {
                return pages;
            }
        }
    }
}

/// The data address with a query and a cursor.
pub(super) fn target(query: &str, cursor: Option<&str>) -> String {
    match cursor {
        Some(cursor) => format!("{DATA}?{query}&cursor={}", encode(cursor)),
        None => format!("{DATA}?{query}"),
    }
}

/// A compact JWS of any header and claims, signed with one of the two keys.
pub(super) fn sign(header: &str, claims: &str, which: usize) -> String {
    let input = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims));
    let key = key(which);
    let mut signature = vec![0; key.public_modulus_len()];
    key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), input.as_bytes(), &mut signature)
        .expect("a signature");
    format!("{input}.{}", URL_SAFE_NO_PAD.encode(signature))
}

/// A JSON object with these members set.
pub(super) fn with(mut object: Value, changes: &[(&str, Value)]) -> Value {
    for (name, value) in changes {
        object[*name] = value.clone();
    }
    object
}

/// The four fields of the token request.
pub(super) fn form(assertion: &str, scope: &str) -> String {
    let kind = encode("urn:ietf:params:oauth:client-assertion-type:jwt-bearer");
    let scope = encode(scope);
    format!(
        "grant_type=client_credentials&client_assertion_type={kind}\
         &client_assertion={assertion}&scope={scope}"
    )
}

/// Percent-encodes all but the unreserved characters.
pub(super) fn encode(text: &str) -> String {
    text.bytes()
        .map(|octet| match octet {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' => {
                char::from(octet).to_string()
            }
            _ => format!("%{octet:02X}"),
        })
        .collect()
}

/// The points of a page, in order: identity joined with `/`, timestamp as JSON, value.
pub(super) fn points(page: &Value) -> Vec<(String, String, Option<f64>)> {
    let mut points = Vec::new();
    for envelope in page["series"].as_array().expect("envelopes") {
        let ids = ["siteId", "lineId", "machineId", "deviceId", "tagGuid"];
        let identity = ids.map(|id| envelope[id].as_str().unwrap_or("-")).join("/");
        for point in envelope["points"].as_array().expect("points") {
            let timestamp = point["timestamp"].as_str().expect("text").to_owned();
            points.push((identity.clone(), timestamp, point["value"].as_f64()));
        }
    }
    points
}
