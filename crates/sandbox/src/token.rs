//! The token endpoint (§4.1) and the tokens that it issued (§2.2).

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

use aws_lc_rs::rand;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;

use super::assertion::{SpentJtis, UnverifiedAssertion, VerificationContext};
use super::certificates::{Client, Thumbprint};
use super::enrollment::{DATA_SCOPE, DISCOVERY_SCOPE, Enrollments};
use super::form;
use super::reply::Reply;

/// The lifetime of an access token in seconds.
pub(super) const TOKEN_SECONDS: i64 = 600;
const RATE_WINDOW: Duration = Duration::from_secs(60);
const CLIENT_ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
const FIELDS: [&str; 4] = ["client_assertion", "client_assertion_type", "grant_type", "scope"];
/// The fields of a client that its certificate authenticates.
const CLIENT_FIELDS: [&str; 3] = ["client_id", "grant_type", "scope"];

pub(super) struct TokenRequest<'a> {
    pub(super) content_type: Option<&'a str>,
    pub(super) has_authorization: bool,
    pub(super) query: &'a str,
    pub(super) body: &'a [u8],
    /// The only scopes that [`Effect::Grant`](super::fault::Effect::Grant) lets through.
    pub(super) granted_only: Option<&'a [String]>,
    /// The client whose certificate authenticates the request, without an assertion.
    pub(super) client: Option<&'a Client>,
}

/// A refused request: the reply for the client, and the reason for the author of a test.
pub(super) struct Refusal {
    pub(super) reply: Reply,
    pub(super) reason: String,
}

/// The enrolled integrations, their recent requests and their tokens.
#[derive(Default)]
pub(super) struct TokenEndpoint {
    pub(super) enrollments: Enrollments,
    spent: SpentJtis,
    /// The times of each issuer's requests in the last minute.
    recent: HashMap<String, VecDeque<Duration>>,
    issued: HashMap<String, Token>,
}

#[derive(Clone)]
pub(super) struct Token {
    pub(super) subject: String,
    pub(super) scopes: Vec<String>,
    /// The certificate that it is bound to.
    pub(super) bound: Option<Thumbprint>,
    /// Unix seconds.
    expires: i64,
    forgotten: bool,
}

pub(super) enum BearerStatus<'a> {
    Valid(&'a Token),
    /// Expired or revoked; requests with it still count in the allowance of its subject.
    Expired(&'a Token),
    Unknown,
}

pub(super) struct ExchangeContext<'a> {
    pub(super) verification: VerificationContext<'a>,
    pub(super) monotonic: Duration,
    pub(super) requests_per_minute: u32,
    pub(super) invalid_client_status: u16,
}

impl TokenEndpoint {
    /// Answers one request. Appends the jti that it presents, if any, to `jtis`.
    pub(super) fn exchange(
        &mut self,
        request: &TokenRequest<'_>,
        context: &ExchangeContext<'_>,
        jtis: &mut Vec<String>,
    ) -> Result<Reply, Refusal> {
        let pairs = pairs(request.body);
        if let Some(client) = request.client {
            return self.exchange_of_client(request, client, pairs, context);
        }
        let is_new =
            self.record_presentation(pairs.as_deref().unwrap_or_default(), context, jtis)?;
        let fields = fields(request, pairs, &FIELDS)
            .map_err(|reason| refused(400, "invalid_request", reason))?;
        let invalid_client =
            |reason: String| refused(context.invalid_client_status, "invalid_client", reason);
        let assertion = UnverifiedAssertion::parse(&fields["client_assertion"])
            .map_err(|reason| invalid_client(reason.to_owned()))?;
        if fields["grant_type"] != "client_credentials" {
            return Err(refused(400, "unsupported_grant_type", "grant_type".to_owned()));
        }
        if fields["client_assertion_type"] != CLIENT_ASSERTION_TYPE {
            return Err(refused(400, "invalid_request", "client_assertion_type".to_owned()));
        }
        let subject =
            assertion.verify(&self.enrollments, &context.verification).map_err(invalid_client)?;
        if !is_new {
            return Err(invalid_client("jti was used before".to_owned()));
        }
        let allowed = self.enrollments.get(&subject).map(|one| one.scopes.as_slice());
        let scopes = granted(allowed.unwrap_or_default(), &fields["scope"], request.granted_only)?;
        self.issue(subject, scopes, None, context)
    }

    /// RFC 8705 §2: the certificate authenticates the request, and the token is bound to it.
    fn exchange_of_client(
        &mut self,
        request: &TokenRequest<'_>,
        client: &Client,
        pairs: Result<Pairs, String>,
        context: &ExchangeContext<'_>,
    ) -> Result<Reply, Refusal> {
        self.limit_rate(&client.name, context)?;
        let fields = fields(request, pairs, &CLIENT_FIELDS)
            .map_err(|reason| refused(400, "invalid_request", reason))?;
        if fields["grant_type"] != "client_credentials" {
            return Err(refused(400, "unsupported_grant_type", "grant_type".to_owned()));
        }
        if fields["client_id"] != client.name {
            let reason = "client_id is not the certificate's name".to_owned();
            return Err(refused(context.invalid_client_status, "invalid_client", reason));
        }
        let allowed = [DISCOVERY_SCOPE, DATA_SCOPE].map(str::to_owned);
        let scopes = granted(&allowed, &fields["scope"], request.granted_only)?;
        self.issue(client.name.clone(), scopes, Some(client.thumbprint), context)
    }

    /// Spends the jti of an assertion and counts the request for its issuer before anything is
    /// checked: a request that fails also uses up its assertion. False if the jti was spent
    /// before.
    fn record_presentation(
        &mut self,
        pairs: &[(String, String)],
        context: &ExchangeContext<'_>,
        jtis: &mut Vec<String>,
    ) -> Result<bool, Refusal> {
        let mut is_new = true;
        for (_, compact) in pairs.iter().filter(|(name, _)| name == "client_assertion") {
            let Ok(assertion) = UnverifiedAssertion::parse(compact) else { continue };
            let issuer = assertion.claimed_issuer();
            if let Some(jti) = assertion.jti() {
                jtis.push(jti.to_owned());
                is_new &= self.spent.spend(issuer, jti);
            }
            self.limit_rate(issuer, context)?;
        }
        Ok(is_new)
    }

    /// The status of this bearer token at `now`, in Unix seconds.
    pub(super) fn status(&self, token: &str, now: i64) -> BearerStatus<'_> {
        match self.issued.get(token) {
            Some(token) if token.forgotten || now >= token.expires => BearerStatus::Expired(token),
            Some(token) => BearerStatus::Valid(token),
            None => BearerStatus::Unknown,
        }
    }

    pub(super) fn forget_tokens(&mut self) {
        for token in self.issued.values_mut() {
            token.forgotten = true;
        }
    }

    pub(super) fn forget_tokens_of(&mut self, subject: &str) {
        for token in self.issued.values_mut().filter(|token| token.subject == subject) {
            token.forgotten = true;
        }
    }

    /// §5.4: refuses requests of an integration beyond the limit in any 60 seconds.
    fn limit_rate(&mut self, issuer: &str, context: &ExchangeContext<'_>) -> Result<(), Refusal> {
        let recent = self.recent.entry(issuer.to_owned()).or_default();
        while recent.front().is_some_and(|at| *at + RATE_WINDOW <= context.monotonic) {
            recent.pop_front();
        }
        if recent.len() < context.requests_per_minute as usize {
            recent.push_back(context.monotonic);
            return Ok(());
        }
        let oldest = recent.front().copied().unwrap_or(context.monotonic);
        let free = (oldest + RATE_WINDOW).saturating_sub(context.monotonic);
        let mut refusal = refused(429, "slow_down", "too many token requests".to_owned());
        let seconds = free.as_secs() + u64::from(free.subsec_nanos() > 0);
        refusal.reply.set_header("Retry-After", Some(&seconds.to_string()));
        Err(refusal)
    }

    fn issue(
        &mut self,
        subject: String,
        scopes: Vec<String>,
        bound: Option<Thumbprint>,
        context: &ExchangeContext<'_>,
    ) -> Result<Reply, Refusal> {
        let mut octets = [0_u8; 32];
        rand::fill(&mut octets)
            .map_err(|_| refused(500, "server_error", "no random bytes".to_owned()))?;
        let access_token = format!("sandbox.{}", URL_SAFE_NO_PAD.encode(octets));
        let body = json!({
            "access_token": access_token,
            "token_type": "Bearer",
            "expires_in": TOKEN_SECONDS,
            "scope": scopes.join(" "),
        });
        let expires = context.verification.now.saturating_add(TOKEN_SECONDS);
        self.issued
            .insert(access_token, Token { subject, scopes, bound, expires, forgotten: false });
        Ok(Reply::json(200, body.to_string()).with_header("Pragma", "no-cache"))
    }
}

type Pairs = Vec<(String, String)>;

fn pairs(body: &[u8]) -> Result<Pairs, String> {
    form::decode(std::str::from_utf8(body).map_err(|_| "the body is not UTF-8")?)
}

/// The requested scopes. Each must be allowed.
fn granted(
    allowed: &[String],
    requested: &str,
    only: Option<&[String]>,
) -> Result<Vec<String>, Refusal> {
    let mut scopes: Vec<String> = Vec::new();
    for scope in requested.split(' ') {
        if !allowed.iter().any(|one| one == scope) {
            let reason = format!("scope {scope:?} is not allowed for the credential");
            return Err(refused(400, "invalid_scope", reason));
        }
        if !scopes.iter().any(|one| one == scope) {
            scopes.push(scope.to_owned());
        }
    }
    scopes.retain(|scope| only.is_none_or(|only| only.contains(scope)));
    Ok(scopes)
}

/// The expected fields, each exactly once and no others, from a URL-encoded body.
fn fields(
    request: &TokenRequest<'_>,
    pairs: Result<Pairs, String>,
    expected: &[&str],
) -> Result<BTreeMap<String, String>, String> {
    if request.has_authorization {
        return Err("an Authorization header on the token request".to_owned());
    }
    if !request.query.is_empty() {
        return Err("a query on the token address".to_owned());
    }
    let content_type = request.content_type.unwrap_or_default();
    let media_type = content_type.split(';').next().unwrap_or_default().trim();
    if !media_type.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
        return Err("the body is not application/x-www-form-urlencoded".to_owned());
    }
    let pairs = pairs?;
    let mut names: Vec<_> = pairs.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    if names != expected {
        return Err(format!("the fields are {names:?}, not {expected:?}"));
    }
    Ok(pairs.into_iter().collect())
}

fn refused(status: u16, code: &str, reason: String) -> Refusal {
    Refusal { reply: Reply::token_error(status, code), reason }
}
