//! The core of siteline: aggregated time series of the Customer Data Service, complete, merged and
//! counted. It knows no Python; the feature `python` adds the thin layer that does.
//!
//! The data's path, in one line:
//!
//! ```text
//! Query -> Chain -> (allowance, token, retry) one request -> bytes -> decode -> PointColumns -> Page -> Python
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
//! | [`client`] | the authorised send; scans; discovery | error, clock, http, auth, data |
//! | [`store`] | one file: every version of every point, and the ledger of requests | error, http, data |
//! | [`sync`] | feeds kept right while the service revises its data | error, clock, http, data, client, store |
//! | [`settings`] | what variables and a profile say about a client | error |
//! | [`sandbox`] | the service itself, as an independent witness | clock |
//! | `python` | the Python layer, behind its feature | all |
//!
//! Chosen parts, and parts left out:
//!
//! | for | we took | and not |
//! |---|---|---|
//! | HTTP | reqwest on hyper and rustls, its redirects, retries and decompression off | its own decompression: it hides `Content-Encoding`, and why a body broke off |
//! | gzip | libdeflate for a body that is whole and of one member; flate2 over zlib-rs as the bytes come, up to a cap, for every other | zlib-rs alone: 2.3 times as slow; miniz_oxide: 1.4 times as slow again |
//! | signatures | aws-lc-rs | a JWT library: two header fields and seven claims, signed in one way for a key and for a vault's callable, are less than its options |
//! | retries | one policy of ours ([`http::Policy`]) | a retry crate: pauses, deadlines, quota and fresh assertions are what it would have to be taught |
//! | times | jiff | |
//! | columns | arrow, exported by the C data interface | pyarrow: it is not needed to hand over a frame |
//! | JSON of the data | a strict pull parser of ours ([`data`]): bit-equal doubles, exact positions, no tree | serde: errors without a path, a number read before its column is known |
//! | profiles | toml, read into a table and checked member by member; strsim for "is … meant?" | serde's derive: its errors show values |
//! | the store | `SQLite` inside (rusqlite): one transaction for a page, its bookmark and its coverage | a row for each point: blocks of a series' points are smaller, faster, and carry a checksum |
//! | certificates | the platform's verifier; rustls-native-certs for `SSL_CERT_FILE` and `SSL_CERT_DIR` | |
//! | JSON of all else | `serde_json` | |
//! | Python | pyo3, pyo3-log for the shape of a record | |
//! | asyncio | a bridge of ours (`python/awaitable.rs`) | pyo3-async-runtimes: it prints where a loop was closed meanwhile, attaches on the threads that drive connections, also while the interpreter ends, and a panic surfaces as an exception of its own |
//! | the sandbox | hyper itself, so that a fault can be written to the socket byte by byte | axum |

pub mod auth;
pub mod client;
pub mod clock;
pub mod data;
pub mod error;
pub mod http;
pub mod sandbox;
pub mod settings;
pub mod store;
pub mod sync;

#[cfg(feature = "python")]
mod python;

pub use error::{Error, Kind, Result};

/// The version of this crate and of the Python package.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
