//! What the reply to a data or discovery request means. The one place that turns a status of these
//! endpoints into an error.

use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use percent_encoding::percent_decode_str;
use reqwest::header::{CONTENT_TYPE, HeaderMap, WWW_AUTHENTICATE};
use serde_json::Value;

use super::spending::Spending;
use crate::error::{Error, Kind, Result, excerpt};
use crate::http::problem::{shown, without_mark};
use crate::http::{Problem, Reply};

/// A longer pause than this is taken for the daily allowance.
const LONGEST_THROTTLE: Duration = Duration::from_secs(3_600);

/// What was asked, as far as the reply's meaning depends on it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked<'a> {
    /// Below the base URL.
    pub(super) path: &'a str,
    /// Percent-encoded.
    pub(super) query: Option<&'a str>,
    /// The read that it belongs to, where it counts against the daily allowance (§8: data requests
    /// do).
    pub(super) spending: Option<&'a Spending>,
}

/// Passes a whole JSON reply with status 200 on, and tells what any other means. `token` is taken
/// out of texts that echo it; `now` by the service's time.
pub(super) fn check(reply: Reply, asked: Asked<'_>, token: &str, now: Timestamp) -> Result<Reply> {
    if reply.status == 200 {
        return check_json(reply);
    }
    let cursors = cursors(asked.query);
    let mut secrets: Vec<&str> = cursors.iter().map(String::as_str).collect();
    secrets.push(token);
    let problem = Problem::read(&reply.body, &secrets);
    let error = match reply.status {
        401 => unauthorized(&problem, &reply, &secrets, now),
        403 => forbidden(problem, &reply, &secrets, now),
        _ => problem.by_status(&format!("GET {}", asked.path), &reply, now),
    };
    let pause = error.context().retry_after.filter(|_| error.kind() == Kind::RateLimited);
    if asked.spending.is_some() && pause.is_some_and(|pause| pause > LONGEST_THROTTLE) {
        let message =
            format!("the daily request allowance is used up: {}", error.context().message);
        return Err(error
            .into_kind(Kind::AllowanceExhausted)
            .with(|context| context.message = message)
            .with_hint("resume with the bookmark after retry_at"));
    }
    Err(error)
}

/// The service's own words of a 401 may come in any form or none (D5): they change nothing but the
/// message.
fn unauthorized(problem: &Problem, reply: &Reply, secrets: &[&str], now: Timestamp) -> Error {
    let challenges = challenges(&reply.headers, secrets);
    let message = "the service refused the access token";
    let error = problem.error(Kind::AuthenticationError, message, reply, now);
    if challenges.is_empty() {
        return error;
    }
    error.with(|context| {
        context.message = format!("{}; challenge: {challenges}", context.message);
        context.code = context.code.take().or_else(|| parameter(&challenges, "error"));
        context.detail.get_or_insert(challenges);
    })
}

fn forbidden(mut problem: Problem, reply: &Reply, secrets: &[&str], now: Timestamp) -> Error {
    let challenges = challenges(&reply.headers, secrets);
    problem.code = problem.code.or_else(|| parameter(&challenges, "error"));
    let missing: Vec<String> = parameter(&challenges, "scope")
        .map(|scopes| scopes.split_ascii_whitespace().map(str::to_owned).collect())
        .unwrap_or_default();
    let message = match missing.join(" ") {
        none if none.is_empty() => "the access token does not allow this".to_owned(),
        scopes => format!("the access token does not have the scope {scopes}"),
    };
    problem
        .error(Kind::ScopeError, &message, reply, now)
        .with_hint("ask for the scope with scopes=, and have it allowed for the credential")
        .with(|context| context.missing = missing)
}

/// All challenges in one line, safe to show.
fn challenges(headers: &HeaderMap, secrets: &[&str]) -> String {
    let values: Vec<_> = headers
        .get_all(WWW_AUTHENTICATE)
        .iter()
        .map(|value| String::from_utf8_lossy(value.as_bytes()))
        .collect();
    shown(&values.join(", "), secrets).unwrap_or_default()
}

/// One parameter of a challenge, quoted or not.
fn parameter(challenges: &str, name: &str) -> Option<String> {
    let start = challenges.match_indices(name).find_map(|(at, _)| {
        let before = challenges[..at].chars().next_back();
        let named = before.is_none_or(|c| c.is_whitespace() || c == ',');
        named.then(|| challenges[at + name.len()..].trim_start().strip_prefix('=')).flatten()
    })?;
    let value = match start.trim_start().strip_prefix('"') {
        Some(quoted) => quoted.split('"').next(),
        None => start.split([',', ' ']).next(),
    };
    value.map(str::trim).filter(|value| !value.is_empty()).map(str::to_owned)
}

/// The cursors of a query, as sent and as meant: an error body may echo either.
fn cursors(query: Option<&str>) -> Vec<String> {
    let pairs = query.unwrap_or_default().split('&');
    let mut found: Vec<String> = pairs
        .filter_map(|pair| pair.strip_prefix("cursor="))
        .flat_map(|sent| [percent_decode_str(sent).decode_utf8_lossy().into_owned(), sent.into()])
        .collect();
    // The longer one first: it may contain the other.
    found.sort_by_key(|cursor| std::cmp::Reverse(cursor.len()));
    found
}

/// Whether it looks like JSON; what stands in it is for the decoder. The label `Content-Type` is not
/// believed either way (E4).
fn check_json(reply: Reply) -> Result<Reply> {
    let body = without_mark(&reply.body).trim_ascii_start();
    let label = reply.headers.get(CONTENT_TYPE).and_then(|label| label.to_str().ok());
    let label = excerpt(label.unwrap_or("not labelled"));
    let message = match body.first() {
        None => "the reply has no body".to_owned(),
        Some(b'{' | b'[' | b'"' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n') => return Ok(reply),
        Some(_) => format!("the reply is not JSON (Content-Type {label})"),
    };
    let request_id = reply.request_id();
    Err(Error::new(Kind::ProtocolError, message)
        .with_hint("a login page of the network, or another service, may have answered")
        .with(|context| {
            context.status = Some(reply.status);
            context.request_id = request_id;
        }))
}

/// The body of a discovery reply, as it came less a byte order mark.
pub(super) fn json_object(reply: &Reply) -> Result<Bytes> {
    let json = without_mark(&reply.body);
    match serde_json::from_slice::<Value>(json) {
        Ok(Value::Object(_)) => Ok(reply.body.slice_ref(json)),
        Ok(_) => Err(Error::protocol_at("$", "the discovery reply is not a JSON object")),
        // Some servers end a reply by closing the connection: half of it looks like all of it.
        Err(error) if error.is_eof() => {
            Err(Error::new(Kind::TruncatedBody, "the reply ends within its JSON"))
        }
        Err(_) => Err(Error::new(Kind::ProtocolError, "the discovery reply is not valid JSON")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(status: u16, body: &str) -> Reply {
        Reply { status, headers: HeaderMap::new(), body: body.to_owned().into(), broken_body: None }
    }

    const ASKED: Asked<'static> =
        Asked { path: "/data", query: Some("a=1&cursor=se%2Fcret"), spending: None };

    #[test]
    fn h8_json_that_is_open_at_its_end_was_cut_wherever_that_was() {
        let whole = r#"{"a":[1,{"b":"}]\""}],"c":"\\"}"#;
        assert!(json_object(&reply(200, whole)).is_ok());
        for end in 1..whole.len() {
            let error = json_object(&reply(200, &whole[..end])).expect_err("cut");
            assert_eq!(error.kind(), Kind::TruncatedBody, "{}", &whole[..end]);
        }
    }

    #[test]
    fn parameters_of_a_challenge_are_found_quoted_or_not() {
        let text = r#"Basic realm="x", Bearer error="insufficient_scope", scope="a b", x=y"#;
        assert_eq!(parameter(text, "error").as_deref(), Some("insufficient_scope"));
        assert_eq!(parameter(text, "scope").as_deref(), Some("a b"));
        assert_eq!(parameter(text, "x").as_deref(), Some("y"));
        assert_eq!(parameter(text, "error_description"), None);
    }

    #[test]
    fn an_echoed_cursor_or_token_is_not_shown() {
        let now = Timestamp::UNIX_EPOCH;
        let body = "cursor se/cret and se%2Fcret of tok3n are bad";
        let error = check(reply(400, body), ASKED, "tok3n", now).expect_err("refused");
        let text = error.to_string();
        assert!(!text.contains("cret") && !text.contains("tok3n"), "{text}");
    }
}
