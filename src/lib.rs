//! The core of siteline: aggregated time series of the Customer Data Service, complete, merged and
//! counted. It knows no Python; the feature `python` adds the thin layer that does.
//!
//! The data's path, in one line:
//!
//! ```text
//! Query -> Chain -> (allowance, token, retry) one request -> bytes -> decode -> RecordBatch -> Page -> Python
//! ```
//!
//! The rooms, from the ground up (a room knows only those above it in this list that are named):
//!
//! | room | holds | knows |
//! |---|---|---|
//! | [`error`] | the one error type, and what is transient | - |
//! | [`clock`] | time, and the service's time once learnt | - |
//! | [`http`] | one attempt, retries, the allowance | error, clock |
//! | [`auth`] | keys, assertions, tokens | error, clock, http |
//! | [`data`] | query, cursor, chain, decoding, merging | error |
//! | [`client`] | the authorised send; scans; discovery | all of the above |
//! | [`settings`] | arguments and environment into a client | error, clock, auth, http, client |
//! | [`sandbox`] | the service itself, as an independent witness | clock |
//! | `python` | the Python layer, behind its feature | all |

pub mod auth;
pub mod client;
pub mod clock;
pub mod data;
pub mod error;
pub mod http;
pub mod sandbox;
pub mod settings;

#[cfg(feature = "python")]
mod python;

pub use error::{Error, Kind, Result};

/// The version of this crate and of the Python package.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
