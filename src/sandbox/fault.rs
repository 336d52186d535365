//! Faults: on which endpoint, at which requests, and what goes wrong.

use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One thing that goes wrong. Where several match a request, they act in the order in which they
/// were set. The request is handled first: its jti is spent, its page counted in the allowance, as
/// a real service would.
#[derive(Debug, Clone)]
pub struct Fault {
    /// The endpoint that fails.
    pub on: Endpoint,
    /// Which requests, counted per endpoint from the moment the fault was set.
    pub when: When,
    /// What goes wrong.
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
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::Discovery => "discovery",
            Self::Data => "data",
        }
    }
}

/// Which requests a fault hits; the first one after it was set is number 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum When {
    /// This one only.
    Nth(u64),
    /// Each k-th.
    Every(u64),
    /// `count` in a row, after `skip` that go well.
    Times {
        /// How many fail.
        count: u64,
        /// How many before them go well.
        skip: u64,
    },
    /// Each with this probability, drawn from the seed.
    Chance {
        /// Between 0 and 1.
        probability: f64,
        /// Another seed picks other requests.
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

/// What goes wrong.
#[derive(Debug, Clone)]
pub enum Effect {
    /// This reply in place of the right one; it is sent as it stands, never compressed.
    Reply {
        /// The status.
        status: u16,
        /// Headers beside `Date` and `Content-Length`.
        headers: Vec<(String, String)>,
        /// The body's bytes.
        body: Bytes,
    },
    /// `temporarily_unavailable` with
    /// [`Options::unavailable_status`](super::Options::unavailable_status).
    Unavailable {
        /// `Retry-After` in seconds.
        retry_after: Option<u64>,
    },
    /// The sandbox's clock moves on by this much before the request is looked at.
    Delay(Duration),
    /// No reply at all: the connection stays open until the sandbox closes.
    Hang,
    /// The head and this many bytes of the body, then nothing more, on an open connection.
    Stall {
        /// Bytes of the body that are sent.
        after: usize,
    },
    /// The head, which promises the whole body, and this many bytes of it; then the end.
    Cut {
        /// Bytes of the body that are sent.
        after: usize,
    },
    /// A TCP reset in place of a reply.
    Reset,
    /// These bytes in place of an HTTP reply; then the end.
    Raw(Bytes),
    /// `nextCursor` is the cursor that this request came with.
    RepeatCursor,
    /// `nextCursor` is the one given this many data replies before: 2 makes A, B, A, B.
    CycleCursors(usize),
    /// An empty page, whose `nextCursor` stands where the request stood.
    EmptyPage,
    /// Members of the body's top level set to a JSON value, or removed.
    Members(Vec<(String, Option<Value>)>),
    /// Headers set or removed (`Date` too).
    Headers(Vec<(String, Option<String>)>),
    /// All tokens are forgotten before the request is looked at.
    ForgetTokens,
    /// All cursors die before the request is looked at.
    ForgetCursors,
    /// On the token endpoint: only these scopes are granted.
    Grant(Vec<String>),
}

/// The faults that are set, each with the number of requests that came since.
#[derive(Debug, Default)]
pub(super) struct ActiveFaults(Vec<(Fault, u64)>);

impl ActiveFaults {
    pub(super) fn add(&mut self, fault: Fault) {
        self.0.push((fault, 0));
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Counts a request; gives what goes wrong with it.
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
    fn a_fault_hits_the_requests_that_it_names() {
        assert_eq!(hit(When::Nth(3)), [3]);
        assert_eq!(hit(When::Every(3)), [3, 6]);
        assert_eq!(hit(When::Times { count: 2, skip: 4 }), [5, 6]);
        assert_eq!(hit(When::Chance { probability: 1.0, seed: 1 }).len(), 8);
        assert_eq!(hit(When::Chance { probability: 0.0, seed: 1 }).len(), 0);
    }
}
