//! The counts and the log of the service: for assertions in tests, and for users who want to know
//! the requests that their program has sent.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use jiff::civil::Date;
use serde::Serialize;

use super::fault::Endpoint;

/// The most entries in the logs of requests and of refusals: a sandbox may run for days.
pub(crate) const LOG_LENGTH: usize = 10_000;

/// A copy of the counts and the log since the sandbox started.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Stats {
    /// Requests by endpoint name (`token`, `discovery`, `data`, and `other` if there were any) and
    /// status; status 0 is a request without a complete reply.
    pub requests: BTreeMap<&'static str, BTreeMap<u16, u64>>,
    pub token_requests: u64,
    pub tokens_issued: u64,
    pub discovery_requests: u64,
    /// With any status.
    pub data_requests: u64,
    /// The same per UTC day of the service's clock.
    pub data_requests_by_day: BTreeMap<Date, u64>,
    /// Points in data replies.
    pub points_sent: u64,
    /// All jtis that were presented, in order, repeats included.
    pub jtis: Vec<String>,
    /// Why requests were refused, such as `"token: kid is not ..."`: the last [`LOG_LENGTH`], in
    /// order.
    pub refusals: Vec<String>,
    /// The `User-Agent`s of the requests.
    pub user_agents: BTreeSet<String>,
    /// The last [`LOG_LENGTH`] requests, in order.
    pub log: Vec<LoggedRequest>,
}

/// One request and its status, without tokens and cursors.
#[derive(Debug, Clone, Serialize)]
pub struct LoggedRequest {
    /// When the reply was sent, by the service's clock.
    pub at: Timestamp,
    pub method: String,
    pub path: String,
    /// The query as sent, with short hashes for the values of `cursor` and of parameters that the
    /// document does not name.
    pub query: String,
    /// 0 without a complete reply.
    pub status: u16,
}

impl Stats {
    /// No requests yet, with an entry for every endpoint.
    pub(super) fn new() -> Self {
        let requests = Endpoint::ALL.map(|endpoint| (endpoint.name(), BTreeMap::new()));
        Self { requests: requests.into(), ..Self::default() }
    }

    pub fn replies(&self, endpoint: Endpoint, status: u16) -> u64 {
        let by_status = self.requests.get(endpoint.name());
        by_status.and_then(|counts| counts.get(&status)).copied().unwrap_or_default()
    }

    pub(super) fn log_refusal(&mut self, endpoint: Endpoint, reason: &str) {
        push(&mut self.refusals, format!("{}: {reason}", endpoint.name()));
    }

    pub(super) fn count(&mut self, endpoint: Option<Endpoint>, today: Date) {
        match endpoint {
            Some(Endpoint::Token) => self.token_requests += 1,
            Some(Endpoint::Discovery) => self.discovery_requests += 1,
            Some(Endpoint::Data) => {
                self.data_requests += 1;
                *self.data_requests_by_day.entry(today).or_default() += 1;
            }
            None => {}
        }
    }

    pub(super) fn log(&mut self, endpoint: Option<Endpoint>, request: LoggedRequest) {
        let name = endpoint.map_or("other", Endpoint::name);
        *self.requests.entry(name).or_default().entry(request.status).or_default() += 1;
        push(&mut self.log, request);
    }
}

fn push<T>(log: &mut Vec<T>, entry: T) {
    if log.len() == LOG_LENGTH {
        log.remove(0);
    }
    log.push(entry);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_run_keeps_its_counts_and_its_last_requests() {
        let mut stats = Stats::new();
        for status in 200..700 {
            for _ in 0..30 {
                let (method, path, query) = (String::new(), String::new(), String::new());
                let at = Timestamp::UNIX_EPOCH;
                stats.log(Some(Endpoint::Data), LoggedRequest { at, method, path, query, status });
                stats.log_refusal(Endpoint::Data, "a reason");
            }
        }
        assert_eq!((stats.log.len(), stats.refusals.len()), (LOG_LENGTH, LOG_LENGTH));
        assert_eq!(stats.log.last().map(|one| one.status), Some(699));
        assert_eq!(stats.requests["data"].values().sum::<u64>(), 15_000);
    }

    #[test]
    fn statistics_are_a_record_with_every_endpoint() {
        let mut stats = Stats::new();
        stats.count(Some(Endpoint::Data), jiff::civil::date(2026, 11, 20));
        let json = serde_json::to_value(&stats).expect("a record");
        assert_eq!(json["requests"], serde_json::json!({"token": {}, "discovery": {}, "data": {}}));
        assert_eq!(json["data_requests_by_day"], serde_json::json!({"2026-11-20": 1}));
    }
}
