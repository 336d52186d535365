//! HTTP: sends requests, retries them and counts them. Keys, tokens and points are handled
//! elsewhere.

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
pub(crate) use bundle::read as certificates;
pub(crate) use certificate_refusal::may_be_refusal;
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
pub(crate) use server_verifier::{ServerVerifier, has_purpose, timestamp};
pub(crate) use transport::{Reply, Request, Transport};
pub use transport_settings::TransportSettings;
pub use trust::Trust;
