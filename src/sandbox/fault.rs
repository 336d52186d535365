//! The script of faults: on which endpoint, when, and what goes wrong.

use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

/// One line of the script. Several may strike the same request; they act in the order in which
/// they were set. A faulted request is worked through first: its jti is spent, its page counted
/// in the allowance, as a real service would.
#[derive(Debug, Clone)]
pub struct Fault {
    /// The endpoint that it strikes.
    pub on: Endpoint,
    /// Which requests, counted per endpoint from the moment the fault was set.
    pub when: When,
    /// What goes wrong.
    pub what: Act,
}

/// The endpoints of the interface (§4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Endpoint {
    /// `POST /api/customer/oauth/token`
    Token,
    /// `GET /api/customer/v1/discovery`
    Discovery,
    /// `GET /api/customer/v1/data`
    Data,
}

impl Endpoint {
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

/// Which requests a fault strikes; the first one after it was set is number 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum When {
    /// This one only.
    Nth(u64),
    /// Each k-th.
    Every(u64),
    /// `count` in a row, after `skip` that go well.
    Times {
        /// How many it strikes.
        count: u64,
        /// How many before them it lets pass.
        skip: u64,
    },
    /// Each with this probability, drawn from the seed.
    Chance {
        /// Between 0 and 1.
        probability: f64,
        /// Another seed strikes other requests.
        seed: u64,
    },
}

impl When {
    pub(super) fn strikes(self, request: u64) -> bool {
        match self {
            Self::Nth(nth) => request == nth,
            Self::Every(step) => step > 0 && request.is_multiple_of(step),
            Self::Times { count, skip } => request > skip && request - skip <= count,
            Self::Chance { probability, seed } => {
                super::synth::uniform(&[seed, request]) < probability
            }
        }
    }
}

/// What goes wrong.
#[derive(Debug, Clone)]
pub enum Act {
    /// This reply in place of the right one; it is sent as it stands, never compressed.
    Reply {
        /// The status.
        status: u16,
        /// Headers beside `Date` and `Content-Length`.
        headers: Vec<(String, String)>,
        /// The body's bytes.
        body: Bytes,
    },
    /// `temporarily_unavailable` with the status of the shape.
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

/// The faults that are set, each with its own count of requests.
#[derive(Debug, Default)]
pub(super) struct Script(Vec<(Fault, u64)>);

impl Script {
    pub(super) fn add(&mut self, fault: Fault) {
        self.0.push((fault, 0));
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Counts a request and gives what strikes it.
    pub(super) fn strike(&mut self, endpoint: Endpoint) -> Vec<Act> {
        let mut acts = Vec::new();
        for (fault, seen) in self.0.iter_mut().filter(|(fault, _)| fault.on == endpoint) {
            *seen += 1;
            if fault.when.strikes(*seen) {
                acts.push(fault.what.clone());
            }
        }
        acts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn struck(when: When) -> Vec<u64> {
        (1..=8).filter(|request| when.strikes(*request)).collect()
    }

    #[test]
    fn a_fault_strikes_the_requests_that_it_names() {
        assert_eq!(struck(When::Nth(3)), [3]);
        assert_eq!(struck(When::Every(3)), [3, 6]);
        assert_eq!(struck(When::Times { count: 2, skip: 4 }), [5, 6]);
        assert_eq!(struck(When::Chance { probability: 1.0, seed: 1 }).len(), 8);
        assert_eq!(struck(When::Chance { probability: 0.0, seed: 1 }).len(), 0);
    }
}
