//! Error replies of the service: the error members of the body, and the meaning of a status. The
//! interface does not specify a form, so the usual ones are supported.

use jiff::Timestamp;
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use serde_json::{Map, Value};

use super::certificate_refusal;
use super::retry_after::end_of_pause;
use super::retry_after::retry_after;
use super::transport::Reply;
use crate::error::{Error, Kind, Secret, descriptions, displayable, less_opaque};

/// Maximum size of an error body that is parsed.
const LONGEST_JSON: usize = super::transport::LONGEST_ERROR;
/// Maximum number of bytes of a page that are searched.
const LONGEST_PAGE: usize = 16 * 1024;
const LONGEST_CODE: usize = 100;
/// The media types that an error message may name. A header may contain anything.
const MEDIA_TYPES: [&str; 7] = [
    "application/json",
    "application/problem+json",
    "application/xml",
    "application/octet-stream",
    "text/html",
    "text/plain",
    "text/xml",
];

/// The known content of an error body. Other bodies are described by type and length and never
/// quoted, because they may be a login page or contain a token.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Problem {
    /// The member `error` (RFC 6749), or `code` of a nested `error`.
    pub code: Option<String>,
    /// The description, or the members of problem+json.
    pub detail: Option<String>,
}

impl Problem {
    /// Reads a body and redacts the `secrets` that the service echoes.
    pub(crate) fn read(body: &[u8], secrets: &[Secret<'_>]) -> Self {
        let json = (body.len() <= LONGEST_JSON)
            .then(|| serde_json::from_slice::<Value>(without_mark(body)).ok())
            .flatten()
            .unwrap_or_default();
        let Some(members) = json.as_object() else { return Self::default() };
        let text = |name: &str| members.get(name).and_then(Value::as_str);
        let nested = members.get("error").filter(|error| error.is_object());
        let code = text("error")
            .or_else(|| nested.and_then(|error| error["code"].as_str()))
            .or_else(|| text("code"));
        let errors = members.get("errors").filter(|errors| errors.is_array());
        let nested = [nested, errors].into_iter().flatten().flat_map(descriptions);
        let words: Vec<&str> = descriptions(&json).into_iter().chain(nested).collect();
        Self {
            code: code.and_then(|code| shown_code(code, secrets)),
            detail: displayable(&words.join(": "), secrets),
        }
    }

    /// Reads the OAuth error members of a token reply. Every other member may contain a token, and
    /// the texts may repeat one. `allowed` are texts of the request.
    pub(crate) fn of_token_reply(members: &Map<String, Value>, allowed: &[&str]) -> Self {
        let mut others = Vec::new();
        for (_, value) in members.iter().filter(|(name, _)| !OF_OAUTH.contains(&name.as_str())) {
            collect_texts(value, &mut others);
        }
        let secrets: Vec<Secret<'_>> = others
            .into_iter()
            .filter(|text| text.len() >= SHORTEST_OTHER)
            .map(Secret::token)
            .collect();
        let text = |name: &str| members.get(name).and_then(Value::as_str);
        let safe = |text: &str| less_opaque(text, allowed);
        let code = text("error").and_then(|code| shown_code(code, &secrets));
        let detail = text("error_description").and_then(|detail| displayable(detail, &secrets));
        Self { code: code.as_deref().map(safe), detail: detail.as_deref().map(safe) }
    }

    /// An error with this content and the details of the reply's headers.
    pub(crate) fn error(&self, kind: Kind, message: &str, reply: &Reply, now: Timestamp) -> Error {
        let code = self.code.as_ref().map_or_else(String::new, |code| format!(", {code}"));
        let detail = match &self.detail {
            Some(detail) => format!(": {detail}"),
            None if self.code.is_none() => described_body(reply),
            None => String::new(),
        };
        let pause = retry_after(&reply.headers, now);
        let message = format!("{message} (status {}{code}){detail}", reply.status);
        Error::new(kind, message).with(|context| {
            context.status = Some(reply.status);
            context.code.clone_from(&self.code);
            context.detail.clone_from(&self.detail);
            context.request_id = reply.request_id();
            if matches!(kind, Kind::RateLimited | Kind::ServiceUnavailable) {
                context.retry_after = pause;
                context.retry_at = pause.map(|pause| end_of_pause(now, pause));
            }
        })
    }

    /// The error for a status with the same meaning at every endpoint.
    pub(crate) fn by_status(&self, what: &str, reply: &Reply, now: Timestamp) -> Error {
        if is_certificate_page(reply) {
            return Self::default().certificate_refused(what, reply, now);
        }
        let (kind, message) = match reply.status {
            407 => (Kind::ProxyError, format!("the proxy requires authentication for {what}")),
            429 => (Kind::RateLimited, format!("too many requests for {what}")),
            408 | 425 | 500..=599 => {
                (Kind::ServiceUnavailable, format!("the service failed at {what}"))
            }
            400..=499 => (Kind::RequestRejected, format!("the service refused {what}")),
            _ => (
                Kind::ProtocolError,
                format!(
                    "the service replied to {what} with a status that the interface does not define"
                ),
            ),
        };
        let error = self.error(kind, &message, reply, now);
        match kind {
            Kind::ProxyError => error.with_hint("set user and password in proxy= or HTTPS_PROXY"),
            Kind::RequestRejected if speaks_of_https(&reply.body) => error
                .with_hint("the port expects TLS, not plain HTTP: write base_url with https://"),
            _ => error,
        }
    }

    /// The error for a reply that refuses the client certificate or the lack of one.
    pub(crate) fn certificate_refused(&self, what: &str, reply: &Reply, now: Timestamp) -> Error {
        let message = if reply.presented {
            format!("the service refused the client certificate for {what}")
        } else {
            format!("the service requires a client certificate for {what}, but there is none")
        };
        let error = self.error(Kind::AuthenticationError, &message, reply, now);
        certificate_refusal::marked(error, reply.presented)
    }
}

/// The members of OAuth replies that contain no secret.
const OF_OAUTH: [&str; 5] = ["error", "error_description", "error_uri", "token_type", "scope"];
/// Minimum length of a text in another member to be treated as a token.
const SHORTEST_OTHER: usize = 8;

fn shown_code(code: &str, secrets: &[Secret<'_>]) -> Option<String> {
    Some(displayable(code, secrets)?.chars().take(LONGEST_CODE).collect())
}

fn collect_texts<'a>(value: &'a Value, texts: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(items) => items.iter().for_each(|item| collect_texts(item, texts)),
        Value::Object(members) => members.values().for_each(|value| collect_texts(value, texts)),
        _ => {}
    }
}

/// The type and length of a body that is not shown; empty without a body.
fn described_body(reply: &Reply) -> String {
    let media_type = media_type(&reply.headers);
    match &reply.broken_body {
        Some(error) if error.kind() == Kind::BodyTooLarge => {
            format!("; its body ({media_type}, more than {LONGEST_JSON} bytes) is not shown")
        }
        None if !reply.body.is_empty() => {
            format!("; its body ({media_type}, {} bytes) is not shown", reply.body.len())
        }
        _ => String::new(),
    }
}

/// The media type of a reply if it is a usual one.
pub(crate) fn media_type(headers: &HeaderMap) -> &'static str {
    let Some(given) = headers.get(CONTENT_TYPE) else { return "without a Content-Type" };
    let given = given.to_str().unwrap_or_default();
    let given = given.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    MEDIA_TYPES.into_iter().find(|known| *known == given).unwrap_or("an unusual Content-Type")
}

/// The beginning of a page, in lower case.
pub(super) fn page_text(body: &[u8]) -> String {
    String::from_utf8_lossy(&body[..body.len().min(LONGEST_PAGE)]).to_ascii_lowercase()
}

fn speaks_of_https(body: &[u8]) -> bool {
    let page = page_text(body);
    page.contains("plain http request") || page.contains("https port")
}

/// Whether a reply is a terminator's page that refuses the client certificate.
pub(crate) fn is_certificate_page(reply: &Reply) -> bool {
    certificate_refusal::is_page(reply.status, &reply.body)
}

/// Removes the byte order mark that some servers put before JSON.
pub(crate) fn without_mark(body: &[u8]) -> &[u8] {
    body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::test_server::reply;

    fn problem(code: Option<&str>, detail: Option<&str>) -> Problem {
        Problem { code: code.map(str::to_owned), detail: detail.map(str::to_owned) }
    }

    #[test]
    fn h19_the_members_of_the_usual_error_bodies_are_found() {
        for (body, expected) in [
            (
                r#"{"error":"invalid_client","error_description":"no"}"#,
                problem(Some("invalid_client"), Some("no")),
            ),
            (
                r#"{"type":"about:blank","title":"Bad range","detail":"from is after to"}"#,
                problem(None, Some("Bad range: from is after to")),
            ),
            (
                r#"{"error":{"code":"E17","message":"too wide"}}"#,
                problem(Some("E17"), Some("too wide")),
            ),
            (
                r#"{"detail":[{"loc":["query"],"msg":"not a time"}]}"#,
                problem(None, Some("not a time")),
            ),
            (r#"{"errors":[{"message":"too wide"}]}"#, problem(None, Some("too wide"))),
            (r#"{"reason":"other"}"#, problem(None, None)),
            ("<h1>Not Found</h1>", problem(None, None)),
            (r#""text""#, problem(None, None)),
            (r#"["text"]"#, problem(None, None)),
            ("", problem(None, None)),
        ] {
            assert_eq!(Problem::read(body.as_bytes(), &[]), expected, "{body}");
        }
    }

    fn by_status(status: u16, body: &str) -> Error {
        let problem = Problem::read(body.as_bytes(), &[]);
        problem.by_status("a page", &reply(status, body), Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn h21_only_a_refusal_that_speaks_of_https_names_it_as_the_remedy() {
        for (status, body, speaks) in [
            (400, "The plain HTTP request was sent to HTTPS port", true),
            (400, "You sent a PLAIN HTTP REQUEST.", true),
            (421, "This is an HTTPS port", true),
            (400, "Bad Request", false),
            (400, "", false),
            (503, "The plain HTTP request was sent to HTTPS port", false),
        ] {
            let error = by_status(status, body);
            assert_eq!(
                error.to_string().contains("write base_url with https://"),
                speaks,
                "{body}"
            );
        }
    }

    #[test]
    fn an_echoed_secret_is_redacted_however_json_escapes_it() {
        let secrets = [Secret::token("s3/cr+t=\"1")];
        for body in [
            r#"{"message":"cursor s3\/cr\u002bt=\"1 is bad"}"#,
            r#"{"message":"cursor s3/cr+t=\u00221 is bad"}"#,
            r#"{"message":"cursor s3%2fcr%2Bt%3D%221 is bad"}"#,
            r#"{"message":"cursor s3\\/cr+t=\\\"1 is bad"}"#,
        ] {
            let detail = Problem::read(body.as_bytes(), &secrets).detail.expect("a detail");
            assert_eq!(detail, "cursor [removed] is bad", "{body}");
        }
    }

    #[test]
    fn an_unknown_body_is_described_by_type_and_length() {
        for (body, content_type, expected) in [
            (
                "<h1>s3cret</h1>",
                "text/HTML; charset=utf-8",
                "(status 404); its body (text/html, 15 bytes)",
            ),
            ("s3cret", "text/s3cret", "(an unusual Content-Type, 6 bytes)"),
            ("[\"s3cret\"]", "application/json", "(application/json, 10 bytes)"),
            ("s3cret", "", "(without a Content-Type, 6 bytes)"),
        ] {
            let mut reply = reply(404, body);
            if !content_type.is_empty() {
                reply.headers.insert(CONTENT_TYPE, content_type.parse().expect("a header"));
            }
            let problem = Problem::read(&reply.body, &[]);
            let error = problem.by_status("a page", &reply, Timestamp::UNIX_EPOCH);
            let text = format!("{error} {:?}", error.context());
            assert!(text.contains(expected) && !text.contains("s3cret"), "{text}");
        }
        let text = by_status(404, "").to_string();
        assert!(text.ends_with("(status 404)"), "{text}");
        assert_eq!(by_status(407, "").kind(), Kind::ProxyError);
    }

    #[test]
    fn e5_a_truncated_secret_is_redacted_too() {
        let secret = "Zq9+/SecretCursor==abcdefgh";
        for (text, expected) in [
            ("at .Zq9+/SecretCursor==abc…", "at .[removed]…"),
            ("…tCursor==abcdefgh, Zq9+/SecretCursor==abcdefgh", "…[removed], [removed]"),
            ("SecretCursor", "[removed]"),
            ("Zq9%2B%2fSecretCursor%3D%3dabcdefgh", "[removed]"),
            ("zq9+\\/secretcursor==abcdefgh.", "[removed]."),
            ("SecretCurso", "SecretCurso"),
        ] {
            assert_eq!(crate::error::redacted(text, &[Secret::cursor(secret)]), expected);
        }
        assert_eq!(
            crate::error::redacted("SecretC ecretCur", &[Secret::token(secret)]),
            "SecretC [removed]"
        );
        assert_eq!(crate::error::redacted("€tok3n€", &[Secret::token("tok3n")]), "€[removed]€");
        assert_eq!(crate::error::redacted("tok3", &[Secret::token("tok3n")]), "tok3");
        assert_eq!(crate::error::redacted("abc", &[Secret::token("abc")]), "abc");
    }
}
