//! Replies and their bytes on the wire.

use std::io::Write as _;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::options::ErrorBody;

const JSON: &str = "application/json";

/// A reply before it is sent; a fault may still change all of it.
#[derive(Debug, Clone)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Bytes,
}

pub(super) enum Outcome {
    Reply(Reply),
    /// Arbitrary bytes, and then the end of the connection.
    Bytes(Vec<u8>, ConnectionEnd),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConnectionEnd {
    Close,
    Reset,
    /// The connection stays open until the sandbox closes.
    Hang,
}

impl Reply {
    pub(super) fn json(status: u16, body: impl Into<Bytes>) -> Self {
        let headers = vec![("Content-Type".to_owned(), JSON.to_owned())];
        Self { status, headers, body: body.into() }
    }

    /// The page of a terminator before the service, as nginx writes it.
    pub(super) fn page(status: u16, title: &str) -> Self {
        let body = format!(
            "<html>\r\n<head><title>{status} {title}</title></head>\r\n<body>\r\n<center><h1>{status} Bad \
             Request</h1></center>\r\n<center>{title}</center>\r\n<hr><center>nginx</center>\r\n\
             </body>\r\n</html>\r\n"
        );
        Self::json(status, body).with_header("Content-Type", "text/html")
    }

    /// An OAuth error reply of the token endpoint (§7).
    pub(super) fn token_error(status: u16, code: &str) -> Self {
        Self::json(status, json!({ "error": code }).to_string())
    }

    /// An error reply of discovery and data.
    pub(super) fn error(form: ErrorBody, status: u16, code: &str, detail: &str) -> Self {
        match form {
            ErrorBody::OAuth => {
                Self::json(status, json!({"error": code, "error_description": detail}).to_string())
            }
            ErrorBody::Problem => {
                let body = json!({
                    "type": "about:blank",
                    "title": code,
                    "status": status,
                    "detail": detail,
                });
                Self::json(status, body.to_string())
                    .with_header("Content-Type", "application/problem+json")
            }
        }
    }

    pub(super) fn with_header(mut self, name: &str, value: &str) -> Self {
        self.set_header(name, Some(value));
        self
    }

    pub(super) fn set_header(&mut self, name: &str, value: Option<&str>) {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        if let Some(value) = value {
            self.headers.push((name.to_owned(), value.to_owned()));
        }
    }

    /// Uses the service's clock for `Date`.
    pub(super) fn set_common_headers(&mut self, now: Timestamp) {
        self.set_header("Date", Some(&http_date(now)));
        self.set_header("Cache-Control", Some("no-store"));
    }

    /// Compresses the body if the client accepts gzip.
    pub(super) fn compress(&mut self, accept_encoding: Option<&str>) {
        let accepted = accept_encoding.is_some_and(|list| {
            list.split(',').any(|one| {
                let mut parts = one.split(';').map(str::trim);
                parts.next() == Some("gzip") && parts.all(|part| part.replace(' ', "") != "q=0")
            })
        });
        if !accepted {
            return;
        }
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        if encoder.write_all(&self.body).is_ok()
            && let Ok(body) = encoder.finish()
        {
            self.body = body.into();
            self.set_header("Content-Encoding", Some("gzip"));
        }
    }

    /// Sets or removes members of a body that is a JSON object; other bodies stay unchanged.
    pub(super) fn edit_members(&mut self, changes: &[(String, Option<Value>)]) {
        if let Ok(Value::Object(mut members)) = serde_json::from_slice(&self.body) {
            for (name, value) in changes {
                match value {
                    Some(value) => members.insert(name.clone(), value.clone()),
                    None => members.remove(name),
                };
            }
            self.body = Value::Object(members).to_string().into();
        }
    }

    pub(super) fn to_wire(&self) -> Vec<u8> {
        let mut wire = format!("HTTP/1.1 {} Sandbox\r\n", self.status).into_bytes();
        for (name, value) in &self.headers {
            wire.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        }
        let length = format!("Content-Length: {}\r\n\r\n", self.body.len());
        wire.extend_from_slice(length.as_bytes());
        wire.extend_from_slice(&self.body);
        wire
    }
}

/// A time as an HTTP date (RFC 9110, IMF-fixdate).
pub(super) fn http_date(now: Timestamp) -> String {
    now.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}
