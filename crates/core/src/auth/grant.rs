//! The reply to a token request (§2.2): a grant or an error. Services use various statuses for the
//! same error, so the member `error` decides, and the status only without it.

use std::time::Duration;

use jiff::Timestamp;
use reqwest::header::HeaderValue;
use serde_json::{Map, Value};

use super::access_token::bearer;
use super::scope::ScopeSet;
use crate::error::{Error, Kind, Result, Secret};
use crate::http::problem::without_mark;
use crate::http::{Problem, Reply};

/// The lifetime if the reply does not state one: short enough to be harmless.
const UNSTATED_LIFETIME: Duration = Duration::from_secs(60);
/// The maximum lifetime in seconds. The interface says 600 s (§8).
const LONGEST_LIFETIME: f64 = 3_600.0;

/// The interface does not show whether a client certificate needs a token too.
const PERHAPS_NO_TOKENS: &str =
    "if the certificate is sufficient without a token, omit client_id= of MutualTls";

const OTHER_SERVICE: &str = "a login page of the network or another service may have replied";

/// The members that contain tokens.
const TOKENS: [&str; 3] = ["access_token", "refresh_token", "id_token"];

/// A granted access token. A refresh token is ignored.
pub(super) struct Grant {
    /// The value of the header `Authorization`, marked as sensitive.
    pub(super) authorization: HeaderValue,
    /// The lifetime from issuance.
    pub(super) lifetime: Duration,
    /// The granted scopes; `None` if the reply does not name them.
    pub(super) scopes: Option<ScopeSet>,
}

/// Reads the reply to a request at `path` for these scopes. `now` is service time.
pub(super) fn read(
    reply: &Reply,
    requested: &ScopeSet,
    path: &str,
    now: Timestamp,
) -> Result<Grant> {
    if let Some(error) = &reply.broken_body {
        return Err(match error.kind() {
            Kind::BodyTooLarge if reply.status >= 400 => {
                refusal(&Problem::default(), reply, path, now)
            }
            Kind::BodyTooLarge => error.clone().with_hint(OTHER_SERVICE),
            _ => error.clone(),
        });
    }
    let body = without_mark(&reply.body);
    let members = match serde_json::from_slice::<Value>(body) {
        Ok(Value::Object(members)) => members,
        Err(error) if error.is_eof() && body.trim_ascii_start().starts_with(b"{") => {
            return Err(Error::new(
                Kind::TruncatedBody,
                "the JSON of the token reply is truncated",
            )
            .with(|context| context.status = Some(reply.status)));
        }
        Ok(_) | Err(_) if reply.status == 200 => {
            return Err(Problem::default()
                .error(Kind::ProtocolError, "the token reply is not a JSON object", reply, now)
                .with_hint(OTHER_SERVICE));
        }
        Ok(_) | Err(_) => return Err(refusal(&Problem::default(), reply, path, now)),
    };
    let outcome = granted(&members, reply, requested, path, now);
    // A header may contain the token too.
    outcome.map_err(|error| {
        let tokens = TOKENS.iter().filter_map(|name| members.get(*name).and_then(Value::as_str));
        error.without(&tokens.map(Secret::token).collect::<Vec<_>>())
    })
}

fn granted(
    members: &Map<String, Value>,
    reply: &Reply,
    requested: &ScopeSet,
    path: &str,
    now: Timestamp,
) -> Result<Grant> {
    if reply.status != 200 || members.get("error").is_some_and(|error| !error.is_null()) {
        let text = requested.to_string();
        let problem = Problem::of_token_reply(members, &[&text]);
        return Err(refused(&problem, reply, requested, path, now));
    }
    let grant = Grant {
        authorization: authorization(members)?,
        lifetime: lifetime(members)?,
        scopes: members.get("scope").and_then(Value::as_str).map(ScopeSet::granted),
    };
    check_scopes(&grant, requested, reply)?;
    Ok(grant)
}

fn refused(
    problem: &Problem,
    reply: &Reply,
    requested: &ScopeSet,
    path: &str,
    now: Timestamp,
) -> Error {
    let error = |kind, message: &str| problem.error(kind, message, reply, now);
    match problem.code.as_deref() {
        Some("invalid_client") => not_this_client(problem, reply, path, now),
        Some("invalid_scope") => {
            let named = named_scopes(problem, requested);
            let message = format!("the service refused the scope {}", named.join(" "));
            error(Kind::ScopeError, &message)
                .with_hint("every requested scope must be allowed for the credential")
                .with(|context| context.missing = named)
        }
        Some("temporarily_unavailable") => {
            error(Kind::ServiceUnavailable, "the service cannot issue tokens at the moment")
        }
        Some("slow_down") => error(Kind::RateLimited, "too many token requests"),
        Some(
            "invalid_request" | "unsupported_grant_type" | "unauthorized_client" | "invalid_grant",
        ) => {
            let error = error(Kind::RequestRejected, "the service refused the token request");
            if reply.presented { error.with_hint(PERHAPS_NO_TOKENS) } else { error }
        }
        _ => refusal(problem, reply, path, now),
    }
}

/// Converts an error reply without a known code.
fn refusal(problem: &Problem, reply: &Reply, path: &str, now: Timestamp) -> Error {
    let what = format!("POST {path}");
    match reply.status {
        200 => problem.error(Kind::RequestRejected, "the token request was refused", reply, now),
        401 => not_this_client(problem, reply, path, now),
        404 => problem
            .by_status(&what, reply, now)
            .with_hint("there is no token endpoint at this path: check base_url= and its prefix"),
        _ => problem.by_status(&what, reply, now),
    }
}

/// The service refused the client's proof: the certificate of the connection if it had one,
/// otherwise the assertion.
fn not_this_client(problem: &Problem, reply: &Reply, path: &str, now: Timestamp) -> Error {
    if reply.presented {
        return problem.certificate_refused(&format!("POST {path}"), reply, now);
    }
    problem.error(Kind::AuthenticationError, "the service refused the assertion", reply, now)
}

/// The scopes in the error reply, or all requested scopes.
fn named_scopes(problem: &Problem, requested: &ScopeSet) -> Vec<String> {
    let detail = problem.detail.as_deref().unwrap_or_default();
    let named: Vec<String> =
        requested.iter().filter(|scope| detail.contains(scope)).map(str::to_owned).collect();
    if named.is_empty() { requested.iter().map(str::to_owned).collect() } else { named }
}

fn authorization(members: &Map<String, Value>) -> Result<HeaderValue> {
    match members.get("token_type").and_then(Value::as_str) {
        Some(kind) if kind.eq_ignore_ascii_case("bearer") => {}
        Some(_) => return Err(Error::protocol_at("$.token_type", "it is not a bearer token")),
        None => return Err(Error::protocol_at("$.token_type", "the token reply has no type")),
    }
    let refuse = |what: &str| Err(Error::protocol_at("$.access_token", what));
    let Some(value) = members.get("access_token").and_then(Value::as_str) else {
        return refuse("the token reply has no token");
    };
    if value.is_empty() || !value.bytes().all(|byte| byte.is_ascii_graphic()) {
        return refuse("the token is empty, or contains characters that are invalid in a header");
    }
    bearer(value)
}

fn lifetime(members: &Map<String, Value>) -> Result<Duration> {
    let seconds = match members.get("expires_in") {
        None | Some(Value::Null) => {
            log::warn!(
                target: "siteline::token",
                "the token reply states no lifetime; the token is used for {} s",
                UNSTATED_LIFETIME.as_secs()
            );
            return Ok(UNSTATED_LIFETIME);
        }
        Some(Value::Number(number)) => number.as_f64(),
        Some(Value::String(text)) => text.trim().parse::<f64>().ok(),
        Some(_) => None,
    };
    match seconds {
        Some(seconds) if seconds >= 1.0 && seconds.is_finite() => {
            Ok(Duration::from_secs_f64(seconds.min(LONGEST_LIFETIME).floor()))
        }
        _ => Err(Error::protocol_at(
            "$.expires_in",
            "the lifetime of the token is not a positive number of seconds",
        )),
    }
}

/// Refuses a grant with too few scopes. Services grant fewer without an error, and data requests
/// would fail later.
fn check_scopes(grant: &Grant, requested: &ScopeSet, reply: &Reply) -> Result<()> {
    let Some(granted) = &grant.scopes else {
        log::info!(
            target: "siteline::token",
            "the token reply states no scope; the granted scopes are not verified"
        );
        return Ok(());
    };
    let missing = requested.missing_from(granted);
    if missing.is_empty() {
        return Ok(());
    }
    Err(Error::new(
        Kind::ScopeError,
        format!("the service granted a token without the scope {}", missing.join(" ")),
    )
    .with_hint("request fewer scopes with scopes=, or have the scope allowed for the credential")
    .with(|context| {
        context.missing = missing;
        context.status = Some(reply.status);
        context.request_id = reply.request_id();
    }))
}

#[cfg(test)]
#[path = "grant_tests.rs"]
mod tests;
