//! What the service saw: for assertions in tests, and for a user who wants to know what his
//! program really did.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use jiff::civil::Date;

use super::fault::Endpoint;

/// So many requests and refusals are remembered: a sandbox may serve for days.
pub const KEPT: usize = 10_000;

/// What a sandbox has seen since its start. A copy; it does not change any more.
#[derive(Debug, Clone, Default)]
pub struct Stats {
    /// Requests by endpoint name (`token`, `discovery`, `data`, `other`) and status; 0 stands for
    /// a request that got no orderly reply.
    pub requests: BTreeMap<(&'static str, u16), u64>,
    /// Requests to the token endpoint.
    pub token_requests: u64,
    /// Tokens issued.
    pub tokens_issued: u64,
    /// Requests to the discovery endpoint.
    pub discovery_requests: u64,
    /// Requests to the data endpoint, whatever came of them.
    pub data_requests: u64,
    /// The same per UTC day of the service's clock.
    pub data_requests_by_day: BTreeMap<Date, u64>,
    /// Points sent in orderly data replies.
    pub points_sent: u64,
    /// All jtis that were presented, in order, repeats too.
    pub jtis: Vec<String>,
    /// Why requests were refused, in order: `"token: kid is not ..."`; the last [`KEPT`] of them.
    pub refusals: Vec<String>,
    /// The `User-Agent`s that came.
    pub user_agents: BTreeSet<String>,
    /// One line for each request, in order; the last [`KEPT`] of them.
    pub log: Vec<Exchange>,
}

/// One request and its status. Neither tokens nor cursors are in it.
#[derive(Debug, Clone)]
pub struct Exchange {
    /// When it came, by the service's clock.
    pub at: Timestamp,
    /// The method.
    pub method: String,
    /// The path.
    pub path: String,
    /// The query as sent; the values of `cursor`, and of parameters that the document does not
    /// name, replaced by a short hash.
    pub query: String,
    /// The status; 0 where there was no orderly reply.
    pub status: u16,
}

impl Stats {
    /// Data requests in the UTC day of this time.
    #[must_use]
    pub fn data_requests_on(&self, date: Date) -> u64 {
        self.data_requests_by_day.get(&date).copied().unwrap_or_default()
    }

    /// Requests that this endpoint answered with this status.
    #[must_use]
    pub fn replies(&self, endpoint: Endpoint, status: u16) -> u64 {
        self.requests.get(&(endpoint.name(), status)).copied().unwrap_or_default()
    }

    pub(super) fn refuse(&mut self, endpoint: Endpoint, reason: &str) {
        push(&mut self.refusals, format!("{}: {reason}", endpoint.name()));
    }

    /// Counts a request at its arrival.
    pub(super) fn arrived(&mut self, endpoint: Option<Endpoint>, today: Date) {
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

    /// Writes down what became of it.
    pub(super) fn ended(&mut self, endpoint: Option<Endpoint>, exchange: Exchange) {
        let name = endpoint.map_or("other", Endpoint::name);
        *self.requests.entry((name, exchange.status)).or_default() += 1;
        push(&mut self.log, exchange);
    }
}

fn push<T>(kept: &mut Vec<T>, new: T) {
    if kept.len() == KEPT {
        kept.remove(0);
    }
    kept.push(new);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_run_is_remembered_by_its_counts_and_its_last_requests() {
        let mut stats = Stats::default();
        for status in 200..700 {
            for _ in 0..30 {
                let (method, path, query) = (String::new(), String::new(), String::new());
                let at = Timestamp::UNIX_EPOCH;
                stats.ended(Some(Endpoint::Data), Exchange { at, method, path, query, status });
                stats.refuse(Endpoint::Data, "a reason");
            }
        }
        assert_eq!((stats.log.len(), stats.refusals.len()), (KEPT, KEPT));
        assert_eq!(stats.log.last().map(|one| one.status), Some(699));
        assert_eq!(stats.requests.values().sum::<u64>(), 15_000);
    }
}
