//! One request at a time, counted. What is in here knows addresses, bytes and limits, and nothing
//! of keys, tokens or points.
//!
//! | file | noun |
//! |---|---|
//! | [`base_url`] | where the service is |
//! | [`transport`] | one attempt: one request, one reply with its whole body |
//! | `body` | reading that body, within its time limits |
//! | `inflate` | its bytes, inflated within their cap |
//! | `buffers` | where large ones come to stand |
//! | [`trust`] | which certificates are trusted |
//! | [`proxy`] | which proxy the requests go through |
//! | `failure` | what a broken attempt means, in our own words |
//! | [`problem`] | what the service says when it refuses |
//! | [`retry`] | which attempts follow one another, and when |
//! | [`retry_after`] | what the service asked for with `Retry-After` |
//! | [`allowance`] | the daily allowance, counted before the bytes leave |
//! | [`count`] | the counting itself, the same for every ledger |
//! | [`day`] | when the service's day begins |

pub mod allowance;
pub mod base_url;
mod body;
mod buffers;
pub mod count;
pub mod day;
mod failure;
mod inflate;
pub mod problem;
pub mod proxy;
pub mod retry;
pub mod retry_after;
pub mod transport;
mod trust;

#[cfg(test)]
pub(crate) mod test_server;

pub use allowance::{AllowanceState, Ledger, MemoryLedger, Reservation};
pub use base_url::BaseUrl;
pub use count::{Count, Terms};
pub use day::TimeOfDay;
pub use problem::Problem;
pub use retry::{Call, Deadline, Policy, RetryQuota};
pub use transport::{Reply, Request, Transport, TransportSettings};
pub use trust::{Trust, certificates_of};
