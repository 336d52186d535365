//! The three endpoints (§4): what comes in, who may, what is counted, what goes out.

use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::answer::{Answers, Holdings};
use super::assertion::Verifier;
use super::cursor::CursorSeal;
use super::error::SandboxError;
use super::fault::{Act, Endpoint, Script};
use super::options::Options;
use super::reply::Reply;
use super::stats::{Exchange, Stats};
use super::token::{Bearer, Terms, TokenDesk, TokenRequest};
use crate::clock::Clock;

const TOKEN_PATH: &str = "/api/customer/oauth/token";
const DISCOVERY_PATH: &str = "/api/customer/v1/discovery";
const DATA_PATH: &str = "/api/customer/v1/data";

/// A request as it came off the wire.
pub(super) struct Request {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) query: String,
    /// Names in lower case, in the order in which they came.
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Bytes,
}

impl Request {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The endpoint of the path, whatever the method.
    pub(super) fn endpoint(&self) -> Option<Endpoint> {
        match self.path.as_str() {
            TOKEN_PATH => Some(Endpoint::Token),
            DISCOVERY_PATH => Some(Endpoint::Discovery),
            DATA_PATH => Some(Endpoint::Data),
            _ => None,
        }
    }
}

/// Everything that the service knows; one lock around it all.
pub(super) struct Service {
    pub(super) options: Options,
    pub(super) clock: Clock,
    pub(super) audience: String,
    pub(super) desk: TokenDesk,
    pub(super) holdings: Holdings,
    pub(super) answers: Answers,
    pub(super) seal: CursorSeal,
    pub(super) script: Script,
    pub(super) stats: Stats,
    /// Data requests by subject and UTC day.
    pub(super) allowance: std::collections::HashMap<(String, jiff::civil::Date), u64>,
    /// Cursors in the order in which they were given, by what they are bound to.
    pub(super) given: std::collections::HashMap<Vec<u8>, Vec<String>>,
}

/// A bearer that was let in.
struct Caller {
    subject: String,
    scopes: Vec<String>,
}

impl Service {
    pub(super) fn new(
        options: Options,
        clock: Clock,
        base_url: &str,
    ) -> Result<Self, SandboxError> {
        let (seed, digits) = (options.seed, options.shape.integer_ids);
        let plant = super::synth::Plant::new(seed, options.lateness, digits);
        Ok(Self {
            audience: format!("{base_url}{TOKEN_PATH}"),
            desk: TokenDesk::default(),
            holdings: Holdings::Generated(plant),
            answers: Answers::default(),
            seal: CursorSeal::new()?,
            script: Script::default(),
            stats: Stats::default(),
            allowance: std::collections::HashMap::new(),
            given: std::collections::HashMap::new(),
            options,
            clock,
        })
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.wall()
    }

    /// Counts a request that has come, and gives the faults that strike it.
    pub(super) fn arrived(&mut self, request: &Request) -> Vec<Act> {
        let today = today(self.now());
        let endpoint = request.endpoint();
        self.stats.arrived(endpoint, today);
        if let Some(agent) = request.header("user-agent") {
            self.stats.user_agents.insert(agent.to_owned());
        }
        endpoint.map(|endpoint| self.script.strike(endpoint)).unwrap_or_default()
    }

    /// Writes down what became of a request.
    pub(super) fn ended(&mut self, request: &Request, status: u16) {
        let exchange = Exchange {
            at: self.now(),
            method: request.method.clone(),
            path: request.path.clone(),
            query: hidden(&request.query),
            status,
        };
        self.stats.ended(request.endpoint(), exchange);
    }

    /// The right reply to a request, as far as the faults that strike it leave it right.
    pub(super) fn reply(&mut self, request: &Request, faults: &[Act]) -> Reply {
        let now = self.now();
        match (request.method.as_str(), request.endpoint()) {
            ("POST", Some(Endpoint::Token)) => self.token(request, now, faults),
            ("GET", Some(Endpoint::Discovery)) => self.discovery(request, now),
            ("GET", Some(Endpoint::Data)) => self.data(request, now, faults),
            (_, Some(endpoint)) => {
                let allowed = if endpoint == Endpoint::Token { "POST" } else { "GET" };
                self.error(405, "method_not_allowed", "this method is not offered here")
                    .with_header("Allow", allowed)
            }
            (_, None) => self.error(404, "not_found", "there is nothing at this path"),
        }
    }

    fn token(&mut self, request: &Request, now: Timestamp, faults: &[Act]) -> Reply {
        let granted_only = faults.iter().find_map(|act| match act {
            Act::Grant(scopes) => Some(scopes.as_slice()),
            _ => None,
        });
        let token_request = TokenRequest {
            content_type: request.header("content-type"),
            has_authorization: request.header("authorization").is_some(),
            query: &request.query,
            body: &request.body,
            granted_only,
        };
        let terms = Terms {
            verifier: Verifier {
                audience: &self.audience,
                now: now.as_second(),
                leeway: self.options.leeway_seconds,
            },
            monotonic: self.clock.monotonic(),
            requests_per_minute: self.options.token_requests_per_minute,
            shape: &self.options.shape,
        };
        match self.desk.exchange(&token_request, &terms, &mut self.stats.jtis) {
            Ok(reply) => {
                self.stats.tokens_issued += 1;
                reply
            }
            Err(refused) => {
                self.stats.refuse(Endpoint::Token, &refused.reason);
                refused.reply
            }
        }
    }

    fn discovery(&mut self, request: &Request, now: Timestamp) -> Reply {
        let caller = match self.admit(request, now, Endpoint::Discovery) {
            Ok(caller) => caller,
            Err(reply) => return reply,
        };
        if !request.query.is_empty() {
            return self.refuse(Endpoint::Discovery, 400, "invalid_request", "no parameters here");
        }
        let shape = &self.options.shape;
        Reply::json(200, super::render::discovery(&self.holdings, &caller.subject, shape))
    }

    fn data(&mut self, request: &Request, now: Timestamp, faults: &[Act]) -> Reply {
        if let Err(reply) = self.count(request, now) {
            return reply;
        }
        match self.admit(request, now, Endpoint::Data) {
            Ok(caller) => self.data_page(&request.query, &caller.subject, now, faults),
            Err(reply) => reply,
        }
    }

    /// §8: counts a data request against the allowance of its subject, and refuses it beyond.
    /// A token that has ended still says whose request it is.
    fn count(&mut self, request: &Request, now: Timestamp) -> Result<(), Reply> {
        let token = request.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
        let subject = match token.map(|token| self.desk.bearer(token, now.as_second())) {
            Some(Bearer::Valid(token) | Bearer::Ended(token)) => token.subject.clone(),
            _ => return Ok(()),
        };
        let used = self.allowance.entry((subject, today(now))).or_default();
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

    /// §5: who is it, and may he.
    fn admit(
        &mut self,
        request: &Request,
        now: Timestamp,
        endpoint: Endpoint,
    ) -> Result<Caller, Reply> {
        let accepts = |list: &str| {
            ["application/json", "application/*", "*/*"].iter().any(|kind| {
                list.split(',').any(|one| one.split(';').next().map(str::trim) == Some(*kind))
            })
        };
        let caller = self.identify(request, now, endpoint)?;
        let needed = match endpoint {
            Endpoint::Discovery => super::enrollment::DISCOVERY_SCOPE,
            _ => super::enrollment::DATA_SCOPE,
        };
        if !caller.scopes.iter().any(|scope| scope == needed) {
            let reply = self.refuse(endpoint, 403, "insufficient_scope", "the scope is missing");
            let challenge = format!("Bearer error=\"insufficient_scope\", scope=\"{needed}\"");
            return Err(reply.with_header("WWW-Authenticate", &challenge));
        }
        // §4.2 names the header for discovery; for data it may be left out.
        let accept = request.header("accept");
        if accept.map_or(endpoint == Endpoint::Discovery, |list| !accepts(list)) {
            let detail = "Accept does not take application/json";
            return Err(self.refuse(endpoint, 406, "not_acceptable", detail));
        }
        if !request.body.is_empty() {
            return Err(self.refuse(endpoint, 400, "invalid_request", "a GET with a body"));
        }
        Ok(caller)
    }

    fn identify(
        &mut self,
        request: &Request,
        now: Timestamp,
        endpoint: Endpoint,
    ) -> Result<Caller, Reply> {
        let mut given = request.headers.iter().filter(|(name, _)| name == "authorization");
        let (token, reason) = match (given.next(), given.next()) {
            (None, _) => (None, "no Authorization header"),
            (Some(_), Some(_)) => (None, "two Authorization headers"),
            (Some((_, value)), None) => {
                (value.strip_prefix("Bearer "), "the Authorization header is no bearer token")
            }
        };
        let Some(token) = token else {
            let reply = self.refuse(endpoint, 401, "missing_token", reason);
            return Err(reply.with_header("WWW-Authenticate", "Bearer realm=\"customer\""));
        };
        let reason = match self.desk.bearer(token, now.as_second()) {
            Bearer::Valid(token) => {
                return Ok(Caller { subject: token.subject.clone(), scopes: token.scopes.clone() });
            }
            Bearer::Ended(_) => "the access token has expired",
            Bearer::Unknown if token.starts_with("eyJ") => "an assertion was sent as access token",
            Bearer::Unknown => "the access token is not known",
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
        self.stats.refuse(endpoint, detail);
        self.error(status, code, detail)
    }

    fn error(&self, status: u16, code: &str, detail: &str) -> Reply {
        Reply::error(self.options.shape.error_body, status, code, detail)
    }
}

fn today(now: Timestamp) -> jiff::civil::Date {
    now.to_zoned(TimeZone::UTC).date()
}

/// From now to the next midnight, UTC.
fn until_midnight(now: Timestamp) -> Duration {
    let second = now.as_second().rem_euclid(86_400);
    Duration::from_secs(86_400 - second.unsigned_abs())
}

/// A query string in which only the values of harmless parameters can be read: those of a cursor,
/// and of everything that has no place in a query (a token, an assertion), are short hashes.
fn hidden(query: &str) -> String {
    let short = |text: &str| {
        let hash = super::synth::hash(&text.bytes().map(u64::from).collect::<Vec<_>>());
        format!("#{:08x}", hash >> 32)
    };
    let hide = |pair: &str| match pair.split_once('=') {
        Some((name, _)) if super::query::HARMLESS.contains(&name) => pair.to_owned(),
        Some((name, value)) => format!("{name}={}", short(value)),
        None if pair.is_empty() => String::new(),
        None => short(pair),
    };
    query.split('&').map(hide).collect::<Vec<_>>().join("&")
}
