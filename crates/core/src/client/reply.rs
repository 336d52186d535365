//! Requests to the data and discovery endpoints, and errors from the statuses of their replies.

use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use percent_encoding::percent_decode_str;
use reqwest::header::{HeaderMap, WWW_AUTHENTICATE};

use super::discovery_body::DiscoveryBody;
use super::request_length;
use super::spending::Spending;
use crate::error::{Context, Error, Kind, Result, Secret, displayable};
use crate::http::allowance::Outcome;
use crate::http::problem::{is_certificate_page, media_type, without_mark};
use crate::http::{Problem, Reply};

/// A longer `Retry-After` means that the daily allowance is used up.
const LONGEST_THROTTLE: Duration = Duration::from_secs(3_600);

/// The parameters of a challenge (RFC 6750, section 3) for messages.
const PARAMETERS: [&str; 4] = ["error", "error_description", "scope", "realm"];
const LONGEST_CHALLENGE: usize = 4_096;

/// The interface does not show whether the service issues tokens for a certificate.
const NO_TOKEN_SENT: &str =
    "; if the service issues tokens for a certificate (RFC 8705), set MutualTls(client_id=)";

/// The parts of a request that determine the meaning of the reply.
#[derive(Debug, Clone, Copy)]
pub(super) struct RequestParts<'a> {
    /// Relative to the base URL.
    pub(super) path: &'a str,
    /// Percent-encoded.
    pub(super) query: Option<&'a str>,
    /// Only data requests count against the daily allowance.
    pub(super) spending: Option<&'a Spending>,
    /// Whether an earlier attempt failed.
    pub(super) is_retry: bool,
}

impl RequestParts<'_> {
    /// Requests that must be left in the allowance.
    pub(super) fn must_remain(&self) -> u64 {
        self.spending.map_or(0, |spending| spending.must_remain(self.is_retry))
    }
}

pub(super) fn outcome_of(outcome: &Result<Reply>) -> Outcome {
    match outcome {
        Ok(reply) => Outcome::Replied { reading: reply.reading, granted: reply.status == 200 },
        Err(error) if error.context().unsent => Outcome::Unsent,
        Err(_) => Outcome::Lost,
    }
}

/// Adds status and request id to errors of `read`.
pub(super) async fn read<T, R: Future<Output = Result<T>>>(
    reply: &Reply,
    read: impl Fn(&Reply) -> R,
) -> Result<T> {
    read(reply).await.map_err(|error| {
        error.with(|context| {
            context.status = Some(reply.status);
            context.request_id = reply.request_id();
        })
    })
}

/// The service names its own parameters.
const REFUSED_VALUE: &str = "Names of the service: siteId is site=, lineId is line=, from is start=, to is end=, \
     aggregationIntervalSeconds is interval=, pageSize is page_size=.";

/// Returns a JSON reply with status 200, and converts any other reply to an error without secrets.
/// `token` is `None` if only the client certificate authorised the request.
pub(super) fn check(
    reply: Reply,
    request: RequestParts<'_>,
    token: Option<&str>,
    now: impl FnOnce() -> Timestamp,
) -> Result<Reply> {
    if reply.status == 200 {
        return check_json(reply);
    }
    let now = now();
    let cursors = cursors(request.query);
    let secrets = secrets(&cursors, token);
    let problem = Problem::read(&reply.body, &secrets);
    let what = format!("GET {}", request.path);
    let error = match reply.status {
        401 if token.is_none() => {
            let error = problem.certificate_refused(&what, &reply, now);
            error.with(|context| context.hint.get_or_insert_default().push_str(NO_TOKEN_SENT))
        }
        401 => unauthorized(&problem, &reply, &secrets, now),
        403 if !is_certificate_page(&reply) => {
            forbidden(problem, &reply, &secrets, now, token.is_some())
        }
        _ => {
            let error = problem.by_status(&what, &reply, now);
            let error = request_length::explained(error, request.query, token);
            let is_page = request.spending.is_some();
            match error.context().hint {
                None if reply.status == 400 && is_page => error.with_hint(REFUSED_VALUE),
                _ => error,
            }
        }
    }
    .without(&secrets);
    let pause = error.context().retry_after.filter(|_| error.kind() == Kind::RateLimited);
    if request.spending.is_some() && pause.is_some_and(|pause| pause > LONGEST_THROTTLE) {
        // The reply's own words would say the same again. They stay in `detail`.
        let Context { message, detail, .. } = error.context();
        let words = detail.as_ref().map(|detail| format!(": {detail}")).unwrap_or_default();
        let what = message.strip_suffix(&words).unwrap_or(message);
        let message = format!("The daily request allowance is used up: {what}");
        let until = error.context().retry_at.map(|until| format!("Continue after {until:.0}."));
        return Err(error
            .into_kind(Kind::AllowanceExhausted)
            .with(|context| context.message = message)
            .with_hint(until.unwrap_or_default()));
    }
    Err(error)
}

/// Redacts the token and the cursor.
pub(super) fn without_secrets(
    error: Error,
    request: RequestParts<'_>,
    token: Option<&str>,
) -> Error {
    let cursors = cursors(request.query);
    error.without(&secrets(&cursors, token))
}

fn secrets<'a>(cursors: &'a [String], token: Option<&'a str>) -> Vec<Secret<'a>> {
    let cursors = cursors.iter().map(|cursor| Secret::cursor(cursor));
    cursors.chain(token.map(Secret::token)).collect()
}

/// The challenge may have any form, or be absent. It changes only the message.
fn unauthorized(problem: &Problem, reply: &Reply, secrets: &[Secret<'_>], now: Timestamp) -> Error {
    let challenges = challenges(&reply.headers, secrets);
    let message = if reply.presented {
        "the service refused the access token, or the client certificate that it is bound to"
    } else {
        "the service refused the access token"
    };
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

fn forbidden(
    mut problem: Problem,
    reply: &Reply,
    secrets: &[Secret<'_>],
    now: Timestamp,
    has_token: bool,
) -> Error {
    let challenges = challenges(&reply.headers, secrets);
    problem.code = problem.code.or_else(|| parameter(&challenges, "error"));
    let missing: Vec<String> = parameter(&challenges, "scope")
        .map(|scopes| scopes.split_ascii_whitespace().map(str::to_owned).collect())
        .unwrap_or_default();
    let message = match missing.join(" ") {
        _ if !has_token => "the service does not allow this to the client certificate".to_owned(),
        none if none.is_empty() => "the access token does not allow this".to_owned(),
        scopes => format!("the access token does not have the scope {scopes}"),
    };
    problem
        .error(Kind::ScopeError, &message, reply, now)
        .with_hint(if has_token {
            "Request the scope with scopes=, and have it granted to the credential."
        } else {
            "Ask the operator of the service what your integration may read."
        })
        .with(|context| context.missing = missing)
}

/// The known parameters of the challenges, in one line.
fn challenges(headers: &HeaderMap, secrets: &[Secret<'_>]) -> String {
    let values: Vec<_> = headers
        .get_all(WWW_AUTHENTICATE)
        .iter()
        .map(|value| {
            String::from_utf8_lossy(&value.as_bytes()[..value.len().min(LONGEST_CHALLENGE)])
        })
        .collect();
    let values = values.join(", ");
    let known = PARAMETERS.iter().filter_map(|name| {
        let value = parameter(&values, name)?;
        Some(format!("{name}=\"{}\"", displayable(&value, secrets)?))
    });
    known.collect::<Vec<_>>().join(", ")
}

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

/// The cursors of a query, encoded and decoded: an error body may echo either.
fn cursors(query: Option<&str>) -> Vec<String> {
    let pairs = query.unwrap_or_default().split('&');
    let mut found: Vec<String> = pairs
        .filter_map(|pair| pair.strip_prefix("cursor="))
        .flat_map(|sent| [percent_decode_str(sent).decode_utf8_lossy().into_owned(), sent.into()])
        .collect();
    // The longer form may contain the other.
    found.sort_by_key(|cursor| std::cmp::Reverse(cursor.len()));
    found
}

/// The decoder checks the rest. `Content-Type` is ignored.
fn check_json(reply: Reply) -> Result<Reply> {
    let body = without_mark(&reply.body).trim_ascii_start();
    let message = match body.first() {
        None => "the reply has no body".to_owned(),
        Some(b'{' | b'[' | b'"' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n') => return Ok(reply),
        Some(_) => {
            let media_type = media_type(&reply.headers);
            format!("the reply is not JSON ({media_type}, {} bytes)", reply.body.len())
        }
    };
    let request_id = reply.request_id();
    Err(Error::new(Kind::ProtocolError, message)
        .with_hint("a login page of the network or another service may have replied")
        .with(|context| {
            context.status = Some(reply.status);
            context.request_id = request_id;
        }))
}

/// The unchanged body without a byte order mark.
pub(super) fn json_object(reply: &Reply) -> Result<Bytes> {
    let json = without_mark(&reply.body);
    DiscoveryBody::read(json)?;
    Ok(reply.body.slice_ref(json))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::test_server::reply;

    const REQUEST: RequestParts<'static> = RequestParts {
        path: "/data",
        query: Some("a=1&cursor=se%2Fcret"),
        spending: None,
        is_retry: false,
    };

    #[test]
    fn h8_json_cut_anywhere_is_a_truncated_body() {
        let body = r#"{"a":[1,{"b":"}]\""}],"c":"\\"}"#;
        assert!(json_object(&reply(200, body)).is_ok());
        for end in 1..body.len() {
            let error = json_object(&reply(200, &body[..end])).expect_err("cut");
            assert_eq!(error.kind(), Kind::TruncatedBody, "{}", &body[..end]);
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
        let now = || Timestamp::UNIX_EPOCH;
        let body = r#"{"message":"cursor se/cret and se%2Fcret of tok3n are bad"}"#;
        let error = check(reply(400, body), REQUEST, Some("tok3n"), now).expect_err("refused");
        let text = error.to_string();
        assert!(!text.contains("cret") && !text.contains("tok3n"), "{text}");
        assert!(text.contains("cursor [removed] and [removed] of [removed] are bad"), "{text}");
        // The error page of a TLS terminator is redacted too.
        let page = format!("the certificate is missing: {body}");
        let error = check(reply(400, &page), REQUEST, Some("tok3n"), now).expect_err("refused");
        assert_eq!(error.kind(), Kind::AuthenticationError);
        let text = format!("{error} {:?}", error.context());
        assert!(!text.contains("cret ") && !text.contains("tok3n"), "{text}");
    }
}
