//! Faults: the endpoint, the requests, and the effect.

use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One fault. Several faults that match a request act in the order in which they were set. The
/// request is handled first: its jti is spent and its page counted in the allowance, as by a real
/// service.
#[derive(Debug, Clone)]
pub struct Fault {
    /// The endpoint that fails.
    pub on: Endpoint,
    /// Which requests fail, counted per endpoint since the fault was set.
    pub when: When,
    /// How they fail.
    pub effect: Effect,
}

/// The endpoints of the interface (§4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Endpoint {
    /// `POST /api/customer/oauth/token`
    Token,
    /// `GET /api/customer/v1/discovery`
    Discovery,
    /// `GET /api/customer/v1/data`
    Data,
}

impl Endpoint {
    pub(super) const ALL: [Self; 3] = [Self::Token, Self::Discovery, Self::Data];

    /// `token`, `discovery` or `data`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::Discovery => "discovery",
            Self::Data => "data",
        }
    }
}

/// Which requests a fault affects; the first request after it was set is number 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum When {
    /// Only this request.
    Nth(u64),
    /// Each k-th request.
    Every(u64),
    /// `count` requests in sequence, after `skip` that succeed.
    Times {
        count: u64,
        /// Requests that succeed before them.
        skip: u64,
    },
    /// Each request with this probability, drawn from the seed.
    Chance {
        /// Between 0 and 1.
        probability: f64,
        /// The seed of the draws.
        seed: u64,
    },
}

impl When {
    pub(super) fn applies_to(self, request: u64) -> bool {
        match self {
            Self::Nth(nth) => request == nth,
            Self::Every(step) => step > 0 && request.is_multiple_of(step),
            Self::Times { count, skip } => request > skip && request - skip <= count,
            Self::Chance { probability, seed } => {
                super::plant::uniform(&[seed, request]) < probability
            }
        }
    }
}

/// How a request fails.
#[derive(Debug, Clone)]
pub enum Effect {
    /// Sent unchanged, never compressed.
    Reply {
        status: u16,
        /// Headers in addition to `Date` and `Content-Length`.
        headers: Vec<(String, String)>,
        body: Bytes,
    },
    /// `temporarily_unavailable` with
    /// [`Options::unavailable_status`](super::Options::unavailable_status).
    Unavailable {
        /// `Retry-After` in seconds.
        retry_after: Option<u64>,
    },
    /// The sandbox's clock advances by this much before the request is handled.
    Delay(Duration),
    /// No reply: the connection stays open until the sandbox closes.
    Hang,
    /// The head and this many bytes of the body; then the connection stays open without data.
    Stall { after: usize },
    /// The head, with the length of the complete body, and this many bytes of it; then the
    /// connection is closed.
    Cut { after: usize },
    /// A TCP reset instead of a reply.
    Reset,
    /// These bytes instead of an HTTP reply; then the connection is closed.
    Raw(Bytes),
    /// `nextCursor` is the cursor of this request.
    RepeatCursor,
    /// `nextCursor` is the one of this many data replies before: 2 makes A, B, A, B.
    CycleCursors(usize),
    /// An empty page whose `nextCursor` is the cursor of the request.
    EmptyPage,
    /// Sets members of the body's top level to a JSON value, or removes them.
    Members(Vec<(String, Option<Value>)>),
    /// Sets or removes headers, `Date` included.
    Headers(Vec<(String, Option<String>)>),
    /// All tokens become invalid before the request is handled.
    ForgetTokens,
    /// All cursors become invalid before the request is handled.
    ForgetCursors,
    /// On the token endpoint: only these scopes are granted.
    Grant(Vec<String>),
}

/// The faults that are set, each with the number of requests since.
#[derive(Debug, Default)]
pub(super) struct ActiveFaults(Vec<(Fault, u64)>);

impl ActiveFaults {
    pub(super) fn add(&mut self, fault: Fault) {
        self.0.push((fault, 0));
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn next_request(&mut self, endpoint: Endpoint) -> Vec<Effect> {
        let mut effects = Vec::new();
        for (fault, requests) in self.0.iter_mut().filter(|(fault, _)| fault.on == endpoint) {
            *requests += 1;
            if fault.when.applies_to(*requests) {
                effects.push(fault.effect.clone());
            }
        }
        effects
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(when: When) -> Vec<u64> {
        (1..=8).filter(|request| when.applies_to(*request)).collect()
    }

    #[test]
    fn a_fault_affects_the_requests_that_it_names() {
        assert_eq!(hit(When::Nth(3)), [3]);
        assert_eq!(hit(When::Every(3)), [3, 6]);
        assert_eq!(hit(When::Times { count: 2, skip: 4 }), [5, 6]);
        assert_eq!(hit(When::Chance { probability: 1.0, seed: 1 }).len(), 8);
        assert_eq!(hit(When::Chance { probability: 0.0, seed: 1 }).len(), 0);
    }
}
