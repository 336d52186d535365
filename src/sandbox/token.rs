//! The token endpoint (§4.1) and the tokens that it gave (§2.2).

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

use aws_lc_rs::rand;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;

use super::assertion::{Presented, SpentJtis, Verifier};
use super::enrollment::Enrollments;
use super::form;
use super::options::ServiceShape;
use super::reply::Reply;

/// Lifetime of an access token, seconds.
pub(super) const TOKEN_SECONDS: i64 = 600;
const RATE_WINDOW: Duration = Duration::from_secs(60);
const CLIENT_ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
const FIELDS: [&str; 4] = ["client_assertion", "client_assertion_type", "grant_type", "scope"];

/// One token request, as far as this endpoint looks at it.
pub(super) struct TokenRequest<'a> {
    pub(super) content_type: Option<&'a str>,
    pub(super) has_authorization: bool,
    pub(super) query: &'a str,
    pub(super) body: &'a [u8],
    /// Of a fault: grant only these.
    pub(super) granted_only: Option<&'a [String]>,
}

/// A refusal: what the client sees and what the author of a test sees.
pub(super) struct Refused {
    pub(super) reply: Reply,
    pub(super) reason: String,
}

/// Who may ask for tokens, how often, and which tokens live.
#[derive(Default)]
pub(super) struct TokenDesk {
    pub(super) enrollments: Enrollments,
    spent: SpentJtis,
    recent: HashMap<String, VecDeque<Duration>>,
    issued: HashMap<String, Token>,
}

#[derive(Clone)]
pub(super) struct Token {
    pub(super) subject: String,
    pub(super) scopes: Vec<String>,
    /// Unix seconds.
    expires: i64,
    forgotten: bool,
}

/// Where a bearer token stands.
pub(super) enum Bearer<'a> {
    Valid(&'a Token),
    /// Once given, valid no more: the requests made with it still count for its subject.
    Ended(&'a Token),
    Unknown,
}

/// The settings and the time of one exchange.
pub(super) struct Terms<'a> {
    pub(super) verifier: Verifier<'a>,
    pub(super) monotonic: Duration,
    pub(super) requests_per_minute: u32,
    pub(super) shape: &'a ServiceShape,
}

impl TokenDesk {
    /// Works through one request. `jtis` gets the jti presented, if there was one.
    pub(super) fn exchange(
        &mut self,
        request: &TokenRequest<'_>,
        terms: &Terms<'_>,
        jtis: &mut Vec<String>,
    ) -> Result<Reply, Refused> {
        let pairs = pairs(request.body);
        let is_new = self.presented(pairs.as_deref().unwrap_or_default(), terms, jtis)?;
        let fields =
            fields(request, pairs).map_err(|reason| refused(400, "invalid_request", reason))?;
        let invalid_client =
            |reason: String| refused(terms.shape.invalid_client_status, "invalid_client", reason);
        let presented = Presented::parse(&fields["client_assertion"])
            .map_err(|reason| invalid_client(reason.to_owned()))?;
        if fields["grant_type"] != "client_credentials" {
            return Err(refused(400, "unsupported_grant_type", "grant_type".to_owned()));
        }
        if fields["client_assertion_type"] != CLIENT_ASSERTION_TYPE {
            return Err(refused(400, "invalid_request", "client_assertion_type".to_owned()));
        }
        let subject =
            presented.verify(&self.enrollments, &terms.verifier).map_err(invalid_client)?;
        if !is_new {
            return Err(invalid_client("jti was used before".to_owned()));
        }
        let scopes = self.granted(&subject, &fields["scope"])?;
        let scopes = match request.granted_only {
            Some(only) => scopes.into_iter().filter(|scope| only.contains(scope)).collect(),
            None => scopes,
        };
        self.issue(subject, scopes, terms)
    }

    /// Spends the jti of an assertion, and counts the request of its issuer, before anything is
    /// checked: whatever is wrong with the request, the assertion has been presented. False where
    /// its jti was spent before.
    fn presented(
        &mut self,
        pairs: &[(String, String)],
        terms: &Terms<'_>,
        jtis: &mut Vec<String>,
    ) -> Result<bool, Refused> {
        let mut is_new = true;
        for (_, compact) in pairs.iter().filter(|(name, _)| name == "client_assertion") {
            let Ok(presented) = Presented::parse(compact) else { continue };
            let issuer = presented.claimed_issuer();
            if let Some(jti) = presented.jti() {
                jtis.push(jti.to_owned());
                is_new &= self.spent.spend(issuer, jti);
            }
            self.hold_rate(issuer, terms)?;
        }
        Ok(is_new)
    }

    /// Where this bearer token stands at `now`, Unix seconds.
    pub(super) fn bearer(&self, token: &str, now: i64) -> Bearer<'_> {
        match self.issued.get(token) {
            Some(token) if token.forgotten || now >= token.expires => Bearer::Ended(token),
            Some(token) => Bearer::Valid(token),
            None => Bearer::Unknown,
        }
    }

    /// From now on no token is known.
    pub(super) fn forget_tokens(&mut self) {
        for token in self.issued.values_mut() {
            token.forgotten = true;
        }
    }

    /// No token of this subject is good any more.
    pub(super) fn forget_tokens_of(&mut self, subject: &str) {
        for token in self.issued.values_mut().filter(|token| token.subject == subject) {
            token.forgotten = true;
        }
    }

    /// §5.4: so many in any 60 seconds, over the whole integration.
    fn hold_rate(&mut self, issuer: &str, terms: &Terms<'_>) -> Result<(), Refused> {
        let recent = self.recent.entry(issuer.to_owned()).or_default();
        while recent.front().is_some_and(|at| *at + RATE_WINDOW <= terms.monotonic) {
            recent.pop_front();
        }
        if recent.len() < terms.requests_per_minute as usize {
            recent.push_back(terms.monotonic);
            return Ok(());
        }
        let oldest = recent.front().copied().unwrap_or(terms.monotonic);
        let free = (oldest + RATE_WINDOW).saturating_sub(terms.monotonic);
        let mut refusal = refused(429, "slow_down", "too many token requests".to_owned());
        let seconds = free.as_secs() + u64::from(free.subsec_nanos() > 0);
        refusal.reply.set_header("Retry-After", Some(&seconds.to_string()));
        Err(refusal)
    }

    fn granted(&self, subject: &str, asked: &str) -> Result<Vec<String>, Refused> {
        let allowed = self.enrollments.get(subject).map(|one| one.scopes.as_slice());
        let allowed = allowed.unwrap_or_default();
        let mut scopes = Vec::new();
        for scope in asked.split(' ') {
            if !allowed.iter().any(|one| one == scope) {
                let reason = format!("scope {scope:?} is not allowed for the credential");
                return Err(refused(400, "invalid_scope", reason));
            }
            if !scopes.iter().any(|one| one == scope) {
                scopes.push(scope.to_owned());
            }
        }
        Ok(scopes)
    }

    fn issue(
        &mut self,
        subject: String,
        scopes: Vec<String>,
        terms: &Terms<'_>,
    ) -> Result<Reply, Refused> {
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
        let expires = terms.verifier.now.saturating_add(TOKEN_SECONDS);
        self.issued.insert(access_token, Token { subject, scopes, expires, forgotten: false });
        Ok(Reply::json(200, body.to_string()).with_header("Pragma", "no-cache"))
    }
}

/// A form, as far as a body can be read as one.
type Pairs = Vec<(String, String)>;

fn pairs(body: &[u8]) -> Result<Pairs, String> {
    form::decode(std::str::from_utf8(body).map_err(|_| "the body is not UTF-8")?)
}

/// The four fields, each once and nothing else, in an URL-encoded body.
fn fields(
    request: &TokenRequest<'_>,
    pairs: Result<Pairs, String>,
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
    if names != FIELDS {
        return Err(format!("the fields are {names:?}, not {FIELDS:?}"));
    }
    Ok(pairs.into_iter().collect())
}

fn refused(status: u16, code: &str, reason: String) -> Refused {
    Refused { reply: Reply::token_error(status, code), reason }
}
