//! Error replies of the service: the error members of the body, in any of the usual forms (the
//! interface does not specify one, §7), and the meaning of a status.

use std::ops::Range;

use jiff::Timestamp;
use serde_json::Value;

use super::certificate_refusal;
use super::retry_after::end_of_pause;
use super::retry_after::retry_after;
use super::transport::Reply;
use crate::error::{Error, Kind, excerpt};

/// Larger error bodies are not parsed as JSON.
const LONGEST_JSON: usize = 4 * 1024 * 1024;
/// The most bytes of a body that an excerpt is made from.
const LONGEST_TEXT: usize = 64 * 1024;
const LONGEST_CODE: usize = 100;
/// Shorter secrets are not redacted, because they may occur in any text.
const SHORTEST_SECRET: usize = 4;
/// So many bytes of a secret are part of no other text.
const LONGER_PART: usize = 12;
const REMOVED: &str = "[removed]";

/// The content of an error body.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Problem {
    /// The member `error` (RFC 6749), or `code` of a nested `error`.
    pub code: Option<String>,
    /// Its description, the members of problem+json, or the beginning of the text.
    pub detail: Option<String>,
}

impl Problem {
    /// Reads a body and redacts the `secrets` that the service echoes.
    #[must_use]
    pub(crate) fn read(body: &[u8], secrets: &[&str]) -> Self {
        let json = (body.len() <= LONGEST_JSON)
            .then(|| serde_json::from_slice::<Value>(without_mark(body)).ok())
            .flatten();
        let members = match &json {
            Some(Value::Object(members)) => members,
            Some(other) => return Self { code: None, detail: shown_json(other, secrets) },
            None => {
                let text = String::from_utf8_lossy(&body[..body.len().min(LONGEST_TEXT)]);
                return Self { code: None, detail: shown(&text, secrets) };
            }
        };
        let text = |name: &str| members.get(name).and_then(Value::as_str);
        let nested = |name: &str| members.get("error").and_then(|error| error[name].as_str());
        let code = text("error").or_else(|| nested("code")).or_else(|| text("code"));
        let words: Vec<&str> = [
            text("title"),
            text("detail"),
            text("error_description"),
            text("message"),
            nested("message"),
        ]
        .into_iter()
        .flatten()
        .collect();
        let detail = match &json {
            Some(json) if words.is_empty() && code.is_none() => shown_json(json, secrets),
            _ => shown(&words.join(": "), secrets),
        };
        let code = code
            .and_then(|code| shown(code, secrets))
            .map(|code| code.chars().take(LONGEST_CODE).collect());
        Self { code, detail }
    }

    /// An error with this content and the details in the reply's headers.
    #[must_use]
    pub(crate) fn error(&self, kind: Kind, message: &str, reply: &Reply, now: Timestamp) -> Error {
        let code = self.code.as_ref().map_or_else(String::new, |code| format!(", {code}"));
        let detail = self.detail.as_ref().map_or_else(String::new, |detail| format!(": {detail}"));
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

    /// The error for a status that means the same at every endpoint.
    #[must_use]
    pub(crate) fn by_status(&self, what: &str, reply: &Reply, now: Timestamp) -> Error {
        if is_certificate_page(reply) {
            // Of what is shown, from which secrets were removed.
            let title = self.detail.as_deref().map(certificate_refusal::title);
            let problem = Self { code: None, detail: title.map(str::to_owned) };
            return problem.certificate_refused(what, reply, now);
        }
        let (kind, message) = match reply.status {
            407 => (Kind::ProxyError, format!("the proxy requires authentication for {what}")),
            429 => (Kind::RateLimited, format!("the service was asked too often for {what}")),
            408 | 425 | 500..=599 => {
                (Kind::ServiceUnavailable, format!("the service failed at {what}"))
            }
            400..=499 => (Kind::RequestRejected, format!("the service refused {what}")),
            _ => (
                Kind::ProtocolError,
                format!(
                    "the service answered {what} with a status that the interface does not define"
                ),
            ),
        };
        let error = self.error(kind, &message, reply, now);
        match kind {
            Kind::ProxyError => error.with_hint("set user and password in proxy= or HTTPS_PROXY"),
            Kind::RequestRejected if self.speaks_of_https() => error.with_hint(
                "the request was plain HTTP, but the port expects TLS: write base_url with https://",
            ),
            _ => error,
        }
    }

    /// The error for a reply that refuses the client certificate, or the lack of one.
    #[must_use]
    pub(crate) fn certificate_refused(&self, what: &str, reply: &Reply, now: Timestamp) -> Error {
        let message = if reply.presented {
            format!("the service refused the client certificate for {what}")
        } else {
            format!("the service requires a client certificate for {what}, and there is none")
        };
        let error = self.error(Kind::AuthenticationError, &message, reply, now);
        certificate_refusal::marked(error, reply.presented)
    }

    fn speaks_of_https(&self) -> bool {
        self.detail.as_ref().is_some_and(|detail| {
            let detail = detail.to_ascii_lowercase();
            detail.contains("plain http request") || detail.contains("https port")
        })
    }
}

/// Whether a reply is a page of a terminator that refuses the client certificate.
#[must_use]
pub(crate) fn is_certificate_page(reply: &Reply) -> bool {
    certificate_refusal::is_page(reply.status, &reply.body)
}

/// Removes the byte order mark that some servers put before JSON.
#[must_use]
pub(crate) fn without_mark(body: &[u8]) -> &[u8] {
    body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body)
}

/// Makes foreign text safe to show and redacts the secrets; `None` if nothing is left.
#[must_use]
pub(crate) fn shown(text: &str, secrets: &[&str]) -> Option<String> {
    let text = redacted(text.trim(), secrets);
    (!text.is_empty()).then(|| excerpt(&text))
}

/// Removes the secrets, and any longer part of one: a text may be cut.
#[must_use]
pub(crate) fn redacted(text: &str, secrets: &[&str]) -> String {
    let mut text = text.to_owned();
    let secrets = || secrets.iter().filter(|secret| secret.len() >= SHORTEST_SECRET);
    for secret in secrets() {
        text = text.replace(secret, REMOVED);
    }
    // The longest part of all first: parts of the encoded form would leave pieces of the plain one.
    let longest = |text: &str| {
        secrets().filter_map(|secret| longer_part(text, secret)).max_by_key(Range::len)
    };
    while let Some(part) = longest(&text) {
        text.replace_range(part, REMOVED);
    }
    text
}

/// The first part of a text that is one of the secret as well, of at least so many characters.
fn longer_part(text: &str, secret: &str) -> Option<Range<usize>> {
    let is_part = |part: &str| part.len() >= LONGER_PART && secret.contains(part);
    let ends = |start: usize| {
        let rest = &text[start..];
        let last = rest.char_indices().map(move |(at, c)| start + at + c.len_utf8());
        last.take_while(move |end| secret.contains(&text[start..*end])).last()
    };
    let starts = text.char_indices().map(|(at, _)| at);
    starts.filter_map(|start| Some(start..ends(start)?)).find(|part| is_part(&text[part.clone()]))
}

/// Shows JSON without known members, serialised again: an echoed secret may contain escapes (`\/`,
/// `\u002b`), of which `serde_json` writes only those that the search includes.
fn shown_json(json: &Value, secrets: &[&str]) -> Option<String> {
    let escaped: Vec<String> =
        secrets.iter().map(|secret| Value::from(*secret).to_string()).collect();
    let mut all: Vec<&str> = escaped.iter().map(|secret| &secret[1..secret.len() - 1]).collect();
    all.extend(secrets);
    shown(&json.to_string(), &all)
}

#[cfg(test)]
mod tests {
    use super::*;

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
            (r#"{"reason":"other"}"#, problem(None, Some(r#"{"reason":"other"}"#))),
            ("<h1>Not Found</h1>", problem(None, Some("<h1>Not Found</h1>"))),
            ("", problem(None, None)),
        ] {
            assert_eq!(Problem::read(body.as_bytes(), &[]), expected, "{body}");
        }
    }

    /// The error for a reply with this status and body, whatever was asked for.
    fn by_status(status: u16, body: &'static str) -> Error {
        let reply = Reply {
            status,
            headers: reqwest::header::HeaderMap::new(),
            body: body.into(),
            received: 0,
            points: crate::http::PointCount::default(),
            broken_body: None,
            reading: None,
            presented: false,
        };
        Problem::read(body.as_bytes(), &[]).by_status("a page", &reply, Timestamp::UNIX_EPOCH)
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
    fn h24_a_proxy_that_requires_a_user_is_told_from_the_service() {
        let error = by_status(407, "<title>Authentication required</title>");
        assert_eq!(error.kind(), Kind::ProxyError);
        let text = error.to_string();
        assert!(text.contains("the proxy requires authentication for a page"), "{text}");
        assert!(text.contains("set user and password in proxy="), "{text}");
    }

    #[test]
    fn an_echoed_secret_is_redacted_however_json_escapes_it() {
        let secrets = ["s3/cr+t=\"1"];
        for body in [
            r#"{"reason":"cursor s3\/cr\u002bt=\"1 is bad"}"#,
            r#"{"reason":"cursor s3/cr+t=\u00221 is bad"}"#,
            r#"{"message":"cursor s3\/cr\u002Bt=\"1 is bad"}"#,
            r#"["s3\/cr+t=\"1"]"#,
        ] {
            let detail = Problem::read(body.as_bytes(), &secrets).detail.expect("a detail");
            assert!(detail.contains("[removed]") && !detail.contains("cr"), "{detail}");
        }
    }

    #[test]
    fn e5_a_secret_that_a_text_cuts_is_redacted_too() {
        let secret = "Zq9+/SecretCursor==abcdefgh";
        for (text, expected) in [
            ("at .Zq9+/SecretCursor==abc…", "at .[removed]…"),
            ("…tCursor==abcdefgh, Zq9+/SecretCursor==abcdefgh", "…[removed], [removed]"),
            ("SecretCursor", "[removed]"),
            ("SecretCurso", "SecretCurso"),
        ] {
            assert_eq!(redacted(text, &[secret]), expected);
        }
    }

    #[test]
    fn t18_a_long_description_is_truncated_escaped_and_an_echoed_secret_redacted() {
        let body = format!(
            r#"{{"error":"x","error_description":"\u001b[31m cursor s3cr3t~1 {}"}}"#,
            "y".repeat(1_000_000)
        );
        let detail = Problem::read(body.as_bytes(), &["s3cr3t~1"]).detail.expect("a detail");
        assert!(detail.chars().count() <= 501);
        assert!(detail.starts_with("\\x1b[31m cursor [removed] y"), "{detail}");
    }
}
