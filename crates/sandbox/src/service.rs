//! The three endpoints (§4): authorization, the daily allowance, and replies.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use super::assertion::VerificationContext;
use super::certificates::{Certificates, Client};
use super::cursor::CursorSeal;
use super::error::SandboxError;
use super::fault::{ActiveFaults, Effect, Endpoint};
use super::options::Options;
use super::reply::Reply;
use super::snapshot::{DataSource, SnapshotCache};
use super::stats::{LoggedRequest, Stats};
use super::tls::Presented;
use super::token::{BearerStatus, ExchangeContext, TokenEndpoint, TokenRequest};
use siteline_base::clock::Clock;

const TOKEN_PATH: &str = "/api/customer/oauth/token";
const DISCOVERY_PATH: &str = "/api/customer/v1/discovery";
const DATA_PATH: &str = "/api/customer/v1/data";

pub(super) struct Request {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) query: String,
    /// In the order of arrival; names in lower case.
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Bytes,
    /// The client certificate of its connection.
    pub(super) presented: Presented,
}

impl Request {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Ignores the method.
    pub(super) fn endpoint(&self) -> Option<Endpoint> {
        match self.path.as_str() {
            TOKEN_PATH => Some(Endpoint::Token),
            DISCOVERY_PATH => Some(Endpoint::Discovery),
            DATA_PATH => Some(Endpoint::Data),
            _ => None,
        }
    }
}

/// The state of the service, behind one lock.
pub(super) struct Service {
    pub(super) options: Arc<Options>,
    pub(super) clock: Clock,
    pub(super) audience: String,
    pub(super) token_endpoint: TokenEndpoint,
    pub(super) certificates: Option<Certificates>,
    pub(super) source: DataSource,
    pub(super) snapshots: SnapshotCache,
    pub(super) seal: CursorSeal,
    pub(super) faults: ActiveFaults,
    pub(super) stats: Stats,
    /// Data requests by subject and UTC day.
    allowance_used: HashMap<(String, Date), u64>,
    /// Cursors in the order in which they were sent, by the binding of their chain.
    pub(super) issued_cursors: HashMap<Vec<u8>, Vec<String>>,
}

#[derive(Clone, Copy)]
struct Received<'a> {
    request: &'a Request,
    client: Option<&'a Client>,
    now: Timestamp,
}

pub(super) struct Caller {
    pub(super) subject: String,
    pub(super) scopes: Vec<String>,
}

impl Service {
    pub(super) fn new(
        options: Options,
        clock: Clock,
        base_url: &str,
        certificates: Option<Certificates>,
    ) -> Result<Self, SandboxError> {
        let plant = super::plant::Plant::new(options.seed, options.lateness, options.integer_ids);
        Ok(Self {
            audience: format!("{base_url}{TOKEN_PATH}"),
            token_endpoint: TokenEndpoint::default(),
            certificates,
            source: DataSource::Generated(plant),
            snapshots: SnapshotCache::default(),
            seal: CursorSeal::new()?,
            faults: ActiveFaults::default(),
            stats: Stats::new(),
            allowance_used: HashMap::new(),
            issued_cursors: HashMap::new(),
            options: Arc::new(options),
            clock,
        })
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.wall()
    }

    pub(super) fn receive(&mut self, request: &Request) -> Vec<Effect> {
        let today = today(self.now());
        let endpoint = request.endpoint();
        self.stats.count(endpoint, today);
        if let Some(agent) = request.header("user-agent") {
            self.stats.user_agents.insert(agent.to_owned());
        }
        endpoint.map(|endpoint| self.faults.next_request(endpoint)).unwrap_or_default()
    }

    pub(super) fn log(&mut self, request: &Request, status: u16) {
        let logged = LoggedRequest {
            at: self.now(),
            method: request.method.clone(),
            path: request.path.clone(),
            query: redacted(&request.query),
            status,
        };
        self.stats.log(request.endpoint(), logged);
    }

    /// Applies only the effects that change what an endpoint does.
    pub(super) fn reply(&mut self, request: &Request, effects: &[Effect]) -> Reply {
        let client = match self.client(request) {
            Ok(client) => client,
            Err(refusal) => return refusal,
        };
        let received = Received { request, client: client.as_ref(), now: self.now() };
        match (request.method.as_str(), request.endpoint()) {
            ("POST", Some(Endpoint::Token)) => self.token(received, effects),
            ("GET", Some(Endpoint::Discovery)) => self.discovery(received),
            ("GET", Some(Endpoint::Data)) => self.data(received, effects),
            (_, Some(endpoint)) => {
                let allowed = if endpoint == Endpoint::Token { "POST" } else { "GET" };
                self.error(405, "method_not_allowed", "this method is not allowed here")
                    .with_header("Allow", allowed)
            }
            (_, None) => self.error(404, "not_found", "this path does not exist"),
        }
    }

    fn token(&mut self, received: Received<'_>, effects: &[Effect]) -> Reply {
        let Received { request, client, now } = received;
        if self.certificates.is_some() && !client.is_some_and(|one| one.has_tokens) {
            let detail = "the certificate authorises requests, and there are no tokens";
            self.stats.log_refusal(Endpoint::Token, detail);
            return Reply::token_error(400, "unauthorized_client");
        }
        let granted_only = effects.iter().find_map(|effect| match effect {
            Effect::Grant(scopes) => Some(scopes.as_slice()),
            _ => None,
        });
        let token_request = TokenRequest {
            content_type: request.header("content-type"),
            has_authorization: request.header("authorization").is_some(),
            query: &request.query,
            body: &request.body,
            granted_only,
            client,
        };
        let context = ExchangeContext {
            verification: VerificationContext {
                audience: &self.audience,
                now: now.as_second(),
                leeway: self.options.leeway_seconds,
            },
            monotonic: self.clock.monotonic(),
            requests_per_minute: self.options.token_requests_per_minute,
            invalid_client_status: self.options.invalid_client_status,
        };
        match self.token_endpoint.exchange(&token_request, &context, &mut self.stats.jtis) {
            Ok(reply) => {
                self.stats.tokens_issued += 1;
                reply
            }
            Err(refusal) => {
                self.stats.log_refusal(Endpoint::Token, &refusal.reason);
                refusal.reply
            }
        }
    }

    fn discovery(&mut self, received: Received<'_>) -> Reply {
        let caller = match self.authorize(received, Endpoint::Discovery) {
            Ok(caller) => caller,
            Err(reply) => return reply,
        };
        if !received.request.query.is_empty() {
            let detail = "discovery takes no parameters";
            return self.refuse(Endpoint::Discovery, 400, "invalid_request", detail);
        }
        let body = super::body::discovery(&self.source, &caller.subject, &self.options);
        Reply::json(200, body)
    }

    fn data(&mut self, received: Received<'_>, effects: &[Effect]) -> Reply {
        if let Err(reply) = self.use_allowance(received) {
            return reply;
        }
        let Received { request, now, .. } = received;
        match self.authorize(received, Endpoint::Data) {
            Ok(caller) => self.data_page(&request.query, &caller.subject, now, effects),
            Err(reply) => reply,
        }
    }

    /// §8: counts a data request in the daily allowance of its subject, and refuses requests beyond
    /// it. A request with an expired token counts too.
    fn use_allowance(&mut self, received: Received<'_>) -> Result<(), Reply> {
        let Received { request, client, now } = received;
        let token = request.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
        let status = token.map(|token| self.token_endpoint.status(token, now.as_second()));
        let subject = match (client, status) {
            (Some(client), _) => client.name.clone(),
            (None, Some(BearerStatus::Valid(token) | BearerStatus::Expired(token))) => {
                token.subject.clone()
            }
            (None, _) => return Ok(()),
        };
        let used = self.allowance_used.entry((subject, today(now))).or_default();
        *used += 1;
        match self.options.daily_allowance {
            Some(limit) if *used > limit => {
                let wait = until_midnight(now).as_secs().max(1);
                let detail = "the daily allowance is used up";
                let reply = self.refuse(Endpoint::Data, 429, "allowance_exceeded", detail);
                Err(reply.with_header("Retry-After", &wait.to_string()))
            }
            _ => Ok(()),
        }
    }

    /// §5: authenticates the caller, and checks scope, `Accept` and body.
    fn authorize(&mut self, received: Received<'_>, endpoint: Endpoint) -> Result<Caller, Reply> {
        let Received { request, client, .. } = received;
        let accepts = |list: &str| {
            ["application/json", "application/*", "*/*"].iter().any(|kind| {
                list.split(',').any(|one| one.split(';').next().map(str::trim) == Some(*kind))
            })
        };
        let caller = match client {
            Some(client) if !client.has_tokens => self.known_client(request, client, endpoint)?,
            _ => self.authenticate(received, endpoint)?,
        };
        let needed = match endpoint {
            Endpoint::Discovery => super::enrollment::DISCOVERY_SCOPE,
            _ => super::enrollment::DATA_SCOPE,
        };
        if !caller.scopes.iter().any(|scope| scope == needed) {
            let reply = self.refuse(endpoint, 403, "insufficient_scope", "the scope is missing");
            let challenge = format!("Bearer error=\"insufficient_scope\", scope=\"{needed}\"");
            return Err(reply.with_header("WWW-Authenticate", &challenge));
        }
        // §4.2 requires the header for discovery only.
        let accept = request.header("accept");
        if accept.map_or(endpoint == Endpoint::Discovery, |list| !accepts(list)) {
            let detail = "Accept does not include application/json";
            return Err(self.refuse(endpoint, 406, "not_acceptable", detail));
        }
        if !request.body.is_empty() {
            return Err(self.refuse(endpoint, 400, "invalid_request", "a GET with a body"));
        }
        Ok(caller)
    }

    fn authenticate(
        &mut self,
        received: Received<'_>,
        endpoint: Endpoint,
    ) -> Result<Caller, Reply> {
        let Received { request, client, now } = received;
        let mut given = request.headers.iter().filter(|(name, _)| name == "authorization");
        let (token, reason) = match (given.next(), given.next()) {
            (None, _) => (None, "no Authorization header"),
            (Some(_), Some(_)) => (None, "two Authorization headers"),
            (Some((_, value)), None) => {
                (value.strip_prefix("Bearer "), "the Authorization header has no bearer token")
            }
        };
        let Some(token) = token else {
            let reply = self.refuse(endpoint, 401, "missing_token", reason);
            return Err(reply.with_header("WWW-Authenticate", "Bearer realm=\"customer\""));
        };
        let thumbprint = client.map(|client| client.thumbprint);
        let reason = match self.token_endpoint.status(token, now.as_second()) {
            BearerStatus::Valid(token) if token.bound != thumbprint => {
                "the access token is bound to another certificate"
            }
            BearerStatus::Valid(token) => {
                return Ok(Caller { subject: token.subject.clone(), scopes: token.scopes.clone() });
            }
            BearerStatus::Expired(_) => "the access token has expired",
            BearerStatus::Unknown if token.starts_with("eyJ") => {
                "an assertion was sent as access token"
            }
            BearerStatus::Unknown => "the access token is unknown",
        };
        let reply = self.refuse(endpoint, 401, "invalid_token", reason);
        let challenge = "Bearer realm=\"customer\", error=\"invalid_token\"";
        Err(reply.with_header("WWW-Authenticate", challenge))
    }

    pub(super) fn refuse(
        &mut self,
        endpoint: Endpoint,
        status: u16,
        code: &str,
        detail: &str,
    ) -> Reply {
        self.stats.log_refusal(endpoint, detail);
        self.error(status, code, detail)
    }

    fn error(&self, status: u16, code: &str, detail: &str) -> Reply {
        Reply::error(self.options.error_body, status, code, detail)
    }
}

fn today(now: Timestamp) -> Date {
    now.to_zoned(TimeZone::UTC).date()
}

fn until_midnight(now: Timestamp) -> Duration {
    let second = now.as_second().rem_euclid(86_400);
    Duration::from_secs(86_400 - second.unsigned_abs())
}

/// A query string for the log: a short hash replaces the value of a cursor and of every unknown
/// parameter, which may be a token or an assertion.
fn redacted(query: &str) -> String {
    let short = |text: &str| {
        let hash = super::plant::hash(&text.bytes().map(u64::from).collect::<Vec<_>>());
        format!("#{:08x}", hash >> 32)
    };
    let hide = |pair: &str| match pair.split_once('=') {
        Some((name, _)) if super::query::LOGGED_PARAMETERS.contains(&name) => pair.to_owned(),
        Some((name, value)) => format!("{name}={}", short(value)),
        None if pair.is_empty() => String::new(),
        None => short(pair),
    };
    query.split('&').map(hide).collect::<Vec<_>>().join("&")
}
