//! One request at a time, counted. What is in here knows addresses, bytes and limits, and nothing
//! of keys, tokens or points.
//!
//! | file | noun |
//! |---|---|
//! | `base_url` | where the service is |
//! | `transport` | one attempt: one request, one reply with its whole body |
//! | `body` | reading that body, within its time limits |
//! | `inflate` | its bytes, inflated within their cap |
//! | `buffers` | the memory of large bodies, used again |
//! | `trust` | which certificates are trusted |
//! | `proxy` | which proxy the requests go through |
//! | `failure` | what a broken attempt means, in our own words |
//! | `problem` | what the service says when it refuses |
//! | `retry` | which attempts follow one another, and when |
//! | `retry_after` | what the service asked for with `Retry-After` |
//! | `allowance` | the daily allowance, counted before the bytes leave, in memory or in a file |

pub(crate) mod allowance;
pub(crate) mod base_url;
mod body;
mod buffers;
mod failure;
mod inflate;
pub(crate) mod problem;
pub(crate) mod proxy;
mod retry;
pub(crate) mod retry_after;
mod transport;
mod trust;

#[cfg(test)]
pub(crate) mod test_server;

pub use allowance::{
    AllowanceState, DefaultLedger, FileLedger, Integration, Ledger, MemoryLedger, Reservation,
    Terms, TimeOfDay,
};
pub use base_url::BaseUrl;
pub(crate) use problem::Problem;
pub use proxy::has_password;
pub(crate) use retry::{Call, RetryQuota};
pub use retry::{Deadline, Policy};
pub use transport::TransportSettings;
pub(crate) use transport::{Reply, Request, Transport};
pub use trust::{Trust, certificates_of};
