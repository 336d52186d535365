//! HTTP: sends requests, retries and counts them. Keys, tokens and points are handled elsewhere.
//!
//! | file | contents |
//! |---|---|
//! | `base_url` | the address of the service |
//! | `transport` | one attempt: one request, one reply with its complete body |
//! | `transport_settings` | the limits of a connection, whom it trusts, its proxy |
//! | `connections` | the pool of connections, with its TLS settings |
//! | `client_certificate` | what a connection presents where the service asks for a certificate |
//! | `body` | reading that body within its time limits |
//! | `inflate` | inflating that body up to a cap |
//! | `buffers` | a pool of buffers for large bodies |
//! | `trust` | which certificates are trusted |
//! | `bundle` | the certificates that a file contains |
//! | `server_verifier` | whether the certificate of a service is trusted |
//! | `proxy` | which proxy the requests use |
//! | `no_proxy` | the hosts that `NO_PROXY` names |
//! | `path_probe` | the way to the service, step by step, and reasons that the HTTP library loses |
//! | `failure` | errors of the HTTP library, converted |
//! | `problem` | error replies of the service |
//! | `certificate_refusal` | refusals of the client certificate |
//! | `note` | what an observer of a client is told of each request |
//! | `open_note` | its making, from the beginning of an attempt to its end |
//! | `retry` | the retry policy |
//! | `retry_after` | the header `Retry-After` |
//! | `allowance` | the daily allowance, counted before a request is sent, in memory or in a file |

pub mod allowance;
pub mod base_url;
mod body;
mod buffers;
mod bundle;
mod certificate_refusal;
mod client_certificate;
mod connections;
mod failure;
mod inflate;
mod names;
mod no_proxy;
mod note;
mod open_note;
pub(crate) mod path_probe;
pub(crate) mod problem;
pub mod proxy;
mod retry;
pub mod retry_after;
mod server_verifier;
mod transport;
mod transport_settings;
mod trust;

#[cfg(test)]
pub(crate) mod test_server;

pub use allowance::{AllowanceState, TimeOfDay};
pub use allowance::{Integration, Ledger, LocalLedger, Outcome, Permit, Reservation, Terms};
pub use base_url::BaseUrl;
pub(crate) use bundle::certificates;
pub(crate) use client_certificate::ClientCertificate;
pub(crate) use connections::provider;
pub(crate) use failure::handshake_problem;
#[cfg(test)]
pub(crate) use note::PointCount;
pub use note::{Observer, Recipient, RequestKind, RequestNote};
pub(crate) use open_note::OpenNote;
pub(crate) use problem::Problem;
pub use retry::Call;
pub(crate) use retry::RetryQuota;
pub use retry::{Deadline, Policy};
pub use retry_after::pause;
pub(crate) use server_verifier::ServerVerifier;
pub(crate) use transport::{Reply, Request, Transport};
pub use transport_settings::TransportSettings;
pub use trust::Trust;
